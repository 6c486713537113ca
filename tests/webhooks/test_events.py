"""Events: which changes are reported, in which transaction, and what an event contains."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from core.events import publish
from documents.document import Block, Document
from documents.reading import Note, Reading
from engines.embedded import ingest
from memories.services.manual import add_by_hand
from operations.models import Job
from store.models import Memory
from tests.conftest import Person
from tests.memories.calls import call, id_of, say, upload
from tests.remote.conftest import make_engine, message_of
from tests.remote.test_flush import NOTHING_LISTED
from tests.resources.forms import upload as upload_file
from tests.stub_upstream import StubUpstream
from tests.webhooks.calls import create, deliver
from tests.webhooks.receiver import Receiver
from webhooks.models import WebhookDelivery

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = {"app_id": "default", "project_id": "default"}


def recorded(**conditions: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(one.event_type, one.data) for one in WebhookDelivery.objects.filter(**conditions).order_by("pk")]


def add_tea(person: Person) -> None:
    actor = Actor.command("tests")
    add_by_hand(person.owner, category="user_memory_fact", text="Tea.", origin="tool", actor=actor)


def test_the_life_of_a_resource(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)
    resource_id = upload(alice)["resource_id"]
    call(alice, "delete", f"/resources/{resource_id}")
    call(alice, "post", f"/resources/{resource_id}/restore")
    data = {**SCOPE, "resource_id": resource_id}
    types = ["resource.created", "resource.extracted", "resource.deleted", "resource.restored"]
    recorded_data = dict(recorded())
    assert list(recorded_data) == types
    reading = recorded_data["resource.extracted"].pop("reading")
    assert (reading["parser"], reading["is_partial"]) == ("text", False)
    assert all(recorded_data[event_type] == data for event_type in types)


def test_the_reading_of_a_file_names_no_part(
    alice: Person, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(alice, receiver, "resource.extracted")
    reading = Reading("xberg", notes=(Note("parts_skipped", 1, ("diary.zip",)),))
    document = Document((Block("Harbor crane", 1, None),), reading=reading)
    monkeypatch.setattr(ingest, "read_document", lambda *_args, **_options: document)
    upload_file(alice)
    [(_type, data)] = recorded()
    assert data["reading"]["notes"] == [{"code": "parts_skipped", "count": 1}]
    assert "diary" not in str(data)


def test_a_file_that_cannot_be_read_fails(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver, "resource.failed", "resource.empty")
    assert upload_file(alice, b"%PDF-1.7 broken", "a.pdf").json()["status"] == "failed"
    assert upload_file(alice, b" ", "b.txt").json()["status"] == "empty"
    assert [event_type for event_type, _ in recorded()] == ["resource.failed", "resource.empty"]


def test_a_registered_file_is_created_once(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver, "resource.created")
    fields = {"filename": "a.txt", "source_uri": "minio://documents/a.txt", "title": "Trains"}
    first = call(alice, "post", "/resources/external", **fields)
    second = call(alice, "post", "/resources/external", **fields)
    assert first["resource_id"] == second["resource_id"]
    assert recorded() == [("resource.created", {**SCOPE, "resource_id": first["resource_id"]})]


def test_an_import_and_its_undo(alice: Person, receiver: Receiver, tmp_path: Path) -> None:
    create(alice, receiver)
    source = tmp_path / "mem0.json"
    source.write_text('[{"memory": "Tea."}]', encoding="utf-8")
    call_command("import_from", "mem0", str(source), "--user", "alice", "--apply", stdout=StringIO())
    data = {**SCOPE, "memory_ids": [id_of("Tea.")]}
    call_command("import_from", "--undo", str(Job.objects.get().pk), stdout=StringIO())
    assert recorded() == [("memory.added", data), ("memory.deleted", data)]


def test_the_life_of_a_session_and_its_memory(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)
    say(alice, "chat:c1", "I like tea.")
    memory_id = id_of("I like tea.")
    call(alice, "patch", f"/memories/{memory_id}", override_text="I like coffee.")
    call(alice, "delete", f"/memories/{memory_id}/override")
    call(alice, "delete", f"/memories/{memory_id}")
    call(alice, "post", f"/memories/{memory_id}/restore")
    call(alice, "delete", "/sessions/chat:c1")
    call(alice, "post", "/sessions/chat:c1/restore")
    memory, session = {**SCOPE, "memory_ids": [memory_id]}, {**SCOPE, "session_ids": ["chat:c1"]}
    assert recorded() == [
        ("session.flushed", session),
        ("memory.overridden", memory),
        ("memory.override_undone", memory),
        ("memory.deleted", memory),
        ("memory.restored", memory),
        ("session.deleted", session),
        ("session.restored", session),
    ]


def test_a_flush_without_messages_is_no_event(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)
    say(alice, "chat:c1", "One.")
    call(alice, "post", "/memories/flush", session_id="chat:c1")
    assert [event_type for event_type, _ in recorded()] == ["session.flushed"]


@pytest.mark.parametrize("hidden", [0, 1000])
def test_a_flush_of_everos(alice: Person, receiver: Receiver, hidden: int) -> None:
    """Once, whether EverOS lists the memory in time or not; not for a second flush."""
    create(alice, receiver)
    with StubUpstream() as stub:
        engine = make_engine(stub, timeout_seconds=0.5)
        engine.add(alice.owner, "chat:c1", [message_of(alice.owner, "Tea.")])
        assert recorded() == []
        if hidden:
            stub.fault("get", NOTHING_LISTED, times=hidden)
        assert engine.flush(alice.owner, "chat:c1").status == "extracted"
        assert recorded() == [("session.flushed", {**SCOPE, "session_ids": ["chat:c1"]})]
        if not hidden:
            engine.flush(alice.owner, "chat:c1")
            assert len(recorded()) == 1


def test_an_added_memory(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)
    add_tea(alice)
    assert recorded() == [("memory.added", {**SCOPE, "memory_ids": [id_of("Tea.")]})]


def test_only_the_wanted_events_of_the_own_user(alice: Person, bob: Person, receiver: Receiver) -> None:
    create(alice, receiver, "memory.deleted")
    for person in (alice, bob):
        say(person, "chat:c1", f"Tea of {person.user_id}.")
        call(person, "delete", f"/memories/{id_of(f'Tea of {person.user_id}.')}")
    assert recorded() == [("memory.deleted", {**SCOPE, "memory_ids": [id_of("Tea of alice.")]})]
    assert WebhookDelivery.objects.get().user_id == alice.user_pk


def test_a_disabled_webhook_misses_events(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    call(alice, "patch", f"/webhooks/{webhook['webhook_id']}", is_enabled=False)
    say(alice, "chat:c1", "One.")
    assert recorded() == []


def test_a_change_that_is_rolled_back_is_no_event(alice: Person, receiver: Receiver) -> None:
    create(alice, receiver)

    def change() -> None:
        with transaction.atomic():
            add_tea(alice)
            assert WebhookDelivery.objects.count() == 1
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert not Memory.objects.exists()
    assert recorded() == []


def test_events_outside_a_transaction_are_refused(alice: Person) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        publish("memory.added", alice.user_pk, memory_ids=["m"])


def test_without_webhooks_an_event_costs_one_statement(alice: Person, bob: Person, receiver: Receiver) -> None:
    create(bob, receiver)
    with (
        transaction.atomic(),
        CaptureQueriesContext(
            connection,
        ) as queries,
    ):
        publish("memory.added", alice.user_pk, memory_ids=["m"])
    assert len(queries) == 1


def test_no_event_contains_text(alice: Person, receiver: Receiver) -> None:
    webhook = create(alice, receiver)
    upload(alice, "salary.txt", "The salary is 47,11.", title="Salary", description="Of 47,11")
    say(alice, "chat:c1", "My salary is 47,11.")
    memory_id = id_of("My salary is 47,11.")
    call(alice, "patch", f"/memories/{memory_id}", override_text="My salary is 47,12.")
    call(alice, "delete", f"/memories/{memory_id}", reason="It says 47,12.")
    assert deliver(webhook) == 5
    sent = b"".join(request.body for request in receiver.requests).lower()
    assert memory_id.encode() in sent
    assert b"47,1" not in sent.replace(memory_id.encode(), b"")
    assert b"salary" not in sent
