"""DELETE /resources/{id}."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent
from accounts.principal import Principal
from core.errors import EngineRefused, EngineUnavailable, NotFound
from resources import services
from resources.models import Attachment, Resource
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import files_below, stored_resource, upload


@pytest.mark.django_db(transaction=True)
def test_it_answers_as_documented_and_leaves_no_file(alice: Person, storage: Path) -> None:
    uploaded = upload(alice).json()
    response = Client().delete(f"/resources/{uploaded['resource_id']}", query_params=alice.credentials)
    assert response.status_code == 200
    assert response.json() == {**uploaded, "status": "deleted"}
    assert list(response.json()) == list(uploaded)
    assert files_below(storage) == []
    assert not Attachment.objects.exists()
    resource = Resource.objects.get()
    assert (resource.status, resource.cleanup_owed, resource.storage_path) == ("deleted", False, "")
    assert resource.deleted_at is not None
    assert alice.client.get("/resources").json() == {"resources": []}


@pytest.mark.django_db
def test_it_is_audited(alice: Person) -> None:
    resource = stored_resource(alice)
    alice.client.delete(f"/resources/{resource.resource_id}")
    event = AuditEvent.objects.get(action="resource.delete")
    assert (event.subject_id, event.user_id) == (resource.resource_id, "alice")


@pytest.mark.django_db
def test_others_unknown_and_deleted_ones_are_404(alice: Person, bob: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    address = f"/resources/{resource.resource_id}"
    assert bob.client.delete(address).status_code == 404
    assert alice.client.delete("/resources/r_unknown").status_code == 404
    assert len(files_below(storage)) == 1
    assert alice.client.delete(address).status_code == 200
    assert alice.client.delete(address).status_code == 404


@pytest.mark.django_db
def test_it_needs_a_key(alice: Person) -> None:
    assert Client().delete(f"/resources/{stored_resource(alice).resource_id}").status_code == 401
    assert Resource.objects.get().status == "pending"


@pytest.mark.django_db
def test_the_engine_forgets_the_session(alice: Person) -> None:
    engine, resource = RecordingEngine(), stored_resource(alice)
    services.delete(principal(alice), resource.resource_id, engine=engine)
    assert engine.deleted == [resource.session_id]


@pytest.mark.django_db
def test_while_the_engine_is_away_the_file_goes_and_the_rest_stays_owed(alice: Person, storage: Path) -> None:
    engine, resource = RecordingEngine(failures={"delete": [EngineUnavailable("away")]}), stored_resource(alice)
    deleted = services.delete(principal(alice), resource.resource_id, engine=engine)
    assert deleted.status == "deleted"
    assert files_below(storage) == []
    assert deleted.cleanup_owed
    assert deleted.retry_at is not None
    assert deleted.retry_at > timezone.now()
    finished = services.finish_deletion(resource.resource_id, engine=engine)
    assert not finished.cleanup_owed
    assert engine.deleted == [resource.session_id]


@pytest.mark.django_db
def test_an_engine_that_never_deletes_is_not_asked_for_ever(alice: Person) -> None:
    engine, resource = RecordingEngine(failures={"delete": [EngineRefused("no such call")]}), stored_resource(alice)
    assert not services.delete(principal(alice), resource.resource_id, engine=engine).cleanup_owed


@pytest.mark.django_db
def test_a_crash_before_the_cleanup_leaves_it_visible_in_the_row(alice: Person, storage: Path) -> None:
    class Crash(BaseException):
        pass

    class CrashingEngine(RecordingEngine):
        def delete(self, owner: object, session_id: str) -> None:
            raise Crash

    resource = stored_resource(alice)
    with pytest.raises(Crash):
        services.delete(principal(alice), resource.resource_id, engine=CrashingEngine())
    left = Resource.objects.get()
    assert (left.status, left.cleanup_owed) == ("deleted", True)
    assert len(files_below(storage)) == 1
    with pytest.raises(NotFound):
        services.delete(principal(alice), resource.resource_id, engine=RecordingEngine())


def principal(person: Person) -> Principal:
    return Principal(person.user_pk, person.user_id, person.user_pk)
