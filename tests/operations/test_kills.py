"""A gateway with EverOS behind it, killed again and again under load."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients import at_work
from tests.everos import running as running_everos
from tests.operations.gateways import gateway, statuses
from tests.resources.people import RemotePerson, eventually, files_of, stored
from tests.server import RunningServer
from tests.stub_upstream import StubUpstream

NOON = 1_781_172_177_000


@dataclass
class Talk:
    """Clients who say things, flush now and then and upload, through every crash; they note what was acknowledged."""

    person: RemotePerson
    said: dict[str, bool] = field(default_factory=dict)
    uploaded: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    def running(self) -> AbstractContextManager[None]:
        return at_work(self._client, 3, self._stop)

    def call(self, path: str, body: dict[str, Any]) -> requests.Response:
        return requests.post(f"{self.person.server.url}{path}", json=body, headers=self.person.headers, timeout=30)

    def flush(self, session_id: str) -> requests.Response:
        return self.call("/memories/flush", {"session_id": session_id})

    def _client(self, chance: random.Random) -> None:
        at = NOON
        while not self._stop.is_set():
            at += 1000
            try:
                self._one_call(chance, at)
            except requests.RequestException:
                time.sleep(0.05)  # the server is down

    def _one_call(self, chance: random.Random, at: int) -> None:
        session_id = f"chat:{chance.randrange(8)}-{id(chance)}"
        self.sessions.add(session_id)
        kind = chance.random()
        if kind < 0.2:
            self.flush(session_id)
        elif kind < 0.4:
            mark = f"zq{os.urandom(6).hex()}"
            answer = self.person.upload("note.txt", f"The note {mark}.".encode(), timeout=20, Prefer="respond-async")
            if answer.status_code in {200, 202}:
                self.uploaded.add(mark)
        else:
            mark = f"zq{os.urandom(6).hex()}"
            self.said[mark] = False
            content = f"Remember {mark}."
            message = {"sender_id": self.person.user_id, "role": "user", "timestamp": at, "content": content}
            answer = self.call("/memories/add", {"session_id": session_id, "messages": [message]})
            self.said[mark] = answer.status_code == 200

    def settle(self) -> None:
        """Until every message is a memory, and every file too: a real EverOS takes about a second for each."""
        assert eventually(lambda: all(self.flush(session).status_code == 200 for session in self.sessions), 120)
        seconds = 180.0 + len(self.uploaded)
        assert eventually(lambda: set(statuses(self.person)) <= {"extracted"}, seconds), statuses(self.person)


def under_kills(tmp_path: Path, url: str, kills: int) -> tuple[Talk, str]:
    """What was said and acknowledged, and the texts of all memories afterwards."""
    with gateway(tmp_path, url) as server:
        talk = Talk(RemotePerson.create(server, f"alice.{secrets.token_hex(4)}"))
        moments = random.Random(kills)
        with talk.running():
            for _ in range(kills):
                time.sleep(moments.uniform(0.3, 1.5))
                server.kill()
                server.start()
            time.sleep(1)
        talk.settle()
        texts = memories_of(talk.person)
        assert_every_file_has_its_row(server)
        assert "Traceback" not in server.log
    return talk, texts


def assert_every_file_has_its_row(server: RunningServer) -> None:
    doctor = server.manage("doctor", "--fix", "--min-age", "0", "--json")
    assert doctor.returncode == 0, doctor.stdout
    known = {row["storage_path"] for row in stored(server)["resources"] if row["storage_path"]}
    root = server.data_dir / "storage"
    assert {path.relative_to(root).as_posix() for path in files_of(server)} == known


def memories_of(person: RemotePerson) -> str:
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


def assert_nothing_lost_or_double(talk: Talk, texts: str) -> None:
    acknowledged = {mark for mark, is_known in talk.said.items() if is_known} | talk.uploaded
    assert acknowledged
    assert [mark for mark in acknowledged if mark not in texts] == []
    assert [mark for mark in {*talk.said, *talk.uploaded} if texts.count(mark) > 1] == []


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.torture)])
def test_no_kill_loses_or_doubles_what_was_given_to_everos(tmp_path: Path, kills: int) -> None:
    with StubUpstream() as stub:
        talk, texts = under_kills(tmp_path, stub.url, kills)
        assert_nothing_lost_or_double(talk, texts)
        kept = "\n".join(episode["episode"] for episode in stub.store.episodes)
        assert_nothing_lost_or_double(talk, kept)


@pytest.mark.torture
@pytest.mark.upstream
def test_nor_with_a_real_one(tmp_path: Path) -> None:
    with running_everos() as everos:
        assert_nothing_lost_or_double(*under_kills(tmp_path, everos.url, 200))
