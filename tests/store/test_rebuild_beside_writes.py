"""`manage.py rebuild` beside searches and about 50 writes a second, killed once, or three times among many memories.

No write is refused, no search is wrong, and `doctor` finds no fault."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from store.derived import BY_NAME
from tests import forked
from tests.clients import at_work
from tests.resources.people import RemotePerson
from tests.server import RunningServer, running_server
from tests.stub_embeddings import running_embeddings

pytestmark = pytest.mark.slow

NOON = 1_781_172_177_000
WRITERS = 5
WRITES_PER_SECOND = 50
AT_ONCE = 100
WORDS = ("apple", "birch", "cedar", "dahlia", "elder", "fern", "ginkgo", "hazel", "iris", "juniper")


@dataclass
class Clients:
    """Clients that write and search. `told` are the marks that were acknowledged."""

    person: RemotePerson
    is_complete: bool
    wanted: dict[str, set[str]]
    told: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    searches: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def create(cls, server: RunningServer, memories: int, *, is_complete: bool) -> Clients:
        """Create a user with so many memories, and note what searches find. `is_complete`: they must find all of it."""
        clients = cls(RemotePerson.create(server, f"alice.{random.randrange(10**9)}"), is_complete, {})
        for start in range(0, memories, AT_ONCE):
            texts = [f"{WORDS[n % len(WORDS)]} number{n} grows in the park" for n in range(start, start + AT_ONCE)]
            clients.add(f"chat:{start}", texts)
        clients.wanted = {f"number{n}": clients.found(f"number{n}")[0] for n in range(0, memories, memories // 10)}
        assert all(len(texts) == 1 for texts in clients.wanted.values())
        return clients

    def call(self, path: str, body: dict[str, Any]) -> Any:
        answer = requests.post(f"{self.person.server.url}{path}", json=body, headers=self.person.headers, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def add(self, session_id: str, texts: list[str]) -> None:
        messages = [
            {"sender_id": self.person.user_id, "role": "user", "timestamp": NOON + number, "content": text}
            for number, text in enumerate(texts)
        ]
        self.call("/memories/add", {"session_id": session_id, "messages": messages})

    def found(self, query: str) -> tuple[set[str], bool]:
        """Return the texts that contain the query, and if the search says that some may be missing."""
        answer = self.call(
            "/memories/search",
            {"query": query, "scope": ["all_user_memory"], "top_k": 20},
        )
        texts = {hit["text"] for hit in answer["results"]}
        return {text for text in texts if query in text.split()}, "Another version" in json.dumps(answer["meta"])

    def running(self) -> Any:
        return at_work(self._client, WRITERS, self._stop)

    def _client(self, chance: random.Random) -> None:
        name, number = f"{chance.randrange(10**12)}", 0
        while not self._stop.is_set():
            began = time.monotonic()
            number += 1
            mark = f"mark{name}x{number}"
            try:
                self.add(f"chat:{name}-{number % 20}", [f"{chance.choice(WORDS)} {mark} grows in the garden"])
                self.told.add(mark)
                if number % 5 == 0:
                    self.compare(chance)
            except (AssertionError, requests.RequestException) as error:
                self.faults.append(str(error)[:300])
            time.sleep(max(0.0, WRITERS / WRITES_PER_SECOND - (time.monotonic() - began)))

    def compare(self, chance: random.Random) -> None:
        """Search for a memory of before, and for a new one."""
        old, new = chance.choice(list(self.wanted)), chance.choice(list(self.told))
        for query, wanted in ((old, self.wanted[old]), (new, None)):
            texts, is_incomplete = self.found(query)
            self.searches += 1
            is_right = texts == wanted if wanted is not None else len(texts) == 1
            if not is_right and (texts or self.is_complete or not is_incomplete):
                self.faults.append(f"{query} found {texts}, incomplete: {is_incomplete}")


def empty_keywords(server: RunningServer) -> None:
    """Have an index of another version, which has other tokens."""
    server.write("UPDATE store_indexstatistics SET tokenizer = 'other'")
    if server.env["DATABASE_URL"]:
        server.write("TRUNCATE store_keywords")
    else:
        server.write("INSERT INTO store_keywords (store_keywords) VALUES ('delete-all')")


def rebuild_with_kills(server: RunningServer, name: str, kills: int) -> None:
    """Kill the command after ever longer times, then let it end."""
    began = time.monotonic()
    assert server.manage("rebuild", name).returncode == 0
    seconds = time.monotonic() - began
    log = server.data_dir / "rebuild.log"
    for number in range(kills):
        process = forked.start(["manage.py", "rebuild", name], server.env, log, log)
        process.join(seconds * (0.4 + 0.5 * (number + random.random()) / kills))
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join(10)
    ended = server.manage("rebuild", name)
    assert ended.returncode == 0, ended.stderr


def assert_nothing_wrong(server: RunningServer, clients: Clients) -> None:
    assert clients.faults == []
    assert clients.searches > 0
    for mark in random.sample(sorted(clients.told), 20):
        texts, is_incomplete = clients.found(mark)
        assert (len(texts), is_incomplete) == (1, False)
    stored = server.rows("SELECT text FROM store_memory WHERE text LIKE '%mark%'")
    assert len(stored) == len(clients.told) == len(set(stored))
    doctor = server.manage("doctor", "--json")
    [index] = [one for one in json.loads(doctor.stdout)["findings"] if one["check"] == "index"]
    assert index["status"] == "ok", index


@pytest.fixture(params=[1000, pytest.param(10_000, marks=pytest.mark.torture)])
def memories(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def kills_of(memories: int) -> int:
    return 3 if memories > 1000 else 1


@pytest.mark.parametrize("name", BY_NAME)
def test_a_rebuild_beside_writes_refuses_none_and_changes_no_search(tmp_path: Path, name: str, memories: int) -> None:
    with running_embeddings() as stub:
        model = {"MEMORY_GATEWAY_MODELS": f"embedding={stub.url}#stub"}
        with running_server(tmp_path, **(model if name == "vectors" else {})) as server:
            clients = Clients.create(server, memories, is_complete=True)
            with clients.running():
                rebuild_with_kills(server, name, kills_of(memories))
            assert_nothing_wrong(server, clients)


def test_a_rebuild_of_another_version_beside_writes_says_what_is_missing(tmp_path: Path, memories: int) -> None:
    with running_server(tmp_path) as server:
        clients = Clients.create(server, memories, is_complete=False)
        empty_keywords(server)
        assert clients.found(next(iter(clients.wanted))) == (set(), True)
        with clients.running():
            rebuild_with_kills(server, "keywords", kills_of(memories))
        assert_nothing_wrong(server, clients)
