"""`Engine.add` and `Engine.flush` store messages and documents completely and once."""

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
from tests.store.conftest import NOON_MS, file_message, remember, search, text_message, texts
from tests.store.decisions import delete_session, restore_session
from tests.store.index_state import assert_consistent

SESSION = "resource:alice:r_1"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def memories(person: Person) -> list[Memory]:
    return list(Memory.objects.filter(user_id=person.user_pk).order_by("session", "seq"))


def test_a_message_keeps_its_id_when_it_is_flushed(engine: EmbeddedEngine, alice: Person) -> None:
    added = engine.add(alice.owner, "chat:c1", [text_message("a late payment")])
    assert (added.status, added.message_count) == ("accumulated", 1)
    [before] = search(engine, alice.owner, "payment")
    flushed = engine.flush(alice.owner, "chat:c1")
    assert (flushed.status, flushed.memory_count) == ("extracted", 1)
    assert flushed.searchable_at_ms is not None
    [after] = search(engine, alice.owner, "payment")
    assert (before.memory_type, after.memory_type) == ("unprocessed_message", "episode")
    assert before.memory_id == after.memory_id


def test_a_flush_without_new_messages_extracts_nothing(engine: EmbeddedEngine, alice: Person) -> None:
    assert engine.flush(alice.owner, "chat:never").status == "no_extraction"
    assert not Session.objects.exists()
    remember(engine, alice.owner, "payment")
    assert engine.flush(alice.owner, "chat:c1").status == "no_extraction"


def test_repeated_messages_are_stored_once(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("payment"), text_message("payment")])
    engine.add(alice.owner, "chat:c1", [text_message("payment")])
    engine.flush(alice.owner, "chat:c1")
    engine.add(alice.owner, "chat:c1", [text_message("payment")])
    assert len(memories(alice)) == 1
    assert_consistent(alice.owner)


def test_messages_that_differ_in_session_role_time_or_text_are_stored_separately(
    engine: EmbeddedEngine, alice: Person
) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("payment")])
    engine.add(alice.owner, "chat:c2", [text_message("payment")])
    engine.add(
        alice.owner,
        "chat:c1",
        [text_message("payment", by="main", role="assistant"), text_message("payment", at=NOON_MS + 9)],
    )
    engine.add(alice.owner, "chat:c1", [text_message("payment!")])
    assert len(memories(alice)) == 5


def test_messages_with_equal_times_keep_their_order(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("one"), text_message("two")])
    engine.add(alice.owner, "chat:c1", [text_message("three"), text_message("one")])
    assert [(one.text, one.seq, one.created_at_ms - NOON_MS) for one in memories(alice)] == [
        ("one", 0, 0),
        ("two", 1, 1),
        ("three", 2, 2),
    ]


def test_a_message_moved_past_midnight_can_be_removed_from_the_index(engine: EmbeddedEngine, alice: Person) -> None:
    midnight = 1_780_012_800_000 - 1
    engine.add(alice.owner, "chat:c1", [text_message("one", at=midnight), text_message("two", at=midnight)])
    assert_consistent(alice.owner)
    engine.delete(alice.owner, "chat:c1")
    assert_consistent(alice.owner)


def test_the_role_determines_category_and_agent(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(
        alice.owner,
        "chat:c1",
        [text_message("a"), text_message("b", by="main", role="assistant"), text_message("c", by="sh", role="tool")],
    )
    assert [(one.category, one.agent_id, one.sender_id) for one in memories(alice)] == [
        ("full_context_user", "", "alice"),
        ("full_context_assistant", "main", "main"),
        ("full_context_tool", "sh", "sh"),
    ]


@pytest.mark.parametrize(
    ("text", "speaker"),
    [("Caroline: Hi", "Caroline"), ("小明：你好", "小明"), ("http://x.y", "alice"), ("I said: no way at all", "alice"),
     ("Hi", "alice"), ("one two three four five: x", "alice"), ("10:30 is fine", "alice"), ("a" * 90 + ": x", "alice")],
)  # fmt: skip
def test_the_speaker_is_the_name_before_the_colon_or_the_sender(
    engine: EmbeddedEngine, alice: Person, text: str, speaker: str
) -> None:
    engine.add(alice.owner, "chat:c1", [text_message(text)])
    assert memories(alice)[0].speaker == speaker


def test_text_items_are_joined_into_one_memory_and_each_file_is_another(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "note.txt"
    path.write_text("the note's payment")
    items = (ContentItem("text", "see"), ContentItem("doc", file=path, name="note.txt", mime_type="text/plain"),
             ContentItem("text", "this"))  # fmt: skip
    engine.add(alice.owner, "chat:c1", [Message("alice", "user", NOON_MS, items)])
    assert [one.text for one in memories(alice)] == ["see\nthis", "the note's payment"]


def test_a_blank_message_creates_no_memory(engine: EmbeddedEngine, alice: Person) -> None:
    assert engine.add(alice.owner, "chat:c1", [text_message(" \n ")]).message_count == 1
    assert memories(alice) == []


def test_an_item_without_content_rejects_the_whole_call(engine: EmbeddedEngine, alice: Person) -> None:
    message = Message("alice", "user", NOON_MS, (ContentItem("pdf", name="a.pdf"),))
    with pytest.raises(EngineRefused, match="no text, file or address"):
        engine.add(alice.owner, "chat:c1", [text_message("payment"), message])
    assert memories(alice) == []


def test_a_document_becomes_passages_with_their_positions(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "合同.txt"
    path.write_text("\n\n".join(f"第{number}条 付款" + "。内容" * 150 for number in range(6)))
    engine.add(alice.owner, SESSION, [file_message(path, resource_id="r_1", title="租房合同", description="两年")])
    assert engine.flush(alice.owner, SESSION).memory_count == len(memories(alice)) >= 6
    for number, memory in enumerate(memories(alice)):
        assert (memory.chunk_index, memory.seq, memory.payload["position"]) == (number, number, number)
        assert memory.payload["filename"] == "合同.txt"
        assert memory.payload["title"] == "租房合同"
        assert memory.payload["resource_id"] == "r_1"
        assert len(memory.text) <= 800
    hit = search(engine, alice.owner, "第3条")[0]
    assert hit.text.startswith("第3条")
    assert hit.raw["type"] == "Conversation"  # EverOS uses this type for files too
    assert hit.raw["subject"] == hit.raw["filename"] == "合同.txt"
    assert hit.raw["position"] == 3
    assert hit.session_id == SESSION
    assert_consistent(alice.owner)


def test_hits_carry_page_and_heading(alice: Person, tmp_path: Path) -> None:
    document = Document((Block("The fee is due.", 7, "Payment terms"),))
    engine = EmbeddedEngine(read=lambda *_: document)
    engine.add(alice.owner, SESSION, [file_message(tmp_path / "a.pdf")])
    [hit] = search(engine, alice.owner, "payment")
    assert (hit.raw["page"], hit.raw["heading"]) == (7, "Payment terms")


def test_a_document_is_found_by_name_title_and_description(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "lease_2026.txt"
    path.write_text("\n\n".join("Paragraph about rooms and doors. " * 20 for _ in range(4)))
    engine.add(alice.owner, SESSION, [file_message(path, title="Rental agreement", description="for Oslo")])
    for query in ("lease_2026.txt", "lease", "rental"):
        hits = search(engine, alice.owner, query)
        assert len(hits) >= 4
        assert hits[0].raw["position"] == 0
    assert [hit.raw["position"] for hit in search(engine, alice.owner, "Oslo")] == [0]


def test_a_document_without_text_is_empty_even_with_a_title(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "scan.txt"
    path.write_text(" \n\n ")
    engine.add(alice.owner, SESSION, [file_message(path, title="Payment")])
    assert engine.flush(alice.owner, SESSION).status == "no_extraction"
    assert search(engine, alice.owner, "payment") == []


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_images_and_audio_are_found_by_name_title_and_description(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "beach_sunset.png"
    path.write_bytes(b"\x89PNG")
    engine.add(alice.owner, SESSION, [file_message(path, kind=kind, title="Holiday", description="on the coast")])  # type: ignore[arg-type]
    assert engine.flush(alice.owner, SESSION).memory_count == 1
    for query in ("sunset", "holiday", "coast", "beach_sunset.png"):
        assert len(search(engine, alice.owner, query)) == 1


def test_an_unreadable_document_rejects_the_whole_call(alice: Person, tmp_path: Path) -> None:
    def read(path: Path, mime_type: str) -> Document:
        raise Unreadable("The document is encrypted.")

    with pytest.raises(Unreadable):
        EmbeddedEngine(read=read).add(alice.owner, SESSION, [text_message("payment"), file_message(tmp_path / "a.pdf")])
    assert memories(alice) == []


def test_a_document_added_again_is_neither_duplicated_nor_read_again(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("payment terms")
    message = file_message(path, resource_id="r_1")
    engine.add(alice.owner, SESSION, [message])
    first = engine.flush(alice.owner, SESSION)
    path.unlink()
    engine.add(alice.owner, SESSION, [message])
    assert engine.flush(alice.owner, SESSION).status == first.status == "extracted"
    assert len(search(engine, alice.owner, "payment")) == 1
    assert_consistent(alice.owner)


def test_documents_are_read_outside_the_transaction(alice: Person, tmp_path: Path) -> None:
    """Reading may take half a minute, and other writers must not wait for it."""
    seen: list[int] = []

    def read(path: Path, mime_type: str) -> Document:
        seen.append(Session.objects.count())
        return Document((Block("payment", None, None),))

    EmbeddedEngine(read=read).add(alice.owner, SESSION, [file_message(tmp_path / "a.txt")])
    assert seen == [0]


def test_a_large_document_is_written_with_few_statements(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path, django_assert_max_num_queries: object
) -> None:
    path = tmp_path / "large.txt"
    path.write_text("\n\n".join("word " * 150 + str(number) for number in range(1000)))
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        engine.add(alice.owner, SESSION, [file_message(path)])
    assert len(memories(alice)) >= 1000


@pytest.mark.parametrize(("session_id", "statements"), [("chat:c1", 10), ("chat:new", 11)])
def test_a_message_costs_few_statements(
    engine: EmbeddedEngine, alice: Person, django_assert_num_queries: Any, session_id: str, statements: int
) -> None:
    """A new session costs one statement more. Two statements set and release a savepoint of the test's transaction."""
    engine.add(alice.owner, "chat:c1", [text_message("one")])
    with django_assert_num_queries(statements):
        engine.add(alice.owner, session_id, [text_message("two", at=NOON_MS + 1)])


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
def test_adding_a_message_does_not_scan_its_session(engine: EmbeddedEngine, alice: Person) -> None:
    with CaptureQueriesContext(connection) as captured:
        engine.add(alice.owner, SESSION, [text_message("payment")])
    [end] = [query["sql"] for query in captured if "MAX(seq)" in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {end}")
        steps = [step for *_, step in cursor.fetchall() if "SEARCH" in step]
    assert [step for step in steps if "created_at_ms>?" in step]
    assert all("COVERING" in step or "created_at_ms>?" in step or "tombstone" in step for step in steps)


def test_messages_added_to_a_hidden_session_are_stored_and_hidden(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("payment one")])
    delete_session(alice.owner, "chat:c1")
    engine.add(alice.owner, "chat:c1", [text_message("payment two", at=NOON_MS + 1)])
    assert [one.text for one in memories(alice)] == ["payment one", "payment two"]
    assert search(engine, alice.owner, "payment") == []
    restore_session(alice.owner, "chat:c1")
    assert len(search(engine, alice.owner, "payment")) == 2
    assert_consistent(alice.owner)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(max_size=60), st.integers(1, 4)), max_size=8))
def test_the_index_agrees_with_the_rows_for_any_messages(
    engine: EmbeddedEngine, alice: Person, turns: list[tuple[str, int]]
) -> None:
    storable = [(text, at) for text, at in turns if text.isprintable()]
    engine.add(alice.owner, "chat:c1", [text_message(text, at=at) for text, at in storable])
    assert_consistent(alice.owner)
    for text, _ in storable:
        assert text in texts(search(engine, alice.owner, text)) or not tokenize(text)
