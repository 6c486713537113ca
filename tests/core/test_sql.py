"""`core.persistence.sql` converts values as Django's ORM does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.persistence.sql import moment_value, rows
from store.models import Session
from tests.conftest import Person

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment", [NOON, NOON + timedelta(microseconds=7), NOON.astimezone(timezone(timedelta(hours=8)))]
)
def test_moment_value_stores_a_time_as_django_does(alice: Person, moment: datetime) -> None:
    Session.objects.create(user_id=alice.user_pk, session_id="chat:c1", engine_session_id="chat:c1", kind="chat")
    stored_text = "SELECT CAST(created_at AS text) FROM store_session"
    Session.objects.update(created_at=moment)
    [(django_text,)] = rows(stored_text, [])
    rows("UPDATE store_session SET created_at = %s RETURNING id", [moment_value(moment)])
    assert rows(stored_text, []) == [(django_text,)]
    assert Session.objects.get().created_at == moment
