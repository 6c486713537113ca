"""`Engine.delete` removes a session's rows, index entries and statistics."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import EngineRefused
from engines.embedded.engine import EmbeddedEngine
from store import writes
from store.models import IndexStatistics, Memory, Session
from store.types import Wording
from tests.conftest import Person
from tests.store.conftest import file_message, remember, search, text_message
from tests.store.index_state import assert_consistent, entries_of


def test_deleting_a_session_removes_rows_index_entries_and_statistics(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"付款 payment {number} " * 40 for number in range(20)))
    engine.add(alice.owner, "resource:alice:r_1", [file_message(path, title="Lease")])
    engine.delete(alice.owner, "resource:alice:r_1")
    assert not Memory.objects.exists()
    assert entries_of(alice.owner) == {}
    assert not IndexStatistics.objects.exists()


def test_other_sessions_and_users_are_not_affected(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "payment a")
    remember(engine, alice.owner, "payment b", session="chat:c2")
    remember(engine, bob.owner, "payment c")
    engine.delete(alice.owner, "chat:c1")
    assert [hit.text for hit in search(engine, alice.owner, "payment")] == ["payment b"]
    assert [hit.text for hit in search(engine, bob.owner, "payment")] == ["payment c"]
    assert_consistent(alice.owner)
    assert_consistent(bob.owner)


def test_a_deleted_session_rejects_writes(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    engine.delete(alice.owner, "chat:c1")
    with pytest.raises(EngineRefused, match="deleted"):
        engine.add(alice.owner, "chat:c1", [text_message("payment b")])
    assert engine.flush(alice.owner, "chat:c1").status == "no_extraction"
    assert not Memory.objects.exists()


def test_a_session_deleted_before_its_first_write_rejects_it(engine: EmbeddedEngine, alice: Person) -> None:
    engine.delete(alice.owner, "resource:alice:r_1")
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "resource:alice:r_1", [text_message("payment")])


def test_deleting_is_idempotent(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    engine.delete(alice.owner, "chat:c1")
    first = Session.objects.get().state_since
    engine.delete(alice.owner, "chat:c1")
    assert Session.objects.get().state_since == first
    assert_consistent(alice.owner)


def test_a_session_marked_as_deleted_is_not_found_and_the_next_call_removes_it(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "payment a")
    Session.objects.update(state="purged")
    assert search(engine, alice.owner, "payment") == []
    engine.delete(alice.owner, "chat:c1")
    assert entries_of(alice.owner) == {}
    assert not Memory.objects.exists()


def test_a_memory_overridden_during_its_deletion_leaves_the_index_consistent(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "payment a")
    read_before = list(Memory.objects.all())
    engine.replace(alice.owner, {read_before[0].memory_id: Wording("zebra", "", None)})
    writes.remove(alice.owner, read_before)
    assert entries_of(alice.owner) == {}
    assert_consistent(alice.owner)
