"""Group chats: what other people say is the caller's memory, whatever their ids are."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.services import decisions
from operations.cleanup.purge import purge_memory
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, search, texts, upload

CHAT = "chat:team"
PEOPLE = [{"id": "bob", "name": "Bob"}, {"id": "carol"}]
EVERYWHERE = {"scope": ["all_user_memory"], "method": "keyword"}


def said(sender_id: str, text: str, at: int, **fields: Any) -> dict[str, Any]:
    return {"sender_id": sender_id, "role": "user", "timestamp": NOON_MS + at, "content": text, **fields}


MESSAGES = [
    said("alice", "I bring the tent for the trip", 0),
    said("bob", "I prefer the train for the trip", 1),
    said("carol", "I live near the trip's start", 2, sender_name="Carol"),
    said("bob", "The trip begins on Friday", 3),
]


@pytest.fixture
def chat(alice: Person) -> str:
    record(alice)
    return CHAT


def record(person: Person, *, flush: bool = True, session_id: str = CHAT) -> None:
    messages = [
        {**message, "sender_id": person.user_id} if message["sender_id"] == "alice" else message for message in MESSAGES
    ]
    call(person, "post", "/memories/add", session_id=session_id, messages=messages, participants=PEOPLE)
    if flush:
        call(person, "post", "/memories/flush", session_id=session_id)


def listed(person: Person, **query: Any) -> list[dict[str, Any]]:
    return list(call(person, "get", "/memories", **query)["memories"])


def found(person: Person, **filters: Any) -> set[str]:
    return set(texts(search(person, "trip", filters=filters or None, **EVERYWHERE)))


def test_a_group_chat_is_recorded_with_its_speakers(alice: Person, chat: str) -> None:
    speakers = {(row["sender_id"], row["sender_name"], row["role"]) for row in listed(alice, session_id=chat)}
    assert speakers == {("alice", None, "user"), ("bob", "Bob", "user"), ("carol", "Carol", "user")}
    assert found(alice) == {message["content"] for message in MESSAGES}


def test_it_is_searched_and_listed_by_speaker(alice: Person, chat: str) -> None:
    of_bob = {MESSAGES[1]["content"], MESSAGES[3]["content"]}
    assert found(alice, sender_id="bob") == of_bob
    assert found(alice, sender_id={"in": ["carol", "alice"]}) == {MESSAGES[0]["content"], MESSAGES[2]["content"]}
    assert {row["text"] for row in listed(alice, sender_id="bob")} == of_bob
    [best, *_] = search(alice, "What does Carol say about the trip?", **EVERYWHERE)["results"]
    assert (best["text"], best["raw"]["sender_name"]) == (MESSAGES[2]["content"], "Carol")


def test_what_a_participant_says_of_themselves_is_no_fact_about_the_user(alice: Person) -> None:
    messages = [said("alice", "I prefer the train", 0), said("bob", "I prefer the car", 1)]
    call(alice, "post", "/memories/add", session_id=CHAT, messages=messages, participants=PEOPLE)
    categories = {row["sender_id"]: row["category"] for row in listed(alice)}
    assert categories == {"alice": "user_memory_preference", "bob": "full_context_others"}


@pytest.mark.parametrize("people", [[], [{"id": "carol"}]])
def test_a_sender_who_is_not_named_is_refused(alice: Person, people: list[dict[str, str]]) -> None:
    body = {"session_id": CHAT, "messages": MESSAGES[:2], "participants": people}
    problem = call(alice, "post", "/memories/add", status=422, **body)
    assert [error["field"] for error in problem["errors"]] == ["messages.1.sender_id"]
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("person", "field"),
    [
        ({"id": "a\u200bb"}, "participants.0.id"),
        ({"id": "bob", "name": "a\nb"}, "participants.0.name"),
        ({"id": "bob", "name": "x" * 65}, "participants.0.name"),
        ({"id": "bob", "phone": "1"}, "participants.0.phone"),
        ({"name": "Bob"}, "participants.0.id"),
    ],
)
def test_an_invalid_participant_is_named(alice: Person, person: dict[str, str], field: str) -> None:
    body = {"session_id": CHAT, "messages": MESSAGES[:1], "participants": [person]}
    problem = call(alice, "post", "/memories/add", status=422, **body)
    assert [error["field"] for error in problem["errors"]] == [field]


# --- isolation -------------------------------------------------------------------------------------------------------


def test_a_user_with_the_id_of_a_participant_gets_nothing(alice: Person, bob: Person, chat: str) -> None:
    assert bob.user_id == "bob"
    memory_id = id_of("The trip begins on Friday")
    assert set(Memory.objects.values_list("user_id", flat=True)) == {alice.user_pk}
    assert (found(bob), found(bob, sender_id="bob"), found(bob, session_id=chat)) == (set(), set(), set())
    for path in ("/memories", "/sessions", "/memories/trash"):
        [rows, _cursor] = call(bob, "get", path).values()
        assert rows == []
    assert listed(bob, sender_id="bob") == listed(bob, session_id=chat) == []
    call(bob, "get", f"/memories/{memory_id}", status=404)
    call(bob, "patch", f"/memories/{memory_id}", status=404, override_text="x")
    call(bob, "delete", f"/memories/{memory_id}", status=404)
    call(bob, "post", f"/memories/{memory_id}/restore", status=404)
    call(bob, "delete", f"/sessions/{chat}", status=404)
    assert call(bob, "delete", "/memories", sender_id="bob")["deleted_count"] == 0
    assert call(bob, "post", "/memories/flush", session_id=chat)["backend"]["data"]["status"] == "no_extraction"
    assert len(listed(alice)) == len(MESSAGES)


def test_a_participants_user_may_have_a_chat_of_the_same_id(alice: Person, bob: Person, chat: str) -> None:
    call(bob, "post", "/memories/add", session_id=chat, messages=[said("bob", "my own trip", 9)])
    assert (found(bob), len(found(alice))) == ({"my own trip"}, len(MESSAGES))
    assert call(alice, "delete", "/memories", sender_id="bob")["deleted_count"] == 2
    assert found(bob) == {"my own trip"}


def test_a_participant_cannot_bring_a_session_of_another_user(alice: Person, bob: Person) -> None:
    body = {"session_id": "memory_edit:bob", "messages": MESSAGES, "participants": PEOPLE}
    call(alice, "post", "/memories/add", status=404, **body)
    assert not Session.objects.exists()


# --- deletion --------------------------------------------------------------------------------------------------------


def test_one_participants_messages_are_deleted_and_the_others_stay(alice: Person, chat: str) -> None:
    answer = call(alice, "delete", "/memories", sender_id="bob", reason="asked to be forgotten")
    assert answer == {"sender_id": "bob", "deleted_count": 2}
    assert found(alice) == {MESSAGES[0]["content"], MESSAGES[2]["content"]}
    assert found(alice, sender_id="bob") == set()
    trash = call(alice, "get", "/memories/trash")["trash"]
    assert {(item["text"], item["reason"]) for item in trash} == {
        (MESSAGES[number]["content"], "asked to be forgotten") for number in (1, 3)
    }
    assert AuditEvent.objects.filter(action="memory.delete").count() == 1
    assert call(alice, "delete", "/memories", sender_id="bob")["deleted_count"] == 0
    record(alice)  # a repeated request does not bring them back
    assert found(alice, sender_id="bob") == set()


def test_a_purge_leaves_no_word_of_the_participant(alice: Person, chat: str) -> None:
    call(alice, "delete", "/memories", sender_id="bob")
    tombstones = [item["tombstone_id"] for item in call(alice, "get", "/memories/trash")["trash"]]
    assert purge_memory(tombstones, actor=Actor.command("tests")).memories == 2
    left = str(list(Memory.objects.values()))
    assert "Friday" not in left
    assert "Bob" not in left
    assert "tent" in left


def test_only_the_named_session_and_scope_lose_the_messages(alice: Person, chat: str) -> None:
    record(alice, session_id="chat:other", flush=False)
    assert call(alice, "delete", "/memories", sender_id="bob", session_id="chat:other")["deleted_count"] == 2
    assert call(alice, "delete", "/memories", sender_id="bob", project_id="p2")["deleted_count"] == 0
    assert len(listed(alice, session_id=chat)) == len(MESSAGES)
    assert len(listed(alice, session_id="chat:other")) == 2


@pytest.mark.django_db(transaction=True)
def test_uploaded_files_of_the_user_stay(alice: Person, chat: str) -> None:
    upload(alice)
    before = len(listed(alice))
    assert call(alice, "delete", "/memories", sender_id="alice")["deleted_count"] == 1
    assert len(listed(alice)) == before - 1


def test_many_messages_are_deleted_in_batches(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "_ROWS_AT_ONCE", 3)
    messages = [said("bob", f"word {number}", number) for number in range(10)]
    call(alice, "post", "/memories/add", session_id=CHAT, messages=messages, participants=PEOPLE)
    assert call(alice, "delete", "/memories", sender_id="bob")["deleted_count"] == 10
    assert listed(alice) == []


def test_messages_of_one_speaker_are_deleted_with_everos_too(alice: Person, chat: str, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://everos.test"
    of_bob = Memory.objects.filter(sender_id="bob").count()
    assert decisions.delete_of_sender(alice.owner, "bob", actor=Actor.command("tests")) == of_bob > 0
    assert len(listed(alice)) == len(MESSAGES) - of_bob


# --- agents ----------------------------------------------------------------------------------------------------------

CALL = {"id": "call_1", "type": "function", "function": {"name": "find_trains", "arguments": '{"to": "Rome"}'}}
RUN = [
    {"sender_id": "main", "role": "system", "timestamp": NOON_MS, "content": "You book trains."},
    said("alice", "Which train goes to Rome?", 1),
    {"sender_id": "main", "role": "assistant", "timestamp": NOON_MS + 2, "content": None, "tool_calls": [CALL]},
    {
        "sender_id": "main",
        "sender_name": "Timetable",
        "role": "tool",
        "timestamp": NOON_MS + 3,
        "content": "One train at nine.",
        "tool_call_id": "call_1",
    },
]


@pytest.mark.parametrize("flush", [False, True])
def test_messages_of_agents_are_kept_as_they_were_made(alice: Person, flush: bool) -> None:
    call(alice, "post", "/memories/add", session_id=CHAT, messages=RUN)
    if flush:
        call(alice, "post", "/memories/flush", session_id=CHAT)
    tool, assistant, _user, system = listed(alice)
    assert (system["role"], system["text"]) == ("system", "You book trains.")
    assert (assistant["tool_calls"], assistant["text"]) == ([CALL], 'find_trains({"to": "Rome"})')
    assert (tool["tool_call_id"], tool["sender_name"], tool["tool_calls"]) == ("call_1", "Timetable", None)
    categories = [row["category"] for row in (system, assistant, tool)]
    assert categories == ["full_context_system", "full_context_tool", "full_context_tool_result"]
    assert call(alice, "get", f"/memories/{assistant['id']}")["memory"]["tool_calls"] == [CALL]
    raw = {hit["text"]: hit["raw"] for hit in search(alice, "train Rome nine", **EVERYWHERE)["results"]}
    assert raw[assistant["text"]]["tool_calls"] == [CALL]
    assert raw[tool["text"]]["tool_call_id"] == "call_1"


def test_messages_that_differ_in_their_calls_only_are_two(alice: Person) -> None:
    other = {**CALL, "function": {"name": "find_buses", "arguments": "{}"}}
    message = {**RUN[2], "content": "Let me look."}
    for calls in ([CALL], [other], [CALL]):
        call(alice, "post", "/memories/add", session_id=CHAT, messages=[{**message, "tool_calls": calls}])
    assert len(listed(alice)) == 2


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tool_calls": [{**CALL, "id": ""}]}, "messages.0.tool_calls.0.id"),
        ({"tool_calls": [{"id": "c"}]}, "messages.0.tool_calls.0.function"),
        (
            {"tool_calls": [{**CALL, "function": {"name": "x", "arguments": "", "x": 1}}]},
            "messages.0.tool_calls.0.function",
        ),
        ({"tool_calls": [CALL] * 101}, "messages.0.tool_calls"),
        ({"tool_call_id": ""}, "messages.0.tool_call_id"),
        ({"sender_name": "a\nb"}, "messages.0.sender_name"),
    ],
)
def test_an_invalid_call_is_named(alice: Person, fields: dict[str, Any], field: str) -> None:
    body = {"session_id": CHAT, "messages": [said("alice", "x", 0, **fields)]}
    [error] = call(alice, "post", "/memories/add", status=422, **body)["errors"]
    assert error["field"].startswith(field)
