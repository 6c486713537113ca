"""A database of another version is refused with one sentence and left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import DATABASE_FILE, PROJECT, server_environment


@pytest.fixture
def old_database(tmp_path: Path) -> Path:
    """What `django_migrations` held before the apps were renamed, and one table of then."""
    path = tmp_path / DATABASE_FILE
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text, applied datetime)"
        )
        database.execute("CREATE TABLE engine_memory (id integer PRIMARY KEY, text text)")
        database.execute("INSERT INTO engine_memory (text) VALUES ('I like tea')")
        rows = [("accounts", "0001_initial"), ("engine", "0001_initial"), ("lifecycle", "0001_initial")]
        database.executemany("INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '2026-11-20')", rows)
    database.close()
    return path


@pytest.mark.parametrize("command", ["migrate", "serve"])
def test_an_older_database_is_refused_and_not_changed(command: str, old_database: Path, tmp_path: Path) -> None:
    before = _content(old_database)
    environment = server_environment(tmp_path, "")
    done = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=PROJECT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    [sentence] = [line for line in done.stderr.splitlines() if line.strip()]
    assert "Another version of Memory Gateway made this database (it has the migration engine.0001_initial)" in sentence
    assert "Traceback" not in done.stderr
    assert _content(old_database) == before


def _content(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())
