"""Deleting and restoring a session writes as many rows for many messages as for few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from core.persistence import sql
from tests.conftest import Person
from tests.memories.calls import call, say, search

pytestmark = pytest.mark.django_db(transaction=True)

AT_ONCE = 500


@contextmanager
def rows_written(counts: list[int]) -> Iterator[None]:
    """Append the number of rows that were inserted, changed and removed meanwhile, those by triggers included."""
    before = written()
    yield
    counts.append(written() - before)


def written() -> int:
    if connection.vendor == "sqlite":
        return int(connection.connection.total_changes)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
    statement = "SELECT SUM(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
    return int(sql.rows(statement, [])[0][0])


@pytest.mark.parametrize("count", [500, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.torture])])
def test_deleting_and_restoring_a_session_writes_few_rows(alice: Person, count: int) -> None:
    say(alice, "chat:few", "My bicycle is blue.")
    for start in range(0, count, AT_ONCE):
        say(alice, "chat:many", *(f"My car number {number} is red." for number in range(start, start + AT_ONCE)))
    written_for: dict[str, list[int]] = {}
    for session_id in ("chat:few", "chat:many"):
        counts = written_for[session_id] = []
        with rows_written(counts):
            call(alice, "delete", f"/sessions/{session_id}")
        with rows_written(counts):
            call(alice, "post", f"/sessions/{session_id}/restore")
    assert all(many <= few + 2 for many, few in zip(written_for["chat:many"], written_for["chat:few"], strict=True))
    assert search(alice, "car number 7", scope=["all_user_memory"])["results"]
