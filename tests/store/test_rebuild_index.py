"""`manage.py rebuild_index`: searches return the same after a rebuild, even if it was interrupted."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from core.errors import EngineUnavailable
from engines.embedded.engine import EmbeddedEngine
from store.index import rebuild
from store.models import IndexStatistics, IndexVersion, Memory, Session
from store.text.tokens import TOKENIZER_VERSION
from tests.conftest import Person
from tests.store.conftest import remember, search, text_message
from tests.store.index_state import assert_consistent, entries_of

WORDS = ("payment", "合同付款", "zebra on 1 May 2026", "nothing")


def run(**options: bool) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("rebuild_index", stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def search_all(engine: EmbeddedEngine, person: Person) -> list[object]:
    return [search(engine, person.owner, word) for word in WORDS]


@pytest.fixture
def filled(engine: EmbeddedEngine, alice: Person, bob: Person) -> EmbeddedEngine:
    remember(
        engine, alice.owner, "a late payment", "甲方合同付款", "the zebra came", "on 1 May 2026", "payment payment"
    )
    remember(engine, bob.owner, "bob's payment")
    return engine


def test_a_rebuild_gives_the_same_results(filled: EmbeddedEngine, alice: Person, bob: Person) -> None:
    before = search_all(filled, alice), search_all(filled, bob)
    out, err = run(force=True)
    assert "Indexed 6 memories" in out
    assert "6 of 6 memories (100 %)" in err
    assert (search_all(filled, alice), search_all(filled, bob)) == before
    assert_consistent(alice.owner)
    assert_consistent(bob.owner)


def test_an_interrupted_rebuild_resumes(filled: EmbeddedEngine, alice: Person) -> None:
    before = search_all(filled, alice)
    rebuild.empty()
    next(rebuild.fill(batch_rows=2))
    assert_consistent(alice.owner)
    assert filled.health(1).data["index"]["status"] == "rebuilding"
    remember(filled, alice.owner, "said meanwhile", session="chat:c2")
    filled.delete(alice.owner, "chat:c2")
    assert "Indexed 4 memories" in run()[0]
    assert search_all(filled, alice) == before
    assert_consistent(alice.owner)


def test_memories_deleted_during_a_rebuild_are_not_indexed(filled: EmbeddedEngine, alice: Person) -> None:
    rebuild.empty()
    filled.delete(alice.owner, "chat:c1")
    assert_consistent(alice.owner)
    assert "Indexed 1 memories" in run()[0]


def test_an_index_of_another_tokenizer_rejects_writes_until_it_is_rebuilt(
    filled: EmbeddedEngine, alice: Person
) -> None:
    IndexVersion.objects.update(tokenizer="0")
    assert filled.health(1).data["index"]["status"] == "rebuild_needed"
    with pytest.raises(EngineUnavailable, match="rebuild_index"):
        filled.add(alice.owner, "chat:c9", [text_message("late")])
    assert not Session.objects.filter(session_id="chat:c9").exists()
    run()
    assert IndexVersion.objects.get().tokenizer == TOKENIZER_VERSION
    assert filled.health(1).data["index"]["status"] == "ok"
    filled.add(alice.owner, "chat:c9", [text_message("late")])


def test_a_rebuild_removes_entries_of_rows_deleted_without_the_engine(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.filter(text="the zebra came").delete()
    run(force=True)
    assert len(entries_of(alice.owner)) == 4
    assert_consistent(alice.owner)


def test_copies_of_a_remotes_memories_are_indexed_too(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.update(origin="upstream")
    run(force=True)
    assert len(entries_of(alice.owner)) == 5
    assert_consistent(alice.owner)


def test_messages_recorded_for_a_remote_stay_unindexed(filled: EmbeddedEngine, alice: Person) -> None:
    Memory.objects.update(origin="upstream", memory_type="unprocessed_message", is_indexed=False, token_count=0)
    run(force=True)
    assert entries_of(alice.owner) == {}
    assert not IndexStatistics.objects.exists()


def test_an_index_of_the_current_version_is_not_rebuilt(filled: EmbeddedEngine) -> None:
    assert run() == ("The index is up to date.\n", "")
    assert run(quiet=True) == ("", "")


@pytest.mark.django_db(transaction=True)
def test_djangos_flush_empties_the_index(filled: EmbeddedEngine, alice: Person) -> None:
    assert entries_of(alice.owner)
    call_command("flush", interactive=False, verbosity=0)
    assert entries_of(alice.owner) == {}
