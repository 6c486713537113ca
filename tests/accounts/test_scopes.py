"""API keys that may do only some things, in one application or as one agent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts import oauth, scopes, services
from accounts.audit import Actor
from accounts.models import AuditEvent, UserKey
from resources.models import Resource
from tests.conftest import Person
from tests.memories.calls import say

pytestmark = pytest.mark.django_db
ACTOR = Actor.command("tests")
CALLS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("search", "post", "/memories/search", {"query": "tea"}),
    ("search", "get", "/memories", {}),
    ("search", "get", "/memories/trash", {}),
    ("search", "get", "/memories/m", {}),
    ("search", "post", "/memories/context", {}),
    ("search", "get", "/sessions", {}),
    ("search", "get", "/sessions/chat:c", {}),
    ("search", "get", "/api/v1/memories/user", {}),
    ("search", "get", "/api/v1/memories/prompt", {}),
    ("search", "post", "/tools/invoke", {"tool": "memory_recall", "args": {"query": "tea"}}),
    ("add", "post", "/memories/add", {"session_id": "chat:c", "messages": []}),
    ("add", "post", "/memories/flush", {"session_id": "chat:c"}),
    ("add", "post", "/tools/invoke", {"tool": "memory_store", "args": {"text": "x"}}),
    ("decide", "patch", "/memories/m", {"text": "x"}),
    ("decide", "delete", "/memories/m", {}),
    ("decide", "delete", "/memories", {"sender_id": "bob"}),
    ("decide", "post", "/memories/m/restore", {}),
    ("decide", "delete", "/memories/m/override", {}),
    ("decide", "delete", "/sessions/chat:c", {}),
    ("decide", "post", "/sessions/chat:c/restore", {}),
    ("decide", "put", "/api/v1/memories/work", {}),
    ("decide", "patch", "/api/v1/memories/user", {}),
    ("decide", "post", "/api/v1/memories/user/restore/1", {}),
    ("decide", "post", "/tools/invoke", {"tool": "memory_forget", "args": {"memoryId": "m"}}),
    ("files", "get", "/resources", {}),
    ("files", "post", "/resources", {}),
    ("files", "post", "/resources/external", {}),
    ("files", "get", "/resources/r_1", {}),
    ("files", "get", "/resources/r_1/content", {}),
    ("files", "delete", "/resources/r_1", {}),
    ("files", "post", "/resources/r_1/restore", {}),
    ("account", "get", "/users/me/keys", {}),
    ("account", "post", "/users/me/keys", {}),
    ("account", "post", "/users/me/keys/rotate", {}),
    ("account", "get", "/webhooks", {}),
    ("account", "post", "/webhooks", {}),
    ("account", "delete", "/users/alice", {}),
]


def key_of(person: Person, *granted: str, **limits: Any) -> Person:
    """Return the person with a further key."""
    issued = services.issue_key(person.user_pk, granted=granted or None, actor=ACTOR, **limits)
    return Person(person.user_id, person.user_pk, issued.plaintext, person.client)


def send(person: Person, method: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {person.user_key}"}
    if method == "get":
        return Client().get(path, headers=headers)
    return getattr(Client(), method)(path, body, content_type="application/json", headers=headers)


@pytest.mark.parametrize("scope", [*scopes.SCOPES, "account"])
def test_a_key_with_one_scope_is_refused_everything_else(alice: Person, scope: str) -> None:
    limited = alice if scope == "account" else key_of(alice, scope)
    for needed, method, path, body in CALLS:
        if scope == "account":
            if needed == "account":
                continue
            assert send(limited, method, path, body).status_code != 403, path
            continue
        answer = send(limited, method, path, body)
        assert (answer.status_code == 403) is (needed != scope), (method, path, answer.content)
        if needed != scope:
            assert f"the scope {needed}" in str(answer.json())


def routes(patterns: Any) -> list[URLPattern]:
    """Return all routes."""
    return [
        route
        for pattern in patterns
        for route in (routes(pattern.url_patterns) if isinstance(pattern, URLResolver) else [pattern])
    ]


def test_every_action_of_a_view_is_named_with_its_scope_or_needs_all() -> None:
    for route in routes(get_resolver().url_patterns):
        actions: dict[str, str] = getattr(route.callback, "actions", None) or {}
        named: dict[str, str] = getattr(getattr(route.callback, "cls", None), "scopes", {})
        assert not named or set(actions.values()) <= set(named) or not actions, route


def test_new_keys_are_as_before_and_never_have_controls(alice: Person) -> None:
    key = send(alice, "post", "/users/me/keys", {"label": "laptop"}).json()
    assert (key["scopes"], key["app_id"], key["agent_id"]) == (None, None, None)
    principal = services.authenticate(key["user_key"])
    assert principal.scopes == scopes.UNLIMITED
    assert "controls" not in principal.scopes
    bound = send(alice, "post", "/users/me/keys", {"app_id": "diary"}).json()
    assert (bound["scopes"], bound["app_id"]) == (["search", "add", "decide", "files"], "diary")
    assert "controls" in send(alice, "post", "/users/me/keys", {"scopes": ["controls"]}).json()["scopes"]


@pytest.mark.parametrize("wrong", [[], ["everything"], ["account"], "search", ["search", 5]])
def test_scopes_that_do_not_exist_are_refused(alice: Person, wrong: Any) -> None:
    answer = send(alice, "post", "/users/me/keys", {"scopes": wrong})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("scopes")


def test_limits_are_listed_and_recorded(alice: Person) -> None:
    body = {"scopes": ["add", "search"], "app_id": "diary", "agent_id": "bot"}
    made = send(alice, "post", "/users/me/keys", body).json()
    keys = send(alice, "get", "/users/me/keys", {}).json()["keys"]
    [listed] = [key for key in keys if key["key_id"] == made["key_id"]]
    for answer in (made, listed):
        assert (answer["scopes"], answer["app_id"], answer["agent_id"]) == (["search", "add"], "diary", "bot")
    event = AuditEvent.objects.get(action="key.issue", subject_id=made["key_id"])
    assert event.detail == {"scopes": "search add", "app_id": "diary", "agent_id": "bot"}
    assert send(alice, "delete", f"/users/me/keys/{made['key_id']}", {}).status_code == 200
    limited = Person(alice.user_id, alice.user_pk, made["user_key"], alice.client)
    assert send(limited, "get", "/memories", {}).status_code == 401


def test_an_expired_key_is_refused_from_that_second_on(alice: Person) -> None:
    limited = key_of(alice, "search", expires_at=timezone.now() + timedelta(hours=1))
    assert send(limited, "get", "/memories", {}).status_code == 200
    UserKey.objects.exclude(scopes="").update(expires_at=timezone.now())
    assert send(limited, "get", "/memories", {}).status_code == 401


def test_a_key_of_a_browser_lasts_an_hour_at_most_and_ends_at_once(alice: Person) -> None:
    def make(**body: Any) -> Any:
        return alice.client.post("/users/me/keys", body, "application/json")

    for body, field in (
        ({"expires_in": 60}, "scopes"),
        ({"expires_in": 3601, "scopes": ["search"]}, "expires_in"),
        ({"expires_in": 0, "scopes": ["search"]}, "expires_in"),
        ({"expires_in": 60, "expires_at": "2099-01-01T00:00:00Z", "scopes": ["search"]}, "expires_in"),
    ):
        answer = make(**body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.content
    issued = make(expires_in=3600, scopes=["search", "decide"]).json()
    key = UserKey.objects.get(pk=issued["key_id"])
    assert key.expires_at is not None
    assert timedelta(minutes=59) < key.expires_at - timezone.now() <= timedelta(hours=1)
    browser = Client(headers={"Authorization": f"Bearer {issued['user_key']}", "Origin": "https://app.example.org"})
    assert browser.get("/memories").status_code == 200
    for method, path, body in (
        ("post", "/users/me/keys", {}),
        ("post", "/users/me/keys/rotate", {"grace_seconds": 0}),
        ("post", "/portal-links", {}),
        ("put", "/users/me/controls", {"paused": []}),
        ("post", "/memories/add", {"session_id": "s", "messages": []}),
        ("delete", f"/users/{alice.user_id}", {}),
    ):
        assert getattr(browser, method)(path, body, "application/json").status_code == 403, path
    alice.client.delete(f"/users/me/keys/{issued['key_id']}")
    assert browser.get("/memories").status_code == 401


def test_creating_a_user_again_returns_no_limited_key(alice: Person) -> None:
    key_of(alice, "search")
    assert services.create_user("alice", actor=ACTOR).plaintext == alice.user_key
    UserKey.objects.filter(scopes="").update(revoked_at=timezone.now())
    assert services.authenticate(services.create_user("alice", actor=ACTOR).plaintext).scopes == scopes.UNLIMITED


def test_the_last_key_without_limits_stays(alice: Person) -> None:
    limited = key_of(alice, "search")
    principal = services.authenticate(alice.user_key)
    assert send(alice, "delete", f"/users/me/keys/{principal.key_id}", {}).status_code == 409
    key_id = services.authenticate(limited.user_key).key_id
    assert send(alice, "delete", f"/users/me/keys/{key_id}", {}).status_code == 200


def test_a_rotated_key_may_do_what_it_could(alice: Person) -> None:
    old = services.authenticate(key_of(alice, "search", app_id="diary", agent_id="bot").user_key)
    new = services.authenticate(services.rotate_key(alice.user_pk, old.key_id, actor=ACTOR).new.plaintext)
    assert (new.scopes, new.app_id, new.agent_id) == (frozenset({"search"}), "diary", "bot")


def test_a_key_of_an_application_reads_and_writes_only_there(alice: Person) -> None:
    diary = key_of(alice, app_id="diary")
    message = {"sender_id": "alice", "role": "user", "timestamp": 1_781_172_177_000, "content": "Zebras in the diary"}
    assert send(diary, "post", "/memories/add", {"session_id": "chat:d", "messages": [message]}).status_code == 200
    assert send(diary, "post", "/memories/flush", {"session_id": "chat:d"}).status_code == 200
    say(alice, "chat:c", "Zebras elsewhere")
    found = send(diary, "post", "/memories/search", {"query": "zebras", "scope": ["all_user_memory"]}).json()["results"]
    assert [result["text"] for result in found] == ["Zebras in the diary"]
    [elsewhere] = send(alice, "get", "/memories", {}).json()["memories"]
    [inside] = send(diary, "get", "/memories", {}).json()["memories"]
    assert (elsewhere["text"], inside["text"]) == ("Zebras elsewhere", "Zebras in the diary")
    path = f"/memories/{elsewhere['id']}"
    for method, body in (("get", {}), ("patch", {"override_text": "x"}), ("delete", {})):
        assert send(diary, method, path, body).status_code == 404
    assert [one["session_id"] for one in send(diary, "get", "/sessions", {}).json()["sessions"]] == ["chat:d"]
    assert send(diary, "get", "/sessions/chat:c", {}).status_code == 404
    assert send(diary, "delete", "/sessions/chat:c", {}).status_code == 404
    refused = send(diary, "post", "/memories/search", {"query": "zebras", "app_id": "other"})
    assert (refused.status_code, "bound to the application diary" in refused.json()["detail"]) == (403, True)
    recalled = send(diary, "post", "/tools/invoke", {"tool": "memory_recall", "args": {"query": "zebras"}})
    assert "elsewhere" not in str(recalled.json())
    assert "in the diary" in str(recalled.json())


def test_a_key_of_an_application_reaches_only_its_files(alice: Person) -> None:
    resource_id = f"r_{'0' * 32}"
    session_id = f"resource:alice:{resource_id}"
    Resource.objects.create(user_id=alice.user_pk, resource_id=resource_id, session_id=session_id, filename="a.txt")
    diary = key_of(alice, app_id="diary")
    assert send(diary, "get", "/resources", {}).json()["resources"] == []
    assert send(diary, "get", f"/resources/{resource_id}", {}).json()["resources"] == []
    for method, path in (("get", "/content"), ("delete", ""), ("post", "/restore")):
        assert send(diary, method, f"/resources/{resource_id}{path}", {}).status_code == 404
    assert send(alice, "get", "/resources", {}).json()["resources"]


def invoke(person: Person, tool: str, agent_id: str | None = None, **arguments: Any) -> Any:
    return send(person, "post", "/tools/invoke", {"tool": tool, "args": arguments, "agentId": agent_id})


def test_a_key_of_an_agent_sees_and_changes_nothing_of_another(alice: Person) -> None:
    bot = key_of(alice, agent_id="bot")
    other = invoke(alice, "memory_store", "other", text="Zebras of the other agent").json()["result"]["details"]["id"]
    own = invoke(bot, "memory_store", text="Zebras of the bot").json()["result"]["details"]["id"]
    assert send(alice, "get", f"/memories/{own}", {}).json()["memory"]["agent_id"] == "bot"
    found = send(bot, "post", "/memories/search", {"query": "zebras", "scope": ["all_user_memory"]}).json()["results"]
    assert [result["id"] for result in found] == [own]
    assert [one["id"] for one in send(bot, "get", "/memories", {}).json()["memories"]] == [own]
    assert "other agent" not in str(send(bot, "post", "/memories/context", {"query": "zebras"}).json())
    for method, body in (("get", {}), ("patch", {"override_text": "x"}), ("delete", {})):
        assert send(bot, method, f"/memories/{other}", body).status_code == 404
    assert send(bot, "delete", "/sessions/agent:other:main", {}).status_code == 403
    send(alice, "delete", f"/memories/{other}", {})
    assert send(bot, "post", f"/memories/{other}/restore", {}).status_code == 404
    assert send(bot, "get", "/memories/trash", {}).json()["trash"] == []
    assert send(alice, "get", "/memories/trash", {}).json()["trash"]
    assert invoke(bot, "memory_recall", "other", query="zebras").status_code == 403
    assert send(bot, "get", "/memories?agent_id=other", {}).status_code == 403


def test_facts_of_a_key_of_an_agent_are_of_that_agent_and_each_has_its_result(alice: Person) -> None:
    bot, other = key_of(alice, "add", agent_id="bot"), key_of(alice, "add", agent_id="other")
    fact = {"text": "The plan is falcon.", "external_id": "plan"}
    assert send(other, "post", "/memories", fact).json()["action"] == "created"
    eagle = send(bot, "post", "/memories", {**fact, "text": "The plan is eagle."}).json()
    assert (eagle["action"], eagle["memory"]["agent_id"], eagle["similar"]) == ("created", "bot", [])
    facts = [{"text": "Tea is at four."}, {"text": "A forged plan.", "agent_id": "other"}, {"text": "Rain is due."}]
    results = send(bot, "post", "/memories/bulk", {"memories": facts}).json()["results"]
    assert [one["status"] for one in results] == [201, 403, 201]


def test_a_key_that_only_adds_is_shown_no_memory(alice: Person) -> None:
    invoke(alice, "memory_store", text="Alice drinks green tea every morning")
    adder = key_of(alice, "add")
    answer = invoke(adder, "memory_store", text="Alice drinks black tea every morning")
    assert "green" not in str(answer.json())
    assert "green" in str(invoke(alice, "memory_store", text="Alice drinks white tea every morning").json())
    decider = key_of(alice, "decide")
    assert invoke(decider, "memory_forget", query="Alice drinks green tea every morning").status_code == 403


def test_an_application_may_do_no_more_than_the_key_that_connected_it(alice: Person) -> None:
    limited = services.authenticate(key_of(alice, "search", app_id="diary").user_key)
    client = oauth.register(uuid4(), "Desk", ["https://desk.example/callback"])
    resource = "https://gateway.example/mcp"
    approval = oauth.Approval(client.pk, "https://desk.example/callback", "x" * 43, resource, oauth.SCOPES)
    code = oauth.approve(approval, user_pk=alice.user_pk, key_id=limited.key_id, actor=ACTOR)
    access = oauth.authenticate(oauth.redeem(oauth.CODE, code).access, resource)
    assert (access.principal.scopes, access.principal.app_id) == (frozenset({"search"}), "diary")
