"""The states of outbox entries, and the indexes that serve their look-ups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from remote import outbox, sessions
from remote.models import OutboxEntry
from remote.outbox import Batch
from store.models import Session
from store.types import Message
from tests.conftest import Person
from tests.store.conftest import NOON_MS, text_message

pytestmark = pytest.mark.django_db
SESSION = "chat:c1"


def record(person: Person, *messages: Message) -> tuple[Session, Batch]:
    session = sessions.claim(person.owner, SESSION)
    return session, outbox.record(session, outbox.by_id(SESSION, messages), {})


def states() -> set[tuple[str, str, str, bool]]:
    """Return state, call and flush of the entries, and whether they have a time of sending."""
    rows = OutboxEntry.objects.values_list("state", "call_id", "flush_id", "sent_at")
    return {(state, call_id, flush_id, sent_at is not None) for state, call_id, flush_id, sent_at in rows}


def test_a_message_goes_from_unconfirmed_to_buffered_to_flushed(alice: Person) -> None:
    session, batch = record(alice, text_message("tea"), text_message("cake", at=NOON_MS + 1))
    assert states() == {("unconfirmed", batch.call_id, "", True)}
    assert [again.call_id for again in outbox.unconfirmed(session)] == [batch.call_id]
    assert outbox.users_with_unconfirmed() == [alice.user_pk]
    outbox.confirm(session, batch)
    assert states() == {("buffered", "", "", False)}
    outbox.mark_flushed(session, "flush-1", outbox.buffered(session))
    assert states() == {("flushed", "", "flush-1", False)}
    assert outbox.unconfirmed_messages(alice.user_pk) == []


def test_unconfirmed_since_is_the_time_of_the_oldest_call(alice: Person) -> None:
    session, _first = record(alice, text_message("tea"))
    record(alice, text_message("cake"))
    first = OutboxEntry.objects.earliest("pk")
    assert outbox.unconfirmed_since(session) == first.sent_at
    OutboxEntry.objects.filter(pk=first.pk).update(sent_at=timezone.now() - timedelta(days=8))
    assert outbox.count_given_up(timezone.now() - timedelta(days=7)) == 1


LOOK_UPS: dict[str, Callable[[Session], Any]] = {
    "outbox_unconfirmed_user": lambda session: outbox.unconfirmed_messages(session.user_id),
    "outbox_unconfirmed": lambda _: outbox.count_given_up(timezone.now()),
    "outbox_in_session": outbox.last_user_message_ms,
    "sqlite_autoindex_remote_outboxentry_1": lambda session: outbox.recorded(session, {"msg_1": text_message("tea")}),
    "outbox_buffered": outbox.buffered,
    "outbox_by_id": lambda session: outbox.memory_ids_of(session.user_id, "msg_1"),
}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
@pytest.mark.parametrize("index", LOOK_UPS)
def test_look_ups_use_their_index(index: str, alice: Person) -> None:
    session, _batch = record(alice, text_message("tea"))
    with CaptureQueriesContext(connection) as captured:
        LOOK_UPS[index](session)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        steps = [step for *_, step in cursor.fetchall() if "remote_outboxentry" in step]
    assert steps
    assert all(f"INDEX {index} " in step for step in steps)
