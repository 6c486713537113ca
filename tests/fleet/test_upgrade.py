"""`migrate` of a later version while gateways and workers of this one run."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import psycopg
import pytest

from tests import forked
from tests.fleet.load import Load
from tests.server import running_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="SQLite has no fleet"),
]
HELD_SECONDS = 6.0
LONGEST_CALL_SECONDS = 5.0
"""Two seconds that a migration waits for its lock, and what calls take on a busy machine."""


def test_a_migration_under_load_fails_and_delays_no_request(tmp_path: Path) -> None:
    """A transaction that reads the table holds the migration up: without a limit, all requests would wait behind it."""
    with running_server(tmp_path) as server:
        load = Load(server, users=2, seed=3)
        load.start()
        with psycopg.connect(server.env["DATABASE_URL"]) as reader:
            reader.execute("SELECT count(*) FROM store_memory")
            threading.Timer(HELD_SECONDS, reader.rollback).start()
            began = time.monotonic()
            later = server.env | {"DJANGO_SETTINGS_MODULE": "tests.fleet.next_settings"}
            migrated = forked.run(["manage.py", "migrate", "--skip-checks"], later)
            assert migrated.returncode == 0, migrated.stderr
            assert time.monotonic() - began > HELD_SECONDS
        stored = len(load.stored)
        time.sleep(2)
        load.stop()
        assert "is tried again" in migrated.stderr
        assert "store.next_version" in migrated.stdout
        assert load.violations == []
        assert {*load.answers} == {"200"}, load.answers
        assert load.longest_seconds < LONGEST_CALL_SECONDS
        assert len(load.stored) > stored  # this version writes to the new table
        [(is_valid,)] = server.rows("SELECT indisvalid FROM pg_index WHERE indexrelid = 'memory_of_mood'::regclass")
        assert is_valid
