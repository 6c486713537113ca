"""`manage.py backup` and `manage.py restore`, on a server under load."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from resources.services.storage_binding import FILE
from tests.operations import edit_archive
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer, own_database, running_server, server_environment


@contextmanager
def load(users: list[RemotePerson]) -> Iterator[list[str]]:
    """Upload and delete files until the context ends; yield the resources acknowledged so far."""
    stop, acknowledged = threading.Event(), list[str]()

    def work(person: RemotePerson) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            text = f"Note {number} of {person.user_id} about the quarterly report.".encode()
            resource_id = person.upload("notes.txt", text).json()["resource_id"]
            if number % 3:
                acknowledged.append(resource_id)
            else:
                requests.delete(f"{person.server.url}/resources/{resource_id}", headers=person.headers, timeout=30)

    threads = [threading.Thread(target=work, args=(person,)) for person in users]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("memories", [1000, pytest.param(100_000, marks=pytest.mark.torture)])
def test_a_backup_under_load_restores_to_a_gateway_that_passes_the_doctor(tmp_path: Path, memories: int) -> None:
    archive = tmp_path / "backup.tar"
    with running_server(tmp_path) as server:
        filled = server.manage("seed_memories", str(memories), timeout_seconds=1800)
        assert filled.returncode == 0, filled.stderr
        users = [RemotePerson.create(server, name) for name in ("alice", "bob")]
        with load(users) as acknowledged:
            assert eventually(lambda: len(acknowledged) >= 6)
            before = list(acknowledged)
            done = server.manage("backup", str(archive), "--json")
            assert done.returncode == 0, done.stderr
        assert archive.stat().st_mode & 0o077 == 0
        assert users[0].user_key.encode() not in archive.read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    url = own_database(other)
    again = RunningServer(other, server_environment(other, url))
    restored = again.manage("restore", str(archive), "--json")
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert set(before) <= {row["resource_id"] for row in stored(again)["resources"]}
    again.start()
    try:
        alice = RemotePerson(again, "alice", users[0].user_key)
        assert alice.search("quarterly report").json()["results"]
        refused = again.manage("restore", str(archive))
        assert (refused.returncode, "Stop it first" in refused.stderr) == (2, True)
    finally:
        again.kill()
    doctor = again.manage("doctor", "--fix", "--min-age", "0", "--json")
    assert doctor.returncode == 0, doctor.stdout
    assert len(files_of(again)) == sum(bool(row["storage_path"]) for row in stored(again)["resources"])


class BackedUp(NamedTuple):
    """A running gateway with one file of alice, and its backup."""

    server: RunningServer
    user_key: str
    archive: Path


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackedUp]:
    folder = tmp_path_factory.mktemp("backed_up")
    with running_server(folder) as server:
        alice = RemotePerson.create(server, "alice")
        alice.upload("notes.txt", b"The quarterly report.")
        archive = folder / "backup.tar"
        assert server.manage("backup", str(archive)).returncode == 0
        yield BackedUp(server, alice.user_key, archive)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[RunningServer]:
    """An empty gateway that was never started."""
    url = own_database(tmp_path)
    server = RunningServer(tmp_path, server_environment(tmp_path, url))
    yield server
    if server._process is not None:
        server.kill()


def test_a_damaged_backup_is_rejected_before_anything_changes(
    backed_up: BackedUp, other: RunningServer, tmp_path: Path
) -> None:
    archive = tmp_path / "backup.tar"
    shutil.copyfile(backed_up.archive, archive)
    (name,) = (name for name in edit_archive.contents(archive) if name.startswith("database"))
    data = bytearray(archive.read_bytes())
    data[2000] ^= 1
    archive.write_bytes(data)
    refused = other.manage("restore", str(archive))
    assert refused.returncode == 2
    assert f"{name} has SHA-256" in refused.stderr
    assert json.loads(other.manage("doctor", "--json").stdout)["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("was_started", [False, True], ids=["new", "started before"])
def test_a_restored_gateway_starts_with_the_id_of_the_backup(
    backed_up: BackedUp, other: RunningServer, was_started: bool
) -> None:
    identity = (backed_up.server.data_dir / "storage" / FILE).read_text()
    if was_started:
        other.start()
        other.kill()
        assert (other.data_dir / "storage" / FILE).read_text() != identity
    restored = other.manage("restore", str(backed_up.archive))
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert (other.data_dir / "storage" / FILE).read_text() == identity
    other.start()
    assert len(RemotePerson(other, "alice", backed_up.user_key).resources()) == 1


def test_a_restore_needs_no_migrated_database(backed_up: BackedUp, tmp_path: Path) -> None:
    if backed_up.server.env["DATABASE_URL"]:
        pytest.skip("a file of SQLite that does not exist")
    fresh = RunningServer(tmp_path, server_environment(tmp_path, ""))
    restored = fresh.manage("restore", str(backed_up.archive))
    assert restored.returncode == 0, restored.stdout + restored.stderr
    fresh.env["MEMORY_GATEWAY_DB_PATH"] = str(tmp_path / "another.sqlite3")  # with the storage folder just restored
    refused = fresh.manage("restore", str(backed_up.archive))
    assert (refused.returncode, "is in use" in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "another.sqlite3").exists()


def test_a_restore_into_a_storage_folder_in_use_is_rejected(backed_up: BackedUp, other: RunningServer) -> None:
    other.env["MEMORY_GATEWAY_STORAGE_DIR"] = backed_up.server.env["MEMORY_GATEWAY_STORAGE_DIR"]
    refused = other.manage("restore", str(backed_up.archive))
    assert (refused.returncode, "is in use" in refused.stderr) == (2, True), refused.stderr
    assert len(files_of(backed_up.server)) == 1
    assert backed_up.server.manage("doctor").returncode == 0
