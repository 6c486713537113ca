"""Two worker processes under load, killed in every way while both model endpoints fail in every way."""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import requests

from store.vectors.vector_pages import ROWS
from tests import stub_embeddings, stub_llm
from tests.clients import at_work
from tests.resources.people import RemotePerson, eventually, files_of
from tests.server import RunningServer, running_server
from tests.stub_embeddings import running_embeddings
from tests.stub_llm import Line, running_llm

pytestmark = pytest.mark.slow

NOON = 1_781_172_177_000
FAULTY_SHARE = 0.3
CLIENTS = 4
MAX_WAIT_SECONDS = 120
IS_POSTGRESQL = os.environ.get("DATABASE_URL", "").startswith("postgres")
# A SQLite before 3.51.3 can be damaged by several writing processes: one worker is its documented setup.
WORKERS = ("--workers", "2") if IS_POSTGRESQL else ()
KILL_TARGETS = ("all", "worker", "worker", "supervisor", "worker", "worker")


@dataclass
class Item:
    """A message or a file with a unique mark, and the client's knowledge of it.

    `state` is the last acknowledged state; "unknown" during a call, and from then on if its response was lost.
    """

    mark: str
    session_id: str
    state: Literal["unknown", "live", "deleted"] = "unknown"
    was_deleted: bool = False
    id: str = ""

    @property
    def text(self) -> str:
        return f"Remember {self.mark}, please."


@dataclass
class Client:
    """The client of one user. Its calls are sequential, so it knows the expected state of each item."""

    person: RemotePerson
    messages: list[Item] = field(default_factory=list)
    files: list[Item] = field(default_factory=list)
    unanswered: list[tuple[Item, dict[str, Any]]] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    acknowledged: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    def work(self, rng: random.Random, stop: threading.Event) -> None:
        calls = [
            (self._add, 30), (self._flush, 12), (self._upload, 10), (self._delete, 10), (self._restore, 6),
            (self._delete_file, 3), (self._delete_session, 3), (self._search, 20), (self._repeat, 6),
        ]  # fmt: skip
        while not stop.is_set():
            [call] = rng.choices([call for call, _ in calls], [weight for _, weight in calls])
            try:
                call(rng)
            except requests.RequestException:
                time.sleep(0.05)  # the worker is down
            except Exception as error:  # noqa: BLE001 - reported at the end by the main thread
                self.errors.append(f"{call.__name__}: {error!r}")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the response body; None if the gateway is busy or stopping."""
        url = f"{self.person.server.url}{path}"
        answer = requests.request(method, url, json=body, headers=self.person.headers, timeout=30)
        if answer.status_code == 503:
            return None
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    # --- calls of clients --------------------------------------------------------------------------------------------

    def _add(self, rng: random.Random) -> None:
        item = Item(f"zq{secrets.token_hex(6)}", f"chat:{rng.randrange(6)}")
        self.messages.append(item)
        self.sessions.add(item.session_id)
        self._send(item, self._message(item))

    def _message(self, item: Item) -> dict[str, Any]:
        at = NOON + 1000 * self.messages.index(item)
        return {"sender_id": self.person.user_id, "role": "user", "timestamp": at, "content": item.text}

    def _send(self, item: Item, message: dict[str, Any]) -> None:
        self.unanswered.append((item, message))
        if self.call("POST", "/memories/add", {"session_id": item.session_id, "messages": [message]}):
            item.state = "live"
            self.acknowledged["messages"] += 1
            self.unanswered.remove((item, message))

    def _repeat(self, _chance: random.Random) -> None:
        """Repeat a call without response; the message may already be stored."""
        if self.unanswered:
            self._send(*self.unanswered.pop(0))

    def _flush(self, rng: random.Random) -> None:
        if self.sessions:
            self.flush(rng.choice(sorted(self.sessions)))

    def flush(self, session_id: str) -> bool:
        return bool(self.call("POST", "/memories/flush", {"session_id": session_id}))

    def _upload(self, _chance: random.Random) -> None:
        item = Item(f"zq{secrets.token_hex(6)}", "")
        self.files.append(item)
        text = "".join(f"The note {item.mark} says {number}.\n" for number in range(3))
        answer = self.person.upload("note.txt", text.encode(), timeout=30, Prefer="respond-async")
        if answer.status_code != 503:
            assert answer.status_code in {200, 202}, answer.text
            item.id, item.state = answer.json()["resource_id"], "live"
            self.acknowledged["files"] += 1

    def _delete(self, rng: random.Random) -> None:
        if not (live := [item for item in self.messages if item.state == "live"]):
            return
        item = rng.choice(live)
        if not item.id:
            found = self.search(item.mark, "keyword")
            if found is None:
                return
            [item.id] = [hit["id"] for hit in found if hit["text"] == item.text]
        item.was_deleted, item.state = True, "unknown"
        if self.call("DELETE", f"/memories/{item.id}"):
            item.state = "deleted"
            self.acknowledged["deletions"] += 1

    def _restore(self, rng: random.Random) -> None:
        if deleted := [item for item in self.messages if item.state == "deleted" and item.session_id in self.sessions]:
            item = rng.choice(deleted)
            item.state = "unknown"
            if self.call("POST", f"/memories/{item.id}/restore"):
                item.state = "live"
                self.acknowledged["restores"] += 1

    def _delete_file(self, rng: random.Random) -> None:
        if live := [item for item in self.files if item.state == "live"]:
            item = rng.choice(live)
            item.was_deleted, item.state = True, "unknown"
            if self.call("DELETE", f"/resources/{item.id}"):
                item.state = "deleted"
                self.acknowledged["deletions of files"] += 1

    def _delete_session(self, rng: random.Random) -> None:
        """Delete a new session with two messages; restore half of these sessions."""
        session_id = f"chat:own-{secrets.token_hex(4)}"
        items = [Item(f"zq{secrets.token_hex(6)}", session_id) for _ in range(2)]
        for item in items:
            self.messages.append(item)
            message = self._message(item)
            if not self.call("POST", "/memories/add", {"session_id": session_id, "messages": [message]}):
                return
            self.acknowledged["messages"] += 1
        for item in items:
            item.was_deleted = True
        if not self.flush(session_id) or not self.call("DELETE", f"/sessions/{session_id}"):
            return
        self.acknowledged["deletions of sessions"] += 1
        if is_restored := rng.random() < 0.5:
            if not self.call("POST", f"/sessions/{session_id}/restore"):
                return
            self.acknowledged["restores of sessions"] += 1
        for item in items:
            item.state = "live" if is_restored else "deleted"

    def _search(self, rng: random.Random) -> None:
        if known := [item for item in self.messages if item.state != "unknown"]:
            item = rng.choice(known)
            method = rng.choice(["keyword", "hybrid", "agentic", "vector"])
            found = self.search(item.mark, method)
            if found is None:
                assert method == "vector", f"{method} was refused"
                return
            self.acknowledged["searches"] += 1
            said = [hit for hit in found if hit["text"] == item.text]
            if item.state == "deleted":
                assert not any(item.mark in hit["text"] for hit in found), f"{item} is found by {method}"
            elif method != "vector":  # its vector may be pending
                assert len(said) == 1, f"{item} is found {len(said)} times by {method}: {found}"

    def search(self, query: str, method: str) -> list[dict[str, Any]] | None:
        body = {"query": query, "scope": ["all_user_memory"], "method": method, "top_k": 20}
        answer = self.call("POST", "/memories/search", body)
        return None if answer is None else list(answer["results"])


class FaultInjector:
    """Draws a random fault for a share of an endpoint's calls. `counts` has the faults drawn."""

    def __init__(self, faults: tuple[int | str, ...]) -> None:
        self.counts: Counter[int | str] = Counter()
        self._faults = faults
        self._chance = random.Random(7)

    def __call__(self) -> int | str | None:
        if self._chance.random() >= FAULTY_SHARE:
            return None
        fault = self._chance.choice(self._faults)
        self.counts[fault] += 1
        return fault


_answers = iter(range(10**9))


def extraction_response(lines: list[Line]) -> dict[str, Any]:
    """Return unique texts: a response that is stored twice is then found twice."""
    number = next(_answers)
    if any("memory" in line for line in lines):
        return {"summary": f"A person of {len(lines)} memories, number {number}."}
    messages = [line for line in lines if "message" in line]
    return {
        "memories": [
            {"kind": "fact", "text": f"Known of {line['text'].split()[1]} by {number}.", "messages": [line["message"]]}
            for line in messages
        ]
    }


# --- kills -----------------------------------------------------------------------------------------------------------


def workers_of(server: RunningServer) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(server.pid), "-f", "spawn_main"], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def refuses(server: RunningServer) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(server.env["MEMORY_GATEWAY_PORT"]))) != 0


def kill(server: RunningServer, number: int, rng: random.Random) -> str:
    """Kill all processes, one worker or the supervisor, in turns, and start what does not restart by itself."""
    kind = KILL_TARGETS[number % len(KILL_TARGETS)] if WORKERS else "all"
    if kind == "worker":
        assert eventually(lambda: len(workers_of(server)) == 2, MAX_WAIT_SECONDS), server.log[-3000:]
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(workers_of(server)), signal.SIGKILL)
        return kind
    if kind == "supervisor":
        os.kill(server.pid, signal.SIGKILL)
        server.wait(10)
        assert eventually(lambda: refuses(server), MAX_WAIT_SECONDS), "workers outlived their supervisor"
    server.kill()
    server.start()
    return kind


@contextlib.contextmanager
def unreliable_models() -> Iterator[tuple[dict[str, str], list[Any], list[FaultInjector]]]:
    """Yield the settings for a gateway, the two endpoints, and the counts of their faults."""
    with running_embeddings() as embeddings, running_llm() as llm:
        llm.extract = extraction_response
        injectors = [FaultInjector(stub_embeddings.FAULTS), FaultInjector(stub_llm.FAULTS)]
        embeddings.failures, llm.failures = injectors
        settings = {
            "MEMORY_GATEWAY_MODELS": f"embedding={embeddings.url}#stub,llm={llm.url}#stub",
        }
        yield settings, [embeddings, llm], injectors


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=pytest.mark.torture)])
def test_kills_and_model_faults_lose_duplicate_and_restore_nothing(tmp_path: Path, kills: int) -> None:
    with (
        unreliable_models() as (settings, endpoints, injectors),
        running_server(tmp_path, *WORKERS, **settings) as server,
    ):
        clients = [Client(RemotePerson.create(server, f"user{number}")) for number in range(CLIENTS)]
        rng, killed, stop = random.Random(kills), Counter[str](), threading.Event()
        next_clients = iter(clients)
        with at_work(lambda rng: next(next_clients).work(rng, stop), CLIENTS, stop):
            for number in range(kills):
                time.sleep(rng.uniform(0.3, 3.0))
                killed[kill(server, number, rng)] += 1
            time.sleep(1)
        for endpoint in endpoints:
            endpoint.failures = None
        settle(server, clients, 60 if kills < 100 else 900)
        print(summary(killed, clients, injectors))  # noqa: T201 - the figures of a long run
        assert "\n".join(errors for client in clients for errors in client.errors) == ""
        for client in clients:
            assert_memories_are_complete(server, client)
        assert_vectors_are_complete(server)
        assert_files_have_their_rows(server)
        assert all(not path.startswith("/redirected") for endpoint in endpoints for path in endpoint.paths)
        assert "Traceback" not in server.log, server.log[server.log.index("Traceback") - 500 :][:3000]


def summary(killed: Counter[str], clients: list[Client], injectors: list[FaultInjector]) -> str:
    acknowledged = sum((client.acknowledged for client in clients), Counter[str]())
    faults = [f"{one.counts.total()} faults of {len(one.counts)} kinds" for one in injectors]
    return f"kills: {dict(killed)}; acknowledged: {dict(acknowledged)}; embeddings: {faults[0]}; LLM: {faults[1]}"


def settle(server: RunningServer, clients: list[Client], seconds: float) -> None:
    """Wait until everything is flushed, ingested, embedded and extracted."""
    for client in clients:
        for session_id in sorted(client.sessions):
            assert eventually(lambda c=client, s=session_id: c.flush(s), MAX_WAIT_SECONDS)  # type: ignore[misc]
    pending = """
        SELECT (SELECT count(*) FROM store_pendingembedding), (SELECT count(*) FROM store_pendingextraction),
               (SELECT count(*) FROM resources_resource WHERE status <> 'extracted' AND state = 'live')
    """
    assert eventually(lambda: server.rows(pending) == [(0, 0, 0)], seconds), server.rows(pending)
    # A process whose last call failed says so until a minute after its pause (of at most a minute).
    assert eventually(lambda: set(states(server)) == {"ok"}, 130), states(server)


def states(server: RunningServer) -> list[str]:
    """Return the states of the index, the embeddings and the LLM."""
    health = requests.get(f"{server.url}/health", timeout=10).json()["backend"]["data"]
    return [health[name]["status"] for name in ("index", "embeddings", "llm")]


def assert_memories_are_complete(server: RunningServer, client: Client) -> None:
    """Compare the rows of each mark (message, derived fact, file) with the state that the client expects."""
    shown: Counter[str] = Counter()
    rows = server.rows(
        "SELECT m.text FROM store_memory m JOIN accounts_memoryuser u ON u.id = m.user_id "
        "JOIN store_session s ON s.id = m.session_id WHERE m.state = 'live' AND s.state = 'live' "
        f"AND u.user_id = '{client.person.user_id}'"
    )
    for (text,) in rows:
        kind = "message" if text.startswith("Remember") else "fact" if text.startswith("Known") else "file"
        for mark in {word.strip(",.") for word in text.split() if word.startswith("zq")}:
            shown[f"{kind} {mark}"] += 1
    lost, doubled, reappeared = [], [], []
    for item in client.messages:
        message, fact = shown[f"message {item.mark}"], shown[f"fact {item.mark}"]
        is_unread = not fact and not item.was_deleted
        lost += [item] if item.state == "live" and (not message or is_unread) else []
        doubled += [item] if message > 1 or fact > 1 else []
        reappeared += [item] if item.state == "deleted" and message + fact else []
    for item in client.files:
        lost += [item] if item.state == "live" and not shown[f"file {item.mark}"] else []
        doubled += [item] if shown[f"file {item.mark}"] > 1 else []
        reappeared += [item] if item.state == "deleted" and shown[f"file {item.mark}"] else []
    assert (lost, doubled, reappeared) == ([], [], [])
    for item in [item for item in client.messages if item.state != "unknown"][-40:]:
        found = client.search(item.mark, "hybrid")
        assert found is not None
        said = [hit for hit in found if hit["text"] == item.text]
        assert len(said) == (item.state == "live"), (item, found)


def assert_vectors_are_complete(server: RunningServer) -> None:
    indexed = {pk for (pk,) in server.rows("SELECT id FROM store_memory WHERE is_indexed")}
    counts = Counter(pk for (pk,) in server.rows("SELECT memory_id FROM store_embedding WHERE length(vector) > 0"))
    paged: Counter[int] = Counter()
    for (rows,) in server.rows("SELECT rows FROM store_vectorpage"):
        paged.update(np.frombuffer(rows, ROWS)["pk"].tolist())
    assert counts == paged == Counter(indexed)
    assert server.rows("SELECT dimensions FROM store_embeddingspace") == [(64,)]


def assert_files_have_their_rows(server: RunningServer) -> None:
    """Every stored file has a row after `doctor --fix`, which removes files that a kill left."""
    examined = server.manage("doctor", "--fix", "--min-age", "0", "--json")
    findings = {item["check"]: item["status"] for item in json.loads(examined.stdout)["findings"]}
    assert examined.returncode == 0, examined.stdout
    assert (findings["index"], findings["engine"], findings["database"] != "problem") == ("ok", "ok", True), findings
    known = {path for (path,) in server.rows("SELECT storage_path FROM resources_resource") if path}
    root = server.data_dir / "storage"
    assert {path.relative_to(root).as_posix() for path in files_of(server)} == known
