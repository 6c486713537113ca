"""Reads on a real streaming replica: no caller misses the own last write, whatever becomes of the replica."""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.fleet.fleet import Cluster, missing_programs, running_fleet
from tests.fleet.load import ALLOWED, FIRST_MS, signed_in
from tests.resources.people import RemotePerson
from tests.server import RunningServer, server_environment, wait_until

MISSING = missing_programs("initdb", "postgres", "pg_basebackup")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"missing programs: {MISSING}")]
NOTICED_SECONDS = 1.0
METRICS = {"MEMORY_GATEWAY_METRICS_TOKEN": secrets.token_hex(32)}
PAGES = ("", "list/", "list/?q=okapi", "resources/", "users/", "jobs/", "trash/", "queues/", "searches/", "webhooks/")


class Pair:
    """A gateway on a primary with a replica."""

    def __init__(self, folder: Path) -> None:
        self.primary = Cluster(folder)
        self.replica = Cluster(folder, primary=self.primary)
        env = {"MEMORY_GATEWAY_READ_DATABASE_URL": self.replica.url, **METRICS}
        self.server = RunningServer(folder, server_environment(folder, self.primary.url, **env))

    def start(self) -> None:
        self.primary.start()
        self.replica.start()
        migrated = self.server.manage("migrate", "--verbosity", "0", "--skip-checks")
        assert migrated.returncode == 0, migrated.stderr
        self.server.start()
        wait_until(self.is_used)

    def kill(self) -> None:
        if self.server._process is not None:
            self.server.kill()
        for one in (self.replica, self.primary):
            one.kill()

    def problems(self) -> list[str]:
        found: list[str] = requests.get(f"{self.server.url}/health", timeout=30).json().get("problems", [])
        return [one for one in found if "replica" in one]

    def is_used(self) -> bool:
        return not self.problems()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    running = Pair(tmp_path_factory.mktemp("pair"))
    try:
        running.start()
        yield running
    finally:
        running.kill()


def add(person: RemotePerson) -> str:
    """Store a message with a new marker, which is returned."""
    marker = f"okapi{secrets.token_hex(6)}"
    message = {"sender_id": person.user_id, "role": "user", "timestamp": FIRST_MS, "content": f"I saw {marker}."}
    body = {"session_id": "chat:c1", "messages": [message]}
    answered(person, "/memories/add", body)
    return marker


def finds(person: RemotePerson, marker: str) -> bool:
    found = answered(person, "/memories/search", {"query": marker, "scope": ["all_user_memory"]})
    return any(marker in one["text"] for one in found.json()["results"])


def answered(person: RemotePerson, path: str, body: dict[str, Any]) -> requests.Response:
    """Return the answer of a call, repeated after each temporary error."""
    for _ in range(50):
        answer = requests.post(f"{person.server.url}{path}", json=body, headers=person.headers, timeout=60)
        if answer.status_code not in ALLOWED:
            break
        time.sleep(0.2)
    assert answer.ok, answer.text
    return answer


def reads(url: str) -> dict[str, int]:
    """Return the number of reads by where they were done."""
    header = {"Authorization": f"Bearer {METRICS['MEMORY_GATEWAY_METRICS_TOKEN']}"}
    text = requests.get(f"{url}/metrics", headers=header, timeout=30).text
    found = re.findall(r'memory_gateway_replica_reads_total\{source="(\w+)"\} ([0-9.e+]+)', text)
    return {source: int(float(number)) for source, number in found}


def seconds_until(condition: Callable[[], bool]) -> float:
    began = time.monotonic()
    wait_until(condition, 30)
    return time.monotonic() - began


def test_searches_lists_exports_and_pages_are_read_on_the_replica(pair: Pair) -> None:
    alice = RemotePerson.create(pair.server, "alice")
    marker, operator = add(alice), signed_in(pair.server)
    url, before = pair.server.url, reads(pair.server.url)

    def read_on_the_replica() -> int:
        """Read everything once, and return how many reads were on the replica; a busy machine lets it lag."""
        began = reads(url).get("replica", 0)
        assert finds(alice, marker)
        for path in ("/memories", "/sessions", "/resources", "/memories/trash"):
            assert requests.get(f"{url}{path}", headers=alice.headers, timeout=30).ok
        exported = requests.get(f"{url}/users/me/export", headers=alice.headers, timeout=60)
        assert exported.content.startswith(b"PK")
        for page in PAGES:
            answer = operator.get(f"{url}/admin/memory/{page}", timeout=60, allow_redirects=False)
            assert answer.status_code == 200, page
        return reads(url).get("replica", 0) - began

    wait_until(lambda: read_on_the_replica() == 6 + len(PAGES), 60)
    assert reads(url).get("repeated", 0) == before.get("repeated", 0), pair.server.log[-3000:]


def test_no_caller_misses_the_own_last_write_while_the_replica_does_not_replay(pair: Pair) -> None:
    bob = RemotePerson.create(pair.server, "bob")
    pair.replica.rows("SELECT pg_wal_replay_pause()")
    try:
        assert all(finds(bob, add(bob)) for _ in range(3))
        assert seconds_until(lambda: not pair.is_used()) <= 2 * NOTICED_SECONDS  # /health remembers for a second
        assert "lags" in pair.problems()[0]
    finally:
        pair.replica.rows("SELECT pg_wal_replay_resume()")
    assert seconds_until(pair.is_used) < 5


@pytest.mark.torture
def test_a_replica_that_does_not_answer_is_left_within_a_second(pair: Pair) -> None:
    carol = RemotePerson.create(pair.server, "carol")
    marker, slowest = add(carol), 0.0
    wait_until(lambda: finds(carol, marker))
    pair.replica.suspend()
    try:
        for _ in range(5):
            began = time.monotonic()
            assert finds(carol, marker)
            slowest = max(slowest, time.monotonic() - began)
    finally:
        pair.replica.resume()
    assert slowest < 2 * NOTICED_SECONDS, slowest
    assert seconds_until(pair.is_used) < 10


@pytest.mark.torture
def test_a_killed_replica_is_left_and_used_again_when_it_is_back(pair: Pair) -> None:
    dora, failed, is_over = RemotePerson.create(pair.server, "dora"), [], threading.Event()

    def write_and_read() -> None:
        while not is_over.is_set():
            marker = add(dora)
            if not finds(dora, marker):
                failed.append(marker)

    thread = threading.Thread(target=write_and_read)
    thread.start()
    try:
        pair.replica.kill()
        assert seconds_until(lambda: not pair.is_used()) <= 2 * NOTICED_SECONDS
        pair.replica.start()
        assert seconds_until(pair.is_used) < 30
    finally:
        is_over.set()
        thread.join()
    assert failed == []


@pytest.mark.torture
def test_the_gateway_goes_on_with_a_promoted_replica(tmp_path: Path) -> None:
    """The primary dies and the replica takes its place, behind the pooler's address."""
    with running_fleet(tmp_path, has_own_cluster=True, has_replica=True) as fleet:
        erin = RemotePerson.create(fleet, "erin")
        marker, replica = add(erin), fleet.replica
        assert replica
        wait_until(lambda: replica.rows("SELECT count(*) FROM store_memory") == [(1,)])
        fleet.programs["postgres"].kill()
        replica.promote()
        fleet.point_pooler_to(replica)
        wait_until(lambda: all(requests.get(f"{one.url}/ready", timeout=30).ok for one in fleet.gateways), 30)
        assert finds(erin, marker)
        assert all(finds(erin, add(erin)) for _ in range(10))
        health = f"{fleet.gateways[0].url}/health"
        wait_until(lambda: "replica" in str(requests.get(health, timeout=30).json().get("problems")), 30)


@pytest.mark.torture
def test_no_user_misses_the_own_last_write_in_ten_thousand_reads(tmp_path: Path) -> None:
    """Each write and each read goes to the next of three gateways."""
    users, count, missed = 8, 1250, []
    with running_fleet(tmp_path, has_own_cluster=True, has_replica=True, **METRICS) as fleet:
        people = [RemotePerson.create(fleet, f"user{number}") for number in range(users)]

        def write_and_read(person: RemotePerson) -> None:
            for _ in range(count):
                marker = add(person)
                if not finds(person, marker):
                    missed.append(marker)

        threads = [threading.Thread(target=write_and_read, args=(person,)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [reads(one.url) for one in fleet.gateways]
    print(f"{users * count} reads: {found}")  # noqa: T201
    assert missed == []
    assert sum(one.get("replica", 0) for one in found) > 0
