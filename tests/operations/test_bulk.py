"""Bulk decisions: previewed, executed in steps, undone once and audited with one event."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import Conflict, InvalidInput
from memories.models import Override, Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from operations import bulk, jobs
from operations.models import Job
from store import browse
from store.browse import Selection
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say

pytestmark = pytest.mark.django_db

OPERATOR = Actor.operator("olga")


def add_notes(person: Person, number: int, session: str = "chat:c1", name: str = "note") -> None:
    say(person, session, *(f"{name} {n} of {person.user_id}" for n in range(number)))


def all_memories(person: Person, **conditions: Any) -> Selection:
    return Selection(user_pk=person.user_pk, **conditions)


def listed_texts(selection: Selection) -> set[str]:
    return {memory.text for memory in browse.page(selection, limit=1000).memories}


def create_rows(person: Person, number: int) -> None:
    """Create more memories than one step processes, without index entries."""
    session = Session.objects.create(user_id=person.user_pk, session_id="many", engine_session_id="many", kind="other")
    Memory.objects.bulk_create(
        Memory(
            user_id=person.user_pk,
            session=session,
            memory_id=f"m{n}",
            memory_type="episode",
            category="full_context_user",
            text=f"row {n}",
            seq=n,
            created_at_ms=NOON_MS - n // 3,
        )
        for n in range(number)
    )


def run(*, steps: int = 1000) -> Job | None:
    """Run the next job in a process that ends after some steps."""
    checks = iter(range(10_000))
    return jobs.run_next(should_end=lambda: next(checks) > steps - 1)


def test_a_preview_counts_the_selected_memories(alice: Person, bob: Person) -> None:
    add_notes(alice, 3)
    add_notes(bob, 2, "chat:c2")
    override = decisions.OverrideValues(category="user_memory_fact")
    decisions.override(bob.user_pk, MemoryRef(id_of("note 0 of bob")), override, actor=OPERATOR)
    target = bulk.freeze(Selection())
    add_notes(bob, 1, name="later")
    preview = bulk.preview(target)
    assert (preview.total, preview.users, preview.sessions, preview.edited, preview.since) == (5, 2, 2, 1, 1)
    assert preview.by_category == {"full_context_user": 4, "user_memory_fact": 1}


def test_memories_written_later_are_not_selected(alice: Person) -> None:
    add_notes(alice, 3)
    target = bulk.Target.from_json(bulk.freeze(all_memories(alice)).as_json())
    add_notes(alice, 1, name="later")
    job = bulk.start("delete", target, {}, actor=OPERATOR)
    assert job.status == "done"
    assert job.result == {"changed": 3, "left": 0}
    assert listed_texts(all_memories(alice)) == {"later 0 of alice"}


def test_a_small_job_runs_immediately_and_a_large_one_is_queued(alice: Person) -> None:
    add_notes(alice, 26)
    large = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    assert (large.status, large.total, browse.count(all_memories(alice))) == ("queued", 26, 26)
    small = bulk.start("delete", bulk.of_rows([Memory.objects.latest("pk").pk]), {}, actor=OPERATOR)
    assert (small.status, browse.count(all_memories(alice))) == ("done", 25)


def test_bulk_deletions_equal_single_deletions(alice: Person, bob: Person) -> None:
    add_notes(alice, 3)
    add_notes(bob, 1)
    bulk.start("delete", bulk.freeze(Selection()), {"reason": "cleaning up"}, actor=OPERATOR)
    entries = call(alice, "get", "/memories/trash")["trash"]
    assert {entry["text"] for entry in entries} == {f"note {n} of alice" for n in range(3)}
    tombstone = Tombstone.objects.get(memory_id=id_of("note 1 of alice"))
    assert (tombstone.reason, tombstone.actor_kind, tombstone.actor) == ("cleaning up", "operator", "olga")
    decisions.restore(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    assert listed_texts(all_memories(alice)) == {"note 1 of alice"}


def test_undoing_does_not_restore_what_the_user_deleted_too(alice: Person) -> None:
    add_notes(alice, 2)
    memory_id = id_of("note 0 of alice")
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    answer = call(alice, "delete", f"/memories/{memory_id}", reason="mine")
    assert call(alice, "delete", f"/memories/{memory_id}")["tombstone_id"] == answer["tombstone_id"]
    undone = jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert jobs.get(undone.pk).result == {"undone": 1, "left": 1}
    assert listed_texts(all_memories(alice)) == {"note 1 of alice"}
    [entry] = call(alice, "get", "/memories/trash")["trash"]
    assert (entry["memory_id"], entry["reason"]) == (memory_id, "mine")


def test_an_interrupted_job_resumes(alice: Person) -> None:
    create_rows(alice, 450)
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    run(steps=1)
    job.refresh_from_db()
    assert (job.status, job.done, browse.count(all_memories(alice))) == ("running", 200, 250)
    assert run() is None  # the process may still be running
    Job.objects.update(leased_until=timezone.now())
    finished = run()
    assert finished is not None
    assert (finished.status, finished.done, finished.result) == ("done", 450, {"changed": 450, "left": 0})
    assert Tombstone.objects.count() == 450


def test_a_stopped_job_can_be_undone(alice: Person) -> None:
    create_rows(alice, 450)
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    run(steps=2)
    assert jobs.stop(job.pk).status == "running"
    Job.objects.update(leased_until=timezone.now())
    run()
    assert jobs.get(job.pk).status == "stopped"
    assert browse.count(all_memories(alice)) == 50
    jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert browse.count(all_memories(alice)) == 450
    assert AuditEvent.objects.get(action="job.delete").detail["count"] == 400


def test_undoing_does_not_change_later_decisions(alice: Person) -> None:
    add_notes(alice, 3)
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    decisions.restore(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    decisions.delete(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    undoing = jobs.undo(job.pk, actor=OPERATOR)
    assert jobs.run_now(undoing).result == {"undone": 2, "left": 1}
    assert listed_texts(all_memories(alice)) == {"note 0 of alice", "note 2 of alice"}


def test_a_job_is_undone_once(alice: Person) -> None:
    add_notes(alice, 1)
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    assert jobs.can_undo(job)
    jobs.undo(job.pk, actor=OPERATOR)
    with pytest.raises(Conflict):
        jobs.undo(job.pk, actor=OPERATOR)


def test_a_stopped_undo_can_be_started_again(alice: Person) -> None:
    add_notes(alice, 1)
    job = bulk.start("delete", bulk.freeze(all_memories(alice)), {}, actor=OPERATOR)
    jobs.stop(jobs.undo(job.pk, actor=OPERATOR).pk)
    jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert browse.count(all_memories(alice)) == 1


def test_a_bulk_restore_and_its_undo(alice: Person) -> None:
    add_notes(alice, 3)
    bulk.start("delete", bulk.freeze(all_memories(alice)), {"reason": "first"}, actor=OPERATOR)
    job = bulk.start("restore", bulk.freeze(all_memories(alice, in_trash=True)), {}, actor=OPERATOR)
    assert job.result == {"changed": 3, "left": 0}
    assert browse.count(all_memories(alice)) == 3
    jobs.run_now(jobs.undo(job.pk, actor=OPERATOR))
    assert browse.count(all_memories(alice)) == 0
    assert set(Tombstone.objects.filter(undone_at__isnull=True).values_list("reason", flat=True)) == {"first"}


def test_a_bulk_change_of_category_and_its_undo(alice: Person) -> None:
    add_notes(alice, 3)
    edited = MemoryRef(id_of("note 0 of alice"))
    decisions.override(alice.user_pk, edited, decisions.OverrideValues(category="user_memory_fact"), actor=OPERATOR)
    job = bulk.start(
        "categorize", bulk.freeze(all_memories(alice)), {"category": "user_memory_decision"}, actor=OPERATOR
    )
    assert browse.count(all_memories(alice, tab="user")) == 3
    later = MemoryRef(id_of("note 1 of alice"))
    decisions.override(alice.user_pk, later, decisions.OverrideValues(text="said otherwise"), actor=OPERATOR)
    assert jobs.run_now(jobs.undo(job.pk, actor=OPERATOR)).result == {"undone": 2, "left": 1}
    assert {memory.text: memory.category for memory in browse.page(all_memories(alice)).memories} == {
        "note 0 of alice": "user_memory_fact",
        "said otherwise": "user_memory_decision",
        "note 2 of alice": "full_context_user",
    }
    assert Override.objects.filter(undone_at__isnull=True).count() == 2


def test_audit_events_name_at_most_a_hundred_memories_each(alice: Person, bob: Person) -> None:
    create_rows(alice, 250)
    add_notes(bob, 1)
    job = bulk.start("delete", bulk.freeze(Selection()), {"reason": "noise"}, actor=OPERATOR)
    run()
    events = AuditEvent.objects.filter(action="memory.delete")
    assert {event.detail["job"] for event in events} == {str(job.pk)}
    named = [event.detail["memory_ids"] for event in events.filter(user_id="alice").order_by("pk")]
    assert [len(ids) for ids in named] == [100, 100, 50]
    assert {name for ids in named for name in ids} == {f"m{number}" for number in range(250)}
    assert events.get(user_id="bob").subject_id == id_of("note 0 of bob")


def test_the_audit_event_has_filter_and_count(alice: Person) -> None:
    add_notes(alice, 3)
    job = bulk.start("delete", bulk.freeze(all_memories(alice, tab="full")), {"reason": "noise"}, actor=OPERATOR)
    jobs.run_now(jobs.undo(job.pk, actor=OPERATOR))
    done, undone = AuditEvent.objects.filter(actor="olga", subject_type="job").order_by("pk")
    assert (done.action, done.subject_id) == ("job.delete", str(job.pk))
    assert done.detail["filter"] == {"user_pk": str(alice.user_pk), "tab": "full"}
    assert (done.detail["count"], done.detail["reason"]) == (3, "noise")
    assert (undone.action, undone.detail) == ("job.undo", {"undone": 3, "left": 0, "status": "done"})
    deleted, restored = AuditEvent.objects.filter(actor="olga", subject_type="memory").order_by("pk")
    assert (deleted.action, restored.action) == ("memory.delete", "memory.restore")
    assert set(deleted.detail["memory_ids"]) == set(restored.detail["memory_ids"])
    assert "note" not in str(list(AuditEvent.objects.values_list("detail", flat=True)))


def test_invalid_jobs_are_rejected(alice: Person) -> None:
    with pytest.raises(InvalidInput):
        bulk.start("categorize", bulk.freeze(Selection()), {"category": "nonsense"}, actor=OPERATOR)
    with pytest.raises(InvalidInput):
        bulk.of_rows(range(bulk.MAX_ROWS + 1))
