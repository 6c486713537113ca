"""Rate limits of keys, and of addresses without a key."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from django.core.cache import cache as process_cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts import services
from accounts.api import limits
from accounts.audit import Actor
from accounts.models import UserKey
from tests.conftest import Person

URL = "/users/me/keys"
UNKNOWN_KEY = "uk_" + "x" * 43

pytestmark = pytest.mark.django_db
addresses = (f"198.51.{number // 250}.{number % 250 + 1}" for number in itertools.count())


@pytest.fixture
def address() -> str:
    """An unused client address."""
    return next(addresses)


@pytest.fixture
def limited(settings: Any) -> Any:
    """Apply the default limits, which the settings of the tests disable."""
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 10
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 600
    return settings


def get(key: str | None, address: str, **query: str) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return Client(REMOTE_ADDR=address).get(URL, query, headers=headers)


def fail_often(address: str, times: int = 10) -> None:
    assert {get(UNKNOWN_KEY, address).status_code for _ in range(times)} == {401}


def test_a_key_beyond_its_limit_is_429_with_retry_after(alice: Person, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 5
    assert [get(alice.user_key, address).status_code for _ in range(5)] == [200] * 5
    refused = get(alice.user_key, address)
    assert refused.status_code == 429
    assert refused["Content-Type"] == "application/problem+json"
    assert 1 <= int(refused["Retry-After"]) <= 12
    assert refused.json()["code"] == "too_many_requests"
    assert refused.json()["detail"].startswith("This API key has made 5 requests within a minute.")


def test_the_limit_of_a_key_counts_all_addresses_and_all_ways_to_send_it(
    alice: Person, settings: Any, address: str
) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 3
    assert get(alice.user_key, address).status_code == 200
    assert get(None, next(addresses), **alice.credentials).status_code == 200
    sent = {**alice.credentials, "label": "x"}
    assert Client(REMOTE_ADDR=address).post(URL, sent, content_type="application/json").status_code == 200
    assert get(alice.user_key, next(addresses)).status_code == 429
    assert Client().post(URL, sent, content_type="application/json").status_code == 429


def test_users_have_separate_limits(alice: Person, bob: Person, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 1
    assert [get(person.user_key, address).status_code for person in (alice, bob, alice)] == [200, 200, 429]


def test_a_key_beyond_its_limit_takes_no_statement(alice: Person, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 1
    get(alice.user_key, address)
    with CaptureQueriesContext(connection) as queries:
        assert get(alice.user_key, address).status_code == 429
    assert len(queries) == 0


def test_a_limit_of_zero_means_no_limit(alice: Person, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 0
    assert {get(alice.user_key, address).status_code for _ in range(30)} == {200}


def test_the_eleventh_failure_of_an_address_is_429(limited: Any, address: str) -> None:
    fail_often(address)
    with CaptureQueriesContext(connection) as queries:
        refused = get(UNKNOWN_KEY, address)
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 6
    assert len(queries) == 1


@pytest.mark.parametrize(
    "key",
    ["x", "uk_", "uk_" + "x" * 21, "uk_" + "x" * 129, "uk_" + "x" * 42 + "+", "rpc_" + "x" * 43, "uk_" + "é" * 43],
)
def test_a_text_without_the_form_of_a_key_takes_no_statement(limited: Any, address: str, key: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        statuses = [get(key, address).status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    assert len(queries) == 0


def test_wrong_credentials_in_body_and_query_count_as_failures(limited: Any, address: str, alice: Person) -> None:
    wrong = {"user_id": alice.user_id, "user_key": UNKNOWN_KEY}
    client = Client(REMOTE_ADDR=address)
    for _ in range(5):
        assert client.get(URL, wrong).status_code == 401
        assert client.post(URL, wrong, content_type="application/json").status_code == 401
    assert client.get(URL, wrong).status_code == 429
    assert client.post(URL, wrong, content_type="application/json").status_code == 429


def test_failures_do_not_count_for_another_address(limited: Any, address: str) -> None:
    fail_often(address)
    assert get(UNKNOWN_KEY, next(addresses)).status_code == 401


def test_an_ipv6_network_counts_as_one_address(limited: Any) -> None:
    for number in range(10):
        assert get(UNKNOWN_KEY, f"2001:db8:7:7::{number}").status_code == 401
    assert get(UNKNOWN_KEY, "2001:db8:7:7:ffff::1").status_code == 429
    assert get(UNKNOWN_KEY, "2001:db8:7:8::1").status_code == 401


def test_a_valid_key_passes_from_an_address_beyond_its_limit_of_failures(
    limited: Any, address: str, alice: Person
) -> None:
    fail_often(address)
    assert get(UNKNOWN_KEY, address).status_code == 429
    assert get(alice.user_key, address).status_code == 200
    assert get(None, address, **alice.credentials).status_code == 200
    assert get(UNKNOWN_KEY, address).status_code == 429


def test_revoked_and_expired_keys_get_the_response_of_unknown_ones(limited: Any, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        get(person.user_key, next(addresses))
    revoked, expired = (services.authenticate(person.user_key) for person in (alice, bob))
    services.revoke_key(revoked.user_pk, revoked.key_id, actor=Actor.command("tests"), may_be_last=True)
    UserKey.objects.filter(pk=expired.key_id).update(expires_at=timezone.now())
    answers = []
    for key in (UNKNOWN_KEY, alice.user_key, bob.user_key):
        caller = next(addresses)
        with CaptureQueriesContext(connection) as queries:
            responses = [get(key, caller) for _ in range(12)]
        answers.append(
            [(answer.status_code, answer.content, answer.headers.get("Retry-After")) for answer in responses]
        )
        assert len(queries) == 12
    assert [status for status, *_ in answers[0]] == [401] * 10 + [429] * 2
    assert answers[0] == answers[1] == answers[2]


def test_existing_and_absent_users_are_refused_alike(limited: Any, address: str, alice: Person) -> None:
    answers = []
    for user_id in (alice.user_id, "nobody"):
        caller = next(addresses)
        wrong = {"user_id": user_id, "user_key": UNKNOWN_KEY}
        responses = [get(None, caller, **wrong) for _ in range(12)]
        answers.append(
            [(answer.status_code, answer.content, answer.headers.get("Retry-After")) for answer in responses]
        )
    assert answers[0] == answers[1]


def test_wrong_provisioning_tokens_count_as_failures(limited: Any, address: str) -> None:

    def create(token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        body = {"user_id": "dora"}
        return Client(REMOTE_ADDR=address).post("/users", body, content_type="application/json", headers=headers)

    limited.MEMORY_GATEWAY_PROVISIONING_TOKEN = "r" * 40
    assert {create("wrong").status_code for _ in range(10)} == {401}
    with CaptureQueriesContext(connection) as queries:
        assert create("wrong").status_code == 429
    assert len(queries) == 0
    assert create("r" * 40).status_code == 200


def test_requests_without_a_key_are_limited_per_address(limited: Any, address: str) -> None:
    limited.ANONYMOUS_REQUESTS_PER_MINUTE = 3
    assert [get(None, address).status_code for _ in range(4)] == [401, 401, 401, 429]
    assert get(None, next(addresses)).status_code == 401


def test_a_valid_key_is_not_limited_as_anonymous(limited: Any, address: str, alice: Person) -> None:
    limited.ANONYMOUS_REQUESTS_PER_MINUTE = 1
    get(None, address)
    assert get(None, address).status_code == 429
    assert get(alice.user_key, address).status_code == 200
    assert get(None, address, **alice.credentials).status_code == 200


def test_malformed_headers_count_as_anonymous(limited: Any, address: str) -> None:
    limited.ANONYMOUS_REQUESTS_PER_MINUTE = 2
    client = Client(REMOTE_ADDR=address, headers={"Authorization": "Basic dTpw"})
    assert [client.get(URL).status_code for _ in range(3)] == [401, 401, 429]


def test_the_limits_store_no_key(alice: Person, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE = 7
    get(alice.user_key, address)
    names = [*limits.current().per_key._full_at, *process_cache._cache]
    assert names
    assert not [name for name in names if alice.user_key in str(name)]
