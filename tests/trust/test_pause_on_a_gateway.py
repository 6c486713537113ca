"""A gateway with a remote, a model and bodies in its log: nothing of a pause, nor of an ended incognito session."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from tests.agents.rpc.client import connected
from tests.pauses import APPLICATION, PROVISIONING, resume
from tests.server import RunningServer, own_database, running_server, wait_until
from tests.stub_upstream import StubUpstream

WORD: Final = "quokkasunset"
"""A word of everything that is sent during the pause, in no other text."""
INCOGNITO_WORD: Final = "numbatmorning"
WRITES: Final = {
    "add": 330,
    "add file": 30,
    "flush": 50,
    "fact": 100,
    "bulk": 40,
    "upload": 60,
    "external": 60,
    "tool": 100,
    "mcp store": 70,
    "mcp add": 40,
    "mcp profile": 20,
    "profile": 20,
    "correction": 20,
    "labels": 10,
}
REFUSED: Final = frozenset({"upload", "external", "profile", "correction", "labels"})
"""The writes whose answer is 403."""
RPC_WRITES: Final = 50
_numbers = itertools.count()


class Person:
    """A user of the gateway who writes over every interface."""

    def __init__(self, server: RunningServer) -> None:
        self.server, self.memory_id = server, ""
        self.http = requests.Session()
        self.http.trust_env = False
        answer = self.http.post(f"{server.url}/users", json={"user_id": "ann"}, headers=APPLICATION, timeout=60)
        self.http.headers["Authorization"] = f"Bearer {answer.json()['user_key']}"
        controls = self.send("POST", "/users/me/keys", json={"scopes": ["controls"]}).json()["user_key"]
        self.controls = {"Authorization": f"Bearer {controls}"}
        agent = self.send("POST", "/users/me/keys", json={"scopes": ["search", "decide"]}).json()["user_key"]
        self.agent = {"Authorization": f"Bearer {agent}"}

    def send(self, method: str, path: str, **options: Any) -> requests.Response:
        return self.http.request(method, f"{self.server.url}{path}", timeout=120, **options)

    def add(self, session_id: str, *messages: dict[str, Any], **fields: Any) -> requests.Response:
        return self.send("POST", "/memories/add", json={"session_id": session_id, "messages": messages, **fields})

    def mcp(self, tool: str, **arguments: Any) -> requests.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"Accept": "application/json, text/event-stream"}
        return self.send("POST", "/mcp", json=body, headers=headers)

    def write(self, how: str) -> requests.Response:
        """Write a new text with the word."""
        number = next(_numbers)
        text, session_id = f"My {WORD} number {number} is as secret as a diary.", f"chat:{number % 7}"
        said = [{"role": "user", "content": text}]
        file = {"file": (f"{WORD}-{number}.txt", text.encode())}
        data = base64.b64encode(text.encode()).decode()
        inline = {"type": "doc", "name": f"{WORD}.txt", "ext": "txt", "base64": data}
        profile, memory = {"content": {"occupation": text}}, f"/memories/{self.memory_id}"
        external = {"source_uri": f"https://example.com/{WORD}/{number}.txt", "filename": f"{WORD}.txt"}
        calls: dict[str, Callable[[], requests.Response]] = {
            "add": lambda: self.add(session_id, *said, {"role": "assistant", "content": text}),
            "flush": lambda: self.send("POST", "/memories/flush", json={"session_id": session_id}),
            "fact": lambda: self.send(
                "POST", "/memories", json={"text": text, "tags": [WORD]}, headers={"Idempotency-Key": f"{number}"}
            ),
            "bulk": lambda: self.send("POST", "/memories/bulk", json={"memories": [{"text": text}] * 5}),
            "upload": lambda: self.send("POST", "/resources", files=file, data={"title": WORD}),
            "external": lambda: self.send("POST", "/resources/external", json=external),
            "tool": lambda: self.send("POST", "/tools/invoke", json={"tool": "memory_store", "args": {"text": text}}),
            "mcp store": lambda: self.mcp("memory_store", text=text),
            "mcp add": lambda: self.mcp("session_add", session_id=session_id, messages=said),
            "add file": lambda: self.add(session_id, {"role": "user", "content": [inline]}),
            "mcp profile": lambda: self.mcp("profile_update", kind="user", **profile),
            "profile": lambda: self.send("PATCH", "/api/v1/memories/user", json=profile, headers=self.agent),
            "correction": lambda: self.send("PATCH", memory, json={"override_text": text}, headers=self.agent),
            "labels": lambda: self.send("PATCH", memory, json={"tags": [WORD]}, headers=self.agent),
        }
        return calls[how]()


@pytest.fixture(scope="module")
def remote() -> Iterator[StubUpstream]:
    with StubUpstream() as stub:
        yield stub


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory, remote: StubUpstream) -> Iterator[Person]:
    env = {
        "MEMORY_GATEWAY_BACKEND_BASE_URL": remote.url,
        "MEMORY_GATEWAY_PROVISIONING_TOKEN": PROVISIONING,
        "MEMORY_GATEWAY_LOG_BODIES": "true",
        "MEMORY_GATEWAY_LOG_QUERIES": "true",
    }
    with running_server(tmp_path_factory.mktemp("pause"), **env) as server:
        yield Person(server)


def places_of(server: RunningServer, word: str) -> list[str]:
    """Return the files of the gateway that hold a word, also its database and log, in upper or lower case."""
    wanted = word.encode()
    found = [path for path in server.data_dir.rglob("*") if path.is_file() and wanted in path.read_bytes().lower()]
    return [str(path.relative_to(server.data_dir)) for path in found]


def sent(remote: StubUpstream, word: str) -> int:
    return sum(word in json.dumps(one.body, default=str) for one in remote.requests)


def count(server: RunningServer, table: str, condition: str = "1 = 1") -> int:
    return int(server.rows(f"SELECT count(*) FROM {table} WHERE {condition}")[0][0])


def test_a_pause_keeps_nothing_and_nothing_comes_back(person: Person, remote: StubUpstream, tmp_path: Path) -> None:
    server = person.server
    assert person.add("chat:0", {"role": "user", "content": "I like tea with milk."}).json()["stored"] == 1
    person.memory_id = person.send("GET", "/memories").json()["memories"][0]["id"]
    token = server.manage("issue_token", "panel", "--user", "ann").stdout.split()[-1]
    wait_until(lambda: sent(remote, "I like tea") == 1)
    paused = person.send(
        "PUT", "/users/me/controls", json={"paused": ["chats", "files", "agents"]}, headers=person.controls
    )
    assert paused.ok, paused.text
    before = count(server, "store_memory")
    began_ms = int(server.rows("SELECT max(created_at_ms) FROM store_memory")[0][0])
    writes = 0
    for how, number in WRITES.items():
        for _ in range(number):
            answer = person.write(how)
            assert answer.status_code == (403 if how in REFUSED else 200), (how, answer.text)
            assert "paused" in answer.text
            writes += 1
    with connected(server, token) as rpc:
        for number in range(RPC_WRITES):
            row = rpc.call(
                "memory.admin.add", agentId="main", text=f"A {WORD} of {number}.", category="user_memory_fact"
            )
            assert (row["stored"], row["paused"]) == (0, True)
            writes += 1
    source = tmp_path / "mem0.json"
    source.write_text(json.dumps({"results": [{"id": "1", "memory": f"Imported {WORD}."}]}))
    imported = server.manage("import_from", "mem0", str(source), "--user", "ann", "--apply")
    assert imported.returncode
    reason = {"reason": f"The {WORD} is why."}
    assert person.send("DELETE", f"/memories/{person.memory_id}", json=reason).ok
    assert person.send("POST", f"/memories/{person.memory_id}/restore", json={}).ok
    search = {"query": f"What about {WORD}?", "scope": ["all_user_memory"]}
    assert person.send("POST", "/memories/search", json=search).ok
    assert writes == 1000
    assert count(server, "store_memory") == before
    assert count(server, "store_embedding") == count(server, "resources_resource") == 0
    assert not [one for one in remote.requests if one.name == "add" and WORD in json.dumps(one.body)]
    assert places_of(server, WORD) == []

    resume(server.url, "ann")
    transcript = [
        {"role": "user", "content": f"My {WORD} number {number} is as secret as a diary."}
        for number in range(WRITES["add"])
    ]
    for at_ms in (None, began_ms + 1000, began_ms + 10**8):
        times = [{} if at_ms is None else {"timestamp": at_ms + number} for number in range(len(transcript))]
        for start in range(0, len(transcript), 50):
            batch = [one | at for one, at in zip(transcript, times, strict=True)][start : start + 50]
            assert person.add("chat:resent", *batch).json()["stored"] == 0
            assert person.mcp("session_add", session_id="chat:resent", messages=batch).ok
    assert count(server, "store_memory") == before
    assert person.add("chat:0", {"role": "user", "content": "I like coffee now."}).json()["stored"] == 1
    wait_until(lambda: sent(remote, "I like coffee") == 1)
    assert sent(remote, WORD) == 1  # the search
    server.stop()
    assert places_of(server, WORD) == []
    server.start()


def test_an_incognito_session_is_gone_after_a_kill_and_a_restore(
    person: Person, remote: StubUpstream, tmp_path: Path
) -> None:
    server = person.server
    secret = {"role": "user", "content": f"The {INCOGNITO_WORD} is mine."}
    for session_id in ("chat:hidden", "chat:copied"):
        assert person.add(session_id, secret, incognito=True).json()["stored"] == 1
    backup = tmp_path / "backup.tar"
    assert server.manage("backup", str(backup)).returncode == 0
    assert person.send("POST", "/memories/flush", json={"session_id": "chat:hidden", "end": True}).ok
    server.kill()
    server.start()
    hidden = "session_id IN (SELECT id FROM store_session WHERE session_id = 'chat:hidden')"
    wait_until(lambda: count(server, "store_memory", hidden) == 0, 60)
    assert person.add("chat:hidden", secret).json()["code"] == "session_ended"
    assert person.send("DELETE", "/sessions/chat:copied", json={}).ok
    wait_until(lambda: count(server, "store_memory", "text <> ''") == count(server, "store_memory"), 60)
    wait_until(lambda: not count(server, "store_session", "incognito_until > '1971-01-01'"), 60)
    assert sent(remote, INCOGNITO_WORD) == 0
    server.stop()
    assert places_of(server, INCOGNITO_WORD) == []
    server.start()
    with running_server(tmp_path / "restored") as other:
        other.stop()
        for path in [*other.data_dir.glob("memory_gateway.sqlite3*")]:
            path.unlink()
        own_database(other.data_dir)
        restored = other.manage("restore", str(backup))
        assert count(other, "store_session", "incognito_until > '1971-01-01'") == 0, restored.stderr
        assert count(other, "store_memory", f"text LIKE '%{INCOGNITO_WORD}%'") == 0
        assert places_of(other, INCOGNITO_WORD) == []
