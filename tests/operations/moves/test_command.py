"""`manage.py reingest`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from store.models import Memory
from tests.engines.everos.conftest import NOON
from tests.operations.moves.conftest import World
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("reingest", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def report(*arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run("--json", *arguments))
    return answer


def test_without_apply_it_only_counts(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.delete("bicycle")
    before = list(Memory.objects.values())
    said = run("--all", "--into", "embedded")
    assert "1 sessions, 0 files, 2 messages to tell again" in said
    assert "1 deletions and 0 corrections to carry over" in said
    assert "Nothing was changed" in said
    assert run("--all", "--into", "embedded", "--apply", "--dry-run") == said
    assert list(Memory.objects.values()) == before


def test_the_cost_is_estimated_where_a_price_is_known(world: World) -> None:
    world.engine("embedded")
    world.say("chat:1", "the bicycle is red")
    world.engine("upstream")
    assert report("--all", "--into", "upstream", "--price", "2000000")["estimate"]["cost"] > 0
    assert report("--all", "--into", "upstream")["estimate"]["cost"] is None


def test_apply_moves_and_verifies(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.say("chat:1", "the car is blue", at=NOON + 1000)
    world.delete("bicycle")
    answer = report("--all", "--into", "embedded", "--apply")
    assert (answer["sessions"], answer["messages"], answer["carried"]) == (1, 2, 1)
    assert not any(answer["verified"].values())
    assert answer["unmatched_decisions"] == []
    world.engine("embedded")
    assert world.found("bicycle car") == ["the car is blue"]


def test_what_could_not_be_moved_is_exit_code_1(world: World) -> None:
    world.engine("embedded")
    world.say("chat:1", "the bicycle is red")
    world.engine("upstream")
    world.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("reingest", "--all", "--into", "upstream", "--apply", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    assert "stayed where it was" in out.getvalue()
    assert "NOT as it must be" in out.getvalue()


def test_one_users_one_session(world: World) -> None:
    world.say("chat:1", "the bicycle is red")
    world.say("chat:2", "the car is blue")
    report("--user", "alice", "--session", "chat:1", "--into", "embedded", "--apply")
    assert set(Memory.objects.values_list("session__session_id", "origin")) == {
        ("chat:1", "embedded"),
        ("chat:2", "upstream"),
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name what to move"),
        (("--all", "--user", "alice"), "Name what to move"),
        (("--session", "chat:1", "--all"), "Name what to move"),
        (("--user", "nobody"), "no such user"),
        (("--user", "alice", "--session", "chat:9"), "no such session"),
        (("--resource", "r_x"), "no such resource"),
        (("--all", "--workers", "0"), "--workers is 1 to 16"),
        (("--all", "--price", "-3"), "--price is 0 or more"),
        (("--all", "--price", "nan"), "--price is 0 or more"),
        (("--resume",), "No move has broken off"),
    ],
)
def test_what_makes_no_sense_is_refused(world: World, arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        run(*arguments)
    assert refused.value.returncode == 2
