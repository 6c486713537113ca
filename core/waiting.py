"""Writes that fail fast instead of waiting for a lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def fail_fast_writes() -> Iterator[None]:
    """Make writes on SQLite fail at once (`OperationalError`) inside the block while another connection writes."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    database = connection.connection
    database.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        seconds = connection.settings_dict["OPTIONS"].get("timeout", 5.0)
        database.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")
