"""The delivery states of the journal, and the indexes that serve its look-ups."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from remote import journal
from store.models import Memory, Session
from tests.conftest import Person
from tests.store.conftest import NOON_MS, text_message

pytestmark = pytest.mark.django_db
SESSION = "chat:c1"


def states() -> set[tuple[str, str, bool]]:
    """Return state and batch of the journal entries, and whether they have a time of sending."""
    rows = Memory.objects.values_list("delivery_state", "batch_id", "sent_at")
    return {(state, batch_id, sent_at is not None) for state, batch_id, sent_at in rows}


def test_a_message_goes_from_unconfirmed_to_buffered_to_flushed(alice: Person) -> None:
    session, [batch] = journal.record_messages(
        alice.owner, SESSION, [text_message("tea"), text_message("cake", at=NOON_MS + 1)]
    )
    assert states() == {("unconfirmed", batch.batch_id, True)}
    assert [again.batch_id for again in journal.unconfirmed(session)] == [batch.batch_id]
    assert journal.users_with_unconfirmed() == [alice.user_pk]
    journal.confirm(session, batch)
    assert states() == {("buffered", "", False)}
    journal.mark_flushed(session, "flush-1", journal.buffered(session))
    assert states() == {("flushed", "flush-1", False)}
    assert journal.unconfirmed_messages(alice.user_pk) == []


def test_unconfirmed_since_is_the_time_of_the_oldest_call(alice: Person) -> None:
    for text in ("tea", "cake"):
        session, _ = journal.record_messages(alice.owner, SESSION, [text_message(text)])
    assert journal.unconfirmed_since(session) == Memory.objects.get(text="tea").sent_at
    Memory.objects.filter(text="tea").update(sent_at=timezone.now() - timedelta(days=8))
    assert journal.count_given_up(timezone.now() - timedelta(days=7)) == 1


LOOK_UPS: dict[str, Callable[[Session], Any]] = {
    "memory_unconfirmed_user": lambda session: journal.unconfirmed_messages(session.user_id),
    "memory_unconfirmed_sent_at": lambda _: journal.count_given_up(timezone.now()),
    "memory_in_session": journal.unconfirmed,
}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by how much there is")
@pytest.mark.parametrize("index", LOOK_UPS)
def test_look_ups_use_their_index(index: str, alice: Person) -> None:
    session, _ = journal.record_messages(alice.owner, SESSION, [text_message("tea")])
    with CaptureQueriesContext(connection) as captured:
        LOOK_UPS[index](session)
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        steps = [step for *_, step in cursor.fetchall() if "store_memory" in step]
    assert steps
    assert all(f"INDEX {index} " in step for step in steps)
