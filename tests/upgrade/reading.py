"""Read what all users see, repeat their calls, or undo jobs: `python -m tests.upgrade.reading VERB STATE ANSWER`.

It runs in a process of the gateway's environment, without a worker. In the STATE of a gateway with EverOS is what its
stand-in holds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import memory_gateway.django_setup  # noqa: F401  must come first: it sets up Django

# isort: split
from django.conf import settings
from django.test.utils import setup_test_environment

from accounts.audit import Actor
from accounts.models import MemoryUser
from operations import jobs
from operations.models import Job
from store.models import Memory
from tests.stub_everos import Store
from tests.stub_upstream import StubUpstream
from tests.upgrade.view import MARK, Reader, view_of

_LISTS = ("episodes", "profiles", "agent_cases", "agent_skills")


def main() -> None:
    setup_test_environment()  # for the host name of the test client
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("read", "repeat", "undo"))
    parser.add_argument("state", type=Path)
    parser.add_argument("answer", type=Path)
    options = parser.parse_args()
    state = json.loads(options.state.read_text())
    with everos(state) as stub:
        answer = {"read": read, "repeat": repeat, "undo": undo}[options.verb](state, stub)
    options.answer.write_text(json.dumps(answer, ensure_ascii=False))


def read(state: Mapping[str, Any], _stub: StubUpstream | None) -> dict[str, Any]:
    """Return the view of each user, with the ids and the words by which it was read.

    They are those of `state` if it has any, else all that the database has, or each of a `step` of them.
    """
    return {user_id: _read_user(user_id, user) for user_id, user in state["users"].items()}


def _read_user(user_id: str, user: Mapping[str, Any]) -> dict[str, Any]:
    ids, marks = user.get("ids"), user.get("marks")
    if ids is None or marks is None:
        rows = list(Memory.objects.filter(user__user_id=user_id).values_list("memory_id", "text"))
        ids = sorted(memory_id for memory_id, _ in rows)[:: user.get("step", 1)]
        marks = sorted(set(MARK.findall(" ".join(text for _, text in rows) + json.dumps(user["talks"]))))
    return {"ids": ids, "marks": marks, "view": view_of(Reader(user["key"]), ids, marks)}


def repeat(state: Mapping[str, Any], stub: StubUpstream | None) -> dict[str, Any]:
    """Send every add again; return the statuses and the rows before and after, and what EverOS got."""
    before = rows_by_user()
    statuses: list[list[Any]] = []
    for user_id, user in state["users"].items():
        for body in user["talks"]:
            answer = Reader(user["key"]).send("post", "/memories/add", body)
            statuses.append([user_id, body["session_id"], answer.status_code])
    sent = [message["content"] for call in stub.calls("add") for message in call["messages"]] if stub else []
    return {"before": before, "after": rows_by_user(), "statuses": statuses, "sent": sent}


def undo(_state: Mapping[str, Any], _stub: StubUpstream | None) -> dict[str, Any]:
    """Undo the jobs of operators, the newest first; return the result of each undo by the kind of its job."""
    undone = {}
    for job in Job.objects.filter(kind__in=("delete", "restore", "categorize")).order_by("-created_at"):
        one = jobs.run_now(jobs.undo(job.pk, actor=Actor.operator("olga"), is_for_worker=False))
        assert one.status == "done", one.error
        undone[job.kind] = one.result
    return undone


def rows_by_user() -> dict[str, int]:
    """Return the number of rows of memories and messages of each user."""
    users = MemoryUser.objects.values_list("pk", "user_id")
    return {user_id: Memory.objects.filter(user=pk).count() for pk, user_id in users}


@contextlib.contextmanager
def everos(state: Mapping[str, Any]) -> Iterator[StubUpstream | None]:
    """Run the stand-in for EverOS with what it held, and attach it."""
    if "everos" not in state:
        yield None
        return
    with StubUpstream() as stub:
        load_store(stub.store, state["everos"])
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        yield stub


def load_store(store: Store, held: Mapping[str, Any]) -> None:
    for name in _LISTS:
        getattr(store, name).extend(held[name])
    store.counter = held["counter"]
    for (app_id, project_id, session_id), messages in held["buffers"]:
        store.buffers[app_id, project_id, session_id] = messages


if __name__ == "__main__":
    main()
