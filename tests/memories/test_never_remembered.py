"""Words and topics that are never remembered are refused at every interface, counted, and in no log."""

from __future__ import annotations

import json
import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from accounts import controls
from accounts.audit import Actor
from accounts.models import AuditEvent, Controls, IdempotencyKey
from accounts.services import issue_key
from console.queries import original_text, originals
from memories.models import LoggedSearch, Override, Tombstone
from memories.services import search_log
from resources.models import Attachment, Resource
from store.admission import Offer, admit
from store.models import Memory
from store.text.topics import TOPICS
from tests.agents.mcp.test_tools import Agent
from tests.conftest import Person
from tests.memories.calls import call, say

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")
WORD = "zanzibar"


def never(person: Person, *words: str, topics: Any = ()) -> None:
    controls.set_never(person.user_pk, words=words, topics=topics, actor=ACTOR)


def texts() -> list[str]:
    return list(Memory.objects.order_by("pk").values_list("text", flat=True))


def messages(*contents: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content, **fields} for content in contents]


def test_topics_are_those_that_the_lexicons_know() -> None:
    assert tuple(Controls.Topic.values) == TOPICS


def test_messages_are_refused_and_counted(alice: Person, bob: Person) -> None:
    never(alice, WORD, topics=["health"])
    sent = messages("I was in Zanzibar.", "I am allergic to nuts.", "I like green tea.")
    answer = call(alice, "post", "/memories/add", session_id="chat:c1", messages=sent)
    assert (answer["stored"], answer["refused"]) == (1, {"never": 2})
    assert "paused" not in answer
    assert texts() == ["I like green tea."]
    say(bob, "chat:c1", "I was in Zanzibar.")
    assert len(texts()) == 2


def test_answers_of_an_assistant_are_refused_too(alice: Person) -> None:
    never(alice, topics=["health"])
    sent = [{"role": "assistant", "content": "Since you are allergic to nuts, take seeds."}]
    assert call(alice, "post", "/memories/add", session_id="chat:c1", messages=sent)["refused"] == {"never": 1}
    assert texts() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ["Zanzibar"]},
        {"metadata": {"trip": {"to": "ZANZIBAR"}}},
        {"metadata": {"zanzibar": 1}},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "book", "arguments": '{"to": "Zanzibar"}'},
                }
            ],
        },
    ],
)
def test_what_is_kept_with_a_message_is_refused(alice: Person, fields: dict[str, Any]) -> None:
    never(alice, WORD)
    sent = messages("Hello there.", **fields)
    assert call(alice, "post", "/memories/add", session_id="chat:c1", messages=sent)["refused"] == {"never": 1}
    assert texts() == []


def called(arguments: str, name: str = "note") -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"id": "t1", "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("word", "fields"),
    [
        ("糖尿病", called(json.dumps({"about": "糖尿病"}))),
        (WORD, called(json.dumps({"about": "Trips:\nzanzibar"}))),
        (WORD, called("{}", "bookZanzibar")),
        (WORD, {"metadata": {"zanzibarTrip": 1}}),
        (WORD, {"role": "tool", "tool_call_id": "book zanzibar"}),
        (WORD, {"role": "assistant", "sender_id": "zanzibar"}),
        (WORD, {"sender_id": "bob"}),
    ],
)
def test_no_other_spelling_and_no_name_lets_it_in(alice: Person, word: str, fields: dict[str, Any]) -> None:
    never(alice, word)
    people = [{"id": "bob", "name": "Zanzibar"}]
    sent = messages("Hello there.", **fields)
    answer = call(alice, "post", "/memories/add", session_id="chat:c1", messages=sent, participants=people)
    assert answer["refused"] == {"never": 1}
    assert texts() == []


@pytest.mark.parametrize("file", [{"uri": "https://example.com/%7Aanzibar.png"}, {"name": "zanzibar2.png"}])
def test_no_spelling_of_a_file_name_lets_it_in(alice: Person, file: dict[str, Any]) -> None:
    never(alice, WORD)
    content = [{"type": "text", "text": "Hello."}, {"type": "image", "uri": "https://example.com/a.png", **file}]
    call(alice, "post", "/memories/add", session_id="chat:c1", messages=[{"role": "user", "content": content}])
    assert texts() == ["Hello."]
    assert not Attachment.objects.exists()


def test_names_of_agents_are_of_no_topic(alice: Person) -> None:
    never(alice, topics=TOPICS)
    sent = [{"role": "assistant", "sender_id": one, "content": "Hello."} for one in ("doctor", "finance-coach")]
    assert call(alice, "post", "/memories/add", session_id="chat:c1", messages=sent)["stored"] == 2


@pytest.mark.parametrize(
    "fact",
    [
        {"text": "Alice went to Zanzibar"},
        {"text": "Alice travelled", "tags": ["zanzibar"]},
        {"text": "Alice travelled", "metadata": {"where": ["Zanzibar"]}},
        {"text": "Allergic to penicillin"},
        {"text": "对青霉素过敏"},
        {"text": "Alice travelled", "agent_id": "zanzibar"},
    ],
)
def test_facts_are_refused(alice: Person, fact: dict[str, Any]) -> None:
    never(alice, WORD, topics=["health"])
    answer = call(alice, "post", "/memories", **fact)
    assert (answer["action"], answer["stored"], answer["refused"]) == ("refused", 0, {"never": 1})
    many = call(alice, "post", "/memories/bulk", memories=[fact, {"text": "Alice likes tea"}])
    assert many["stored"] == 1
    agent = Agent(alice)
    agent.call("memory_store", text=fact["text"], **{k: v for k, v in fact.items() if k != "text"})
    assert texts() == ["Alice likes tea"]


def test_agents_cannot_write_it_by_a_correction_or_into_a_profile(alice: Person) -> None:
    memory_id = call(alice, "post", "/memories", status=201, text="Alice likes tea")["memory"]["id"]
    never(alice, WORD)
    agent = Agent(alice)
    for name, arguments in (
        ("memory_update", {"memory_id": memory_id, "text": "Alice likes Zanzibar"}),
        ("profile_update", {"kind": "user", "content": {"occupation": "guide in Zanzibar"}}),
        ("profile_update", {"kind": "user", "content": {"occupation": "guide\nZanzibar"}}),
        ("session_add", {"session_id": "s1", "messages": [{"role": "user", "content": "Zanzibar!"}]}),
    ):
        agent.call(name, **arguments)
    assert texts() == ["Alice likes tea"]
    assert WORD not in alice.client.get("/api/v1/memories/user").content.decode().lower()


@pytest.mark.parametrize(
    "change",
    [{"override_text": "Alice likes Zanzibar"}, {"tags": ["zanzibar"]}, {"metadata": {"trip": {"to": "Zanzibar"}}}],
)
def test_no_key_writes_it_by_a_correction(alice: Person, change: dict[str, Any]) -> None:
    memory_id = call(alice, "post", "/memories", status=201, text="Alice likes tea")["memory"]["id"]
    never(alice, WORD)
    refused = call(alice, "patch", f"/memories/{memory_id}", status=403, **change)
    assert (refused["code"], refused["refused"]) == ("not_kept", {"never": 1})
    assert call(alice, "patch", f"/memories/{memory_id}", override_text="Alice likes coffee")
    memory = Memory.objects.get()
    assert (memory.text, memory.payload) == ("Alice likes coffee", {})


def test_no_key_brings_it_back_from_the_trash_or_by_undoing_a_correction(alice: Person) -> None:
    facts = [call(alice, "post", "/memories", status=201, text=f"Trip {at} to {WORD}") for at in "12"]
    deleted, corrected = (fact["memory"]["id"] for fact in facts)
    call(alice, "delete", f"/memories/{deleted}")
    call(alice, "patch", f"/memories/{corrected}", override_text="Trip to the sea")
    never(alice, WORD)
    for method, path in (("post", f"/memories/{deleted}/restore"), ("delete", f"/memories/{corrected}/override")):
        assert call(alice, method, path, status=403)["code"] == "not_kept"
    assert WORD not in str(call(alice, "get", "/memories"))


def test_matching_passages_of_a_file_are_skipped_and_counted(alice: Person) -> None:
    never(alice, WORD, topics=["money"])
    pages = [f"Chapter {number}. {'The garden is green. ' * 60}" for number in range(6)]
    pages[0] = f"{pages[0]} We went to Zanzibar."
    pages[3] = f"{pages[3]} I owe my brother two thousand dollars."
    file = SimpleUploadedFile("notes.txt", "\n\n".join(pages).encode(), "text/plain")
    answer = alice.client.post("/resources", {"file": file}).json()
    note = next(one for one in answer["reading"]["notes"] if one["code"] == "passages_refused")
    assert note["count"] >= 2
    assert texts()
    assert not any("Zanzibar" in text or "owe" in text for text in texts())
    again = SimpleUploadedFile("notes.txt", "\n\n".join(pages).encode(), "text/plain")
    before = texts()
    alice.client.post("/resources", {"file": again})
    assert texts() == before


def test_a_file_without_any_passage_left_is_kept_empty(alice: Person) -> None:
    never(alice, WORD)
    file = SimpleUploadedFile("notes.txt", b"We went to Zanzibar.", "text/plain")
    assert alice.client.post("/resources", {"file": file}).json()["status"] == "empty"
    assert texts() == []


def test_a_file_whose_name_says_it_is_refused(alice: Person) -> None:
    never(alice, WORD)
    file = SimpleUploadedFile("zanzibar.txt", b"A garden.", "text/plain")
    refused = alice.client.post("/resources", {"file": file})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_kept")
    assert not Resource.objects.exists()


def test_imports_leave_it_out(alice: Person, tmp_path: Path) -> None:
    never(alice, WORD)
    rows = [("1", "I went to Zanzibar", {}), ("2", "I went to Lyon", {}), ("3", "I like tea", {"trip": "Zanzibar"})]
    path = tmp_path / "mem0.json"
    results = [{"id": one, "memory": text, "metadata": metadata} for one, text, metadata in rows]
    path.write_text(json.dumps({"results": results}))
    call_command("import_from", "mem0", str(path), "--user", alice.user_id, "--apply", stdout=StringIO())
    assert texts() == ["I went to Lyon"]


def test_archives_leave_it_out_unless_it_is_here_still(alice: Person, tmp_path: Path) -> None:
    facts = ["I was in Zanzibar", "Zanzibar again", "I like tea"]
    ids = [call(alice, "post", "/memories", status=201, text=text)["memory"]["id"] for text in facts]
    call(alice, "patch", f"/memories/{ids[2]}", override_text="I like Zanzibar")
    call(alice, "patch", f"/memories/{ids[2]}", override_text="I like coffee")
    archive = str(tmp_path / "all.tar")
    call_command("export_memory", archive, "--all", verbosity=0)
    call(alice, "delete", f"/memories/{ids[0]}")
    call_command("purge_trash", "--older-than", "0", verbosity=0)
    never(alice, WORD)
    call(alice, "patch", f"/memories/{ids[1]}", override_text="Of the sea")
    call_command("import_memory", archive, "--on-conflict", "replace", verbosity=0, stdout=StringIO())
    assert texts() == ["", "", "I like coffee"]
    assert controls.never_of(alice.user_pk).words == (WORD,)
    call_command("import_memory", archive, "--on-conflict", "replace", verbosity=0, stdout=StringIO())
    assert texts() == ["", "", "I like coffee"]


def test_an_archive_keeps_what_the_person_left(alice: Person, tmp_path: Path) -> None:
    call(alice, "post", "/memories", status=201, text="I was in Zanzibar")
    archive = str(tmp_path / "all.tar")
    call_command("export_memory", archive, "--all", verbosity=0)
    never(alice, WORD)
    call_command("import_memory", archive, "--on-conflict", "replace", verbosity=0, stdout=StringIO())
    assert texts() == ["I was in Zanzibar"]


def test_no_history_shows_it(alice: Person) -> None:
    memory_id = call(alice, "post", "/memories", status=201, text="I was in Zanzibar")["memory"]["id"]
    call(alice, "patch", f"/memories/{memory_id}", override_text="I was away")
    assert WORD in str(call(alice, "get", f"/memories/{memory_id}")).lower()
    never(alice, WORD)
    found = call(alice, "get", f"/memories/{memory_id}")
    assert [(one["action"], one.get("text")) for one in found["history"]] == [
        ("original", None), ("override", "I was away"),
    ]  # fmt: skip
    row = Memory.objects.get().pk
    assert originals([Override.objects.get().pk]) == {}
    assert original_text(row) is None


def test_nothing_of_it_is_in_logs_idempotency_records_and_the_search_log(
    alice: Person, caplog: pytest.LogCaptureFixture, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    never(alice, WORD)
    caplog.set_level(logging.INFO)
    settings.MEMORY_GATEWAY_LOG_BODIES = True
    body = {"session_id": "chat:c1", "messages": messages("I was in Zanzibar.")}
    answer = alice.client.post("/memories/add", body, "application/json", headers={"Idempotency-Key": "k1"})
    assert answer.json()["refused"] == {"never": 1}
    alice.client.post("/memories/search", {"query": "a trip to Zanzibar"}, "application/json")
    alice.client.post("/memories/search", {"query": "a trip to Lyon"}, "application/json")
    search_log.write()
    assert set(LoggedSearch.objects.values_list("query", flat=True)) == {"", "a trip to Lyon"}
    kept = [f"{one.result} {one.headers}" for one in IdempotencyKey.objects.all()]
    kept += [f"{one.subject_id} {one.detail}" for one in AuditEvent.objects.all()]
    assert WORD not in " ".join([*kept, caplog.text]).lower()


def test_a_key_adds_and_takes_nothing_away(alice: Person) -> None:
    key = issue_key(alice.user_pk, actor=ACTOR, granted=["controls"]).plaintext
    client = Client(headers={"Authorization": f"Bearer {key}"})
    put = lambda **body: client.put("/users/me/controls", body, "application/json")  # noqa: E731
    answer = put(words=["Project  Heron", "project heron"], topics=["work", "health"])
    assert answer.status_code == 200, answer.content
    assert (answer.json()["words"], answer.json()["topics"]) == (["Project Heron"], ["health", "work"])
    assert put(words=["project heron", "other"]).json()["words"] == ["Project Heron", "other"]
    for body in ({"words": []}, {"topics": ["health"]}, {"words": ["other"], "topics": ["health", "work"]}):
        refused = put(**body)
        assert (refused.status_code, refused.json()["code"]) == (403, "loosening_refused")
    for body, field in (
        ({"words": ["!"]}, "words.0"), ({"words": ["x" * 101]}, "words.0"), ({"topics": ["weather"]}, "topics.0"),
    ):  # fmt: skip
        refused = put(**body)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field), refused.content
    assert client.get("/users/me/controls").json()["topics"] == ["health", "work"]
    events = AuditEvent.objects.filter(action="controls.limit")
    assert [one.detail for one in events.order_by("pk")] == [{"words": 1, "topics": 2}, {"words": 1, "topics": 0}]


def test_the_rule_costs_users_without_it_one_statement(alice: Person, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert not admit(alice.user_pk, [Offer("chats", "I am allergic", "user")]).refused
    never(alice, topics=["health"])
    with django_assert_num_queries(3):
        assert admit(alice.user_pk, [Offer("chats", "I am allergic", "user")]).refused == {0: "never"}


def test_names_of_sessions_reasons_and_profiles_let_no_word_in(alice: Person) -> None:
    say(alice, "chat:c1", "I like tea.")
    never(alice, WORD, topics=["health"])
    for session_id in (f"chat:{WORD}-2", f"Trip{WORD.capitalize()}"):
        answer = call(alice, "post", "/memories/add", session_id=session_id, messages=messages("Hello there."))
        assert answer["refused"] == {"never": 1}
        assert call(alice, "post", "/memories", text="Hello there.", session_id=session_id)["action"] == "refused"
    assert call(alice, "post", "/memories/add", session_id="chat:health", messages=messages("Hello."))["stored"] == 1
    memory_id = Memory.objects.values_list("memory_id", flat=True).get(text="I like tea.")
    call(alice, "delete", f"/memories/{memory_id}", reason=f"Not {WORD}.")
    assert Tombstone.objects.get().reason == ""
    for content in ({"occupation": f"Guide in {WORD}"}, {"interests": ["I am allergic to nuts."]}):
        for method in ("put", "patch"):
            call(alice, method, "/api/v1/memories/user", status=403, content=content)
    call(alice, "patch", "/api/v1/memories/user", content={"occupation": "Guide"})
    never(alice, WORD, "Guide", topics=["health"])
    call(alice, "put", "/api/v1/memories/user", content={"occupation": "Guide"})
