"""Measure the calls of `store.browse` that list pages, dashboards and the RPC make.

`python -m tests.store.browse_calls`, run in a gateway's environment, prints JSON: name of the call → milliseconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from store import browse  # noqa: E402
from store.browse import Selection  # noqa: E402
from store.models import Memory  # noqa: E402
from store.types import Position  # noqa: E402

DAY = 86_400_000
ROUNDS = 5


def benchmark_calls() -> dict[str, Callable[[], Any]]:
    """Return the calls to measure by name."""
    latest = Memory.objects.latest("created_at_ms")
    now, user = latest.created_at_ms, latest.user_id
    middle = Position(now - 365 * DAY, 1)
    months = [now - 730 * DAY, *((now // DAY - number) * DAY for number in range(690, 0, -30)), now]
    selections = {
        "everything": Selection(),
        "user tab": Selection(tab="user"),
        "full tab": Selection(tab="full"),
        "self tab of a user": Selection(tab="self", user_pk=user),
        "full tab of an agent": Selection(tab="full", agent_id="coder"),
        "of a user's agent": Selection(tab="user", user_pk=user, agent_id="coder"),
        "an agent that is not there": Selection(tab="user", agent_id="nobody"),
        "a session": Selection(tab="full", session_id=latest.session.session_id if latest.session else None),
        "an origin": Selection(origin="panel", tab="user"),
        "importance": Selection(importance_min=0.9, tab="user"),
        "importance where none has any": Selection(importance_min=0.9, tab="full"),
        "a year ago": Selection(tab="full", since_ms=middle.created_at_ms, until_ms=middle.created_at_ms + DAY),
        "trash": Selection(in_trash=True),
        "an application": Selection(app_id="default"),
    }
    calls: dict[str, Callable[[], Any]] = {}
    for name, selection in selections.items():
        calls[f"page: {name}"] = partial(browse.page, selection)
        calls[f"oldest: {name}"] = partial(browse.page, selection, oldest_first=True)
        calls[f"from the middle: {name}"] = partial(browse.page, selection, after=middle)
        calls[f"count: {name}"] = partial(browse.count, selection, at_most=1_000)
        calls[f"facets: {name}"] = partial(browse.facets, selection)
    for name in ("full tab", "self tab of a user", "full tab of an agent", "a session"):
        calls[f"turns: {name}"] = partial(browse.turn_page, selections[name])
    of_agent = selections["full tab of an agent"]
    calls["last page by number"] = partial(browse.offset_page, of_agent, offset=browse.count(of_agent) - 50, limit=50)
    for name in ("everything", "a session", "an application"):
        calls[f"two years: {name}"] = partial(browse.dashboard, selections[name], months)
    calls["two years: an agent"] = partial(browse.dashboard, Selection(agent_id="coder"), months)
    calls["two years: a user"] = partial(browse.dashboard, Selection(user_pk=user), months)
    hours, days = [now - DAY + n * 3_600_000 for n in range(25)], [now - 30 * DAY + n * DAY for n in range(31)]
    calls["a day by hours"] = partial(browse.dashboard, Selection(), hours)
    calls["a month by days"] = partial(browse.dashboard, Selection(), days)
    return calls


def scan() -> None:
    """Count the memories of each category and day with one scan over an index, as a unit to compare with."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT category, created_at_ms / 86400000, count(*) FROM store_memory "
            "WHERE state = 'live' GROUP BY category, created_at_ms / 86400000"
        )
        cursor.fetchall()


def best_ms(call: Callable[[], Any]) -> float:
    """Return the best of `ROUNDS` durations; on SQLite the processor time, which other processes do not affect."""
    clock = time.thread_time if connection.vendor == "sqlite" else time.perf_counter
    call()
    times = []
    for _ in range(ROUNDS):
        began = clock()
        call()
        times.append(clock() - began)
    return min(times) * 1000


if __name__ == "__main__":
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    json.dump({name: best_ms(call) for name, call in {**benchmark_calls(), "a scan": scan}.items()}, sys.stdout)
