"""A gateway whose database has the first migrations only is upgraded and keeps everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from tests.resources.people import RemotePerson
from tests.server import running_server

pytestmark = pytest.mark.slow
MESSAGE = {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000, "content": "I own a cat."}


def call(person: RemotePerson, method: str, path: str, **body: Any) -> Any:
    answer = requests.request(
        method, f"{person.server.url}{path}", json=body or None, headers=person.headers, timeout=60
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def files(person: RemotePerson) -> list[dict[str, Any]]:
    """Return the files without their readings: the first migrations kept none."""
    return [{**one, "reading": None} for one in person.resources()]


def test_an_upgrade_keeps_memories_files_and_deletions(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        alice = RemotePerson.create(server, "alice")
        call(alice, "POST", "/memories/add", session_id="chat:c1", messages=[MESSAGE])
        kept = alice.upload("rental.txt", b"A dog needs consent.").json()["resource_id"]
        removed = alice.upload("old.txt", b"Parrots are allowed.").json()["resource_id"]
        call(alice, "DELETE", f"/resources/{removed}")
        assert server.manage("purge_trash", "--older-than", "0").returncode == 0
        before = call(alice, "GET", "/memories"), files(alice)
        server.stop()

        for app in ("resources", "store"):
            undone = server.manage("migrate", app, "0001")
            assert undone.returncode == 0, undone.stderr
        upgraded = server.manage("migrate", "--verbosity", "0")
        assert upgraded.returncode == 0, upgraded.stderr

        server.start()
        assert (call(alice, "GET", "/memories"), files(alice)) == before
        assert [one["resource_id"] for one in before[1]] == [kept]
        assert alice.search("dog").json()["results"]
        assert not alice.search("parrots").json()["results"]
        assert call(alice, "GET", "/resources?deleted=true")["resources"] == []
        assert server.manage("doctor", "--json").returncode == 0
