"""A smoke of each promise of the fleet; `pytest -m torture tests/fleet` has the long ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
import requests

from tests.fleet.fleet import Fleet, missing_programs, running_fleet, wait_until_healthy
from tests.resources.people import RemotePerson

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="a fleet has PostgreSQL"),
    pytest.mark.skipif(bool(missing_programs()), reason=f"missing programs: {missing_programs()}"),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with running_fleet(tmp_path_factory.mktemp("fleet"), MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS="127.0.0.1") as running:
        yield running


def test_what_one_gateway_stores_all_others_find(fleet: Fleet) -> None:
    alice = RemotePerson.create(fleet, "alice")
    assert alice.upload("a.txt", b"The zebra lives in Oslo.").json()["status"] == "extracted"
    body = {"query": "zebra", "scope": ["all_user_memory"]}
    for gateway in fleet.gateways:
        found = requests.post(f"{gateway.url}/memories/search", json=body, headers=alice.headers, timeout=30).json()
        assert "zebra" in found["results"][0]["text"]
        health = requests.get(f"{gateway.url}/health", timeout=30).json()
        assert health["status"] == "ok", health


def test_a_killed_gateway_and_worker_lose_nothing(fleet: Fleet) -> None:
    bob = RemotePerson.create(fleet, "bob")
    fleet.gateways[0].kill()
    fleet.workers[0].kill()
    uploaded = [bob.upload(f"{number}.txt", f"The tiger has number {number}.".encode()) for number in range(6)]
    assert {answer.status_code for answer in uploaded} <= {200, 201}
    assert [answer.json()["status"] for answer in uploaded] == ["extracted"] * 6
    fleet.gateways[0].start()
    fleet.restart_worker(0)
    assert wait_until_healthy(fleet, 10) < 10
    assert "tiger has number 5" in bob.search("tiger 5").text


def test_a_limit_counts_on_all_gateways(tmp_path: Path) -> None:
    with running_fleet(tmp_path, MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE="60") as limited:
        alice = RemotePerson.create(limited, "alice")
        with ThreadPoolExecutor(8) as callers:
            answers = list(callers.map(lambda _: alice.search("x").status_code, range(120)))
    assert 58 <= answers.count(200) <= 62, answers
    assert set(answers) == {200, 429}


def test_a_revoked_key_is_refused_by_all_within_a_second(fleet: Fleet) -> None:
    carol = RemotePerson.create(fleet, "carol")
    assert search_each(fleet, carol, "x") == [200] * 3
    assert fleet.manage("revoke_key", "carol", "--last").returncode == 0
    time.sleep(1)
    assert search_each(fleet, carol, "x") == [401] * 3


def search_each(fleet: Fleet, person: RemotePerson, query: str) -> list[int]:
    """Search on every gateway and return the status codes."""
    body = {"query": query, "scope": ["all_user_memory"]}
    return [
        requests.post(f"{one.url}/memories/search", json=body, headers=person.headers, timeout=30).status_code
        for one in fleet.gateways
    ]


def test_erased_data_is_gone_everywhere(fleet: Fleet) -> None:
    """50 markers in texts, file names and contents; all tables, objects, Redis keys and logs are read."""
    dora = RemotePerson.create(fleet, "dora")
    markers = [f"quokka{number:02}" for number in range(50)]
    for marker in markers[:10]:
        assert dora.upload(f"{marker}.txt", f"A secret of {marker}.".encode()).ok
    messages = [
        {"sender_id": "dora", "role": "user", "timestamp": 1_781_172_177_000 + number, "content": f"I saw {marker}"}
        for number, marker in enumerate(markers[10:])
    ]
    for path, body in (("add", {"messages": messages}), ("flush", {})):
        url = f"{fleet.url}/memories/{path}"
        assert requests.post(url, json={"session_id": "chat:c1", **body}, headers=dora.headers, timeout=60).ok
    assert markers[0] in dora.search(markers[0]).text
    assert holders(fleet, markers)
    erased = fleet.manage("erase_user", "dora", "--yes")
    assert erased.returncode == 0, erased.stderr
    assert holders(fleet, markers) == []


def holders(fleet: Fleet, markers: list[str]) -> list[str]:
    """Return the tables, objects, Redis keys and logs that contain a marker, in text or as bytes in hexadecimal."""
    pattern = "|".join([*markers, *(marker.encode().hex() for marker in markers)])
    tables = fleet.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    found = [
        name for (name,) in tables if fleet.rows(f"SELECT 1 FROM \"{name}\" row WHERE row::text ~ '{pattern}' LIMIT 1")
    ]
    is_marked = re.compile(pattern).search
    found += [key for key, data in fleet.objects().items() if is_marked(key + data.decode(errors="replace"))]
    with redis.Redis(port=fleet.redis_port) as client:
        found += [str(key) for key in client.scan_iter() if is_marked(str(key) + str(client.dump(key)))]
    logs = [fleet.log, *(worker.log for worker in fleet.workers)]
    return found + [f"log {number}" for number, log in enumerate(logs) if is_marked(log)]
