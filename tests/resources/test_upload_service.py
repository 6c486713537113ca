"""`resources.services.upload`: waiting for the ingestion."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection

from accounts.audit import Actor
from resources.models import Resource
from resources.services import IncomingFile, Upload, upload
from tests.conftest import Person
from tests.resources.queueing import ingesting_by
from tests.resources.test_delete import delete

pytestmark = pytest.mark.django_db(transaction=True)
ACTOR = Actor.command("tests")


def incoming(text: str) -> IncomingFile:
    file = IncomingFile("notes.txt")
    file.write(text.encode())
    file.finish()
    return file


def test_it_waits_no_longer_than_the_setting(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 0.2
    release = threading.Event()
    started_at = time.monotonic()
    with ingesting_by(lambda **_: release.wait(10)):
        resource = upload(alice.owner, incoming("Slow."), Upload(), actor=ACTOR)
        assert 0.2 <= time.monotonic() - started_at < 5
        assert resource.status == "pending"
        release.set()


def test_it_waits_for_an_ingestion_in_another_process(alice: Person) -> None:
    def other_process() -> None:
        for _ in range(1000):
            if Resource.objects.update(status="extracted"):
                break
            time.sleep(0.005)
        connection.close()

    other = threading.Thread(target=other_process)
    other.start()
    with ingesting_by(lambda **_: None):  # another process has claimed the resource
        resource = upload(alice.owner, incoming("Elsewhere."), Upload(wait_seconds=10), actor=ACTOR)
    assert resource.status == "extracted"
    other.join()


def test_a_duplicate_of_an_unfinished_resource_waits_for_its_ingestion(alice: Person) -> None:
    release = threading.Event()

    def work(resource_id: str, **_: object) -> None:
        assert release.wait(10)
        Resource.objects.filter(pk=resource_id).update(status="extracted")

    with ingesting_by(work):
        first = upload(alice.owner, incoming("Same."), Upload(wait_seconds=0), actor=ACTOR)
        assert first.status == "pending"
        threading.Timer(0.1, release.set).start()
        second = upload(alice.owner, incoming("Same."), Upload(wait_seconds=10), actor=ACTOR)
        assert (second.resource_id, second.status) == (first.resource_id, "extracted")


def test_it_does_not_wait_for_a_file_that_is_deleted_meanwhile(alice: Person) -> None:
    def work(resource_id: str, **_: object) -> None:
        delete(alice, resource_id)

    started_at = time.monotonic()
    with ingesting_by(work):
        resource = upload(alice.owner, incoming("Unwanted."), Upload(wait_seconds=20), actor=ACTOR)
    assert (resource.state, resource.status) == ("trashed", "pending")
    assert time.monotonic() - started_at < 10
