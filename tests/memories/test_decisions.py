"""`memories.services.decisions`: deleting, restoring, overriding and undoing one or many memories."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.models import Override, Tombstone
from memories.services import decisions, lookup
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from operations import bulk
from store import browse, derived_memories
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, id_of, say

pytestmark = pytest.mark.django_db
OLGA, IVAN = Actor.operator("olga"), Actor.operator("ivan")


def row_of(text: str) -> int:
    return Memory.objects.get(text=text).pk


def is_deleted(text: str) -> bool:
    return browse.get(row_of(text)).state != "live"


def test_delete_many_takes_over_deletions_of_the_user(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    own_deletion = call(alice, "delete", f"/memories/{id_of('one')}", reason="mine")
    changes = decisions.delete_many([row_of("one"), row_of("two")], actor=OLGA)
    assert [row for row, _ in changes] == [row_of("two")]
    tombstone = Tombstone.objects.get(pk=own_deletion["tombstone_id"])
    assert (tombstone.actor, tombstone.reason) == ("olga", "mine")
    assert bulk.undo("delete", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (True, False)


def test_undo_skips_deletions_that_another_operator_took_over(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    changes = decisions.delete_many([row_of("one"), row_of("two")], actor=OLGA)
    assert decisions.delete_many([row_of("one")], actor=IVAN) == []
    assert bulk.undo("delete", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (True, False)


def test_a_superseded_memory_can_be_deleted(alice: Person) -> None:
    say(alice, "chat:c1", "old", "new")
    old = Memory.objects.get(text="old")
    derived_memories.supersede([old], Memory.objects.get(text="new"), old.user.created_at)
    assert decisions.delete_many([old.pk], actor=OLGA) == []
    assert Tombstone.objects.get().memory_id == old.memory_id
    old.refresh_from_db()
    assert old.state == "trashed"
    decisions.restore(alice.user_pk, MemoryRef(old.memory_id), actor=OLGA)
    assert browse.get(old.pk).state == "superseded"
    decisions.restore(alice.user_pk, MemoryRef(old.memory_id), actor=OLGA)
    assert not is_deleted("old")


def test_undo_of_a_restore_skips_memories_restored_again(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    rows = [row_of("one"), row_of("two")]
    decisions.delete_many(rows, reason="first", actor=OLGA)
    changes = decisions.restore_many(rows, actor=OLGA)
    call(alice, "delete", f"/memories/{id_of('one')}")
    call(alice, "post", f"/memories/{id_of('one')}/restore")
    assert bulk.undo("restore", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (False, True)
    assert Tombstone.objects.get(undone_at__isnull=True).reason == "first"


def test_override_many_skips_memories_of_deleted_sessions(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    say(alice, "chat:c2", "two")
    decisions.delete_session(alice.owner, "chat:c1", actor=OLGA)
    values = OverrideValues(category="user_memory_fact")
    changes = decisions.override_many([row_of("one"), row_of("two")], values, actor=OLGA)
    assert [row for row, *_ in changes] == [row_of("two")]


def test_undo_of_an_override_restores_the_previous_revision(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    ref, row = MemoryRef(id_of("one")), row_of("one")
    decisions.override(alice.user_pk, ref, OverrideValues(text="uno"), actor=OLGA)
    changes = decisions.override_many([row], OverrideValues(text="eins", category="user_memory_fact"), actor=OLGA)
    assert decisions.undo_overrides(changes, actor=OLGA) == 1
    memory = browse.get(row)
    assert (memory.text, memory.category) == ("uno", "full_context_user")
    assert Override.objects.get().text == "uno"
    assert decisions.undo_overrides(changes, actor=OLGA) == 0


def test_delete_session_takes_over_the_deletion_of_the_user(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    own_deletion = call(alice, "delete", "/sessions/chat:c1", reason="mine")
    assert decisions.delete_session(alice.owner, "chat:c1", actor=OLGA).pk == own_deletion["tombstone_id"]
    assert Tombstone.objects.get().actor == "olga"


def statements(decide: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as queries:
        decide()
    return len(queries)


def test_bulk_decisions_take_the_same_statements_for_any_number_of_memories(alice: Person) -> None:
    say(alice, "chat:c1", *(f"note {number}" for number in range(60)))
    rows = list(Memory.objects.values_list("pk", flat=True))
    few, more = rows[:3], rows[3:50]
    category = OverrideValues(category="user_memory_fact")
    changes_by_size = {len(part): decisions.override_many(part, category, actor=OLGA) for part in (few, more)}
    for decide in (
        lambda part: decisions.override_many(part, OverrideValues(category="user_memory_decision"), actor=OLGA),
        lambda part: decisions.delete_many(part, actor=OLGA),
        lambda part: decisions.delete_many(part, actor=IVAN),
        lambda part: decisions.restore_many(part, actor=OLGA),
        lambda part: decisions.undo_overrides(changes_by_size[len(part)], actor=OLGA),
    ):
        assert statements(lambda: decide(few)) == statements(lambda: decide(more)) <= 21  # noqa: B023


def test_a_single_decision_takes_few_statements(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    ref = MemoryRef(id_of("one"))
    # Two of them are the audit event and its user, one of restoring asks what is never remembered.
    assert statements(lambda: decisions.delete(alice.user_pk, ref, actor=OLGA)) <= 14
    assert statements(lambda: decisions.restore(alice.user_pk, ref, actor=OLGA)) <= 16


def test_looking_for_copies_takes_one_statement_more_and_copies_one_more(alice: Person) -> None:
    say(alice, "chat:c1", "one thing")
    ref = MemoryRef(id_of("one thing"))
    alone = statements(lambda: decisions.delete(alice.user_pk, ref, actor=OLGA))
    decisions.restore(alice.user_pk, ref, actor=OLGA)
    assert statements(lambda: decisions.delete_copies(alice.user_pk, ref, actor=OLGA)) == alone + 1
    decisions.restore(alice.user_pk, ref, actor=OLGA)
    for number in range(2, 5):
        say(alice, f"chat:c{number}", "One thing!")
    assert statements(lambda: decisions.delete_copies(alice.user_pk, ref, actor=OLGA)) == alone + 2


def test_bulk_decisions_are_audited_per_user(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        say(person, "chat:c1", *(f"{number} of {person.user_id}" for number in range(2)))
    decisions.delete_many(list(Memory.objects.values_list("pk", flat=True)), actor=OLGA)
    events = AuditEvent.objects.filter(action="memory.delete")
    assert {event.user_id: len(event.detail["memory_ids"]) for event in events} == {"alice": 2, "bob": 2}


def test_repeated_rows_are_deleted_once(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    row = row_of("one")
    assert [change[0] for change in decisions.delete_many([row, row], actor=OLGA)] == [row]
    assert lookup.is_active(browse.get(row)) is False


def test_repeated_rows_are_overridden_once(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    row = row_of("one")
    changes = decisions.override_many([row, row], OverrideValues(text="uno"), actor=OLGA)
    assert [(change[0], change[2]) for change in changes] == [(row, 1)]
