"""resources.services.upload: how long it waits, and for whom."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection

from resources.models import Resource
from resources.services import IncomingFile, IngestionPool, Upload, upload
from tests.conftest import Person
from tests.resources.test_delete import principal

pytestmark = pytest.mark.django_db(transaction=True)


def incoming(text: str) -> IncomingFile:
    file = IncomingFile("notes.txt")
    file.write(text.encode())
    file.finish()
    return file


def test_it_waits_no_longer_than_the_setting_says(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 0.2
    release = threading.Event()
    pool = IngestionPool(lambda _: release.wait(10), slots=1)
    began = time.monotonic()
    resource = upload(principal(alice), incoming("Slow."), Upload(), pool=pool)
    assert 0.2 <= time.monotonic() - began < 5
    assert resource.status == "pending"
    release.set()
    assert pool.wait_until_idle(10)


def test_it_waits_for_an_ingestion_in_another_process(alice: Person) -> None:
    pool = IngestionPool(lambda _: None, slots=1)  # finds the resource in other hands

    def other_process() -> None:
        for _ in range(1000):
            if Resource.objects.update(status="extracted"):
                break
            time.sleep(0.005)
        connection.close()

    other = threading.Thread(target=other_process)
    other.start()
    assert upload(principal(alice), incoming("Elsewhere."), Upload(wait_seconds=10), pool=pool).status == "extracted"
    other.join()


def test_a_duplicate_of_an_unfinished_resource_waits_like_the_first(alice: Person) -> None:
    release = threading.Event()

    def work(resource_id: str) -> None:
        assert release.wait(10)
        Resource.objects.filter(pk=resource_id).update(status="extracted")

    pool = IngestionPool(work, slots=1)
    first = upload(principal(alice), incoming("Same."), Upload(wait_seconds=0), pool=pool)
    assert first.status == "pending"
    threading.Timer(0.1, release.set).start()
    second = upload(principal(alice), incoming("Same."), Upload(wait_seconds=10), pool=pool)
    assert (second.resource_id, second.status) == (first.resource_id, "extracted")
    assert pool.wait_until_idle(10)
