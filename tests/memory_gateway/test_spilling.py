"""SQLite's temporary data is in memory, except for statements over whole tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from core.persistence.sql import temporary_data_on_disk
from operations.cleanup import compaction
from store import derived, rollups

DEFAULT, FILE, MEMORY = range(3)
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has settings of its own for that"),
]


def kept_in() -> int:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA temp_store")
        return int(cursor.fetchone()[0])


def test_it_is_in_memory_but_where_the_disk_is_asked_for() -> None:
    assert kept_in() == MEMORY
    for _ in range(2):
        with temporary_data_on_disk():
            assert kept_in() == FILE
        assert kept_in() == MEMORY


def test_it_is_in_memory_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), temporary_data_on_disk():
        raise RuntimeError
    assert kept_in() == MEMORY


def test_a_transaction_goes_on_as_it_began() -> None:
    with transaction.atomic(), temporary_data_on_disk():
        assert kept_in() == MEMORY


@pytest.mark.parametrize(
    "work",
    [derived.empty_keywords, rollups.recount, lambda: compaction.compact(however_large=True)],
    ids=["index", "rollups", "file"],
)
def test_what_touches_all_there_is_lies_on_the_disk(work: Callable[[], object]) -> None:
    seen: set[int] = set()

    def watch(execute: Any, sql: str, *given: Any) -> Any:
        if sql.startswith(("DELETE", "VACUUM")):
            [[store]] = connection.connection.execute("PRAGMA temp_store").fetchall()
            seen.add(store)
        return execute(sql, *given)

    with connection.execute_wrapper(watch):
        work()
    assert seen == {FILE}
