"""Full and read-only disks: writes are refused with 507, `/health` reports them, and the log stays short."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.console.test_million import make_operator, signed_in
from tests.resources.people import RemotePerson
from tests.server import DATABASE_FILE, RunningServer, own_database, server_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="PostgreSQL has disks of its own"
    ),
]


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """Mount a disk of 24 MB, if this account may."""
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", folder], check=False).returncode:
        pytest.skip("mounting a disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk") as folder:
        yield folder


@pytest.fixture
def server(tmp_path: Path, disk: Path) -> Iterator[RunningServer]:
    """A gateway whose database and files are on the small disk, and whose log is not."""
    data_dir = tmp_path / "gateway"
    data_dir.mkdir()
    url = own_database(data_dir)
    shutil.move(data_dir / DATABASE_FILE, disk / DATABASE_FILE)
    env = server_environment(
        data_dir,
        url,
        MEMORY_GATEWAY_DB_PATH=str(disk / DATABASE_FILE),
        MEMORY_GATEWAY_STORAGE_DIR=str(disk / "storage"),
    )
    running = RunningServer(data_dir, env)
    running.start()
    yield running
    running.kill()


def add(person: RemotePerson, session_id: str) -> requests.Response:
    content = [{"type": "text", "text": f"I like tea in {session_id}"}]
    message = {"sender_id": person.user_id, "role": "user", "timestamp": 1_781_172_177_000, "content": content}
    body = {"session_id": session_id, "messages": [message]}
    return requests.post(f"{person.server.url}/memories/add", json=body, headers=person.headers, timeout=60)


def listed(person: RemotePerson) -> list[Any]:
    answer = requests.get(f"{person.server.url}/memories", headers=person.headers, timeout=30)
    assert answer.status_code == 200
    memories: list[Any] = answer.json()["memories"]
    return memories


def fill(disk: Path) -> Path:
    """Leave no byte free."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    return filler


def health(server: RunningServer) -> dict[str, Any]:
    time.sleep(1.1)  # the answer is kept for a second
    document: dict[str, Any] = requests.get(f"{server.url}/health", timeout=10).json()
    return document


def test_a_full_disk_refuses_every_write_with_507(server: RunningServer, disk: Path) -> None:
    alice = RemotePerson.create(server, "alice")
    assert add(alice, "chat:before").status_code == 200
    assert health(server)["status"] == "ok"
    make_operator(server)
    operator = signed_in(server)
    filler = fill(disk)
    before = len(server.log)
    answers = [add(alice, f"chat:c{number}") for number in range(5)]
    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(507, "no_space")}
    assert "full" in answers[0].json()["detail"]
    assert alice.upload("notes.txt", b"A note.").status_code == 507
    assert operator.get(f"{server.url}/admin/memory/health/", timeout=30).status_code == 200
    shown = operator.get(f"{server.url}/admin/memory/list/?tab=all", timeout=30)  # operators' reads are audited
    assert (shown.status_code, "No space left" in shown.text) == (507, True)
    document = health(server)
    assert document["status"] == "degraded"
    assert any("full" in problem for problem in document["problems"])
    assert str(disk) not in str(document)
    assert len(listed(alice)) == 1
    time.sleep(5)  # two rounds of the background tasks
    lines = [line for line in server.log[before:].splitlines() if not line.startswith("{")]
    assert len(lines) <= 3, lines
    filler.unlink()
    assert add(alice, "chat:after").status_code == 200
    assert len(listed(alice)) == 2


def test_a_read_only_disk_refuses_every_write_with_507(server: RunningServer, disk: Path) -> None:
    alice = RemotePerson.create(server, "alice")
    assert add(alice, "chat:before").status_code == 200
    server.stop()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    server.start()
    before = len(server.log)
    added, uploaded = add(alice, "chat:c1"), alice.upload("notes.txt", b"A note.")
    assert (added.status_code, uploaded.status_code) == (507, 507), (added.text, uploaded.text)
    assert "is read-only" in added.json()["detail"]
    assert "is read-only" in uploaded.json()["detail"]
    assert any("read-only" in problem for problem in health(server)["problems"])
    assert len(listed(alice)) == 1
    time.sleep(5)
    lines = [line for line in server.log[before:].splitlines() if not line.startswith("{")]
    assert len(lines) <= 3, lines
