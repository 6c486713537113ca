"""`core.sql`: plain statements do what Django's would, and fail as Django's would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from core.sql import moment_value, rows, run_many
from store.models import Session
from tests.conftest import Person

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment", [NOON, NOON + timedelta(microseconds=7), NOON.astimezone(timezone(timedelta(hours=8)))]
)
def test_a_moment_is_kept_as_django_keeps_it(alice: Person, moment: datetime) -> None:
    Session.objects.create(user_id=alice.user_pk, session_id="chat:c1", engine_session_id="chat:c1", kind="chat")
    kept = "SELECT CAST(created_at AS text) FROM store_session"
    Session.objects.update(created_at=moment)
    [(by_django,)] = rows(kept, [])
    rows("UPDATE store_session SET created_at = %s RETURNING id", [moment_value(moment)])
    assert rows(kept, []) == [(by_django,)]
    assert Session.objects.get().created_at == moment


@pytest.mark.django_db
def test_two_signs_of_percent_are_one_and_no_place_for_a_value() -> None:
    assert rows("SELECT '100 %%s' || %s", ["!"]) == [("100 %s!",)]


def test_what_the_database_refuses_is_an_error_of_django(alice: Person) -> None:
    row = "(%s, '', '2026-05-01 12:00:00+00:00')"
    twice = f"INSERT INTO store_indexversion (id, tokenizer, built_at) VALUES {row}, {row}"
    with pytest.raises(IntegrityError), transaction.atomic():
        rows(twice, [7, 7])
    with pytest.raises(DatabaseError):
        rows("SELECT %s", [])


@pytest.mark.django_db
def test_a_transaction_that_is_broken_takes_no_statement() -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            rows("SELECT %s", [1])


@pytest.mark.django_db
def test_who_watches_statements_sees_them() -> None:
    seen: list[str] = []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        rows("SELECT %s", [1])
    assert seen == ["SELECT %s"]


@pytest.mark.django_db
def test_a_statement_for_many_values_is_done_for_each_or_fails_as_a_whole() -> None:
    row = "INSERT INTO store_indexversion (id, tokenizer, built_at) VALUES (%s, %s, '2026-05-01 12:00:00+00:00')"
    kept = "SELECT tokenizer FROM store_indexversion WHERE id > %s ORDER BY id"
    with connection.cursor() as cursor:
        run_many(cursor, row, [(8, "a"), (9, "b")])
        assert rows(kept, [7]) == [("a",), ("b",)]
        with pytest.raises(IntegrityError), transaction.atomic():
            run_many(cursor, row, [(10, "c"), (9, "d")])
    assert rows(kept, [7]) == [("a",), ("b",)]
