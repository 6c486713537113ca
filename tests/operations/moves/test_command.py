"""`manage.py reingest`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from store.models import Memory
from tests.operations.moves.conftest import TwoEngineGateway
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


def test_without_apply_it_only_counts(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.delete("bicycle")
    before = list(Memory.objects.values())
    output = run("--all", "--into", "embedded")
    assert "1 sessions, 0 files, 2 messages to replay" in output
    assert "1 deletions and 0 overrides to transfer" in output
    assert "Nothing was changed" in output
    assert run("--all", "--into", "embedded", "--apply", "--dry-run") == output
    assert list(Memory.objects.values()) == before


def test_the_cost_is_estimated_where_a_price_is_known(gateway: TwoEngineGateway) -> None:
    gateway.use_engine("embedded")
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.use_engine("upstream")
    assert report("--all", "--into", "upstream", "--price", "2000000")["estimate"]["cost"] > 0
    assert report("--all", "--into", "upstream")["estimate"]["cost"] is None


def test_apply_moves_and_verifies(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 1000)
    gateway.delete("bicycle")
    answer = report("--all", "--into", "embedded", "--apply")
    assert (answer["sessions"], answer["messages"], answer["carried"]) == (1, 2, 1)
    assert not any(answer["verified"].values())
    assert answer["unmatched_decisions"] == []
    gateway.use_engine("embedded")
    assert gateway.search_texts("bicycle car") == ["the car is blue"]


def test_an_incomplete_move_is_exit_code_1(gateway: TwoEngineGateway) -> None:
    gateway.use_engine("embedded")
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.use_engine("upstream")
    gateway.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("reingest", "--all", "--into", "upstream", "--apply", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    assert "was not moved" in out.getvalue()
    assert "Verification failed" in out.getvalue()


def test_one_session_of_a_user_can_be_moved(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:2", "the car is blue")
    report("--user", "alice", "--session", "chat:1", "--into", "embedded", "--apply")
    shown = Memory.objects.filter(is_covered=False)
    assert set(shown.values_list("session__session_id", "origin")) == {
        ("chat:1", "embedded"),
        ("chat:2", "upstream"),
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Specify what to move"),
        (("--all", "--user", "alice"), "Specify what to move"),
        (("--session", "chat:1", "--all"), "Specify what to move"),
        (("--user", "nobody"), "no such user"),
        (("--user", "alice", "--session", "chat:9"), "no such session"),
        (("--resource", "r_x"), "no such resource"),
        (("--all", "--workers", "0"), "--workers must be 1 to 16"),
        (("--all", "--price", "-3"), "--price must be 0 or more"),
        (("--all", "--price", "nan"), "--price must be 0 or more"),
        (("--resume",), "There is no interrupted move"),
    ],
)
def test_invalid_options_are_rejected(gateway: TwoEngineGateway, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
