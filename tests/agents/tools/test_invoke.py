"""`POST /tools/invoke`: the tools over HTTP, in OpenClaw's shapes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from accounts.tokens import READ, WRITE, issue
from store.models import Memory
from tests.conftest import Person, make_person

pytestmark = pytest.mark.django_db
URL = "/tools/invoke"


def invoke(client: Client, *, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = client.post(URL, orjson.dumps(body), "application/json")
    assert answer.status_code == status, answer.content
    return dict(answer.json())


def details(person: Person, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = invoke(person.client, tool=tool, args=arguments)
    assert set(answer) == {"ok", "result"}
    assert answer["ok"] is True
    return dict(answer["result"]["details"])


@pytest.mark.parametrize(("text", "query"), [("The tax number is 4711", "tax"), ("爱丽丝对花生过敏", "花生")])
def test_a_fact_is_stored_recalled_and_forgotten(alice: Person, text: str, query: str) -> None:
    memory_id = details(alice, "memory_store", text=text)["id"]
    [memory] = details(alice, "memory_recall", query=query, limit=1)["memories"]
    assert (memory["id"], memory["text"]) == (memory_id, text)
    assert set(memory) == {"id", "text", "category", "importance", "score", "createdAt"}
    assert details(alice, "memory_forget", memoryId=memory_id) == {"action": "deleted", "id": memory_id}
    assert details(alice, "memory_recall", query=query) == {"count": 0}


def test_a_question_about_the_user_has_an_answer(alice: Person) -> None:
    memory_id = details(alice, "memory_store", text="The tax number is 4711")["id"]
    found = details(alice, "memory_recall", query="What do you know about me?")
    assert (found["count"], [memory["id"] for memory in found["memories"]]) == (1, [memory_id])


def test_the_tool_may_be_in_name_and_unknown_fields_are_ignored_with_a_warning(alice: Person) -> None:
    body = {"name": "memory_recall", "args": {"query": "x"}, "action": "json", "dryRun": False, "more": 1, "x": None}
    answer = invoke(alice.client, **body)
    assert answer["result"]["details"] == {"count": 0}
    assert [warning["field"] for warning in answer["warnings"]] == ["action", "dryRun", "more"]
    body = {"tool": "memory_recall", "args": {"query": "x", "color": "red", "text": "of another tool", "size": None}}
    answer = invoke(alice.client, **body)
    assert set(answer) == {"ok", "result", "warnings"}
    assert answer["result"]["details"] == {"count": 0}
    message = "is ignored: it is none of query, limit, max_tokens"
    assert answer["warnings"] == [{"field": f"args.{name}", "message": message} for name in ("color", "text")]
    misspelled = invoke(alice.client, tool="memory_forget", args={"memory_id": "x"}, **alice.credentials)
    assert misspelled["result"]["details"] == {"error": "missing_param"}
    assert [warning["field"] for warning in misspelled["warnings"]] == ["args.memory_id"]
    many = invoke(alice.client, tool="memory_recall", args={"query": "x"} | {f"{n}" * 200: n for n in range(100)})
    assert len(orjson.dumps(many["warnings"])) < 5000
    assert invoke(alice.client, tool="memory_forget")["result"]["details"] == {"error": "missing_param"}
    assert invoke(alice.client, tool="memory_forget", args=None)["result"]["details"] == {"error": "missing_param"}


@pytest.mark.parametrize(
    ("body", "agent_id", "session_id"),
    [
        ({}, "main", "agent:main:main"),
        ({"sessionKey": "main"}, "main", "agent:main:main"),
        ({"agentId": "helper"}, "helper", "agent:helper:main"),
        ({"sessionKey": "agent:helper:telegram:7"}, "helper", "agent:helper:telegram:7"),
        ({"agentId": "a", "sessionKey": "session:67505b88"}, "a", "session:67505b88"),
    ],
)
def test_agent_and_session_are_stored(alice: Person, body: dict[str, Any], agent_id: str, session_id: str) -> None:
    invoke(alice.client, tool="memory_store", args={"text": "A fact"}, **body)
    memory = Memory.objects.select_related("session").get()
    assert memory.session is not None
    assert (memory.agent_id, memory.session.session_id) == (agent_id, session_id)


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"tool": "exec", "args": {"command": "ls"}}, 404, "not_found"),
        ({"tool": "memory_update", "args": {"memory_id": "m", "text": "x"}}, 404, "not_found"),  # MCP's alone
        ({"args": {}}, 400, "invalid_request"),
        ({"tool": 5}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": [1]}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": {"query": {"a": 1}}}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": {"query": "x", "limit": "many"}}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": {"query": "x"}, "agentId": "../x"}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": {"query": "x"}, "sessionKey": "a\nb"}, 400, "invalid_request"),
        ({"tool": "memory_recall", "args": {"query": "x"}, "sessionKey": ".."}, 400, "invalid_request"),
        ({"tool": "memory_store", "args": {"text": "x" * 8001}}, 400, "invalid_request"),
        ({"tool": "memory_store", "args": {"text": "x"}, "sessionKey": "resource:bob:r_1"}, 404, "not_found"),
    ],
)
def test_an_error_has_the_shape_of_openclaw(alice: Person, body: dict[str, Any], status: int, kind: str) -> None:
    answer = invoke(alice.client, status=status, **body)
    assert set(answer) == {"ok", "error"}
    assert answer["ok"] is False
    assert answer["error"]["type"] == kind
    assert answer["error"]["message"]


INVALID_BODIES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"{}" * 2,
    b'{"tool": "\\ud800"}',
    b'{"tool": "memory_recall", "args": {"query": "\\u0000"}}',
    b'{"tool": "memory_recall", "args": {"query": "x", "limit": 1e999}}',
    b'{"tool": "memory_recall", "args": {"query": "x", "limit": NaN}}',
    b'{"tool": "memory_recall", "args": {"query": "x", "limit": true}}',
    b'{"tool": "memory_forget", "args": {"memoryId": "\\u202e", "query": 99999999999999999999999}}',
    b'{"tool": "memory_recall", "args": {"query": "' + b"x" * 100_000 + b'"}}',
    b'{"tool": "memory_recall", "args": ' + b'{"a":' * 100 + b"1" + b"}" * 100 + b"}",
    b'{"tool": "memory_recall", "tool": "memory_store", "args": {"text": {"$ne": null}}}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("body", INVALID_BODIES, ids=range(len(INVALID_BODIES)))
def test_invalid_json_causes_no_server_error(alice: Person, body: bytes) -> None:
    answer = alice.client.post(URL, body, "application/json")
    assert answer.status_code in {200, 400, 413}
    assert answer.json()["ok"] is (answer.status_code == 200)


def test_requests_without_valid_credentials_are_401(client: Client, alice: Person) -> None:
    for credentials in (None, "Bearer uk_" + "x" * 43, "Bearer rpc_" + "x" * 43, "Bearer x", "Basic x"):
        headers = {"Authorization": credentials} if credentials else {}
        answer = client.post(URL, b'{"tool": "memory_recall"}', "application/json", headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_a_token_uses_the_memories_of_its_user_or_of_openclaw(alice: Person, admin_user: User) -> None:
    maker = Actor.command("tests")
    tokens = [
        issue("hers", user=MemoryUser.objects.get(pk=alice.user_pk), scopes=(WRITE,), actor=maker).plaintext,
        issue("the operator's", operator=admin_user, actor=maker).plaintext,
    ]
    for token, user_id in zip(tokens, ("alice", "openclaw"), strict=True):
        holder = Client(headers={"Authorization": f"Bearer {token}"})
        stored = invoke(holder, tool="memory_store", args={"text": "A fact"})["result"]["details"]
        memory = Memory.objects.select_related("user").get(memory_id=stored["id"])
        assert memory.user.user_id == user_id
        event = AuditEvent.objects.get(action="memory.add", subject_id=stored["id"])
        assert event.actor_kind == AuditEvent.ActorKind.TOKEN


def test_a_token_without_write_scope_is_403(alice: Person) -> None:
    user = MemoryUser.objects.get(pk=alice.user_pk)
    token = issue("hers", user=user, scopes=(READ,), actor=Actor.command("tests")).plaintext
    holder = Client(headers={"Authorization": f"Bearer {token}"})
    answer = invoke(holder, status=403, tool="memory_recall", args={"query": "x"})
    assert "operator.write" in answer["error"]["message"]


def test_other_methods_are_405(alice: Person) -> None:
    for method in ("get", "put", "patch", "delete"):
        answer = getattr(alice.client, method)(URL)
        assert (answer.status_code, answer.json()["error"]["type"]) == (405, "method_not_allowed")


@pytest.mark.django_db(transaction=True)
def test_concurrent_calls_do_not_mix_users() -> None:
    people = [make_person(name) for name in ("a", "A", "a.b")]

    def work(number: int) -> None:
        person = people[number % len(people)]
        try:
            details(person, "memory_store", text=f"note {number} of {person.user_id}")
            for memory in details(person, "memory_recall", query="note")["memories"]:
                assert memory["text"].endswith(f" of {person.user_id}")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(30)))
    assert Memory.objects.count() == 30
