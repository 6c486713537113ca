"""A row's state follows from its open tombstones, and so do the columns that were there before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import MemoryUser
from engines.embedded.engine import EmbeddedEngine
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from operations import ledger
from operations.archives import deletions
from store import derived_memories, states, writes
from store.ledger import EXPIRY, Override, Tombstone
from store.models import Memory, PendingExtraction, Session, State, owner_columns
from store.types import Wording
from tests.conftest import Person
from tests.store.decisions import delete, delete_session, newer_of, restore, restore_session
from tests.store.test_table import add_texts, id_of

NOW = datetime(2026, 6, 11, 12, tzinfo=UTC)
ACTOR = Actor.command("tests")
KIND = Tombstone.Kind
pytestmark = pytest.mark.django_db


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def tombstone(kind: Tombstone.Kind, minutes: int = 0, other_id: str = "") -> Tombstone:
    return Tombstone(kind=kind, created_at=NOW + timedelta(minutes=minutes), other_id=other_id)


def memory(**columns: Any) -> Memory:
    return Memory(memory_id="m", text="t", original_text="t", **columns)


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        ([], State.LIVE),
        ([KIND.SUPERSEDED], State.SUPERSEDED),
        ([KIND.SUPERSEDED, KIND.SOURCE_CORRECTED], State.TRASHED),
        ([KIND.SUPERSEDED, KIND.SOURCE_CORRECTED, KIND.SOURCE_DELETED], State.TRASHED),
        ([KIND.SUPERSEDED, KIND.SOURCE_DELETED, KIND.DELETED], State.TRASHED),
    ],
)
def test_the_strongest_open_tombstone_decides(kinds: list[Tombstone.Kind], state: State) -> None:
    found = [tombstone(kind, minutes, "newer") for minutes, kind in enumerate(kinds)]
    columns = states.columns_of_memory(memory(), found)
    assert columns == {"state": state, "state_since": found[-1].created_at if found else None}


def test_a_purged_row_is_purged_whatever_its_tombstones_say() -> None:
    purged = memory(state=State.PURGED, expires_at=NOW)
    assert states.columns_of_memory(purged, [tombstone(KIND.DELETED)]) == {"state": State.PURGED}
    assert states.columns_of(Session(state=State.PURGED), [tombstone(KIND.DELETED)]) == {"state": State.PURGED}


def test_a_row_expires_by_a_deletion_of_the_expiry_and_not_by_the_clock() -> None:
    past = memory(expires_at=timezone.now() - timedelta(minutes=1))
    expiry = Tombstone(kind=KIND.DELETED, created_at=NOW, actor_kind=EXPIRY.kind, actor=EXPIRY.name)
    assert states.columns_of_memory(past, []) == {"state": State.LIVE, "state_since": None}
    assert states.columns_of_memory(past, [expiry]) == {"state": State.EXPIRED, "state_since": NOW}
    assert states.columns_of_memory(past, [tombstone(KIND.SUPERSEDED), expiry])["state"] == State.EXPIRED
    assert states.columns_of(Session(), [expiry])["state"] == State.EXPIRED
    derived = Tombstone(kind=KIND.SOURCE_DELETED, created_at=NOW, actor_kind=EXPIRY.kind, actor=EXPIRY.name)
    assert states.columns_of_memory(memory(), [derived])["state"] == State.TRASHED


def test_deleting_and_restoring_a_session_changes_no_memory(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, *(f"number {number}" for number in range(20)))
    memories = list(Memory.objects.order_by("pk").values())
    delete_session(alice.owner, "chat:c1")
    assert [one.target for one in Tombstone.ledger.all()] == ["session"]
    assert Session.objects.get().state == State.TRASHED
    assert list(Memory.objects.order_by("pk").values()) == memories
    restore_session(alice.owner, "chat:c1")
    assert Session.objects.get().state == State.LIVE
    assert list(Memory.objects.order_by("pk").values()) == memories


# --- what follows from a decision -------------------------------------------------------------------------------------


def derive(person: Person, text: str, *sources: str) -> str:
    """Store a memory as the extraction of a session does; return its id."""
    first = Memory.objects.get(memory_id=sources[0])
    row = Memory(
        memory_id=f"derived {text}",
        session=first.session,
        memory_type=Memory.Type.EPISODE,
        category="user_memory_fact",
        sender_id=person.user_id,
        text=text,
        original_text=text,
        sources=list(sources),
        created_at_ms=first.created_at_ms,
        seq=first.seq,
        origin=Memory.Origin.EXTRACTED,
    )
    writes.insert(person.owner, [row])
    return row.memory_id


def edit(person: Person, memory_id: str, text: str) -> None:
    decisions.override(person.user_pk, MemoryRef(memory_id), OverrideValues(text=text), actor=ACTOR)


def undo_edit(person: Person, memory_id: str) -> None:
    decisions.undo_override(person.user_pk, MemoryRef(memory_id), actor=ACTOR)


def live() -> list[str]:
    assert list(ledger.differences()) == []
    found = Memory.objects.filter(state=State.LIVE, origin=Memory.Origin.EXTRACTED)
    return sorted(found.values_list("text", flat=True))


def test_a_deletion_that_follows_names_its_cause_and_ends_with_it(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derive(alice, "Oslo", source)
    delete(alice.owner, source)
    [follower] = Tombstone.ledger.exclude(memory_id=source)
    assert (follower.kind, follower.cause, follower.other_id) == (
        KIND.SOURCE_DELETED,
        Tombstone.objects.get().pk,
        source,
    )
    assert (follower.actor_kind, follower.actor) == (ACTOR.kind, ACTOR.name)
    assert live() == []
    restore(alice.owner, source)
    follower.refresh_from_db()
    assert (follower.undone_by_kind, follower.undone_by) == (ACTOR.kind, ACTOR.name)
    assert live() == ["Oslo"]


def test_deletions_take_the_same_statements_whatever_was_derived(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, *(f"number {number}" for number in range(8)))
    ids = [id_of(f"number {number}") for number in range(8)]
    for number, source in enumerate(ids):
        derive(alice, f"derived {number}", source)
    rows = list(Memory.objects.filter(memory_id__in=ids).order_by("pk").values_list("pk", flat=True))
    for decide in (decisions.delete_many, decisions.restore_many):
        counts = []
        for part in (rows[:2], rows[2:]):
            with CaptureQueriesContext(connection) as queries:
                assert len(decide(part, actor=ACTOR)) == len(part)
            counts.append(len(queries))
        assert counts[0] == counts[1]


def test_a_memory_of_two_sources_returns_with_the_last(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo", "with my zebra")
    oslo, zebra = id_of("I live in Oslo"), id_of("with my zebra")
    derive(alice, "Oslo and zebra", oslo, zebra)
    edit(alice, oslo, "I live in Rome")
    delete(alice.owner, zebra)
    undo_edit(alice, oslo)
    assert live() == []
    restore(alice.owner, zebra)
    assert live() == ["Oslo and zebra"]


def test_what_is_shown_was_derived_from_the_present_text(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derive(alice, "Oslo", source)
    edit(alice, source, "I live in Rome")
    assert live() == []
    derive(alice, "Rome", source)
    edit(alice, source, "I live in Bern")
    derive(alice, "Bern", source)
    assert live() == ["Bern"]
    edit(alice, source, "I live in Rome")
    assert live() == ["Rome"]
    undo_edit(alice, source)
    assert live() == ["Oslo"]
    edit(alice, source, "I live in Bern")  # by another override
    assert live() == ["Bern"]


def test_an_edit_that_is_undone_at_once_is_not_extracted(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derive(alice, "Oslo", source)
    edit(alice, source, "I live in Rome")
    assert PendingExtraction.objects.count() == 1
    undo_edit(alice, source)
    assert live() == ["Oslo"]
    assert not PendingExtraction.objects.exists()


def test_words_of_a_user_stay_when_the_source_is_edited(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derived = derive(alice, "Oslo", source)
    edit(alice, derived, "Oslo, by the harbour")
    edit(alice, source, "I live in Rome")
    assert live() == ["Oslo, by the harbour"]
    undo_edit(alice, derived)
    assert live() == []
    undo_edit(alice, source)
    assert live() == ["Oslo"]


def test_an_edit_of_its_source_extracts_nothing_again_for_an_expired_memory(
    engine: EmbeddedEngine, alice: Person
) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derived = derive(alice, "Oslo", source)
    Memory.objects.filter(memory_id=derived).update(expires_at=timezone.now() - timedelta(minutes=1))
    decisions.expire(MemoryUser.objects.get(pk=alice.user_pk), [], Memory.objects.filter(memory_id=derived))
    edit(alice, source, "I live in Rome")
    assert not PendingExtraction.objects.exists()
    undo_edit(alice, source)
    assert Memory.objects.get(memory_id=derived).state == State.EXPIRED


def test_superseding_twice_is_one_tombstone_that_a_restore_ends(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    derived = derive(alice, "Oslo", id_of("I live in Oslo"))
    older, newer = Memory.objects.get(memory_id=derived), Memory(memory_id="newer")
    for _ in range(2):
        derived_memories.supersede([older], newer, NOW)
    older.refresh_from_db()
    assert (older.state, older.state_since, newer_of(older)) == (State.SUPERSEDED, NOW, "newer")
    assert (Tombstone.ledger.get().actor_kind, Tombstone.objects.count()) == ("system", 0)
    restore(alice.owner, derived)
    assert live() == ["Oslo"]
    assert not Tombstone.ledger.filter(undone_at=None).exists()


def test_a_text_that_is_replaced_without_an_override_hides_too(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    source = id_of("I live in Oslo")
    derive(alice, "Oslo", source)
    engine.replace(alice.owner, {source: Wording("I live in Rome", "", None)})
    assert not Override.objects.exists()
    assert live() == []
    engine.replace(alice.owner, {source: Wording("I live in Oslo", "", None)})
    assert live() == ["Oslo"]


def test_a_tombstone_holds_for_a_memory_that_comes_again(engine: EmbeddedEngine, alice: Person) -> None:
    add_texts(engine, alice, "I live in Oslo")
    memory_id = id_of("I live in Oslo")
    delete(alice.owner, memory_id)
    Tombstone.objects.update(row=None)  # as after the import of an archive that lacks the memory
    writes.remove(alice.owner, list(Memory.objects.all()))
    add_texts(engine, alice, "I live in Oslo")
    assert Memory.objects.get().state == State.TRASHED
    assert Tombstone.objects.get().row == Memory.objects.get()
    restore(alice.owner, memory_id)
    assert Memory.objects.get().state == State.LIVE


# --- rows of before ---------------------------------------------------------------------------------------------------


def test_what_only_its_state_hides_gets_a_tombstone(engine: EmbeddedEngine, alice: Person) -> None:
    """As an archive with contradictions, or a lost tombstone: nothing hidden is shown, nothing is added twice."""
    add_texts(engine, alice, "deleted", "superseded", "both", "stays")
    Memory.objects.filter(text__in=["deleted", "both"]).update(state=State.TRASHED, state_since=NOW)
    Memory.objects.filter(text="superseded").update(state=State.SUPERSEDED, state_since=NOW)
    both = Memory.objects.get(text="both")
    about = {"row": both, "memory_id": both.memory_id, "kind": KIND.SUPERSEDED, "other_id": "newer"}
    Tombstone.ledger.create(**owner_columns(alice.owner), **about, actor_kind="system")
    before = {row["text"]: row for row in Memory.objects.values("text", "state", "state_since")}
    for _ in range(2):
        ledger.repair()
        assert {row["text"]: row for row in Memory.objects.values("text", "state", "state_since")} == before
        assert list(ledger.differences()) == []
        assert Tombstone.ledger.count() == 4
    assert sorted(Tombstone.objects.values_list("row__text", flat=True)) == ["both", "deleted"]
    restore(alice.owner, id_of("deleted"), id_of("both"), id_of("superseded"))
    states_by_text = dict(Memory.objects.values_list("text", "state"))
    assert states_by_text == {"deleted": "live", "superseded": "live", "both": "superseded", "stays": "live"}


def test_reasons_of_an_old_archive_become_tombstones(engine: EmbeddedEngine, alice: Person) -> None:
    """A deleted source is looked up; so is an edit of it. An unknown cause hides for good."""
    texts = ("with source", "lost source", "reworded", "superseded", "own and source")
    add_texts(engine, alice, "source", *texts)
    delete(alice.owner, id_of("source"), id_of("own and source"))
    derived = Memory.objects.filter(text__in=texts)
    derived.update(origin=Memory.Origin.EXTRACTED, original_text=F("text"), state=State.TRASHED, state_since=NOW)
    derived.filter(text__in=["with source", "own and source"]).update(sources=[id_of("source")])
    derived.filter(text="superseded").update(state=State.SUPERSEDED)
    kinds = {"with source": "source_deleted", "lost source": "source_deleted", "reworded": "source_corrected"}
    reasons = {text: ledger.Reason(kind) for text, kind in kinds.items()}
    reasons["superseded"] = ledger.Reason("superseded", "newer")
    user = Memory.objects.get(text="source").user
    for _ in range(2):
        deletions.hold(user, {("default", "default", id_of(text)): reason for text, reason in reasons.items()})
        assert list(ledger.differences()) == []
    assert not Memory.objects.filter(state=State.LIVE).exists()
    assert newer_of(Memory.objects.get(text="superseded")) == "newer"
    restore(alice.owner, id_of("own and source"))
    assert Memory.objects.get(text="own and source").state == State.TRASHED
    restore(alice.owner, id_of("source"))
    shown = set(Memory.objects.filter(state=State.LIVE).values_list("text", flat=True))
    assert shown == {"own and source", "source", "with source"}
