"""`Engine.add` and `Engine.flush`: what is kept of messages and documents, once and whole."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import EngineRefused, Unreadable
from documents.document import Block, Document
from engines.embedded.engine import EmbeddedEngine
from store.models import Memory, Session
from store.text.tokens import tokenize
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.store.conftest import NOON_MS, ask, given_file, remember, said, texts
from tests.store.index_state import assert_consistent

SESSION = "resource:alice:r_1"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def memories(person: Person) -> list[Memory]:
    return list(Memory.objects.filter(user_id=person.user_pk).order_by("session", "seq"))


def test_a_message_can_be_found_before_and_after_the_flush_under_one_id(engine: EmbeddedEngine, alice: Person) -> None:
    added = engine.add(alice.owner, "chat:c1", [said("a late payment")])
    assert (added.status, added.message_count) == ("accumulated", 1)
    [before] = ask(engine, alice.owner, "payment")
    flushed = engine.flush(alice.owner, "chat:c1")
    assert (flushed.status, flushed.memory_count) == ("extracted", 1)
    assert flushed.searchable_at_ms is not None
    [after] = ask(engine, alice.owner, "payment")
    assert (before.memory_type, after.memory_type) == ("unprocessed_message", "episode")
    assert before.memory_id == after.memory_id


def test_a_flush_without_anything_new_extracts_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    assert engine.flush(alice.owner, "chat:never").status == "no_extraction"
    assert not Session.objects.exists()
    remember(engine, alice.owner, "payment")
    assert engine.flush(alice.owner, "chat:c1").status == "no_extraction"


def test_the_same_message_twice_is_one(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [said("payment"), said("payment")])
    engine.add(alice.owner, "chat:c1", [said("payment")])
    engine.flush(alice.owner, "chat:c1")
    engine.add(alice.owner, "chat:c1", [said("payment")])
    assert len(memories(alice)) == 1
    assert_consistent(alice.owner)


def test_what_differs_in_session_role_time_or_text_is_another_message(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [said("payment")])
    engine.add(alice.owner, "chat:c2", [said("payment")])
    engine.add(alice.owner, "chat:c1", [said("payment", by="main", role="assistant"), said("payment", at=NOON_MS + 9)])
    engine.add(alice.owner, "chat:c1", [said("payment!")])
    assert len(memories(alice)) == 5


def test_two_messages_of_one_moment_stay_two_in_their_order(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [said("one"), said("two")])
    engine.add(alice.owner, "chat:c1", [said("three"), said("one")])
    assert [(one.text, one.seq, one.created_at_ms - NOON_MS) for one in memories(alice)] == [
        ("one", 0, 0),
        ("two", 1, 1),
        ("three", 2, 2),
    ]


def test_a_message_moved_past_midnight_can_still_be_taken_out_of_the_index(
    engine: EmbeddedEngine, alice: Person
) -> None:
    midnight = 1_780_012_800_000 - 1
    engine.add(alice.owner, "chat:c1", [said("one", at=midnight), said("two", at=midnight)])
    assert_consistent(alice.owner)
    engine.delete(alice.owner, "chat:c1")
    assert_consistent(alice.owner)


def test_roles_become_categories_and_agents(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(
        alice.owner, "chat:c1", [said("a"), said("b", by="main", role="assistant"), said("c", by="sh", role="tool")]
    )
    assert [(one.category, one.agent_id, one.sender_id) for one in memories(alice)] == [
        ("full_context_user", "", "alice"),
        ("full_context_assistant", "main", "main"),
        ("full_context_tool", "sh", "sh"),
    ]


@pytest.mark.parametrize(
    ("text", "speaker"),
    [("Caroline: Hi", "Caroline"), ("小明：你好", "小明"), ("http://x.y", "alice"), ("I said: no way at all", "I said"),
     ("Hi", "alice"), ("one two three four five: x", "alice"), ("10:30 is fine", "alice"), ("a" * 90 + ": x", "alice")],
)  # fmt: skip
def test_the_speaker_is_whom_the_text_names_or_who_sent_it(
    engine: EmbeddedEngine, alice: Person, text: str, speaker: str
) -> None:
    engine.add(alice.owner, "chat:c1", [said(text)])
    assert memories(alice)[0].speaker == speaker


def test_text_items_of_a_message_are_one_memory_and_files_their_own(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "note.txt"
    path.write_text("the note's payment")
    items = (ContentItem("text", "see"), ContentItem("doc", file=path, name="note.txt", mime_type="text/plain"),
             ContentItem("text", "this"))  # fmt: skip
    engine.add(alice.owner, "chat:c1", [Message("alice", "user", NOON_MS, items)])
    assert [one.text for one in memories(alice)] == ["see\nthis", "the note's payment"]


def test_a_blank_message_leaves_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    assert engine.add(alice.owner, "chat:c1", [said(" \n ")]).message_count == 1
    assert memories(alice) == []


def test_an_item_without_content_is_refused_and_nothing_of_the_call_is_kept(
    engine: EmbeddedEngine, alice: Person
) -> None:
    message = Message("alice", "user", NOON_MS, (ContentItem("pdf", name="a.pdf"),))
    with pytest.raises(EngineRefused, match="neither text nor file nor address"):
        engine.add(alice.owner, "chat:c1", [said("payment"), message])
    assert memories(alice) == []


def test_a_document_becomes_passages_that_say_where_they_stand(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "合同.txt"
    path.write_text("\n\n".join(f"第{number}条 付款" + "。内容" * 150 for number in range(6)))
    engine.add(alice.owner, SESSION, [given_file(path, resource_id="r_1", title="租房合同", description="两年")])
    assert engine.flush(alice.owner, SESSION).memory_count == len(memories(alice)) >= 6
    for number, memory in enumerate(memories(alice)):
        assert (memory.chunk_index, memory.seq, memory.payload["position"]) == (number, number, number)
        assert memory.payload["filename"] == "合同.txt"
        assert memory.payload["title"] == "租房合同"
        assert memory.payload["resource_id"] == "r_1"
        assert len(memory.text) <= 800
    hit = ask(engine, alice.owner, "第3条")[0]
    assert hit.text.startswith("第3条")
    assert hit.raw["type"] == "Conversation"  # as EverOS says of files too
    assert hit.raw["subject"] == hit.raw["filename"] == "合同.txt"
    assert hit.raw["position"] == 3
    assert hit.session_id == SESSION
    assert_consistent(alice.owner)


def test_page_and_heading_are_kept(alice: Person, tmp_path: Path) -> None:
    document = Document((Block("The fee is due.", 7, "Payment terms"),))
    engine = EmbeddedEngine(read=lambda *_: document)
    engine.add(alice.owner, SESSION, [given_file(tmp_path / "a.pdf")])
    [hit] = ask(engine, alice.owner, "payment")
    assert (hit.raw["page"], hit.raw["heading"]) == (7, "Payment terms")


def test_a_document_is_found_by_its_name_title_and_description_its_beginning_first(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "lease_2026.txt"
    path.write_text("\n\n".join("Paragraph about rooms and doors. " * 20 for _ in range(4)))
    engine.add(alice.owner, SESSION, [given_file(path, title="Rental agreement", description="for Oslo")])
    for query in ("lease_2026.txt", "lease", "rental"):
        hits = ask(engine, alice.owner, query)
        assert len(hits) >= 4
        assert hits[0].raw["position"] == 0
    assert [hit.raw["position"] for hit in ask(engine, alice.owner, "Oslo")] == [0]


def test_a_document_without_text_is_empty_whatever_its_title_says(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "scan.txt"
    path.write_text(" \n\n ")
    engine.add(alice.owner, SESSION, [given_file(path, title="Payment")])
    assert engine.flush(alice.owner, SESSION).status == "no_extraction"
    assert ask(engine, alice.owner, "payment") == []


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_a_picture_or_sound_is_remembered_by_what_it_is_called(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "beach_sunset.png"
    path.write_bytes(b"\x89PNG")
    engine.add(alice.owner, SESSION, [given_file(path, kind=kind, title="Holiday", description="on the coast")])  # type: ignore[arg-type]
    assert engine.flush(alice.owner, SESSION).memory_count == 1
    for query in ("sunset", "holiday", "coast", "beach_sunset.png"):
        assert len(ask(engine, alice.owner, query)) == 1


def test_an_unreadable_document_leaves_nothing(alice: Person, tmp_path: Path) -> None:
    def read(path: Path, mime_type: str) -> Document:
        raise Unreadable("The document is encrypted.")

    with pytest.raises(Unreadable):
        EmbeddedEngine(read=read).add(alice.owner, SESSION, [said("payment"), given_file(tmp_path / "a.pdf")])
    assert memories(alice) == []


def test_a_document_given_again_after_a_crash_is_neither_doubled_nor_read_again(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("payment terms")
    message = given_file(path, resource_id="r_1")
    engine.add(alice.owner, SESSION, [message])
    first = engine.flush(alice.owner, SESSION)
    path.unlink()
    engine.add(alice.owner, SESSION, [message])
    assert engine.flush(alice.owner, SESSION).status == first.status == "extracted"
    assert len(ask(engine, alice.owner, "payment")) == 1
    assert_consistent(alice.owner)


def test_documents_are_read_outside_the_transaction(alice: Person, tmp_path: Path) -> None:
    """A document may take half a minute to read: nobody else may wait for it."""
    seen: list[int] = []

    def read(path: Path, mime_type: str) -> Document:
        seen.append(Session.objects.count())
        return Document((Block("payment", None, None),))

    EmbeddedEngine(read=read).add(alice.owner, SESSION, [given_file(tmp_path / "a.txt")])
    assert seen == [0]


def test_a_large_document_is_written_with_few_statements(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path, django_assert_max_num_queries: object
) -> None:
    path = tmp_path / "large.txt"
    path.write_text("\n\n".join("word " * 150 + str(number) for number in range(1000)))
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        engine.add(alice.owner, SESSION, [given_file(path)])
    assert len(memories(alice)) >= 1000


@pytest.mark.parametrize(("session_id", "statements"), [("chat:c1", 9), ("chat:new", 10)])
def test_a_message_costs_few_statements(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any, session_id: str, statements: int
) -> None:
    """One more for a session that is not there yet; two mark the transaction inside the test's own."""
    engine.add(alice.owner, "chat:c1", [said("one")])
    with django_assert_num_queries(statements):
        engine.add(alice.owner, session_id, [said("two", at=NOON_MS + 1)])


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
def test_a_message_waits_for_no_walk_through_its_session(engine: EmbeddedEngine, alice: Person) -> None:
    with CaptureQueriesContext(connection) as captured:
        engine.add(alice.owner, SESSION, [said("payment")])
    [end] = [query["sql"] for query in captured if "MAX(seq)" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {end}")
        steps = [step for *_, step in cursor.fetchall() if "SEARCH" in step]
    assert [step for step in steps if "created_at_ms>?" in step]
    assert all("COVERING" in step or "created_at_ms>?" in step for step in steps)


def test_what_is_said_in_a_hidden_session_is_kept_and_stays_hidden(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [said("payment one")])
    engine.hide_sessions(alice.owner, ["chat:c1"], LONG_AGO)
    engine.add(alice.owner, "chat:c1", [said("payment two", at=NOON_MS + 1)])
    assert [one.text for one in memories(alice)] == ["payment one", "payment two"]
    assert ask(engine, alice.owner, "payment") == []
    engine.hide_sessions(alice.owner, ["chat:c1"], None)
    assert len(ask(engine, alice.owner, "payment")) == 2
    assert_consistent(alice.owner)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=60), st.integers(1, 4)), max_size=8))
def test_whatever_is_said_the_index_agrees_with_the_rows(
    engine: EmbeddedEngine, alice: Person, turns: list[tuple[str, int]]
) -> None:
    storable = [(text, at) for text, at in turns if text.isprintable()]
    engine.add(alice.owner, "chat:c1", [said(text, at=at) for text, at in storable])
    assert_consistent(alice.owner)
    for text, _ in storable:
        assert text in texts(ask(engine, alice.owner, text)) or not tokenize(text)
