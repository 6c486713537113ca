"""`POST /users`, and the keys that every other endpoint asks for."""

from __future__ import annotations

import re
import secrets

import pytest

from tests.contract.caller import Caller, Gateway, field_errors

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
ENDPOINTS = [
    ("GET", "/resources"),
    ("POST", "/resources"),
    ("POST", "/resources/external"),
    ("GET", "/resources/r_xxx"),
    ("DELETE", "/resources/r_xxx"),
    ("GET", "/resources/r_xxx/content"),
    ("POST", "/memories/add"),
    ("POST", "/memories/flush"),
    ("POST", "/memories/search"),
    ("GET", "/memories"),
    ("GET", "/memories/trash"),
    ("GET", "/memories/mem_abc"),
    ("PATCH", "/memories/mem_abc"),
    ("DELETE", "/memories/mem_abc"),
    ("DELETE", "/memories/mem_abc/override"),
    ("POST", "/memories/mem_abc/restore"),
    ("GET", "/sessions"),
    ("DELETE", "/sessions/chat:c_456"),
    ("POST", "/sessions/chat:c_456/restore"),
    ("GET", "/users/me/keys"),
]


def test_a_new_user_gets_a_key_and_the_same_key_again(gateway: Gateway) -> None:
    user_id = f"u_{secrets.token_hex(4)}"
    created = gateway.ask("POST", "/users", json={"user_id": user_id})
    assert set(created) == {"user_id", "user_key", "created_at"}
    assert created["user_id"] == user_id
    assert created["user_key"].startswith("uk_")
    assert TIME.fullmatch(created["created_at"])
    assert gateway.ask("POST", "/users", json={"user_id": user_id}) == created


@pytest.mark.parametrize("body", [{}, {"user_id": ""}, {"user_id": 5}, {"user_id": "a\u202eb"}, {"user_id": ".."}])
def test_a_user_id_that_cannot_be_is_refused_by_name(gateway: Gateway, body: dict[str, object]) -> None:
    assert field_errors(gateway.ask("POST", "/users", status=422, json=body)) == ["user_id"]


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_every_endpoint_wants_a_key(gateway: Gateway, method: str, path: str) -> None:
    problem = gateway.ask(method, path, status=401)
    assert set(problem) == {"type", "title", "status", "detail", "code", "errors"}


def test_a_wrong_key_is_refused_in_query_body_and_form(gateway: Gateway, alice: Caller) -> None:
    wrong = {"user_id": alice.user_id, "user_key": "uk_wrong"}
    gateway.ask("GET", "/resources", status=401, params=wrong)
    gateway.ask("POST", "/memories/search", status=401, json={**wrong, "query": "q"})
    gateway.ask("POST", "/resources", status=401, data=wrong, files={"file": ("a.txt", b"text")})


def test_the_key_of_another_user_is_a_wrong_key(gateway: Gateway, alice: Caller, bob: Caller) -> None:
    gateway.ask("GET", "/resources", status=401, params={"user_id": alice.user_id, "user_key": bob.user_key})


def test_the_key_may_stand_in_the_header_instead(gateway: Gateway, alice: Caller) -> None:
    header = {"Authorization": f"Bearer {alice.user_key}"}
    assert gateway.ask("GET", "/resources", headers=header) == {"resources": []}
