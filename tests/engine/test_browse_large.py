"""With a million memories operators wait no longer than with a thousand."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from engine import browse
from engine.browse import Selection
from engine.models import Memory
from engine.port import Position
from lifecycle.commands import Stop, no_report
from lifecycle.many_memories import Plan, make

SMALL, LARGE = 1_000, 1_000_000
DAY = 86_400_000
MAX_SECONDS = 0.3
RATIO = 3.0
PAGE_SECONDS = 0.02
"""What a page or an RPC call takes beside: the ratio is that of the whole."""


def asked() -> dict[str, Callable[[], Any]]:
    """What list pages, dashboards and the RPC ask."""
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
    }
    calls: dict[str, Callable[[], Any]] = {}
    for name, one in selections.items():
        calls[f"page: {name}"] = lambda one=one: browse.page(one)
        calls[f"oldest: {name}"] = lambda one=one: browse.page(one, oldest_first=True)
        calls[f"from the middle: {name}"] = lambda one=one: browse.page(one, after=middle)
        calls[f"count: {name}"] = lambda one=one: browse.count(one, at_most=1_000)
        calls[f"facets: {name}"] = lambda one=one: browse.facets(one)
    for name in ("full tab", "self tab of a user", "full tab of an agent", "a session"):
        calls[f"turns: {name}"] = lambda one=selections[name]: browse.turn_page(one)
    of_agent = selections["full tab of an agent"]
    calls["last page by number"] = lambda: browse.offset_page(of_agent, offset=browse.count(of_agent) - 50, limit=50)
    for name in ("everything", "a session"):
        calls[f"two years: {name}"] = lambda one=selections[name]: browse.dashboard(one, months)
    calls["two years: an agent"] = lambda: browse.dashboard(Selection(agent_id="coder"), months)
    calls["two years: a user"] = lambda: browse.dashboard(Selection(user_pk=user), months)
    calls["a day by hours"] = lambda: browse.dashboard(Selection(), [now - DAY + n * 3_600_000 for n in range(25)])
    calls["a month by days"] = lambda: browse.dashboard(Selection(), [now - 30 * DAY + n * DAY for n in range(31)])
    return calls


def seconds(call: Callable[[], Any]) -> float:
    """The best of some. On SQLite this thread's own time: other work on the machine does not count."""
    clock = time.thread_time if connection.vendor == "sqlite" else time.perf_counter
    call()
    best = []
    for _ in range(3):
        began = clock()
        call()
        best.append(clock() - began)
    return min(best)


def scan() -> None:
    """One walk over the rows that tells what a dashboard over two years does, but for its top lists."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT created_at_ms / 86400000, category, count(*), sum(importance) FROM engine_memory "
            "WHERE hidden_at IS NULL GROUP BY 1, 2"
        )
        cursor.fetchall()


@pytest.mark.torture
@pytest.mark.django_db
def test_a_million_is_as_quick_as_a_thousand(capsys: pytest.CaptureFixture[str]) -> None:
    make(Plan(SMALL, 200, seed=1, is_indexed=False), report=no_report, stop=Stop())
    small = {name: seconds(call) for name, call in asked().items()}
    make(Plan(LARGE - SMALL, 200, seed=2, is_indexed=False), report=no_report, stop=Stop())
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    large = {name: seconds(call) for name, call in asked().items()}
    walk = seconds(scan)
    with capsys.disabled():
        for name, took in large.items():
            print(f"{name:50} {small[name] * 1000:8.1f} ms {took * 1000:8.1f} ms")  # noqa: T201
        print(f"{'a walk over the rows':50} {walk * 1000:20.1f} ms")  # noqa: T201
    slow = {name for name, took in large.items() if took > MAX_SECONDS}
    slow |= {name for name, took in large.items() if took + PAGE_SECONDS > RATIO * (small[name] + PAGE_SECONDS)}
    assert not slow
    assert large["two years: everything"] <= 0.10 * walk
