"""A gateway with EverOS as its engine, killed repeatedly under load."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients import at_work
from tests.everos import running as running_everos
from tests.operations.everos_gateway import gateway, resource_statuses
from tests.operations.faulty_proxy import FaultyProxy, proxy_faults
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.slow

NOON = 1_781_172_177_000


@dataclass
class Clients:
    """Clients that add, flush and upload through every crash; `messages` is True for acknowledged ones."""

    person: RemotePerson
    messages: dict[str, bool] = field(default_factory=dict)
    uploaded: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def running(self) -> AbstractContextManager[None]:
        return at_work(self._client, 3, self._stop)

    def call(self, path: str, body: dict[str, Any]) -> requests.Response:
        return requests.post(f"{self.person.server.url}{path}", json=body, headers=self.person.headers, timeout=30)

    def flush(self, session_id: str) -> requests.Response:
        return self.call("/memories/flush", {"session_id": session_id})

    def _client(self, rng: random.Random) -> None:
        at = NOON
        while not self._stop.is_set():
            at += 1000
            try:
                self._one_call(rng, at)
            except requests.RequestException:
                time.sleep(0.05)  # the server is down

    def _one_call(self, rng: random.Random, at: int) -> None:
        session_id = f"chat:{rng.randrange(8)}-{id(rng)}"
        self.sessions.add(session_id)
        kind = rng.random()
        if kind < 0.2:
            self.flush(session_id)
        elif kind < 0.4:
            mark = f"zq{os.urandom(6).hex()}"
            answer = self.person.upload("note.txt", f"The note {mark}.".encode(), timeout=20, Prefer="respond-async")
            if answer.status_code in {200, 202}:
                self.uploaded.add(mark)
        else:
            mark = f"zq{os.urandom(6).hex()}"
            self.messages[mark] = False
            content = f"Remember {mark}."
            message = {"sender_id": self.person.user_id, "role": "user", "timestamp": at, "content": content}
            answer = self.call("/memories/add", {"session_id": session_id, "messages": [message]})
            self.messages[mark] = answer.status_code == 200

    def acknowledged(self) -> set[str]:
        return {mark for mark, is_acknowledged in self.messages.items() if is_acknowledged} | self.uploaded

    def settle(self) -> None:
        """Wait until every message and file is a memory of EverOS's. A real one takes about a second for each."""
        assert eventually(lambda: all(self.flush(session).status_code == 200 for session in self.sessions), 120)
        seconds = 180.0 + len(self.uploaded)
        assert eventually(lambda: set(resource_statuses(self.person)) <= {"extracted"}, seconds), resource_statuses(
            self.person
        )
        # A file is found here at once; one that EverOS did not flush is flushed again a minute later.
        eventually(lambda: not missing(self, memories_of(self.person)), seconds)


def missing(clients: Clients, texts: str) -> list[str]:
    return [mark for mark in clients.acknowledged() if mark not in texts]


def run_with_kills(
    tmp_path: Path, url: str, kills: int, *, heal: Callable[[], None] = lambda: None
) -> tuple[Clients, str]:
    """Kill the gateway under load, then heal EverOS; return the clients and the texts of all memories afterwards."""
    with gateway(tmp_path, url) as server:
        clients = Clients(RemotePerson.create(server, f"alice.{secrets.token_hex(4)}"))
        rng = random.Random(kills)
        with clients.running():
            for _ in range(kills):
                time.sleep(rng.uniform(0.3, 1.5))
                server.kill()
                server.start()
            time.sleep(1)
        heal()
        clients.settle()
        texts = memories_of(clients.person)
        assert_every_file_has_its_row(server)
        assert "Traceback" not in server.log
    return clients, texts


def assert_every_file_has_its_row(server: RunningServer) -> None:
    doctor = server.manage("doctor", "--fix", "--min-age", "0", "--json")
    assert doctor.returncode == 0, doctor.stdout
    known = {row["storage_path"] for row in stored(server)["resources"] if row["storage_path"]}
    root = server.data_dir / "storage"
    assert {path.relative_to(root).as_posix() for path in files_of(server)} == known


def memories_of(person: RemotePerson) -> str:
    """Return the texts of all episodes, joined."""
    texts: list[str] = []
    cursor = None
    while True:
        parameters = {"limit": "100", "memory_type": "episode", **({"cursor": cursor} if cursor else {})}
        answer = requests.get(f"{person.server.url}/memories", params=parameters, headers=person.headers, timeout=30)
        page = answer.json()
        texts += [item["text"] for item in page["memories"]]
        cursor = page.get("next_cursor")
        if not cursor:
            return "\n".join(texts)


def assert_nothing_lost_or_duplicated(clients: Clients, texts: str) -> None:
    assert clients.acknowledged()
    assert missing(clients, texts) == []
    assert [mark for mark in {*clients.messages, *clients.uploaded} if texts.count(mark) > 1] == []


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.torture)])
def test_kills_lose_and_duplicate_nothing(tmp_path: Path, kills: int) -> None:
    with StubUpstream() as stub:
        clients, texts = run_with_kills(tmp_path, stub.url, kills)
        assert_nothing_lost_or_duplicated(clients, texts)
        stored_texts = "\n".join(episode["episode"] for episode in stub.store.episodes)
        assert_nothing_lost_or_duplicated(clients, stored_texts)


@pytest.mark.torture
def test_kills_lose_and_duplicate_nothing_while_a_third_of_the_calls_to_everos_fail(tmp_path: Path) -> None:
    faults = {**proxy_faults(502, late_seconds=1.5), **proxy_faults(504, late_seconds=1.5), **FAULTS}
    with FaultyProxy(faults, 0.3, names=("add", "flush", "get", "search")) as everos:
        clients, texts = run_with_kills(tmp_path, everos.url, 25, heal=everos.heal_all)
        assert_nothing_lost_or_duplicated(clients, texts)
        assert_nothing_lost_or_duplicated(clients, "\n".join(one["episode"] for one in everos.store.episodes))
        assert everos.injected


FAULTS = {
    "429": Fault(status=429, body={}),
    "503": Fault(status=503, body={}),
    "500 after work": Fault(status=500, acts=True, body={"error": {"code": "INTERNAL_ERROR"}}),
    "hang": Fault(hang_seconds=2),
    "dripping": Fault(drip_seconds=0.05),
    "half an answer": Fault(truncate=True, acts=True),
    "reset": Fault(reset=True),
    "html": Fault(body=b"<html>", content_type="text/html"),
}


@pytest.mark.torture
@pytest.mark.upstream
def test_kills_lose_and_duplicate_nothing_with_a_real_everos(tmp_path: Path) -> None:
    with running_everos() as everos:
        assert_nothing_lost_or_duplicated(*run_with_kills(tmp_path, everos.url, 200))
