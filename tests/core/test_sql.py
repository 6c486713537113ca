"""`memory_gateway.core.sql`: what plain statements are given is kept as Django would keep it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.models import Session
from memory_gateway.core.sql import moment_value, rows
from tests.conftest import Person

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment", [NOON, NOON + timedelta(microseconds=7), NOON.astimezone(timezone(timedelta(hours=8)))]
)
def test_a_moment_is_kept_as_django_keeps_it(alice: Person, moment: datetime) -> None:
    Session.objects.create(user_id=alice.user_pk, session_id="chat:c1", engine_session_id="chat:c1", kind="chat")
    kept = "SELECT CAST(created_at AS text) FROM engine_session"
    Session.objects.update(created_at=moment)
    [(by_django,)] = rows(kept, [])
    rows("UPDATE engine_session SET created_at = %s RETURNING id", [moment_value(moment)])
    assert rows(kept, []) == [(by_django,)]
    assert Session.objects.get().created_at == moment
