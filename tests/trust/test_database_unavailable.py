"""A database that cannot be written: changes are refused completely, and reads continue."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.server import DATABASE_FILE, RunningServer, running_server

limits = pytest.importorskip("resource")
pytestmark = [
    pytest.mark.skipif(not hasattr(limits, "prlimit"), reason="limiting another process's files needs Linux"),
    pytest.mark.skipif(os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="it is SQLite's file"),
]


@contextmanager
def full_disk(server: RunningServer) -> Iterator[None]:
    """Prevent the files of the server from growing inside the block."""
    limits.prlimit(server.pid, limits.RLIMIT_FSIZE, (1, limits.RLIM_INFINITY))
    yield
    limits.prlimit(server.pid, limits.RLIMIT_FSIZE, (limits.RLIM_INFINITY, limits.RLIM_INFINITY))


def test_a_full_disk_refuses_writes_and_the_server_continues(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        created = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=20).json()
        header = {"Authorization": f"Bearer {created['user_key']}"}

        def send(method: str, path: str, **body: Any) -> requests.Response:
            return requests.request(method, f"{server.url}{path}", headers=header, timeout=60, **body)

        said = {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000}
        message = {**said, "content": [{"type": "text", "text": "I like tea"}]}
        assert send("POST", "/memories/add", json={"session_id": "chat:c1", "messages": [message]}).status_code == 200
        [memory] = send("GET", "/memories").json()["memories"]
        changes: dict[str, Callable[[], requests.Response]] = {
            "delete": lambda: send("DELETE", f"/memories/{memory['id']}", json={}),
            "correct": lambda: send("PATCH", f"/memories/{memory['id']}", json={"override_text": "I like coffee"}),
            "session": lambda: send("DELETE", "/sessions/chat:c1", json={}),
            "register": lambda: send(
                "POST", "/resources/external", json={"filename": "a.txt", "source_uri": "minio://bucket/a.txt"}
            ),
            "upload": lambda: send("POST", "/resources", files={"file": ("a.txt", b"A file.")}),
            "rotate": lambda: send("POST", "/users/me/keys/rotate", json={}),
            "user": lambda: send("POST", "/users", json={"user_id": "bob"}),
        }
        with full_disk(server):
            answers = {name: change() for name, change in changes.items()}
            assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(changes, 507)
            assert {answer.json()["code"] for answer in answers.values()} == {"no_space"}
            time.sleep(1.1)  # the answer of /health is kept for a second
            health = requests.get(f"{server.url}/health", timeout=10).json()
            assert (health["status"], len(health["problems"])) == ("degraded", 1)
            assert [found["text"] for found in send("GET", "/memories").json()["memories"]] == ["I like tea"]
        assert [path.name for path in (server.data_dir / "storage").rglob("*") if path.is_file()] == ["storage_id"]
        assert changes["delete"]().status_code == 200
        assert changes["upload"]().status_code == 200
        with closing(sqlite3.connect(server.data_dir / DATABASE_FILE)) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    """Recording the use of a key is a write, but must not delay a request by the lock timeout."""
    with running_server(tmp_path) as server:
        created = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=20).json()
        header = {"Authorization": f"Bearer {created['user_key']}"}
        database = sqlite3.connect(server.data_dir / DATABASE_FILE, isolation_level=None, timeout=20)
        database.execute("BEGIN IMMEDIATE")
        try:
            answer = requests.get(f"{server.url}/memories", headers=header, timeout=15)
        finally:
            database.execute("ROLLBACK")
            database.close()
        assert answer.json()["memories"] == []
        [key] = requests.get(f"{server.url}/users/me/keys", headers=header, timeout=20).json()["keys"]
        assert key["last_used_at"] is not None
