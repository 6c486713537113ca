"""A damaged SQLite database: writes stop, reads continue, and errors name the remedy."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from core.persistence import database_errors
from tests.resources.people import RemotePerson, eventually
from tests.server import DATABASE_FILE, RunningServer, own_database, server_environment

pytestmark = pytest.mark.skipif(
    os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="the file is SQLite's"
)
MESSAGE = {
    "sender_id": "alice",
    "role": "user",
    "timestamp": 1_781_172_177_000,
    "content": [{"type": "text", "text": "I like tea"}],
}
ADD = {"session_id": "chat:c1", "messages": [MESSAGE]}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    data_dir = tmp_path / "gateway"
    data_dir.mkdir()
    url = own_database(data_dir)
    running = RunningServer(data_dir, server_environment(data_dir, url))
    running.start()
    yield running
    running.kill()


@pytest.fixture
def alice(server: RunningServer) -> RemotePerson:
    person = RemotePerson.create(server, "alice")
    assert send(person, "POST", "/memories/add", ADD).status_code == 200
    return person


def send(person: RemotePerson, method: str, path: str, body: dict[str, Any] | None = None) -> requests.Response:
    return requests.request(method, person.server.url + path, json=body, headers=person.headers, timeout=30)


@contextlib.contextmanager
def database(server: RunningServer) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(server.data_dir / DATABASE_FILE)) as opened, opened:
        yield opened


def damage(server: RunningServer, kind: str = "index", table: str = "accounts_auditevent") -> None:
    """Overwrite the first page of a table or of its indexes, as a failing disk does."""
    with database(server) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        pages = opened.execute(
            "SELECT rootpage FROM sqlite_schema WHERE type = ? AND tbl_name = ?", [kind, table]
        ).fetchall()
        [page_bytes] = opened.execute("PRAGMA page_size").fetchone()
    with (server.data_dir / DATABASE_FILE).open("r+b") as file:
        for (page,) in pages:
            file.seek((page - 1) * page_bytes)
            file.write(b"\xa5" * page_bytes)


def health(server: RunningServer) -> dict[str, Any]:
    answer = requests.get(f"{server.url}/health", timeout=10)
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


def test_damage_found_at_start_stops_writes(server: RunningServer, alice: RemotePerson) -> None:
    server.stop()
    damage(server)
    server.start()
    assert eventually(lambda: health(server)["status"] == "degraded")
    [problem] = health(server)["problems"]
    assert "damaged" in problem
    assert "restore" in problem
    # The check may end after the first task of the start has taken its lease.
    wal = server.data_dir / f"{DATABASE_FILE}-wal"
    before = [path.read_bytes() if path.exists() else b"" for path in (server.data_dir / DATABASE_FILE, wal)]
    answers = [
        send(alice, "POST", "/memories/add", {**ADD, "session_id": "chat:c2"}),
        send(alice, "POST", "/users/me/keys/rotate", {}),
        requests.post(f"{server.url}/users", json={"user_id": "bob"}, timeout=30),
        alice.upload("notes.txt", b"A note."),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "database_damaged"), answer.text
        assert answer.json()["detail"] == problem
    assert [memory["text"] for memory in send(alice, "GET", "/memories").json()["memories"]] == ["I like tea"]
    assert [path.read_bytes() if path.exists() else b"" for path in (server.data_dir / DATABASE_FILE, wal)] == before
    assert "Traceback" not in server.log


def test_damage_found_by_a_request_stops_writes(server: RunningServer, alice: RemotePerson) -> None:
    damage(server, "table", "store_memory")
    response = send(alice, "GET", "/memories")
    assert (response.status_code, response.json()["code"]) == (503, "database_damaged"), response.text
    added = send(alice, "POST", "/memories/add", {**ADD, "session_id": "chat:c2"})
    assert (added.status_code, added.json()["code"]) == (503, "database_damaged"), added.text
    assert eventually(lambda: health(server)["status"] == "degraded")
    assert server.log.count("Traceback") == 0


def test_noting_damage_waits_for_no_connection_of_another_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that waits for the write lock is closed to others, the thread that holds the lock included."""
    monkeypatch.setattr(database_errors, "_damaged", threading.Event())
    first, second = (
        sqlite3.connect(
            tmp_path / "db",
            factory=database_errors.Connection,
            isolation_level=None,
            check_same_thread=False,
            timeout=60,
        )
        for _ in range(2)
    )
    first.execute("CREATE TABLE note (text)")
    first.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=second.execute, args=["BEGIN IMMEDIATE"])
    waiting.start()
    noting = threading.Thread(target=database_errors.note_damage)
    noting.start()
    noting.join(10)
    was_stuck = noting.is_alive()
    first.execute("ROLLBACK")
    waiting.join()
    assert not was_stuck
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        second.cursor().execute("INSERT INTO note VALUES ('lost')")
    first.close()
    second.close()


@pytest.mark.slow
@pytest.mark.parametrize("table", ["accounts_auditevent", "accounts_memoryuser", "store_memory"])
def test_commands_report_damage_with_a_remedy(
    server: RunningServer, alice: RemotePerson, tmp_path: Path, table: str
) -> None:
    server.stop()
    damage(server, "table", table)
    archive = tmp_path / "backup.tar"
    for arguments, code in ((["backup", str(archive)], 2), (["doctor"], 1)):
        process = server.manage(*arguments)
        output = process.stdout + process.stderr
        assert process.returncode == code, output
        assert "Traceback" not in output
        assert "damaged" in output
        assert "restore" in output
    assert not archive.exists()


def test_a_file_that_is_not_a_database_is_reported_with_a_remedy(server: RunningServer, tmp_path: Path) -> None:
    server.stop()
    with (server.data_dir / DATABASE_FILE).open("r+b") as file:
        file.write(b"garbage")
    for arguments in (["serve"], ["doctor"], ["backup", str(tmp_path / "backup.tar")]):
        process = server.manage(*arguments)
        assert process.returncode in {1, 2}
        assert "Traceback" not in process.stdout + process.stderr
        assert "restore" in process.stdout + process.stderr
