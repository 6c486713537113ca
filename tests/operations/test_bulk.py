"""One decision about many memories: previewed, done in steps, undone once, one line in the trail."""

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


def many(person: Person, number: int, session: str = "chat:c1", name: str = "note") -> None:
    say(person, session, *(f"{name} {n} of {person.user_id}" for n in range(number)))


def all_of(person: Person, **conditions: Any) -> Selection:
    return Selection(user_pk=person.user_pk, **conditions)


def listed(selection: Selection) -> set[str]:
    return {memory.text for memory in browse.page(selection, limit=1000).memories}


def rows(person: Person, number: int) -> None:
    """More memories than one step takes, without their index entries."""
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
    """Runs the next job, in a process that ends after some of its steps."""
    checks = iter(range(10_000))
    return jobs.run_next(should_end=lambda: next(checks) > steps - 1)


def test_a_preview_counts_what_would_be_taken(alice: Person, bob: Person) -> None:
    many(alice, 3)
    many(bob, 2, "chat:c2")
    correction = decisions.OverrideValues(category="user_memory_fact")
    decisions.override(bob.user_pk, MemoryRef(id_of("note 0 of bob")), correction, actor=OPERATOR)
    target = bulk.freeze(Selection())
    many(bob, 1, name="later")
    preview = bulk.preview(target)
    assert (preview.total, preview.users, preview.sessions, preview.edited, preview.since) == (5, 2, 2, 1, 1)
    assert preview.by_category == {"full_context_user": 4, "user_memory_fact": 1}


def test_what_was_written_later_is_not_taken(alice: Person) -> None:
    many(alice, 3)
    target = bulk.Target.from_json(bulk.freeze(all_of(alice)).as_json())
    many(alice, 1, name="later")
    job = bulk.start("delete", target, {}, actor=OPERATOR)
    assert job.status == "done"
    assert job.result == {"changed": 3, "left": 0}
    assert listed(all_of(alice)) == {"later 0 of alice"}


def test_a_small_one_is_done_at_once_and_a_large_one_waits(alice: Person) -> None:
    many(alice, 26)
    large = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    assert (large.status, large.total, browse.count(all_of(alice))) == ("queued", 26, 26)
    small = bulk.start("delete", bulk.of_rows([Memory.objects.latest("pk").pk]), {}, actor=OPERATOR)
    assert (small.status, browse.count(all_of(alice))) == ("done", 25)


def test_deletions_are_those_of_one_by_one(alice: Person, bob: Person) -> None:
    many(alice, 3)
    many(bob, 1)
    bulk.start("delete", bulk.freeze(Selection()), {"reason": "cleaning up"}, actor=OPERATOR)
    entries = call(alice, "get", "/memories/trash")["trash"]
    assert {entry["text"] for entry in entries} == {f"note {n} of alice" for n in range(3)}
    tombstone = Tombstone.objects.get(memory_id=id_of("note 1 of alice"))
    assert (tombstone.reason, tombstone.actor_kind, tombstone.actor) == ("cleaning up", "operator", "olga")
    decisions.restore(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    assert listed(all_of(alice)) == {"note 1 of alice"}


def test_undoing_leaves_deleted_what_its_user_deleted_too(alice: Person) -> None:
    many(alice, 2)
    wanted = id_of("note 0 of alice")
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    answer = call(alice, "delete", f"/memories/{wanted}", reason="mine")
    assert call(alice, "delete", f"/memories/{wanted}")["tombstone_id"] == answer["tombstone_id"]
    undone = jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert jobs.get(undone.pk).result == {"undone": 1, "left": 1}
    assert listed(all_of(alice)) == {"note 1 of alice"}
    [entry] = call(alice, "get", "/memories/trash")["trash"]
    assert (entry["memory_id"], entry["reason"]) == (wanted, "mine")


def test_a_large_one_goes_on_where_its_process_ended(alice: Person) -> None:
    rows(alice, 450)
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    run(steps=1)
    job.refresh_from_db()
    assert (job.status, job.done, browse.count(all_of(alice))) == ("running", 200, 250)
    assert run() is None  # its process may still live
    Job.objects.update(leased_until=timezone.now())
    finished = run()
    assert finished is not None
    assert (finished.status, finished.done, finished.result) == ("done", 450, {"changed": 450, "left": 0})
    assert Tombstone.objects.count() == 450


def test_one_that_is_stopped_keeps_what_it_did_and_can_be_undone(alice: Person) -> None:
    rows(alice, 450)
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    run(steps=2)
    assert jobs.stop(job.pk).status == "running"
    Job.objects.update(leased_until=timezone.now())
    run()
    assert jobs.get(job.pk).status == "stopped"
    assert browse.count(all_of(alice)) == 50
    jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert browse.count(all_of(alice)) == 450
    assert AuditEvent.objects.get(action="memories.delete").detail["count"] == 400


def test_undoing_leaves_what_others_decided_since(alice: Person) -> None:
    many(alice, 3)
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    decisions.restore(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    decisions.delete(alice.user_pk, MemoryRef(id_of("note 1 of alice")), actor=OPERATOR)
    undoing = jobs.undo(job.pk, actor=OPERATOR)
    assert jobs.run_now(undoing).result == {"undone": 2, "left": 1}
    assert listed(all_of(alice)) == {"note 0 of alice", "note 2 of alice"}


def test_it_is_undone_once(alice: Person) -> None:
    many(alice, 1)
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    assert jobs.can_undo(job)
    jobs.undo(job.pk, actor=OPERATOR)
    with pytest.raises(Conflict):
        jobs.undo(job.pk, actor=OPERATOR)


def test_an_undoing_that_was_stopped_can_be_begun_again(alice: Person) -> None:
    many(alice, 1)
    job = bulk.start("delete", bulk.freeze(all_of(alice)), {}, actor=OPERATOR)
    jobs.stop(jobs.undo(job.pk, actor=OPERATOR).pk)
    jobs.undo(job.pk, actor=OPERATOR)
    run()
    assert browse.count(all_of(alice)) == 1


def test_many_are_restored_from_the_trash_and_that_is_undone(alice: Person) -> None:
    many(alice, 3)
    bulk.start("delete", bulk.freeze(all_of(alice)), {"reason": "first"}, actor=OPERATOR)
    job = bulk.start("restore", bulk.freeze(all_of(alice, in_trash=True)), {}, actor=OPERATOR)
    assert job.result == {"changed": 3, "left": 0}
    assert browse.count(all_of(alice)) == 3
    jobs.run_now(jobs.undo(job.pk, actor=OPERATOR))
    assert browse.count(all_of(alice)) == 0
    assert set(Tombstone.objects.filter(undone_at__isnull=True).values_list("reason", flat=True)) == {"first"}


def test_many_get_another_category_and_that_is_undone(alice: Person) -> None:
    many(alice, 3)
    edited = MemoryRef(id_of("note 0 of alice"))
    decisions.override(alice.user_pk, edited, decisions.OverrideValues(category="user_memory_fact"), actor=OPERATOR)
    job = bulk.start("categorise", bulk.freeze(all_of(alice)), {"category": "user_memory_decision"}, actor=OPERATOR)
    assert browse.count(all_of(alice, tab="user")) == 3
    since = MemoryRef(id_of("note 1 of alice"))
    decisions.override(alice.user_pk, since, decisions.OverrideValues(text="said otherwise"), actor=OPERATOR)
    assert jobs.run_now(jobs.undo(job.pk, actor=OPERATOR)).result == {"undone": 2, "left": 1}
    assert {memory.text: memory.category for memory in browse.page(all_of(alice)).memories} == {
        "note 0 of alice": "user_memory_fact",
        "said otherwise": "user_memory_decision",
        "note 2 of alice": "full_context_user",
    }
    assert Override.objects.filter(undone_at__isnull=True).count() == 2


def test_events_of_a_job_s_steps_name_its_memories_a_hundred_each(alice: Person, bob: Person) -> None:
    rows(alice, 250)
    many(bob, 1)
    job = bulk.start("delete", bulk.freeze(Selection()), {"reason": "noise"}, actor=OPERATOR)
    run()
    events = AuditEvent.objects.filter(action="memory.delete")
    assert {event.detail["job"] for event in events} == {str(job.pk)}
    named = [event.detail["memory_ids"] for event in events.filter(user_id="alice").order_by("pk")]
    assert [len(ids) for ids in named] == [100, 100, 50]
    assert {name for ids in named for name in ids} == {f"m{number}" for number in range(250)}
    assert events.get(user_id="bob").subject_id == id_of("note 0 of bob")


def test_the_trail_has_one_line_with_filter_and_count(alice: Person) -> None:
    many(alice, 3)
    job = bulk.start("delete", bulk.freeze(all_of(alice, tab="full")), {"reason": "noise"}, actor=OPERATOR)
    jobs.run_now(jobs.undo(job.pk, actor=OPERATOR))
    done, undone = AuditEvent.objects.filter(actor="olga", subject_type="job").order_by("pk")
    assert (done.action, done.subject_id) == ("memories.delete", str(job.pk))
    assert done.detail["filter"] == {"user_pk": str(alice.user_pk), "tab": "full"}
    assert (done.detail["count"], done.detail["reason"]) == (3, "noise")
    assert (undone.action, undone.detail) == ("job.undo", {"undone": 3, "left": 0, "status": "done"})
    deleted, restored = AuditEvent.objects.filter(actor="olga", subject_type="memory").order_by("pk")
    assert (deleted.action, restored.action) == ("memory.delete", "memory.restore")
    assert set(deleted.detail["memory_ids"]) == set(restored.detail["memory_ids"])
    assert "note" not in str(list(AuditEvent.objects.values_list("detail", flat=True)))


def test_senseless_orders_are_refused(alice: Person) -> None:
    with pytest.raises(InvalidInput):
        bulk.start("categorise", bulk.freeze(Selection()), {"category": "nonsense"}, actor=OPERATOR)
    with pytest.raises(InvalidInput):
        bulk.of_rows(range(bulk.MAX_ROWS + 1))
