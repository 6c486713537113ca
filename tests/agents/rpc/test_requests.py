"""Requests and responses of a connected client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents import tools
from agents.rpc.methods import METHODS
from tests.agents.rpc.client import connected, open_connection
from tests.agents.rpc.conftest import TOKEN
from tests.server import RunningServer

ADMIN, WRITE, READ = "operator.admin", "operator.write", "operator.read"
# The required scope of each method. A method without a line fails a test.
SCOPES = {
    "health": READ,
    "memory.admin.config": ADMIN,
    "memory.admin.facets": ADMIN,
    "memory.admin.dashboard": ADMIN,
    "memory.admin.list": ADMIN,
    "memory.admin.delete": ADMIN,
    "memory.admin.add": ADMIN,
    "tools.invoke": WRITE,
}
# The permission that each method needs of a token's operator.
VIEW, ADD, DELETE = "store.view_memory", "store.add_memory", "store.delete_memory"
PERMISSIONS = {
    "health": VIEW,
    "memory.admin.config": VIEW,
    "memory.admin.facets": VIEW,
    "memory.admin.dashboard": VIEW,
    "memory.admin.list": VIEW,
    "memory.admin.delete": DELETE,
    "memory.admin.add": ADD,
    "tools.invoke": VIEW,
}
TOOL_PERMISSIONS = {"memory_recall": VIEW, "memory_store": ADD, "memory_forget": DELETE}
SUFFICIENT = {READ: {READ, WRITE, ADMIN}, WRITE: {WRITE, ADMIN}, ADMIN: {ADMIN}}


def test_the_table_names_every_method(server: RunningServer) -> None:
    assert {name: method.scope for name, method in METHODS.items()} == SCOPES
    assert {name: method.permission for name, method in METHODS.items()} == PERMISSIONS
    assert tools.PERMISSIONS == TOOL_PERMISSIONS
    assert tools.TOOLS.keys() == TOOL_PERMISSIONS.keys()
    with connected(server, TOKEN) as client:
        assert set(client.hello["features"]["methods"]) == set(SCOPES)


@pytest.mark.parametrize("granted", [READ, WRITE, ADMIN, None])
def test_a_method_requires_its_scope(server: RunningServer, granted: str | None) -> None:
    with connected(server, TOKEN, scopes=[granted] if granted else []) as client:
        for name, scope in SCOPES.items():
            answer = client.request(name, {})
            is_forbidden = not answer["ok"] and answer["error"]["code"] == "FORBIDDEN"
            assert is_forbidden == (granted not in SUFFICIENT[scope]), name
            if is_forbidden:
                assert answer["error"]["message"] == f"missing scope: {scope}"
                assert answer["error"]["details"] == {
                    "code": "MISSING_SCOPE",
                    "missingScope": scope,
                    "requiredScopes": [scope],
                }


def test_errors_are_english_in_every_language(server: RunningServer) -> None:
    with open_connection(server, additional_headers={"Accept-Language": "zh-Hans"}) as client:
        refused = client.connect()
        assert refused["error"]["message"].isascii()
    with open_connection(server, additional_headers={"Accept-Language": "zh-Hans"}) as client:
        assert client.connect(token=TOKEN)["ok"]
        refused = client.request("memory.admin.delete", {"table": "full_context", "ids": "x"})
        assert refused["error"]["message"].isascii()


def test_without_scope_known_and_unknown_methods_get_the_same_error(
    server: RunningServer, tokens: dict[str, str]
) -> None:
    with connected(server, tokens["reader"], scopes=[READ]) as client:
        known, unknown = client.request("memory.admin.list"), client.request("memory.admin.nothing")
        assert known["error"] == unknown["error"]
        assert client.is_alive()


def test_an_unknown_method_is_named_in_the_error(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        answer = client.request("status")
        assert answer == {
            "type": "res",
            "id": answer["id"],
            "ok": False,
            "error": {"code": "INVALID_REQUEST", "message": "unknown method: status"},
        }
        assert client.is_alive()


@pytest.mark.parametrize("params", [None, {}, "absent"])
def test_params_may_be_absent(server: RunningServer, params: Any) -> None:
    frame = {"type": "req", "id": "h", "method": "health"}
    with connected(server, TOKEN) as client:
        client.send(frame if params == "absent" else {**frame, "params": params})
        answer = client.receive_response("h")
        assert set(answer) == {"type", "id", "ok", "payload"}
        assert set(answer["payload"]) == {"ok", "ts", "durationMs"}


BAD_FRAMES: list[tuple[Any, str]] = [
    ({"type": "req", "id": "x"}, "x"),
    ({"type": "req", "id": "x", "method": ""}, "x"),
    ({"type": "req", "id": "x", "method": 7}, "x"),
    ({"type": "event", "id": "x", "method": "health"}, "x"),
    ({"type": "req", "id": "x", "method": "health", "params": []}, "x"),
    ({"type": "req", "id": "x", "method": "health", "params": {"a": ["\x00"]}}, "x"),
    ({"type": "req", "method": "health"}, "invalid"),
    ({"type": "req", "id": 7, "method": "health"}, "invalid"),
    ({"type": "req", "id": "x" * 1000, "method": "health"}, "invalid"),
    ([], "invalid"),
    ([[[[]]]] * 3, "invalid"),
    (None, "invalid"),
    ({"type": "req", "id": "x", "method": "memory.admin.add", "params": {"text": "cut \ud83d"}}, "x"),
    ({"type": "req", "id": "\ud800", "method": "health"}, "invalid"),
]


@pytest.mark.parametrize(("frame", "response_id"), BAD_FRAMES)
def test_an_invalid_frame_gets_an_error_response(server: RunningServer, frame: Any, response_id: str) -> None:
    with connected(server, TOKEN) as client:
        client.send(json.dumps(frame))
        answer = client.receive_response(response_id)
        assert answer["error"]["code"] == "INVALID_REQUEST"
        assert answer["error"]["message"].startswith("invalid request frame: ")
        assert client.is_alive()


@pytest.mark.parametrize("sent", ["", "hello", "{", b"\xff\x00", '{"a":'])
def test_messages_that_are_not_json_are_ignored(server: RunningServer, sent: str | bytes) -> None:
    with connected(server, TOKEN) as client:
        client.send(sent)
        assert client.is_alive()


def test_too_deep_nesting_is_refused_before_parsing(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        client.send(
            '{"type":"req","id":"d","method":"health","params":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"
        )
        assert "nested deeper" in client.receive_response("invalid")["error"]["message"]
        assert client.is_alive()


def test_a_request_may_be_fragmented_or_binary(server: RunningServer) -> None:
    frame = json.dumps({"type": "req", "id": "p", "method": "health"})
    with connected(server, TOKEN) as client:
        client.socket.send(iter([frame[:10], frame[10:20], frame[20:]]))
        assert client.receive_response("p")["ok"]
        client.send(frame.encode())
        assert client.receive_response("p")["ok"]


def test_many_requests_may_run_concurrently(server: RunningServer) -> None:
    with connected(server, TOKEN) as client:
        for number in range(200):
            client.send({"type": "req", "id": str(number), "method": "memory.admin.facets"})
        answered_ids = set()
        while len(answered_ids) < 200:
            frame = client.receive()
            if frame["type"] == "res":
                assert frame["ok"]
                answered_ids.add(frame["id"])


@pytest.mark.parametrize(("text", "query"), [("The tax number is 4711", "tax number"), ("爱丽丝对花生过敏", "花生")])
def test_a_fact_is_stored_recalled_and_forgotten(
    server: RunningServer, tokens: dict[str, str], text: str, query: str
) -> None:
    with connected(server, tokens["writer"], scopes=["operator.write"]) as client:

        def use(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = client.call("tools.invoke", tool=tool, args=arguments, sessionKey="agent:main:telegram:7")
            assert answer["result"] == answer["output"]
            assert (answer["ok"], answer["toolName"], answer["source"]) == (True, tool, "plugin")
            return dict(answer["output"]["details"])

        stored = use("memory_store", text=text)
        use("memory_store", text=f"{query}, another one")
        memories = use("memory_recall", query=f"{query} {text}", limit=1)["memories"]
        assert [(memory["id"], memory["text"]) for memory in memories] == [(stored["id"], text)]
        assert use("memory_forget", memoryId=stored["id"]) == {"action": "deleted", "id": stored["id"]}
        assert use("memory_recall", query=text, limit=1)["memories"][0]["id"] != stored["id"]
        assert use("memory_store") == {"error": "missing_param"}
        unknown = {"query": text, "color": "red"}
        answer = client.call("tools.invoke", name="memory_recall", args=unknown, dryRun=True)
        assert [warning["field"] for warning in answer["warnings"]] == ["dryRun", "args.color"]


REFUSED_CALLS: list[tuple[dict[str, Any], str]] = [
    ({}, "tools.invoke: tool must be the name of a tool"),
    ({"tool": "memory_recall", "args": []}, "tools.invoke: args must be an object"),
    ({"tool": "exec"}, "There is no tool of this name; there are memory_recall, memory_store, memory_forget."),
    (
        {"tool": "memory_recall", "args": {"query": "x"}, "agentId": "../x"},
        "agentId: must be 1 to 64 characters of A-Z a-z 0-9 _ . @ + - and not '.' or '..'",
    ),
]


@pytest.mark.parametrize(("params", "message"), REFUSED_CALLS)
def test_a_refused_tool_call_has_a_reason(
    server: RunningServer, tokens: dict[str, str], params: dict[str, Any], message: str
) -> None:
    with connected(server, tokens["writer"], scopes=["operator.write"]) as client:
        error = client.request("tools.invoke", params)["error"]
    assert (error["code"], error["message"]) == ("INVALID_REQUEST", message)


def test_each_request_is_logged_without_its_parameters(server: RunningServer, tokens: dict[str, str]) -> None:
    token = tokens["logged"]
    with connected(server, token) as client:
        client.request("memory.admin.list", {"agentId": "the-secret-agent"})
        client.request(f"nothing {token}")
    lines = [json.loads(line) for line in server.log.splitlines() if '"method":"RPC"' in line]
    mine = [line for line in lines if line["user_id"] == "logged"]
    assert [(line["path"].split()[0], line["output"]["status"]) for line in mine] == [
        ("memory.admin.list", "ok"),
        ("nothing", "INVALID_REQUEST"),
    ]
    assert "the-secret-agent" not in server.log
    assert token not in server.log
    assert "Traceback" not in server.log
