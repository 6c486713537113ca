"""SIGKILL at random times under load loses no acknowledged upload and leaves no duplicate and no orphaned file."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from tests.clients import at_work
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.slow

CLIENTS = 4


@dataclass
class Load:
    """Clients that upload, and sometimes delete, in spite of crashes, and record the acknowledged requests."""

    person: RemotePerson
    uploaded: set[str] = field(default_factory=set)
    delete_sent: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def running(self) -> AbstractContextManager[None]:
        return at_work(self._client, CLIENTS, self._stop)

    def _client(self, rng: random.Random) -> None:
        while not self._stop.is_set():
            try:
                self._one_call(rng)
            except requests.RequestException:
                time.sleep(0.05)  # the server is down

    def _one_call(self, rng: random.Random) -> None:
        lines = rng.choice([1, 3, 400])
        text = "".join(f"Note {os.urandom(12).hex()} about the quarterly report.\n" for _ in range(lines))
        headers = {"Prefer": "respond-async"} if rng.random() < 0.5 else {}
        answer = self.person.upload("notes.txt", text.encode(), timeout=20, **headers)
        assert answer.status_code in {200, 202}, answer.text
        resource_id = answer.json()["resource_id"]
        self.uploaded.add(resource_id)
        if rng.random() < 0.1:
            self._delete(resource_id)

    def _delete(self, resource_id: str) -> None:
        self.delete_sent.add(resource_id)
        url = f"{self.person.server.url}/resources/{resource_id}"
        answer = requests.delete(url, headers=self.person.headers, timeout=20)
        assert answer.status_code == 200, answer.text
        self.deleted.add(resource_id)


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.torture)])
def test_killing_the_server_loses_and_duplicates_nothing(tmp_path: Path, kills: int) -> None:
    with running_server(tmp_path) as server:
        load = Load(RemotePerson.create(server, "alice"))
        rng = random.Random(kills)
        with load.running():
            for _ in range(kills):
                time.sleep(rng.uniform(0.2, 1.2))
                server.kill()
                server.start()
        assert len(load.uploaded) > kills
        assert_acknowledged_uploads_are_listed(load)
        assert_all_ingestions_end(load)
        assert_no_duplicates(server, load)
        assert_no_file_is_orphaned(server)
        assert "Traceback" not in server.log


def assert_acknowledged_uploads_are_listed(load: Load) -> None:
    listed = {item["resource_id"] for item in load.person.resources()}
    assert load.uploaded - load.delete_sent <= listed
    assert not listed & load.deleted


def assert_all_ingestions_end(load: Load) -> None:
    """All ingestions end before a lease expires: the new server knows that the holders are dead."""

    def statuses() -> set[str]:
        return {item["status"] for item in load.person.resources()}

    assert eventually(lambda: statuses() == {"extracted"}, 25), statuses()


def assert_no_duplicates(server: RunningServer, load: Load) -> None:
    found = stored(server)
    for row in found["resources"]:
        memories, texts = found["memories"].get(row["session_id"], [0, 0])
        assert memories == texts
        if row["state"] == "live":  # those in the trash keep the memories that they had
            assert bool(memories) == (row["status"] == "extracted"), row
    live = [row for row in found["resources"] if (row["state"], row["status"]) == ("live", "extracted")]
    assert len({row["sha256"] for row in live}) == len(live)
    assert found["attachments"] == len(found["resources"])


def assert_no_file_is_orphaned(server: RunningServer) -> None:
    """The next start removes orphaned files that appear to be two hours old."""
    server.kill()
    root = server.data_dir / "storage"
    two_hours_ago = time.time() - 7200
    for path in (root / ".incoming").iterdir():
        path.rename(path.with_name(f"of-another-start-{path.name}"))  # its age is then its modification time
    for path in root.rglob("*"):
        os.utime(path, (two_hours_ago, two_hours_ago))
    server.start()
    known = {str(root / row["storage_path"]) for row in stored(server)["resources"] if row["storage_path"]}
    assert eventually(lambda: {str(path) for path in files_of(server)} == known)
