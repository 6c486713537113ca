"""`serve --no-worker` with workers in other processes, which are killed while they work. PostgreSQL only."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.resources.people import RemotePerson, eventually
from tests.server import RunningServer, RunningWorker, free_port, running_server, wait_until
from tests.stub_embeddings import running_embeddings
from tests.stub_llm import StubLlm, running_llm
from tests.web import WebServer, page, web_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="workers need PostgreSQL"),
]

NOON = 1_781_172_177_000
SOURCE = "minio://documents/contract.txt"
RUNS_AGAIN_SECONDS = 60
_SUBMIT = """
import json
from accounts.audit import Actor
from operations import bulk
from store.browse import Selection
job = bulk.start("delete", bulk.freeze(Selection(tab="full")), {"reason": "noise"}, actor=Actor.operator("olga"))
print(json.dumps({"id": str(job.pk), "total": job.total}))
"""


@pytest.fixture
def workers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(stack: ExitStack, server: RunningServer, *arguments: str, **env: str) -> RunningWorker:
    worker = RunningWorker(server, *arguments, **env)
    stack.callback(worker.kill)
    worker.wait_until_running()
    return worker


def kill_as_if_elsewhere(server: RunningServer, worker: RunningWorker) -> None:
    """Kill a worker and rename its machine: others cannot see that its process has ended, only that leases expire."""
    os.killpg(worker.process.pid or 0, signal.SIGSTOP)
    for table in ("resources_resource", "operations_job", "operations_lease", "store_pendingextraction"):
        server.write(
            f"UPDATE {table} SET lease_holder = 'elsewhere:1:x' WHERE lease_holder LIKE '%:{worker.process.pid}:%'"
        )
    worker.kill()


def say(person: RemotePerson, text: str, session_id: str = "chat:c1") -> None:
    message = {"sender_id": person.user_id, "role": "user", "timestamp": NOON, "content": text}
    for path, body in (("add", {"messages": [message]}), ("flush", {})):
        url = f"{person.server.url}/memories/{path}"
        requests.post(
            url, json={"session_id": session_id, **body}, headers=person.headers, timeout=60
        ).raise_for_status()


def statuses(server: RunningServer) -> list[str]:
    return [row[0] for row in server.rows("SELECT status FROM resources_resource ORDER BY created_at")]


def test_a_gateway_without_worker_leaves_all_work_to_workers(tmp_path: Path, workers: ExitStack) -> None:
    with running_server(tmp_path, "--no-worker") as server:
        alice = RemotePerson.create(server, "alice")
        assert "none; they wait for `python manage.py worker`" in server.log
        assert alice.upload("a.txt", b"The zebra lives in Oslo.", Prefer="respond-async").status_code == 202
        time.sleep(5)
        assert statuses(server) == ["pending"]
        assert server.rows("SELECT * FROM operations_lease WHERE lease_holder <> ''") == []
        worker = start(workers, server)
        wait_until(lambda: statuses(server) == ["extracted"])
        answer = alice.upload("b.txt", b"The lion lives in Rome.")  # the request waits for the other process
        assert answer.json()["status"] == "extracted"
        assert "lion" in alice.search("lion").text
        assert worker.stop() == 0
        assert "The worker has ended." in worker.log
        assert "Traceback" not in worker.log + server.log


def test_a_worker_is_notified_through_the_database(tmp_path: Path, workers: ExitStack) -> None:
    with running_server(tmp_path, "--no-worker") as server:
        alice = RemotePerson.create(server, "alice")
        start(workers, server, "--queues", "ingestion")
        wait_until(lambda: server.rows(LISTENING) == [(1,)])
        took = []
        for number in range(20):
            began = time.monotonic()
            alice.upload(f"{number}.txt", f"Note {number}.".encode())
            took.append(time.monotonic() - began)
        assert min(took) < 0.5  # a round is two seconds


def test_a_worker_answers_prometheus_with_what_it_did(tmp_path: Path, workers: ExitStack) -> None:
    address, token = f"127.0.0.1:{free_port()}", secrets.token_hex(32)
    with running_server(tmp_path, "--no-worker", MEMORY_GATEWAY_METRICS_TOKEN=token) as server:
        assert "must be HOST:PORT" in server.manage("worker", "--metrics", "9464").stderr
        start(workers, server, "--metrics", address)
        RemotePerson.create(server, "alice").upload("a.txt", b"The zebra lives in Oslo.")
        for wrong in ({}, {"Authorization": "Bearer nothing"}):
            assert requests.get(f"http://{address}/metrics", headers=wrong, timeout=10).status_code == 401
        found = requests.get(f"http://{address}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=10)
    assert 'memory_gateway_ingestion_seconds_count{status="extracted"} 1.0' in found.text
    assert 'memory_gateway_engine_calls_total{call="add"' in found.text


def test_a_worker_works_on_its_queues_only(tmp_path: Path, workers: ExitStack) -> None:
    with running_server(tmp_path, "--no-worker") as server:
        alice = RemotePerson.create(server, "alice")
        alice.upload("a.txt", b"The zebra.", Prefer="respond-async")
        start(workers, server, "--queues", "jobs,webhooks")
        time.sleep(4)
        assert statuses(server) == ["pending"]
        start(workers, server, "--queues", "ingestion", "--concurrency", "1")
        wait_until(lambda: statuses(server) == ["extracted"])


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        yield server


def test_a_killed_workers_ingestion_runs_again_once(tmp_path: Path, workers: ExitStack, web: WebServer) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def slow(connection: Any) -> None:
        asked.set()
        may_answer.wait(120)
        page(b"The contract ends in May.")(connection)

    web.pages["/contract.txt"] = slow
    with running_server(tmp_path, "--no-worker", MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS="127.0.0.1") as server:
        alice = RemotePerson.create(server, "alice")
        first = start(workers, server)
        body = {"filename": "contract.txt", "source_uri": SOURCE, "ingest_uri": web.url("/contract.txt")}
        headers = {**alice.headers, "Prefer": "respond-async"}
        requests.post(f"{server.url}/resources/external", json=body, headers=headers, timeout=30).raise_for_status()
        assert asked.wait(60)
        second = start(workers, server)
        kill_as_if_elsewhere(server, first)
        may_answer.set()
        assert eventually(lambda: statuses(server) == ["extracted"], RUNS_AGAIN_SECONDS)
        assert server.rows("SELECT count(*), count(DISTINCT text) FROM store_memory") == [(1, 1)]
        assert server.rows("SELECT sealed_ingest_uri FROM resources_resource") == [("",)]
        assert second.stop() == 0


@contextmanager
def extracting(tmp_path: Path, llm: StubLlm) -> Iterator[tuple[RunningServer, RemotePerson]]:
    llm.extract = lambda lines: (
        {"summary": "She lives in Oslo.", "traits": []}
        if any("memory" in line for line in lines)
        else {"memories": [{"kind": "fact", "text": "Alice lives in Oslo.", "importance": 0.7, "messages": [1]}]}
    )
    env = {
        "MEMORY_GATEWAY_MODELS": f"llm={llm.url}#stub",
        "MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
    }
    with running_server(tmp_path, "--no-worker", **env) as server:
        yield server, RemotePerson.create(server, "alice")


DERIVED = "SELECT count(*) FROM store_memory WHERE origin = 'extracted' AND memory_type <> 'profile'"
PENDING = "SELECT count(*) FROM store_pendingextraction"


def test_a_killed_workers_extraction_runs_again_once(tmp_path: Path, workers: ExitStack) -> None:
    with running_llm() as llm, extracting(tmp_path, llm) as (server, alice):
        llm.failure = "slow"
        say(alice, "I live in Oslo")
        first = start(workers, server)
        wait_until(lambda: bool(llm.bodies))
        second = start(workers, server)
        time.sleep(3)
        assert len(llm.bodies) == 1  # the claim holds while the first works
        kill_as_if_elsewhere(server, first)
        llm.failure = None
        assert eventually(lambda: server.rows(PENDING) == [(0,)], RUNS_AGAIN_SECONDS)
        assert server.rows(DERIVED) == [(1,)]
        assert len(llm.bodies) == 3  # killed, again, and the profile
        assert second.stop() == 0


def test_sigterm_gives_running_work_back(tmp_path: Path, workers: ExitStack) -> None:
    with running_llm() as llm, extracting(tmp_path, llm) as (server, alice):
        llm.failure = "slow"
        say(alice, "I live in Oslo")
        worker = start(workers, server)
        wait_until(lambda: bool(llm.bodies))
        began = time.monotonic()
        assert worker.stop() == 0
        assert time.monotonic() - began < 20
        now = "SELECT count(*) FROM store_pendingextraction WHERE lease_holder <> '' AND leased_until > now()"
        assert server.rows(now) == [(0,)]
        assert server.rows(PENDING) == [(1,)]


def test_a_killed_workers_job_continues_once(tmp_path: Path, workers: ExitStack) -> None:
    with running_server(tmp_path, "--no-worker") as server:
        assert server.manage("seed_memories", "3000", "--users", "3").returncode == 0
        submitted = server.manage("shell", "--no-imports", "-c", _SUBMIT)
        assert submitted.returncode == 0, submitted.stderr
        job = json.loads(submitted.stdout.splitlines()[-1])
        first = start(workers, server)
        state = f"SELECT status, done FROM operations_job WHERE id = '{job['id']}'"
        wait_until(lambda: server.rows(state)[0][1] > 0)
        kill_as_if_elsewhere(server, first)
        assert server.rows(state)[0][0] == "running"
        start(workers, server)
        is_left = "SELECT 1 FROM operations_job WHERE lease_holder = 'elsewhere:1:x'"
        assert eventually(lambda: server.rows(is_left) == [], RUNS_AGAIN_SECONDS)
        wait_until(lambda: server.rows(state) == [("done", job["total"])], 240)
        assert server.rows("SELECT count(*), count(DISTINCT memory_id) FROM memories_tombstone") == [
            (job["total"],) * 2
        ]


DELAY_SECONDS = 0.5
LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


def seconds_for(server: RunningServer, number: int, queue: str, begin: str, pending: str, *arguments: str) -> float:
    """Return how long so many workers, which are running already, take for the work that `begin` makes due."""
    with ExitStack() as stack:
        for _ in range(number):
            start(stack, server, "--queues", queue, *arguments)
        wait_until(lambda: server.rows(LISTENING) == [(number,)])
        time.sleep(3)  # their first round is over
        began = time.monotonic()
        server.write(begin)
        assert server.rows(pending)[0][0] > 0
        server.rows(f"SELECT 1 FROM pg_notify('memory_gateway', '{queue}')")
        wait_until(lambda: server.rows(pending) == [(0,)], 600)
        return time.monotonic() - began


@pytest.mark.parametrize(
    ("items", "least", "arguments"),
    [(40, 2.5, ("--concurrency", "1")), pytest.param(480, 3.5, (), marks=pytest.mark.torture)],
)
def test_four_workers_extract_several_times_as_fast_as_one(
    tmp_path: Path, items: int, least: float, arguments: tuple[str, ...]
) -> None:
    with running_llm() as llm, extracting(tmp_path, llm) as (server, _):
        llm.failures = lambda: time.sleep(DELAY_SECONDS)
        llm.extract = lambda _: {"memories": []}
        people = [RemotePerson.create(server, f"user-{number}") for number in range(items)]
        took = {}
        for number in (1, 4):
            for person in people:
                say(person, f"I live in Oslo {number}", f"chat:{number}")
            server.write("UPDATE store_pendingextraction SET retry_at = now() + interval '1 hour'")
            begin = "UPDATE store_pendingextraction SET retry_at = NULL"
            took[number] = seconds_for(server, number, "extraction", begin, PENDING, *arguments)
        assert len(llm.bodies) == 2 * items  # none twice
        sys.stdout.write(f"seconds by number of workers: {took}\n")
        assert took[1] / took[4] >= least, took


@pytest.mark.torture
@pytest.mark.parametrize(("items", "least"), [(12_000, 3.5)])
def test_four_workers_embed_several_times_as_fast_as_one(tmp_path: Path, items: int, least: float) -> None:
    with running_embeddings(dimensions=8) as stub:
        stub.failures = lambda: time.sleep(DELAY_SECONDS)
        env = {
            "MEMORY_GATEWAY_MODELS": f"embedding={stub.url}#stub",
            "MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        }
        with running_server(tmp_path, "--no-worker", **env) as server:
            assert server.manage("seed_memories", str(items), "--users", "50").returncode == 0
            took, pending = {}, "SELECT count(*) FROM store_pendingembedding"
            for number in (1, 4):
                server.write("DELETE FROM store_pendingembedding")
                server.write("DELETE FROM store_embedding")
                server.write("DELETE FROM store_vectorpage")
                server.write("UPDATE store_memory SET text = text || '.'")
                server.write(
                    "INSERT INTO store_pendingembedding (memory_id, lease_holder, leased_until)"
                    " SELECT id, 'elsewhere:1:x', now() + interval '1 hour' FROM store_memory WHERE is_indexed"
                )
                begin = "UPDATE store_pendingembedding SET lease_holder = '', leased_until = NULL"
                took[number] = seconds_for(server, number, "embeddings", begin, pending)
            assert server.rows("SELECT count(*) FROM store_embedding") == [(items,)]
            sys.stdout.write(f"seconds by number of workers: {took}\n")
            assert took[1] / took[4] >= least, took


def test_a_worker_refuses_unknown_queues(tmp_path: Path) -> None:
    with running_server(tmp_path, "--no-worker") as server:
        refused = server.manage("worker", "--queues", "ingestion,extraktion")
        assert refused.returncode == 1
        assert "--queues must name one or more of deliveries, embeddings," in refused.stderr
