"""`PATCH /users`."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEvent, MemoryUser
from tests.conftest import Person

pytestmark = pytest.mark.django_db
TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"
KNOWN = {"name": "Ann Miller", "email": "ann@example.org", "notes": "Called twice.\nPrefers e-mail.", "tenant": "acme"}


def describe(user_id: Any = "alice", token: str = "", **values: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().patch("/users", {"user_id": user_id, **values}, "application/json", headers=headers)


def values_of(person: Person) -> dict[str, str]:
    user = MemoryUser.objects.get(pk=person.user_pk)
    return {name: getattr(user, name) for name in ("name", "email", "labels", "notes", "tenant")}


def test_fields_are_set_kept_and_removed(alice: Person) -> None:
    answer = describe(**KNOWN, labels=["pilot", "Berlin", "pilot"])
    assert answer.json() == {"user_id": "alice", "changed": ["name", "email", "labels", "notes", "tenant"]}
    assert values_of(alice) == {**KNOWN, "labels": "pilot, Berlin"}
    assert describe(**{**KNOWN, "name": None}).json()["changed"] == []
    assert describe(tenant="", labels=[]).json()["changed"] == ["labels", "tenant"]
    assert values_of(alice) == {**KNOWN, "labels": "", "tenant": ""}


def test_the_trail_names_the_fields_and_not_their_values(alice: Person) -> None:
    describe(**KNOWN)
    event = AuditEvent.objects.get(action="user.describe")
    assert (event.actor_kind, event.user_id) == ("provisioning", "alice")
    assert event.detail == {"fields": ["name", "email", "notes", "tenant"]}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a" * 201),
        ("name", "Ann\nMiller"),
        ("email", "ann"),
        ("email", "a@b c"),
        ("labels", ["a,b"]),
        ("labels", [""]),
        ("labels", ["a"] * 11),
        ("labels", "pilot"),
        ("notes", "a" * 10_001),
        ("tenant", "a b"),
        ("tenant", "a" * 65),
        ("password", "x"),
    ],
)
def test_an_invalid_value_is_refused_by_field(alice: Person, field: str, value: Any) -> None:
    answer = describe(**{field: value})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(field)
    assert not any(values_of(alice).values())


def test_unknown_and_erased_users_are_404(alice: Person) -> None:
    assert describe("nobody", name="Ann").status_code == 404
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id=f"!{alice.user_pk.hex}")
    assert describe(f"!{alice.user_pk.hex}", name="Ann").status_code in {404, 422}
    assert not any(values_of(alice).values())


def test_only_the_provisioning_token_describes(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PROVISIONING_TOKEN = TOKEN
    answers = [describe(user, name="Ann") for user in ("alice", "nobody")]
    answers.append(alice.client.patch("/users", {"user_id": "alice", "name": "Ann"}, "application/json"))
    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert answers[0].content == answers[1].content
    assert not any(values_of(alice).values())
    assert describe(token=TOKEN, name="Ann").status_code == 200
