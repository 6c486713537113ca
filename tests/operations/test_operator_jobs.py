"""Long actions of operators, run as jobs: their effects, results and audit events."""

from __future__ import annotations

import tarfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import NotFound
from memories.services import decisions
from operations import bulk, erase, files, jobs, operator_jobs
from operations.models import Job
from resources.models import Resource
from resources.services import retry
from store.browse import Selection
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember

ACTOR = Actor.operator("op")
pytestmark = pytest.mark.django_db


def run(job: Job) -> Job:
    assert jobs.run_next() is not None
    return jobs.get(job.pk)


def test_only_the_selected_part_of_the_trash_is_purged(alice: Person, bob: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(4)]
    others = remember(bob.owner).row
    bulk.start("delete", bulk.of_rows([*rows[:3], others]), {}, actor=ACTOR)
    target = bulk.freeze(Selection(user_pk=alice.user_pk, in_trash=True))
    bulk.start("delete", bulk.of_rows([rows[3]]), {}, actor=ACTOR)
    bulk.start("restore", bulk.of_rows([rows[0]], in_trash=True), {}, actor=ACTOR)
    done = run(operator_jobs.purge_memories(target, actor=ACTOR))
    assert (done.status, done.result) == (Job.Status.DONE, {"purged": 3, "left": 0})
    assert not Memory.objects.filter(pk__in=rows[1:]).exclude(text="").exists()
    assert Memory.objects.exclude(text="").count() == 2
    event = AuditEvent.objects.get(action="job.purge")
    assert (event.detail["filter"]["in_trash"], event.detail["count"]) == (True, 3)


@pytest.mark.django_db(transaction=True)
def test_an_interrupted_purge_resumes(alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(5)]
    bulk.start("delete", bulk.of_rows(rows), {}, actor=ACTOR)
    job = operator_jobs.purge_memories(bulk.freeze(Selection(in_trash=True)), actor=ACTOR)
    checks = iter([False])
    assert jobs.run_next(should_end=lambda: next(checks, True)) is not None
    assert (jobs.get(job.pk).status, jobs.get(job.pk).done) == (Job.Status.RUNNING, 5)
    Job.objects.filter(pk=job.pk).update(leased_until=timezone.now() - timedelta(minutes=1))
    assert run(job).result == {"purged": 5, "left": 0}


def test_deleted_sessions_are_purged_completely(alice: Person) -> None:
    remember(alice.owner, session_id="chat:gone")
    kept = remember(alice.owner, session_id="chat:kept")
    tombstone = decisions.delete_session(alice.owner, "chat:gone", actor=ACTOR)
    done = run(operator_jobs.purge_sessions([tombstone.tombstone_id], actor=ACTOR))
    assert done.result == {"purged": 1, "left": 0}
    assert list(Memory.objects.values_list("pk", flat=True)) == [kept.row]


def test_an_archive_is_private_and_erased_with_its_user(alice: Person, storage: Path) -> None:
    remember(alice.owner)
    done = run(operator_jobs.export_user(alice.user_pk, actor=ACTOR))
    path = storage / f".archives/{alice.user_pk}/{done.pk}.tar"
    assert done.result["rows"] > 2
    assert done.result["bytes"] == path.stat().st_size
    with operator_jobs.open_archive(done) as archive, tarfile.open(fileobj=archive) as opened:
        assert "manifest.json" in opened.getnames()
    assert path.stat().st_mode & 0o077 == 0
    assert [one for one in storage.rglob("*.tar*") if one != path] == []
    erase.erase(alice.user_pk, actor=ACTOR)
    assert not path.exists()


def test_an_archive_is_removed_after_a_day(alice: Person, storage: Path) -> None:
    done = run(operator_jobs.export_user(alice.user_pk, actor=ACTOR))
    assert files.remove_old_archives(timezone.now() + timedelta(hours=23)) == 0
    assert files.remove_old_archives(timezone.now() + timedelta(hours=25)) == 1
    with pytest.raises(NotFound):
        operator_jobs.open_archive(done)


def test_memories_without_a_file_are_not_reread(alice: Person) -> None:
    row = remember(alice.owner).row
    done = run(operator_jobs.reread(bulk.of_rows([row]), actor=ACTOR))
    assert done.result == {"reread": 0, "failed": 0, "left": 1}
    assert AuditEvent.objects.get(action="job.reread").subjects.get().user_id == "alice"


def test_a_retry_resets_only_failed_resources(alice: Person) -> None:
    for number, status in enumerate(("failed", "failed", "extracted", "empty")):
        Resource.objects.create(user_id=alice.user_pk, session_id=f"s{number}", filename="f", status=status, attempts=9)
    assert retry(Resource.objects.all(), actor=ACTOR) == 2
    assert Resource.objects.filter(status="pending", attempts=0, error_message="").count() == 2
    event = AuditEvent.objects.get(action="resource.retry")
    assert (event.user_id, event.detail["count"]) == ("alice", 2)
    assert retry(Resource.objects.all(), actor=ACTOR) == 0
