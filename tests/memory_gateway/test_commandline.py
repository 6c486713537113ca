"""Errors of `manage.py` commands that cannot do their work: one sentence, exit code 2."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import IntegrityError, OperationalError, ProgrammingError

from memory_gateway import commandline
from tests import forked
from tests.forked import PROJECT
from tests.server import migrated_file, server_environment


def manage(env: dict[str, str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the lines on stderr."""
    done = forked.run(["manage.py", *arguments], env)
    return done.returncode, done.stderr.splitlines()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A SQLite database that does not exist yet."""
    return {**server_environment(tmp_path, ""), "DATABASE_URL": ""}


@pytest.mark.parametrize("command", ["create_user bob", "export_memory out.tar --all", "ingest", "purge_trash"])
def test_a_database_without_tables_is_one_sentence(env: dict[str, str], command: str) -> None:
    code, (line,) = manage(env, *command.split())
    assert code == 2
    assert line.startswith("memory-gateway: The database schema is not up to date (no such table: ")
    assert line.endswith("Run `python manage.py migrate`.")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "command",
    [
        "ingest --user nobody",
        "create_user ..",
        "issue_token laptop --user nobody",
        "revoke_token 00000000-0000-4000-8000-000000000000",
        "erase_user nobody --yes",
    ],
)
def test_what_is_refused_is_exit_code_2(command: str) -> None:
    name, *arguments = command.split()
    with pytest.raises(CommandError) as refused:
        call_command(name, *arguments)
    assert refused.value.returncode == 2


def test_a_database_that_is_none_and_one_that_is_down(env: dict[str, str]) -> None:
    Path(env["MEMORY_GATEWAY_DB_PATH"]).write_bytes(b"no database, but long enough to be taken for one" * 50)
    code, (line,) = manage(env, "create_user", "bob")
    assert (code, "The database is damaged" in line, "restore a backup" in line) == (2, True, True)
    code, (line,) = manage({**env, "DATABASE_URL": "postgres://me:hush@127.0.0.1:1/life"}, "create_user", "bob")
    assert (code, "The database life cannot be used: " in line, "hush" in line) == (2, True, False)


def test_another_python_prints_how_to_begin(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-E", "manage.py"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("memory-gateway: The Python package django is not installed. Run `make run` once")


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException, *arguments: str) -> int:
    def fail(_argv: list[str]) -> None:
        raise error

    monkeypatch.setattr(commandline, "execute_from_command_line", fail)
    return commandline.main(["manage.py", *arguments])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OperationalError("database is locked"), 2, "The database is locked by another process. "),
        (ProgrammingError('relation "accounts_memoryuser" does not exist\nLINE 1: …'), 2, "python manage.py migrate"),
        (OperationalError('FATAL: database "life" does not exist'), 2, "cannot be used"),
        (OperationalError("attempt to write a readonly database"), 2, "readonly database."),
        (PermissionError(13, "Permission denied", "/backups/x.tar"), 2, "/backups/x.tar: Permission denied."),
        (OSError(28, "No space left on device"), 2, "No space left on device."),
        (ImproperlyConfigured("A setting is wrong."), 1, "A setting is wrong."),
        (KeyboardInterrupt(), 130, "Stopped."),
    ],
)
def test_every_failure_of_the_outside_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, error: BaseException, code: int, said: str
) -> None:
    assert ending(monkeypatch, error) == code
    told = capsys.readouterr().err
    assert told.startswith("memory-gateway: ")
    assert said in told
    assert told.count("\n") == 1


def test_who_asks_for_the_way_of_a_failure_gets_it_and_our_own_faults_show_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(OperationalError):
        ending(monkeypatch, OperationalError("database is locked"), "doctor", "--traceback")
    with pytest.raises(IntegrityError):
        ending(monkeypatch, IntegrityError("UNIQUE constraint failed"))


def test_a_port_that_is_none_is_said(env: dict[str, str]) -> None:
    shutil.copyfile(migrated_file(), env["MEMORY_GATEWAY_DB_PATH"])
    code, lines = manage(env, "serve", "--port", "99999")
    assert (code, lines[-1].endswith("port 99999: the port must be 0 to 65535.")) == (3, True)
    with contextlib.closing(sqlite3.connect(env["MEMORY_GATEWAY_DB_PATH"])) as database:
        assert database.execute("SELECT count(*) FROM accounts_memoryuser").fetchone()
