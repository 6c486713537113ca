"""A database of another version is refused with one sentence and left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests import forked
from tests.server import DATABASE_FILE, server_environment


def _make_database(path: Path, table: str, apps: list[str]) -> None:
    """Make what an older version left in `django_migrations`, and one of its tables."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE django_migrations (id integer PRIMARY KEY, app text, name text, applied datetime)"
        )
        database.execute(f"CREATE TABLE {table} (id integer PRIMARY KEY, text text)")
        database.execute(f"INSERT INTO {table} (text) VALUES ('I like tea')")
        database.executemany(
            "INSERT INTO django_migrations (app, name, applied) VALUES (?, '0001_initial', '2026-11-20')",
            [(app,) for app in apps],
        )


@pytest.mark.parametrize("command", ["migrate", "serve"])
@pytest.mark.parametrize(
    ("table", "apps", "difference"),
    [
        ("engine_memory", ["accounts", "engine", "lifecycle"], "it has the migration engine.0001_initial"),
        ("store_memory", ["accounts", "store", "memories"], "it lacks the column store_memory.batch_id"),
    ],
    ids=["before the apps were renamed", "before the delivery state had a column"],
)
@pytest.mark.slow
def test_an_older_database_is_refused_and_not_changed(
    command: str, table: str, apps: list[str], difference: str, tmp_path: Path
) -> None:
    path = tmp_path / DATABASE_FILE
    _make_database(path, table, apps)
    before = _content(path)
    environment = server_environment(tmp_path, "")
    done = forked.run(["manage.py", command], environment)
    assert done.returncode != 0
    [sentence] = [line for line in done.stderr.splitlines() if line.strip()]
    assert f"Another version of Memory Gateway created this database ({difference})" in sentence
    assert "Traceback" not in done.stderr
    assert _content(path) == before


def _content(path: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())
