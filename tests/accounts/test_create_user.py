"""`POST /users`."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts.models import AuditEvent, MemoryUser, UserKey

TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"

pytestmark = pytest.mark.django_db


def create(user_id: Any, **headers: str) -> Any:
    return Client().post("/users", {"user_id": user_id}, content_type="application/json", headers=headers)


@pytest.fixture
def provisioning_token(settings: Any) -> str:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = TOKEN
    return TOKEN


def test_the_response_has_the_documented_fields() -> None:
    response = create("u_123")
    assert response.status_code == 200
    assert list(response.json()) == ["user_id", "user_key", "created_at"]
    assert response.json()["user_id"] == "u_123"
    assert re.fullmatch(r"uk_[A-Za-z0-9_-]{43}", response.json()["user_key"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", response.json()["created_at"])


def test_the_key_authenticates() -> None:
    key = create("u_123").json()["user_key"]
    assert Client().get("/users/me/keys", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_creating_an_existing_user_returns_the_same_key() -> None:
    assert create("u_123").json() == create("u_123").json()
    assert UserKey.objects.count() == 1


def test_ids_that_look_alike_are_different_users() -> None:
    keys = {create(user_id).json()["user_key"] for user_id in ("a", "A", "a.b", "a@b", "a+b")}
    assert len(keys) == 5


@pytest.mark.parametrize(
    "user_id", ["", ".", "..", "me", "a" * 256, "用" * 171, " a", "a ", "a\n", "a\x00", "a\u202eb", 5, None, ["a"]]
)
def test_an_invalid_id_is_refused_by_field(user_id: Any) -> None:
    response = create(user_id)
    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    assert [error["field"] for error in response.json()["errors"]] == ["user_id"] or "NUL" in response.json()["detail"]
    assert MemoryUser.objects.count() == 0


def test_unknown_fields_are_refused() -> None:
    response = Client().post("/users", {"user_id": "a", "admin": True}, content_type="application/json")
    assert response.status_code == 422
    assert response.json()["errors"] == [{"field": "admin", "message": "is not a field of this request"}]


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_other_content_types_are_415_and_create_no_user(content_type: str) -> None:
    response = Client().post("/users", '{"user_id": "a"}', content_type=content_type)
    assert response.status_code == 415
    assert response.json()["detail"] == "The body must be application/json, with this Content-Type."
    assert MemoryUser.objects.count() == 0


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "Bearer ", f"Basic {TOKEN}", f"bearer {TOKEN}x"])
def test_without_the_token_existing_and_new_users_are_refused_alike(
    provisioning_token: str, authorization: str | None
) -> None:
    create("known", Authorization=f"Bearer {provisioning_token}")
    headers = {"Authorization": authorization} if authorization is not None else {}
    known, unknown = create("known", **headers), create("unknown", **headers)
    assert known.status_code == unknown.status_code == 401
    assert known.content == unknown.content
    assert b"uk_" not in known.content.replace(b"uk_\xe2\x80\xa6", b"")
    assert MemoryUser.objects.count() == 1


def test_the_provisioning_token_creates_users_and_returns_existing_keys(provisioning_token: str) -> None:
    authorization = f"Bearer {provisioning_token}"
    assert create("a", Authorization=authorization).json() == create("a", Authorization=authorization).json()


def test_production_requires_the_provisioning_token(settings: Any) -> None:
    settings.IS_PRODUCTION = True
    assert create("a").status_code == 401
    assert create("a", Authorization="Bearer ").status_code == 401


def test_without_the_token_the_body_is_not_parsed(provisioning_token: str) -> None:
    response = Client().post("/users", "{not json", content_type="application/json")
    assert response.status_code == 401


def test_refusals_are_audited_once_a_minute(provisioning_token: str) -> None:
    for user_id in ("a", "b", "c"):
        create(user_id)
    event = AuditEvent.objects.get(action="provisioning.refuse")
    assert (event.actor_kind, event.subject_id, event.user_id) == ("provisioning", "127.0.0.1", "")


def test_creating_a_user_and_revealing_a_key_are_audited() -> None:
    create("a")
    create("a")
    assert list(AuditEvent.objects.order_by("id").values_list("action", "user_id")) == [
        ("user.create", "a"),
        ("key.issue", "a"),
        ("key.reveal", "a"),
    ]


def test_a_key_that_cannot_be_decrypted_is_a_conflict_with_a_remedy(settings: Any) -> None:
    first = create("a").json()
    settings.SECRET_KEY, lost = "another secret that is long enough for a test", settings.SECRET_KEY
    response = create("a")
    assert response.status_code == 409
    assert "Ask the operator to restore the former secret" in response.json()["detail"]
    settings.SECRET_KEY_FALLBACKS = [lost]
    assert create("a").json() == first


def test_a_user_without_a_live_key_gets_a_new_one() -> None:
    first = create("a").json()
    UserKey.objects.update(revoked_at="2020-01-01T00:00:00Z")
    second = create("a").json()
    assert second["created_at"] == first["created_at"]
    assert second["user_key"] != first["user_key"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_calls_create_one_user_with_one_key() -> None:
    def create_once(_: int) -> tuple[int, str]:
        try:
            response = create("a")
            return response.status_code, response.json()["user_key"]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(create_once, range(24)))
    assert len(answers) == 1
    assert answers.pop()[0] == 200
    assert (MemoryUser.objects.count(), UserKey.objects.count()) == (1, 1)
