"""The states of outbox entries, and the indexes that serve their look-ups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from remote import outbox, remote_sessions
from remote.models import OutboxEntry
from remote.outbox import Batch
from store.models import Session
from store.types import Message
from tests.conftest import Person
from tests.store.conftest import NOON_MS, text_message

pytestmark = pytest.mark.django_db
SESSION = "chat:c1"


def record(person: Person, *messages: Message) -> Session:
    """Record messages that have no memories here, as those of files that only the remote reads."""
    session = remote_sessions.claim(person.owner, SESSION)
    outbox.record(session, outbox.by_id(SESSION, messages), {})
    return session


def take(session: Session) -> Batch:
    batch = outbox.take(session)
    assert batch is not None
    return batch


def states() -> set[tuple[str, str, str, bool]]:
    """Return state, call and flush of the entries, and whether they have a time of sending."""
    rows = OutboxEntry.objects.values_list("state", "call_id", "flush_id", "sent_at")
    return {(state, call_id, flush_id, sent_at is not None) for state, call_id, flush_id, sent_at in rows}


def test_a_message_goes_from_pending_to_unconfirmed_to_buffered_to_flushed(alice: Person) -> None:
    session = record(alice, text_message("tea"), text_message("cake", at=NOON_MS + 1))
    assert states() == {("pending", "", "", False)}
    assert outbox.pending_sessions(timezone.now(), 10) == [session]
    assert outbox.users_with_waiting() == [alice.user_pk]
    batch = take(session)
    assert states() == {("unconfirmed", batch.call_id, "", True)}
    assert [again.call_id for again in outbox.unconfirmed(session)] == [batch.call_id]
    assert outbox.users_with_waiting() == [alice.user_pk]
    outbox.confirm(session, batch)
    assert states() == {("buffered", "", "", False)}
    outbox.mark_flushed(session, "flush-1", outbox.buffered(session))
    assert states() == {("flushed", "", "flush-1", False)}
    assert outbox.waiting_messages(alice.user_pk) == []


def test_messages_that_were_not_carried_out_wait_again(alice: Person) -> None:
    session = record(alice, text_message("tea"))
    outbox.wait(session, take(session))
    assert states() == {("pending", "", "", False)}


def test_nothing_is_sent_of_a_session_while_an_outcome_is_unknown(alice: Person) -> None:
    """The later message would arrive before the earlier one, which is sent again."""
    session = record(alice, text_message("tea"))
    take(session)
    record(alice, text_message("cake", at=NOON_MS + 1))
    assert outbox.pending_sessions(timezone.now(), 10) == []


def test_what_waits_does_so_since_it_was_recorded(alice: Person) -> None:
    session = record(alice, text_message("tea"))
    take(session)
    record(alice, text_message("cake", at=NOON_MS + 1))
    first = OutboxEntry.objects.earliest("pk")
    assert outbox.waiting_since(session) == first.recorded_at
    OutboxEntry.objects.filter(pk=first.pk).update(sent_at=timezone.now() - timedelta(days=8))
    assert outbox.count_given_up(timezone.now() - timedelta(days=7)) == 1


def test_messages_for_another_remote_wait_until_it_is_attached_again(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://first.invalid"
    session = record(alice, text_message("tea"))
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://second.invalid"
    assert outbox.pending_sessions(timezone.now(), 10) == []
    assert outbox.take(session) is None
    assert outbox.waiting_since(session) is None
    outbox.mark_flushed(session, "flush-1", outbox.buffered(session))
    assert states() == {("pending", "", "", False)}
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://first.invalid"
    assert [entry.message for entry in take(session).entries] == [text_message("tea")]


def test_users_take_turns_and_the_sessions_of_a_user_come_in_the_order_of_their_messages(
    alice: Person, bob: Person
) -> None:
    for number in range(3):
        record_in(alice, f"chat:a{number}")
    record_in(bob, "chat:b")
    record_in(alice, "chat:a0")
    found = outbox.pending_sessions(timezone.now(), 10)
    assert [session.session_id for session in found] == ["chat:a0", "chat:b", "chat:a1", "chat:a2"]
    assert outbox.pending_sessions(timezone.now(), 2) == found[:2]


def record_in(person: Person, session_id: str) -> None:
    session = remote_sessions.claim(person.owner, session_id)
    message = text_message("tea", at=NOON_MS + OutboxEntry.objects.count())
    outbox.record(session, outbox.by_id(session_id, [message]), {})


LOOK_UPS: list[tuple[str, Callable[[Session], Any]]] = [
    ("outbox_waiting_user", lambda session: outbox.waiting_messages(session.user_id)),
    ("outbox_unconfirmed", lambda _: outbox.count_given_up(timezone.now())),
    ("outbox_in_session", outbox.last_user_message_ms),
    ("sqlite_autoindex_remote_outboxentry_1", lambda session: outbox.known(session, {"msg_1": text_message("tea")})),
    ("outbox_pending", lambda _: outbox.pending_sessions(timezone.now(), 10)),
    ("outbox_pending", outbox.take),
    ("outbox_buffered", outbox.buffered),
    ("outbox_by_id", lambda session: outbox.memory_ids_of(session.user_id, "msg_1")),
]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
@pytest.mark.parametrize(("index", "look_up"), LOOK_UPS)
def test_look_ups_use_their_index(index: str, look_up: Callable[[Session], Any], alice: Person) -> None:
    session = record(alice, text_message("tea"))
    with CaptureQueriesContext(connection) as captured:
        look_up(session)
    first = next(query["sql"] for query in captured if "remote_outboxentry" in query["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {first}")
        steps = [f"{step} " for *_, step in cursor.fetchall() if "remote_outboxentry" in step]
    assert steps
    assert all(f"INDEX {index} " in step for step in steps), steps
