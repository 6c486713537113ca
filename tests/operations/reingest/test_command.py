"""`manage.py reingest`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEvent
from operations.models import Job
from store.models import Memory
from tests.operations.reingest.conftest import SwitchedGateway
from tests.remote.conftest import NOON
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("reingest", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def report(*arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run("--json", *arguments))
    return answer


def test_without_apply_it_only_counts(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.delete("bicycle")
    before = list(Memory.objects.values())
    output = run("--all")
    assert "1 sessions, 0 files, 2 messages and passages" in output
    assert "1 deletions and 0 overrides stay in force" in output
    assert "Nothing was changed" in output
    assert run("--all", "--apply", "--dry-run") == output
    assert list(Memory.objects.values()) == before


def test_the_cost_is_estimated_where_a_price_is_known(gateway: SwitchedGateway) -> None:
    gateway.detach()
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.attach()
    assert report("--all", "--into", "remote", "--price", "2000000")["estimate"]["cost"] > 0
    assert report("--all", "--into", "remote")["estimate"]["cost"] is None


def test_apply_sends_again_and_counts(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 1000)
    gateway.delete("bicycle")
    answer = report("--all", "--apply")
    assert answer == {
        "sessions": 1, "messages": 1, "made": 1, "replaced": 1, "stayed": 0, "carried": 0, "kept": 0, "failures": {},
    }  # fmt: skip
    assert gateway.search_texts("bicycle car") == ["alice said: the car is blue"]
    job, event = Job.objects.get(), AuditEvent.objects.get(action="job.reingest")
    assert (job.status, job.done, job.total) == ("done", 1, 1)
    assert (event.detail["into"], event.detail["sessions"]) == (None, 1)


def test_a_failure_is_exit_code_1(gateway: SwitchedGateway) -> None:
    gateway.detach()
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.attach()
    gateway.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("reingest", "--all", "--into", "remote", "--apply", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    assert "failed: The memory engine refused the request" in out.getvalue()


def test_one_session_of_a_user_can_be_sent(gateway: SwitchedGateway) -> None:
    gateway.detach()
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:2", "the car is blue")
    gateway.attach()
    report("--user", "alice", "--session", "chat:1", "--into", "remote", "--apply")
    shown = Memory.objects.filter(is_covered=False)
    assert set(shown.values_list("session__session_id", "origin")) == {
        ("chat:1", "upstream"),
        ("chat:2", "embedded"),
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Specify what to ingest"),
        (("--all", "--user", "alice"), "Specify what to ingest"),
        (("--session", "chat:1", "--all"), "Specify what to ingest"),
        (("--user", "nobody"), "no such user"),
        (("--user", "alice", "--session", "chat:9"), "no such session"),
        (("--resource", "r_x"), "no such resource"),
        (("--all", "--workers", "0"), "--workers must be 1 to 16"),
        (("--all", "--price", "-3"), "--price must be 0 or more"),
        (("--all", "--price", "nan"), "--price must be 0 or more"),
        (("--resume",), "There is no interrupted re-ingest"),
    ],
)
def test_invalid_options_are_rejected(gateway: SwitchedGateway, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
