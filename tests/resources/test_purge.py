"""A purge removes a resource in the trash with its file, and its session from the engine."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.errors import EngineRefused, EngineUnavailable
from resources import services
from resources.models import Attachment, Resource
from resources.services import purge
from resources.tasks import Reconciler
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.memories.calls import call
from tests.resources.forms import files_below, stored_resource, upload
from tests.resources.test_delete import delete, restore

ACTOR = Actor.command("tests")


def delete_and_purge(person: Person, resource_id: str, *, engine: Any = None) -> Resource:
    delete(person, resource_id)
    purged = purge(resource_id, actor=ACTOR, engine=engine)
    assert purged is not None
    return purged


@pytest.mark.django_db(transaction=True)
def test_it_removes_the_file_and_is_audited(alice: Person, storage: Path) -> None:
    resource_id = upload(alice).json()["resource_id"]
    deleted_at = delete(alice, resource_id).state_since
    assert purge(resource_id, actor=ACTOR)
    assert files_below(storage) == []
    assert not Attachment.objects.exists()
    resource = Resource.objects.get()
    assert (resource.state, resource.state_since) == ("purged", deleted_at)
    assert (resource.storage_path, resource.retry_at) == ("", None)
    event = AuditEvent.objects.get(action="resource.purge")
    assert (event.subject_id, event.user_id, event.actor) == (resource_id, "alice", "tests")


@pytest.mark.django_db
def test_only_resources_in_the_trash_are_purged(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    assert purge(resource.resource_id, actor=ACTOR) is None
    delete(alice, resource.resource_id)
    restore(alice, resource.resource_id)
    assert purge(resource.resource_id, actor=ACTOR) is None
    assert len(files_below(storage)) == 1


@pytest.mark.django_db
def test_a_purged_resource_cannot_be_restored(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    delete_and_purge(alice, resource.resource_id)
    call(alice, "post", f"/resources/{resource.resource_id}/restore", status=404)
    assert alice.client.get("/resources?deleted=true").json() == {"resources": []}


@pytest.mark.django_db
def test_the_session_is_deleted_in_the_engine(alice: Person) -> None:
    engine, resource = RecordingEngine(), stored_resource(alice)
    delete_and_purge(alice, resource.resource_id, engine=engine)
    assert engine.deleted == [resource.session_id]


@pytest.mark.django_db
def test_an_unavailable_engine_leaves_the_cleanup_pending(alice: Person, storage: Path) -> None:
    engine, resource = RecordingEngine(failures={"delete": [EngineUnavailable("away")]}), stored_resource(alice)
    deleted = delete_and_purge(alice, resource.resource_id, engine=engine)
    assert deleted.state == "purged"
    assert files_below(storage) == []
    assert deleted.retry_at is not None
    assert deleted.retry_at > timezone.now()
    finished = services.finish_deletion(resource.resource_id, engine=engine)
    assert finished.retry_at is None
    assert engine.deleted == [resource.session_id]


@pytest.mark.django_db
def test_a_file_that_cannot_be_removed_is_removed_later(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    path = storage / resource.storage_path
    path.unlink()
    path.mkdir()  # a folder cannot be removed as a file
    purged = delete_and_purge(alice, resource.resource_id)
    assert (purged.state, purged.storage_path, purged.attempts) == ("purged", resource.storage_path, 1)
    due = purged.retry_at
    assert due is not None
    reconciler = Reconciler()
    assert reconciler.finish_deletions(due - timedelta(milliseconds=1)) == 0
    path.rmdir()
    path.write_text("x")
    assert reconciler.finish_deletions(due) == 1
    assert files_below(storage) == []
    assert (Resource.objects.get().storage_path, Resource.objects.get().retry_at) == ("", None)


@pytest.mark.django_db
def test_a_permanent_error_of_the_engine_ends_the_cleanup(alice: Person) -> None:
    engine, resource = RecordingEngine(failures={"delete": [EngineRefused("no such call")]}), stored_resource(alice)
    assert delete_and_purge(alice, resource.resource_id, engine=engine).retry_at is None


@pytest.mark.django_db
def test_a_crash_leaves_the_cleanup_pending(alice: Person, storage: Path) -> None:
    class Crash(BaseException):
        pass

    class CrashingEngine(RecordingEngine):
        def delete(self, owner: object, session_id: str) -> None:
            raise Crash

    resource = stored_resource(alice)
    with pytest.raises(Crash):
        delete_and_purge(alice, resource.resource_id, engine=CrashingEngine())
    left = Resource.objects.get()
    assert left.state == "purged"
    assert left.retry_at is not None
    assert left.retry_at <= timezone.now()
    assert len(files_below(storage)) == 1
    assert purge(resource.resource_id, actor=ACTOR) is None
