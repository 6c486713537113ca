"""`Engine.delete`: a session forgotten for good, with nothing of it left in the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import EngineRefused
from engines.embedded.engine import EmbeddedEngine
from store import storage
from store.models import IndexStatistics, Memory, Session
from store.types import Wording
from tests.conftest import Person
from tests.store.conftest import ask, given_file, remember, said
from tests.store.index_state import assert_consistent, entries_of


def test_a_deleted_session_leaves_no_row_no_index_entry_and_no_count(
    engine: EmbeddedEngine, alice: Person, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"付款 payment {number} " * 40 for number in range(20)))
    engine.add(alice.owner, "resource:alice:r_1", [given_file(path, title="Lease")])
    engine.delete(alice.owner, "resource:alice:r_1")
    assert not Memory.objects.exists()
    assert entries_of(alice.owner) == {}
    statistics = IndexStatistics.objects.get()
    assert (statistics.documents, statistics.tokens) == (0, 0)


def test_other_sessions_and_other_users_keep_theirs(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "payment a")
    remember(engine, alice.owner, "payment b", session="chat:c2")
    remember(engine, bob.owner, "payment c")
    engine.delete(alice.owner, "chat:c1")
    assert [hit.text for hit in ask(engine, alice.owner, "payment")] == ["payment b"]
    assert [hit.text for hit in ask(engine, bob.owner, "payment")] == ["payment c"]
    assert_consistent(alice.owner)
    assert_consistent(bob.owner)


def test_late_writes_to_a_deleted_session_are_refused(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    engine.delete(alice.owner, "chat:c1")
    with pytest.raises(EngineRefused, match="deleted"):
        engine.add(alice.owner, "chat:c1", [said("payment b")])
    assert engine.flush(alice.owner, "chat:c1").status == "no_extraction"
    assert not Memory.objects.exists()


def test_a_session_deleted_before_its_first_write_refuses_it(engine: EmbeddedEngine, alice: Person) -> None:
    engine.delete(alice.owner, "resource:alice:r_1")
    with pytest.raises(EngineRefused):
        engine.add(alice.owner, "resource:alice:r_1", [said("payment")])


def test_deleting_twice_is_fine(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "payment a")
    engine.delete(alice.owner, "chat:c1")
    first = Session.objects.get().deleted_at
    engine.delete(alice.owner, "chat:c1")
    assert Session.objects.get().deleted_at == first
    assert_consistent(alice.owner)


def test_from_the_mark_on_nothing_is_found_and_the_next_call_clears_the_rest(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "payment a")
    Session.objects.update(deleted_at="2026-01-01T00:00:00Z")
    assert ask(engine, alice.owner, "payment") == []
    engine.delete(alice.owner, "chat:c1")
    assert entries_of(alice.owner) == {}
    assert not Memory.objects.exists()


def test_a_memory_reworded_while_it_is_being_deleted_leaves_the_index_whole(
    engine: EmbeddedEngine, alice: Person
) -> None:
    remember(engine, alice.owner, "payment a")
    read_before = list(Memory.objects.all())
    engine.replace(alice.owner, {read_before[0].memory_id: Wording("zebra", "", None)})
    storage.remove(alice.owner, read_before)
    assert entries_of(alice.owner) == {}
    assert_consistent(alice.owner)
