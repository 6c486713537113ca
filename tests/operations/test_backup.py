"""`manage.py backup` and `manage.py restore`, on a server under load."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from resources.services.storage_binding import FILE
from tests.operations import tars
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer, own_database, running_server, server_environment


@contextmanager
def load(people: list[RemotePerson]) -> Iterator[list[str]]:
    """Uploads, messages and deletions until the end; yields the resources acknowledged so far."""
    stop, acknowledged = threading.Event(), list[str]()

    def work(person: RemotePerson) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            text = f"Note {number} of {person.user_id} about the quarterly report.".encode()
            made = person.upload("notes.txt", text).json()["resource_id"]
            if number % 3:
                acknowledged.append(made)
            else:
                requests.delete(f"{person.server.url}/resources/{made}", headers=person.headers, timeout=30)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("memories", [1000, pytest.param(100_000, marks=pytest.mark.torture)])
def test_a_backup_under_load_restores_to_a_gateway_that_passes_the_doctor(tmp_path: Path, memories: int) -> None:
    archive = tmp_path / "backup.tar"
    with running_server(tmp_path) as server:
        filled = server.manage("seed_memories", str(memories), timeout_seconds=1800)
        assert filled.returncode == 0, filled.stderr
        people = [RemotePerson.create(server, name) for name in ("alice", "bob")]
        with load(people) as acknowledged:
            assert eventually(lambda: len(acknowledged) >= 6)
            before = list(acknowledged)
            done = server.manage("backup", str(archive), "--json")
            assert done.returncode == 0, done.stderr
        assert archive.stat().st_mode & 0o077 == 0
        assert people[0].user_key.encode() not in archive.read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    with own_database(other) as url:
        again = RunningServer(other, server_environment(other, url))
        restored = again.manage("restore", str(archive), "--json")
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert set(before) <= {row["resource_id"] for row in stored(again)["resources"]}
        again.start()
        try:
            alice = RemotePerson(again, "alice", people[0].user_key)
            assert alice.search("quarterly report").json()["results"]
            refused = again.manage("restore", str(archive))
            assert (refused.returncode, "stop it first" in refused.stderr) == (2, True)
        finally:
            again.kill()
        doctor = again.manage("doctor", "--fix", "--min-age", "0", "--json")
        assert doctor.returncode == 0, doctor.stdout
        assert len(files_of(again)) == sum(bool(row["storage_path"]) for row in stored(again)["resources"])


def test_a_damaged_backup_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    with own_database(tmp_path) as url:
        server = RunningServer(tmp_path, server_environment(tmp_path, url))
        archive = tmp_path / "backup.tar"
        assert server.manage("backup", str(archive)).returncode == 0
        (name,) = (name for name in tars.contents(archive) if name.startswith("database"))
        data = bytearray(archive.read_bytes())
        data[2000] ^= 1
        archive.write_bytes(data)
        refused = server.manage("restore", str(archive))
        assert refused.returncode == 2
        assert f"{name} has SHA-256" in refused.stderr
        assert json.loads(server.manage("doctor", "--json").stdout)["ok"]


@pytest.mark.parametrize("was_started", [False, True], ids=["new", "started before"])
def test_a_restored_gateway_starts_with_the_id_of_the_backup(tmp_path: Path, was_started: bool) -> None:
    archive = tmp_path / "backup.tar"
    with running_server(tmp_path) as server:
        key = RemotePerson.create(server, "alice").user_key
        RemotePerson(server, "alice", key).upload("notes.txt", b"The quarterly report.")
        assert server.manage("backup", str(archive)).returncode == 0
        identity = (server.data_dir / "storage" / FILE).read_text()
    other = tmp_path / "other"
    other.mkdir()
    with own_database(other) as url:
        again = RunningServer(other, server_environment(other, url))
        if was_started:
            again.start()
            again.kill()
            assert (other / "storage" / FILE).read_text() != identity
        restored = again.manage("restore", str(archive))
        assert restored.returncode == 0, restored.stdout + restored.stderr
        assert (other / "storage" / FILE).read_text() == identity
        again.start()
        try:
            assert len(RemotePerson(again, "alice", key).resources()) == 1
        finally:
            again.kill()


def test_a_restore_into_a_storage_folder_in_use_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with running_server(tmp_path) as server:
        RemotePerson.create(server, "alice").upload("notes.txt", b"The quarterly report.")
        assert server.manage("backup", str(archive)).returncode == 0
        other = tmp_path / "other"
        other.mkdir()
        with own_database(other) as url:
            storage = server.env["MEMORY_GATEWAY_STORAGE_DIR"]
            again = RunningServer(other, server_environment(other, url, MEMORY_GATEWAY_STORAGE_DIR=storage))
            refused = again.manage("restore", str(archive))
            assert (refused.returncode, "is in use" in refused.stderr) == (2, True), refused.stderr
        assert len(files_of(server)) == 1
        assert server.manage("doctor").returncode == 0
