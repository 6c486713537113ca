"""`/mcp` over HTTP: authentication, refused requests, headers and the log."""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any

import httpx2
import orjson
import pytest
import requests

from tests.agents.mcp.conftest import User, make_user
from tests.server import RunningServer

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def text_of(answer: Any) -> str:
    """Return the text of a result without structured content."""
    result = answer.json()["result"]
    assert "structuredContent" not in result
    return str(result["content"][0]["text"])


def is_nothing_found(answer: Any) -> bool:
    return text_of(answer) == "No relevant memories found."


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def post(user: User, body: bytes | dict[str, Any], **headers: str) -> requests.Response:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    return requests.post(f"{user.server.url}/mcp", data=data, headers={**user.headers, **ACCEPT, **headers}, timeout=60)


def test_a_call_works_without_a_session(user: User) -> None:
    for path in ("/mcp", "/mcp/"):
        answer = user.post(path, json=call("memory_recall", query="x"))
        assert is_nothing_found(answer)
        assert "Mcp-Session-Id" not in answer.headers


def test_requests_without_a_valid_key_are_401(user: User) -> None:
    for header in ("", f"Bearer uk_{'x' * 43}", "Basic x", f"Bearer {user.key[:-1]}", f"bearer  {user.key} x"):
        answer = post(user, call("memory_recall", query="x"), Authorization=header)
        error = answer.json()["error"]
        assert (answer.status_code, error["data"]["code"], error["message"]) == (
            401,
            "unauthenticated",
            error["data"]["detail"],
        ), header
        assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    url = f"{user.server.url}/mcp?user_id={user.user_id}&user_key={user.key}"
    assert requests.post(url, json={}, headers=ACCEPT, timeout=60).status_code == 401


def test_errors_are_english_in_every_language(user: User) -> None:
    for headers in ({"Authorization": "Bearer x"}, {}):
        body = call("memory_update", memory_id="none", text="x")
        answer = post(user, body, **headers, **{"Accept-Language": "zh-Hans"})
        assert "rror" in answer.text
        assert answer.text.isascii()


def test_a_revoked_key_is_401(user: User) -> None:
    key = user.post("/users/me/keys", json={"label": "mcp"}).json()
    other = User(user.server, user.user_id, key["user_key"])
    assert post(other, call("memory_recall", query="x")).status_code == 200
    requests.delete(f"{user.server.url}/users/me/keys/{key['key_id']}", headers=user.headers, timeout=60)
    assert post(other, call("memory_recall", query="x")).status_code == 401


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS", "PATCH", "HEAD"])
def test_other_methods_are_405(user: User, method: str) -> None:
    answer = requests.request(method, f"{user.server.url}/mcp", headers={**user.headers, **ACCEPT}, timeout=5)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_other_origins_and_hosts_are_refused(user: User) -> None:
    body = call("memory_store", text="from a web page")
    assert post(user, body, Origin="https://evil.example").status_code == 403
    assert post(user, body, Origin="null").status_code == 403
    assert post(user, body, Host="evil.example").status_code == 400
    assert post(user, body, Origin=user.server.url).status_code == 200


def test_every_mcp_response_has_the_security_headers(user: User) -> None:
    for answer in (
        post(user, call("memory_recall", query="x")),
        post(user, b"{"),
        post(user, {}, Authorization=""),
        requests.get(f"{user.server.url}/mcp", timeout=5),
    ):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Request-Id"]
        assert "Access-Control-Allow-Origin" not in answer.headers


HALF = (
    rb'{"jsonrpc":"2.0","id":5,"method":"tools/call",'
    rb'"params":{"name":"memory_store","arguments":{"text":"cut \ud83d"}}}'
)
INVALID_BODIES: list[bytes] = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"7",
    b'"x"',
    b"\xff\xfe",
    b"{}",
    b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]',
    b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"no/such/method"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_recall","arguments":[1]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_recall","arguments":{"query":"\\ud800"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_store","arguments":{"text":"\\u0000"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_recall","arguments":{"limit":1e999}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u0000\\u202e","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"resource://\\u0000/r_\\u0000"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"\\u0000"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"router_profile","arguments":{"max_tokens":"\\u0000"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"\\u0000"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/nonsense"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_recall","arguments":{"query":"'
    + b"x" * 1_000_000
    + b'"}}}',
]


@pytest.mark.parametrize(
    ("body", "code", "request_id", "words"),
    [
        (HALF, -32600, 5, "lone surrogate"),
        (b'{"id":5', -32700, None, "not valid JSON"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600, None, "one at a time"),
    ],
)
def test_what_cannot_be_read_is_named(user: User, body: bytes, code: int, request_id: int | None, words: str) -> None:
    answer = post(user, body)
    message = answer.json()
    assert (answer.status_code, message["id"], message["error"]["code"]) == (400, request_id, code)
    assert words in message["error"]["message"]


@pytest.mark.parametrize(
    ("version", "members", "status"),
    [
        ("2025-11-25", {}, 202),
        ("2026-07-28", {}, 202),
        ("9999-99-99", {}, 400),
        ("2025-11-25", {"id": {"a": 1}}, 400),
        ("2026-07-28", {"id": None}, 400),
    ],
)
def test_a_notification_is_accepted_and_no_message_that_waits_for_an_answer(
    user: User, version: str, members: dict[str, Any], status: int
) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/initialized", **members}
    answer = post(user, body, **{"MCP-Protocol-Version": version})
    assert (answer.status_code, answer.content == b"") == (status, status == 202)


@pytest.mark.parametrize("version", ["", "2025-11-25", "2026-07-28", "9999-99-99"])
def test_invalid_messages_cause_no_server_error(user: User, version: str) -> None:
    headers = {"MCP-Protocol-Version": version} if version else {}
    for body in INVALID_BODIES:
        answer = post(user, body, **headers)
        assert answer.status_code < 500, (body[:200], answer.content)
    assert is_nothing_found(post(user, call("memory_recall", query="x")))


def test_another_content_type_is_refused_in_json(user: User) -> None:
    answer = post(user, call("memory_recall", query="x"), **{"Content-Type": "text/plain"})
    assert answer.status_code == 400
    assert "Content-Type" in answer.json()["error"]["message"]


def test_a_body_that_is_too_large_is_refused(user: User) -> None:
    assert post(user, b" " * (4 * 2**20 + 1)).status_code == 413
    chunks = (b" " * 2**20 for _ in range(6))
    url = f"{user.server.url}/mcp"
    assert requests.post(url, data=chunks, headers={**user.headers, **ACCEPT}, timeout=60).status_code == 413


def test_concurrent_calls_do_not_mix_users(server: RunningServer) -> None:
    users = [make_user(server, f"mix-{number}-{uuid.uuid4().hex[:8]}") for number in range(3)]

    async def work(client: httpx2.AsyncClient, number: int) -> None:
        user = users[number % len(users)]
        for body in (
            call("memory_store", text=f"note {number} of {user.user_id}"),
            call("memory_recall", query="note of everybody"),
            call("memory_search", query="note", top_k=50),
        ):
            answer = await client.post("/mcp", json=body, headers={**user.headers, **ACCEPT})
            owners = set(re.findall(r"note \d+ of (\S+)", answer.json()["result"]["content"][0]["text"]))
            assert owners <= {user.user_id, f'{user.user_id}"'}

    async def together() -> None:
        async with httpx2.AsyncClient(base_url=server.url, timeout=60) as client:
            await asyncio.gather(*(work(client, number) for number in range(60)))

    asyncio.run(together())
    for user in users:
        assert "Found 20 memories" in text_of(post(user, call("memory_recall", query="note")))


def test_a_request_is_logged_once_without_its_text(user: User) -> None:
    post(user, call("memory_store", text="The tax number is 4711"), **{"X-Request-Id": "mcp-trace"})
    lines = [line for line in user.server.log.splitlines() if "mcp-trace" in line]
    assert len(lines) == 1
    assert orjson.loads(lines[0])["user_id"] == user.user_id
    assert "4711" not in lines[0]
    assert user.key not in user.server.log
