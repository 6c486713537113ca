"""Decisions of users about their memories: override, delete, restore, list; and the same for whole sessions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.caller import Caller, field_errors, require_shape

pytestmark = pytest.mark.usefixtures("writes")

MEMORY = {
    "id": str,
    "memory_type": str,
    "session_id": str,
    "app_id": str,
    "project_id": str,
    "text": str,
    "category": str,
    "importance": (float, int, type(None)),
    "sender_id": str,
    "sender_name": (str, type(None)),
    "role": (str, type(None)),
    "tool_calls": (list, type(None)),
    "tool_call_id": (str, type(None)),
    "agent_id": str,
    "timestamp_ms": int,
    "override_id": (str, type(None)),
    "deleted_at": (str, type(None)),
    "state": str,
}
EVERYWHERE = ["resources", "all_user_memory"]


@pytest.fixture
def memory(alice: Caller) -> dict[str, Any]:
    """Return the hits of an uploaded file."""
    alice.upload(b"The tortoise is due within thirty days.", "invoice.txt")
    [found] = alice.found("tortoise", scope=EVERYWHERE)
    return found


@pytest.fixture
def said(alice: Caller, chat: str) -> dict[str, Any]:
    """Return the hits of a chat."""
    alice.remember(chat, "My tortoise is called Polly.")
    [found] = alice.found("tortoise", scope=EVERYWHERE)
    return found


def correct(caller: Caller, memory: dict[str, Any], *, status: int = 200, **body: Any) -> Any:
    whole = {"session_id": memory["session_id"], "override_text": "修正后的记忆内容", **body}
    return caller.send("PATCH", f"/memories/{memory['id']}", status=status, **whole)


def delete(caller: Caller, memory: dict[str, Any], *, status: int = 200, **body: Any) -> Any:
    whole = {"session_id": memory["session_id"], "reason": "用户手动删除", **body}
    return caller.send("DELETE", f"/memories/{memory['id']}", status=status, **whole)


def test_a_correction_answers_as_documented(alice: Caller, memory: dict[str, Any]) -> None:
    answer = correct(alice, memory)
    assert set(answer) == {"memory_id", "override_id", "status"}
    assert (answer["memory_id"], answer["status"]) == (memory["id"], "active")
    assert answer["override_id"].startswith("o_")


@pytest.mark.parametrize("which", ["memory", "said"])
def test_the_new_words_are_found_and_the_old_are_nowhere(
    alice: Caller, request: pytest.FixtureRequest, which: str
) -> None:
    found = request.getfixturevalue(which)
    correct(alice, found, override_text="The elephant is due on Monday.")
    [reworded] = alice.found("elephant", scope=EVERYWHERE)
    assert (reworded["id"], reworded["text"]) == (found["id"], "The elephant is due on Monday.")
    answer = alice.search("tortoise elephant", scope=EVERYWHERE, include_profile=False)
    assert "tortoise" not in str(answer["results"]).lower()


def test_a_correction_can_be_undone(alice: Caller, said: dict[str, Any]) -> None:
    override_id = correct(alice, said)["override_id"]
    undone = alice.delete(f"/memories/{said['id']}/override")
    assert undone == {"memory_id": said["id"], "override_id": override_id, "status": "undone"}
    [found] = alice.found("tortoise", scope=EVERYWHERE)
    assert found["text"] == said["text"]


def test_a_deletion_answers_as_documented_and_hides_the_memory(alice: Caller, memory: dict[str, Any]) -> None:
    answer = delete(alice, memory)
    assert set(answer) == {"memory_id", "tombstone_id", "status"}
    assert (answer["memory_id"], answer["status"]) == (memory["id"], "deleted")
    assert answer["tombstone_id"].startswith("t_")
    assert alice.found("tortoise", scope=EVERYWHERE) == []


def test_a_reason_may_be_left_out(alice: Caller, said: dict[str, Any]) -> None:
    delete(alice, said, reason=None)
    assert alice.found("tortoise", scope=EVERYWHERE) == []


def test_a_deleted_memory_is_in_the_trash_until_it_is_restored(alice: Caller, said: dict[str, Any]) -> None:
    tombstone_id = delete(alice, said)["tombstone_id"]
    [item] = alice.get("/memories/trash")["trash"]
    assert (item["tombstone_id"], item["kind"], item["memory_id"]) == (tombstone_id, "memory", said["id"])
    assert (item["reason"], item["text"]) == ("用户手动删除", said["text"])
    answer = alice.post(f"/memories/{said['id']}/restore", session_id=said["session_id"])
    assert answer == {"memory_id": said["id"], "tombstone_id": tombstone_id, "status": "restored"}
    assert alice.get("/memories/trash")["trash"] == []
    assert [item["id"] for item in alice.found("tortoise", scope=EVERYWHERE)] == [said["id"]]


def test_memories_of_others_look_like_none(alice: Caller, bob: Caller, memory: dict[str, Any]) -> None:
    correct(bob, memory, status=404)
    delete(bob, memory, status=404)
    bob.get(f"/memories/{memory['id']}", status=404)
    bob.post(f"/memories/{memory['id']}/restore", status=404, session_id=memory["session_id"])
    bob.delete(f"/memories/{memory['id']}/override", status=404)
    assert [item["text"] for item in alice.found("tortoise", scope=EVERYWHERE)] == [memory["text"]]


def test_a_memory_is_looked_for_in_the_session_that_is_named(alice: Caller, said: dict[str, Any]) -> None:
    correct(alice, {**said, "session_id": "chat:elsewhere"}, status=404)
    delete(alice, {**said, "session_id": "chat:elsewhere"}, status=404)


def test_what_is_wrong_is_422_by_name(alice: Caller, said: dict[str, Any]) -> None:
    assert field_errors(correct(alice, said, override_text="", status=422)) == ["override_text"]
    assert field_errors(correct(alice, said, importance=2, status=422)) == ["importance"]
    assert field_errors(correct(alice, said, session_id="", status=422)) == ["session_id"]
    assert field_errors(delete(alice, said, reason=5, status=422)) == ["reason"]


def test_memories_are_listed_newest_first_in_pages(alice: Caller, chat: str) -> None:
    for number in range(3):
        alice.remember(f"{chat}-{number}", f"Garden number {number} is green.")
    first = alice.get("/memories", limit=2, memory_type="episode")
    require_shape(first, {"memories": [MEMORY], "next_cursor": str})
    rest = alice.get("/memories", limit=2, memory_type="episode", cursor=first["next_cursor"])
    assert (len(first["memories"]), len(rest["memories"]), rest["next_cursor"]) == (2, 1, None)
    assert len({item["id"] for page in (first, rest) for item in page["memories"]}) == 3


def test_a_memory_is_shown_with_what_was_decided(alice: Caller, said: dict[str, Any]) -> None:
    override_id = correct(alice, said)["override_id"]
    delete(alice, said)
    detail = alice.get(f"/memories/{said['id']}")
    require_shape(detail, {"memory": MEMORY, "history": [{"at": str, "action": str, "by": str}]})
    assert (detail["memory"]["text"], detail["memory"]["override_id"]) == ("修正后的记忆内容", override_id)
    assert [event["action"] for event in detail["history"]] == ["original", "override", "delete"]


def test_a_session_is_listed_deleted_and_restored_with_all_its_memories(
    alice: Caller, said: dict[str, Any], chat: str
) -> None:
    [session] = alice.get("/sessions")["sessions"]
    assert (session["session_id"], session["kind"], session["pending"]) == (chat, "chat", 0)
    assert session["memories"] >= 1
    assert alice.send("DELETE", f"/sessions/{chat}", reason="old")["status"] == "deleted"
    assert alice.found("tortoise", scope=EVERYWHERE) == []
    assert alice.get("/sessions")["sessions"] == []
    assert [item["session_id"] for item in alice.get("/sessions", deleted=True)["sessions"]] == [chat]
    assert alice.post(f"/sessions/{chat}/restore")["status"] == "restored"
    assert [item["id"] for item in alice.found("tortoise", scope=EVERYWHERE)] == [said["id"]]


def test_sessions_of_others_are_not_there(alice: Caller, bob: Caller, said: dict[str, Any], chat: str) -> None:
    assert bob.get("/sessions")["sessions"] == []
    bob.send("DELETE", f"/sessions/{chat}", status=404)
    assert [item["id"] for item in alice.found("tortoise", scope=EVERYWHERE)] == [said["id"]]
