"""Choice of memory or disk for SQLite's temporary data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def on_disk() -> Iterator[None]:
    """Keep SQLite's temporary data on disk inside the block, for statements over whole tables.

    Sorting, copying and rollback data then need not fit into memory. No effect within a transaction, where SQLite
    cannot change the setting.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    database = connection.connection
    # As a script, which is prepared each time: the setting takes effect during preparation.
    database.executescript("PRAGMA temp_store = FILE")
    try:
        yield
    finally:
        database.executescript("PRAGMA temp_store = MEMORY")
