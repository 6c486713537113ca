from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from django.test import Client

from accounts.api import limits
from memory_gateway.server.client_key import client_key
from tests.agents.oauth.flow import RESOURCE, Application
from tests.conftest import Person

KEY = "uk_" + "k" * 43


def name(headers: dict[str, str] | None = None, query: str = "", body: str = "", address: str = "10.0.0.9") -> Hashable:
    scope: dict[str, Any] = {
        "headers": [(key.encode(), value.encode()) for key, value in (headers or {}).items()],
        "query_string": query.encode(),
        "client": (address, 4711),
    }
    return client_key(scope, body.encode())


PLACES = {
    "header": {"headers": {"authorization": f"Bearer {KEY}"}},
    "header in other letters": {"headers": {"authorization": f"bearer  {KEY} "}},
    "query": {"query": f"user_id=alice&user_key={KEY}"},
    "json": {"body": f'{{"user_id": "alice", "user_key" : "{KEY}"}}'},
    "form": {"body": f"user_id=alice&user_key={KEY}"},
    "multipart": {"body": f'--b\r\nContent-Disposition: form-data; name="user_key"\r\n\r\n{KEY}\r\n--b--'},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_key_is_the_same_caller_wherever_it_stands(place: dict[str, Any]) -> None:
    assert name(**place) == name(headers={"authorization": f"Bearer {KEY}"}) != name()


def test_the_header_decides() -> None:
    other = "uk_" + "o" * 43
    both = name(headers={"authorization": f"Bearer {KEY}"}, body=f'{{"user_key": "{other}"}}')
    assert both == name(headers={"authorization": f"Bearer {KEY}"})


@pytest.mark.parametrize(
    "text", [f'{{"query": "\\"user_key\\": \\"{KEY}"}}', f'{{"query": "user_key={KEY}"}}', f'"user_key": "{KEY}']
)
def test_what_is_only_said_of_a_key_names_nobody(text: str) -> None:
    assert name(body=text) == name()


def test_without_a_key_the_address_is_the_caller() -> None:
    assert name() == name(headers={"authorization": "Basic dTpw"}) != name(address="10.0.0.10")
    assert name(address="2001:db8::1") == name(address="2001:db8::2")


@pytest.mark.django_db
def test_the_keys_of_one_user_are_one_caller_once_they_worked(alice: Person, bob: Person) -> None:
    second = alice.client.post("/users/me/keys", {}, "application/json").json()["user_key"]
    keys = (alice.user_key, second, bob.user_key)
    assert len({name(headers={"authorization": f"Bearer {key}"}) for key in (second, bob.user_key)}) == 2
    for key in keys:
        assert Client(headers={"Authorization": f"Bearer {key}"}).get("/resources").status_code == 200
    first_name, second_name, name_of_bob = (name(headers={"authorization": f"Bearer {key}"}) for key in keys)
    assert first_name == second_name == alice.user_pk
    assert name_of_bob == bob.user_pk


@pytest.mark.django_db
def test_users_of_oauth_behind_one_address_are_several_callers(client: Client, alice: Person, bob: Person) -> None:
    application = Application(client)
    tokens = [application.connect(person.user_key)["access_token"] for person in (alice, bob)]
    headers = [{"authorization": f"Bearer {token}"} for token in tokens]
    assert len({name(), *(name(headers=one) for one in headers)}) == 3
    for token in tokens:
        limits.authenticate_token("10.0.0.9", token, RESOURCE)
    assert [name(headers=one) for one in headers] == [alice.user_pk, bob.user_pk]
