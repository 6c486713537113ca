"""A user is erased while requests of the user run: they leave nothing and get status 401."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from accounts.audit import Actor
from accounts.models import MemoryUser
from core.errors import EngineRefused, Unauthenticated
from memories.services.add import AddCommand, NewContentItem, NewMessage, add
from operations import erase
from resources.models import Resource
from resources.services import Upload, upload
from resources.services.external import Registration, register
from store.models import Memory, Session
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.memories.calls import NOON_MS
from tests.remote.conftest import make_engine, message_of
from tests.resources.forms import files_below
from tests.resources.forms import upload as send
from tests.resources.test_delete import principal
from tests.resources.test_upload_service import incoming
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


def erase_user(person: Person) -> None:
    erase.erase(person.user_pk, actor=ACTOR)


def add_message_with_file(person: Person, engine: RecordingEngine) -> None:
    part = NewContentItem("doc", data=b"The walnut safe opens with 4711.", ext="txt", name="safe.txt")
    command = AddCommand("chat:c1", (NewMessage(person.user_id, "user", NOON_MS, (part,)),))
    add(person.owner, command, engine=engine)  # type: ignore[arg-type]


def test_a_file_of_a_message_is_erased_with_its_user(alice: Person, storage: Path) -> None:
    with pytest.raises(Unauthenticated):
        add_message_with_file(alice, RecordingEngine(during_add=lambda: erase_user(alice)))
    assert files_below(storage) == []


def test_a_file_that_arrives_after_the_erasure_is_removed(alice: Person, storage: Path) -> None:
    """The request starts with a valid key, and ends after the erasure."""
    erase_user(alice)

    def reject() -> None:
        raise EngineRefused("This user was erased.")

    for during_add in (reject, lambda: None):
        with pytest.raises(Unauthenticated):
            add_message_with_file(alice, RecordingEngine(during_add=during_add))
    assert files_below(storage) == []


def test_an_upload_after_the_erasure_leaves_no_file(alice: Person, storage: Path) -> None:
    erase_user(alice)
    file = incoming("The walnut safe opens with 4711.")
    with pytest.raises(Unauthenticated):
        upload(alice.owner, file, Upload(), actor=ACTOR)
    file.close()
    assert files_below(storage) == []


def test_an_upload_during_the_erasure_leaves_neither_row_nor_file(alice: Person, storage: Path) -> None:
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id=f"!{alice.user_pk.hex}")  # as an erasure begins
    file = incoming("The walnut safe opens with 4711.")
    with pytest.raises(Unauthenticated):
        upload(alice.owner, file, Upload(), actor=ACTOR)
    file.close()
    assert (files_below(storage), Resource.objects.count()) == ([], 0)


def test_nothing_is_registered_for_an_erased_user(alice: Person) -> None:
    erase_user(alice)
    with pytest.raises(Unauthenticated):
        register(principal(alice), Registration("a.txt", "minio://bucket/a.txt"))
    assert not Resource.objects.exists()


def test_no_session_starts_upstream_during_the_erasure(alice: Person) -> None:
    """The next user of the same user id and session id would find it in the upstream."""
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id=f"!{alice.user_pk.hex}")
    with StubUpstream() as stub:
        with pytest.raises(EngineRefused, match="erased"):
            make_engine(stub).add(alice.owner, "chat:c1", [message_of(alice.owner, "The walnut safe opens with 4711.")])
        assert stub.calls("add") == []
    assert not Session.objects.exists()


@pytest.fixture
def slow_upstream(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream(latency_seconds=0.5) as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        yield stub


def test_a_request_of_a_user_erased_meanwhile_gets_401(
    alice: Person, storage: Path, slow_upstream: StubUpstream
) -> None:
    with ThreadPoolExecutor(1) as pool:

        def send_upload() -> Any:
            try:
                return send(alice, b"The walnut safe opens with 4711.")
            finally:
                connections.close_all()

        answer = pool.submit(send_upload)
        while not slow_upstream.calls("add"):
            time.sleep(0.01)
        erase_user(alice)
        response = answer.result(20)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert files_below(storage) == []
    assert not Memory.objects.exists()
