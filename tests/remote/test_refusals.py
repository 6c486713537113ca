"""Messages that the remote refused: the event of a refusal, and another try."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from core.errors import EngineRefused
from engines.attached import AttachedEngine
from remote import outbox, refusals
from remote.models import OutboxEntry
from store.models import Session
from tests.conftest import Person
from tests.memories.calls import call, id_of, upload
from tests.remote.conftest import NOON, Run, deliver, message_of
from tests.stub_upstream import Fault, StubUpstream
from tests.webhooks.calls import create
from tests.webhooks.conftest import receiver
from tests.webhooks.receiver import Receiver
from webhooks.models import WebhookDelivery

__all__ = ["receiver"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)
SCOPE = {"app_id": "default", "project_id": "default"}
CAUSE = "The memory engine refused the request: the content is not accepted."


def refused(engine: AttachedEngine, stub: StubUpstream, person: Person, session_id: str = "chat:1") -> Session:
    engine.add(person.owner, session_id, [message_of(person.owner, "tea", NOON)])
    stub.fault("add", Fault(status=422))
    with pytest.raises(EngineRefused):
        deliver(engine, person.owner, session_id)
    return Session.objects.get(user=person.user_pk, session_id=session_id)


def test_a_refused_message_is_an_event(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, receiver: Receiver
) -> None:
    create(alice, receiver, "remote.refused")
    refused(engine, stub, alice)
    assert [one.data for one in WebhookDelivery.objects.all()] == [
        {**SCOPE, "session_id": "chat:1", "cause": CAUSE},
    ]


def test_the_event_of_a_file_names_it(alice: Person, stub: StubUpstream, storage: Any, receiver: Receiver) -> None:
    create(alice, receiver, "remote.refused", "resource.failed")
    stub.fault("add", Fault(status=422))
    file = upload(alice)
    (event,) = WebhookDelivery.objects.all()
    names = {"session_id": file["session_id"], "resource_id": file["resource_id"]}
    assert (event.event_type, event.data) == ("remote.refused", {**SCOPE, **names, "cause": CAUSE})


def test_a_refusal_that_another_process_settled_is_no_event(
    alice: Person, engine: AttachedEngine, receiver: Receiver
) -> None:
    create(alice, receiver, "remote.refused")
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "tea", NOON)])
    session = Session.objects.get(session_id="chat:1")
    batch = outbox.take(session)
    assert batch is not None
    outbox.confirm(session, batch)
    outbox.refuse(session, batch, CAUSE)
    assert not WebhookDelivery.objects.exists()


def test_refused_messages_are_sent_again_and_derived_with_the_next_flush(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    session = refused(engine, stub, alice)
    other = refused(engine, stub, alice, "chat:2")
    engine.add(alice.owner, "chat:1", [message_of(alice.owner, "cake", NOON + 1)])
    deliver(engine, alice.owner, "chat:1")
    Session.objects.filter(pk=session.pk).update(retry_at=timezone.now() + timedelta(days=1))
    assert refusals.retry(session) == 1
    again = OutboxEntry.objects.get(session=session, time_ms=NOON)
    assert (again.state, again.cause) == ("pending", "")
    assert OutboxEntry.objects.get(session=other).state == "refused"
    run_deliveries(timedelta())
    assert set(OutboxEntry.objects.filter(session=session).values_list("state", flat=True)) == {"buffered"}
    assert engine.flush(alice.owner, "chat:1").status == "extracted"
    assert OutboxEntry.objects.get(session=session, time_ms=NOON).state == "flushed"
    assert refusals.retry(session) == 0


def test_a_message_that_was_deleted_since_is_not_sent(
    engine: AttachedEngine, stub: StubUpstream, alice: Person, run_deliveries: Run
) -> None:
    session = refused(engine, stub, alice)
    call(alice, "delete", f"/memories/{id_of('tea')}")
    before = len(stub.calls("add"))
    assert refusals.retry(session) == 1
    run_deliveries(timedelta())
    assert OutboxEntry.objects.get().state == "withheld"
    assert len(stub.calls("add")) == before
