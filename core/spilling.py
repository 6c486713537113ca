"""Where SQLite keeps what a statement sets aside: memory, as the settings have it, or the disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def on_disk() -> Iterator[None]:
    """For statements that touch all there is: on SQLite what they sort, copy or may have to take back lies on the disk
    inside, so that memory need not hold the whole database. Within a transaction, where it cannot be changed, it stays.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    connection.ensure_connection()
    database = connection.connection
    # As scripts, which are prepared each time: this setting is made by the preparing.
    database.executescript("PRAGMA temp_store = FILE")
    try:
        yield
    finally:
        database.executescript("PRAGMA temp_store = MEMORY")
