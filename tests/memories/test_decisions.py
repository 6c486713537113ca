"""One rule for one decision and for many: what is deleted, taken over, undone, and in how many statements."""

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
from store import browse
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, id_of, say

pytestmark = pytest.mark.django_db
OLGA, IVAN = Actor.operator("olga"), Actor.operator("ivan")


def row_of(text: str) -> int:
    return Memory.objects.get(text=text).pk


def is_deleted(text: str) -> bool:
    return browse.get(row_of(text)).hidden_at is not None


def test_deleting_many_takes_over_what_its_user_deleted(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    mine = call(alice, "delete", f"/memories/{id_of('one')}", reason="mine")
    changes = decisions.delete_many([row_of("one"), row_of("two")], actor=OLGA)
    assert [row for row, _ in changes] == [row_of("two")]
    taken = Tombstone.objects.get(pk=mine["tombstone_id"])
    assert (taken.actor, taken.reason) == ("olga", "mine")
    assert bulk.undo("delete", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (True, False)


def test_undoing_leaves_what_another_operator_took_over(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    changes = decisions.delete_many([row_of("one"), row_of("two")], actor=OLGA)
    assert decisions.delete_many([row_of("one")], actor=IVAN) == []
    assert bulk.undo("delete", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (True, False)


def test_a_superseded_memory_is_its_user_s_decision_once_deleted(alice: Person) -> None:
    say(alice, "chat:c1", "old", "new")
    old = Memory.objects.get(text="old")
    old.origin, old.payload = Memory.Origin.EXTRACTED, {"hidden_as": "superseded", "sources": []}
    old.hidden_at = old.user.created_at
    old.save()
    assert decisions.delete_many([old.pk], actor=OLGA) == []
    assert Tombstone.objects.get().memory_id == old.memory_id
    old.refresh_from_db()
    assert "hidden_as" not in old.payload
    decisions.restore(alice.user_pk, MemoryRef(old.memory_id), actor=OLGA)
    assert not is_deleted("old")


def test_undoing_a_restoration_leaves_what_was_restored_again_since(alice: Person) -> None:
    say(alice, "chat:c1", "one", "two")
    rows = [row_of("one"), row_of("two")]
    decisions.delete_many(rows, reason="first", actor=OLGA)
    changes = decisions.restore_many(rows, actor=OLGA)
    call(alice, "delete", f"/memories/{id_of('one')}")
    call(alice, "post", f"/memories/{id_of('one')}/restore")
    assert bulk.undo("restore", changes, decided_by=OLGA, actor=OLGA) == 1
    assert (is_deleted("one"), is_deleted("two")) == (False, True)
    assert Tombstone.objects.get(undone_at__isnull=True).reason == "first"


def test_many_overrides_leave_out_what_is_deleted_with_its_session(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    say(alice, "chat:c2", "two")
    decisions.delete_session(alice.owner, "chat:c1", actor=OLGA)
    values = OverrideValues(category="user_memory_fact")
    changes = decisions.override_many([row_of("one"), row_of("two")], values, actor=OLGA)
    assert [row for row, *_ in changes] == [row_of("two")]


def test_undoing_gives_back_the_text_of_the_override_before(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    ref, row = MemoryRef(id_of("one")), row_of("one")
    decisions.override(alice.user_pk, ref, OverrideValues(text="uno"), actor=OLGA)
    changes = decisions.override_many([row], OverrideValues(text="eins", category="user_memory_fact"), actor=OLGA)
    assert decisions.undo_overrides(changes, actor=OLGA) == 1
    memory = browse.get(row)
    assert (memory.text, memory.category) == ("uno", "full_context_user")
    assert Override.objects.get().text == "uno"
    assert decisions.undo_overrides(changes, actor=OLGA) == 0


def test_a_deleted_session_is_taken_over_too(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    mine = call(alice, "delete", "/sessions/chat:c1", reason="mine")
    assert decisions.delete_session(alice.owner, "chat:c1", actor=OLGA).pk == mine["tombstone_id"]
    assert Tombstone.objects.get().actor == "olga"


def statements(decide: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as seen:
        decide()
    return len(seen)


def test_many_are_decided_about_in_as_many_statements_as_few(alice: Person) -> None:
    say(alice, "chat:c1", *(f"note {number}" for number in range(60)))
    rows = list(Memory.objects.values_list("pk", flat=True))
    few, more = rows[:3], rows[3:50]
    category = OverrideValues(category="user_memory_fact")
    made = {len(part): decisions.override_many(part, category, actor=OLGA) for part in (few, more)}
    for decide in (
        lambda part: decisions.override_many(part, OverrideValues(category="user_memory_decision"), actor=OLGA),
        lambda part: decisions.delete_many(part, actor=OLGA),
        lambda part: decisions.delete_many(part, actor=IVAN),
        lambda part: decisions.restore_many(part, actor=OLGA),
        lambda part: decisions.undo_overrides(made[len(part)], actor=OLGA),
    ):
        assert statements(lambda: decide(few)) == statements(lambda: decide(more)) <= 20  # noqa: B023


def test_one_is_decided_about_in_few_statements(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    ref = MemoryRef(id_of("one"))
    assert statements(lambda: decisions.delete(alice.user_pk, ref, actor=OLGA)) <= 9
    assert statements(lambda: decisions.restore(alice.user_pk, ref, actor=OLGA)) <= 9


def test_each_user_has_events_of_their_own(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        say(person, "chat:c1", *(f"{number} of {person.user_id}" for number in range(2)))
    decisions.delete_many(list(Memory.objects.values_list("pk", flat=True)), actor=OLGA)
    events = AuditEvent.objects.filter(action="memory.delete")
    assert {event.user_id: len(event.detail["memory_ids"]) for event in events} == {"alice": 2, "bob": 2}


def test_rows_named_twice_are_deleted_once(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    row = row_of("one")
    assert [change[0] for change in decisions.delete_many([row, row], actor=OLGA)] == [row]
    assert lookup.is_active(browse.get(row)) is False


def test_rows_named_twice_are_overridden_once(alice: Person) -> None:
    say(alice, "chat:c1", "one")
    row = row_of("one")
    changes = decisions.override_many([row, row], OverrideValues(text="uno"), actor=OLGA)
    assert [(change[0], change[2]) for change in changes] == [(row, 1)]
