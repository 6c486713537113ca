"""A person is erased while their own requests are under way: nothing of these stays, and they are answered like
anybody without a key."""

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
from memories.services.add import AddCommand, Part, Said, add
from operations import erase
from resources.models import Resource
from resources.services import Upload, upload
from resources.services.external import Registration, register
from store.models import Memory, Session
from tests.conftest import Person
from tests.engines.everos.conftest import make_engine, told
from tests.fake_engine import RecordingEngine
from tests.memories.calls import NOON_MS
from tests.resources.forms import files_below
from tests.resources.forms import upload as send
from tests.resources.test_delete import principal
from tests.resources.test_upload_service import incoming
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


def erased(person: Person) -> None:
    erase.erase(person.user_pk, actor=ACTOR)


def say_with_file(person: Person, engine: RecordingEngine) -> None:
    part = Part("doc", data=b"The walnut safe opens with 4711.", ext="txt", name="safe.txt")
    command = AddCommand("chat:c1", (Said(person.user_id, "user", NOON_MS, (part,)),))
    add(principal(person), command, engine=engine)  # type: ignore[arg-type]


def test_a_file_of_a_message_goes_with_its_user(alice: Person, storage: Path) -> None:
    with pytest.raises(Unauthenticated):
        say_with_file(alice, RecordingEngine(during_add=lambda: erased(alice)))
    assert files_below(storage) == []


def test_a_file_that_comes_after_the_others_had_gone_goes_too(alice: Person, storage: Path) -> None:
    """The request began with a key that worked, and went on when everything was over."""
    erased(alice)

    def refused() -> None:
        raise EngineRefused("This user was erased.")

    for during_add in (refused, lambda: None):
        with pytest.raises(Unauthenticated):
            say_with_file(alice, RecordingEngine(during_add=during_add))
    assert files_below(storage) == []


def test_an_upload_after_the_erasure_leaves_no_file(alice: Person, storage: Path) -> None:
    erased(alice)
    file = incoming("The walnut safe opens with 4711.")
    with pytest.raises(Unauthenticated):
        upload(principal(alice), file, Upload())
    file.close()
    assert files_below(storage) == []


def test_an_upload_while_the_rows_go_leaves_neither_row_nor_file(alice: Person, storage: Path) -> None:
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id=f"!{alice.user_pk.hex}")  # as an erasure begins
    file = incoming("The walnut safe opens with 4711.")
    with pytest.raises(Unauthenticated):
        upload(principal(alice), file, Upload())
    file.close()
    assert (files_below(storage), Resource.objects.count()) == ([], 0)


def test_nothing_is_registered_for_who_was_erased(alice: Person) -> None:
    erased(alice)
    with pytest.raises(Unauthenticated):
        register(principal(alice), Registration("a.txt", "minio://bucket/a.txt"))
    assert not Resource.objects.exists()


def test_no_session_begins_upstream_that_the_receipt_does_not_name(alice: Person) -> None:
    """Who takes the name of the user and of the session afterwards would come to what the upstream holds of it."""
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id=f"!{alice.user_pk.hex}")
    with StubUpstream() as stub:
        with pytest.raises(EngineRefused, match="erased"):
            make_engine(stub).add(alice.owner, "chat:c1", [told(alice.owner, "The walnut safe opens with 4711.")])
        assert stub.calls("add") == []
    assert not Session.objects.exists()


@pytest.fixture
def slow_upstream(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream(latency_seconds=0.5) as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        yield stub


def test_a_request_whose_user_goes_is_refused_as_one_without_a_key(
    alice: Person, storage: Path, slow_upstream: StubUpstream
) -> None:
    with ThreadPoolExecutor(1) as pool:

        def sending() -> Any:
            try:
                return send(alice, b"The walnut safe opens with 4711.")
            finally:
                connections.close_all()

        answer = pool.submit(sending)
        while not slow_upstream.calls("add"):
            time.sleep(0.01)
        erased(alice)
        response = answer.result(20)
    assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
    assert files_below(storage) == []
    assert not Memory.objects.exists()
