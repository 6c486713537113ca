"""Writes that are not worth waiting for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def no_waiting() -> Iterator[None]:
    """On SQLite a write inside fails at once (`OperationalError`) while another writes, instead of waiting its turn."""
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
