"""The write-ahead log of SQLite: it shrinks after a burst of writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL recycles its own log"),
]
MIB = 2**20


def test_the_write_ahead_log_shrinks_after_a_burst() -> None:
    log = Path(f"{connection.settings_dict['NAME']}-wal")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE burst (data BLOB)")
        try:
            cursor.execute("INSERT INTO burst VALUES (randomblob(100000000))")
            assert log.stat().st_size > 90 * MIB
            cursor.execute("PRAGMA wal_checkpoint(RESTART)")
            cursor.execute("INSERT INTO burst VALUES (NULL)")
            assert log.stat().st_size <= 64 * MIB
        finally:
            cursor.execute("DROP TABLE burst")
