"""`/users/me/keys`: a user's own keys."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import services
from accounts.audit import Actor
from accounts.models import AuditEvent, UserKey
from core.errors import Conflict, Unauthenticated
from tests.conftest import Person

URL = "/users/me/keys"
ACTOR = Actor.command("tests")

pytestmark = pytest.mark.django_db


def post(person: Person, path: str = "", **body: Any) -> Any:
    return person.client.post(URL + path, body, content_type="application/json")


def keys(person: Person) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = person.client.get(URL).json()["keys"]
    return listed


def works(plaintext: str) -> bool:
    return Client().get(URL, headers={"Authorization": f"Bearer {plaintext}"}).status_code == 200


def test_the_list_shows_keys_without_plaintext(alice: Person) -> None:
    issued = post(alice, label="laptop").json()
    response = alice.client.get(URL)
    assert [(key["label"], key["is_current"], key["is_live"]) for key in response.json()["keys"]] == [
        ("laptop", False, True),
        ("", True, True),
    ]
    assert response.json()["keys"][0]["prefix"] == issued["user_key"][:7]
    for plaintext in (issued["user_key"], alice.user_key):
        assert plaintext not in response.content.decode()


def test_the_list_shows_the_last_use(alice: Person) -> None:
    post(alice, label="unused")
    assert [key["last_used_at"] is None for key in keys(alice)] == [True, False]


def test_another_user_does_not_see_the_keys(alice: Person, charlie: Person) -> None:
    post(alice, label="secret plan")
    assert [key["label"] for key in keys(charlie)] == [""]


def test_the_list_refuses_unknown_parameters(alice: Person) -> None:
    assert alice.client.get(URL, {"limit": 5}).status_code == 422


def test_listing_takes_two_statements(alice: Person, django_assert_num_queries: Any) -> None:
    for number in range(5):
        post(alice, label=str(number))
    with django_assert_num_queries(2):
        keys(alice)


def test_old_keys_stay_valid_next_to_a_new_one(alice: Person) -> None:
    issued = post(alice, label="server", expires_at="2030-01-31T12:00:00+02:00").json()
    assert issued["expires_at"] == "2030-01-31T10:00:00+00:00"
    assert issued["label"] == "server"
    assert works(issued["user_key"])
    assert works(alice.user_key)


def test_an_expiry_without_time_zone_is_refused(alice: Person) -> None:
    [error] = post(alice, expires_at="2030-01-01T00:00:00").json()["errors"]
    assert error["message"] == "must include its time zone, such as 2027-01-31T12:00:00+00:00"


def test_a_new_key_does_not_expire_by_default(alice: Person) -> None:
    assert post(alice).json()["expires_at"] is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("label", "x" * 101),
        ("label", "two\nlines"),
        ("label", 5),
        ("expires_at", "2020-01-01T00:00:00Z"),
        ("expires_at", "2030-01-01T00:00:00"),
        ("expires_at", "9999-12-31T23:59:59-23:59"),
        ("expires_at", "0001-01-01T00:00:00+23:59"),
        ("expires_at", 1893456000),
        ("expires_at", "1893456000"),
        ("expires_at", "tomorrow"),
        ("surprise", 1),
    ],
)
def test_invalid_labels_and_expiries_are_refused_by_field(alice: Person, field: str, value: Any) -> None:
    response = post(alice, **{field: value})
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == [field]
    assert UserKey.objects.count() == 1


def test_a_user_has_at_most_a_hundred_live_keys(alice: Person) -> None:
    for _ in range(services.MAX_LIVE_KEYS - 1):
        services.issue_key(alice.user_pk, actor=ACTOR)
    response = post(alice)
    assert response.status_code == 409
    assert "Revoke one first" in response.json()["detail"]


def test_rotation_issues_a_key_and_keeps_the_old_one_for_a_day(alice: Person) -> None:
    started_at = timezone.now()
    rotated = post(alice, "/rotate").json()
    assert works(rotated["user_key"])
    assert works(alice.user_key)
    ends_at = datetime.fromisoformat(rotated["previous_expires_at"])
    assert timedelta(hours=23, minutes=59) < ends_at - started_at < timedelta(hours=24, minutes=1)
    assert rotated["previous_key_id"] != rotated["key_id"]


def test_rotation_without_grace_ends_the_old_key_at_once(alice: Person) -> None:
    rotated = post(alice, "/rotate", grace_seconds=0).json()
    assert works(rotated["user_key"])
    assert not works(alice.user_key)


def test_rotation_keeps_the_label_and_does_not_prolong_the_old_key(alice: Person) -> None:
    soon = timezone.now() + timedelta(hours=1)
    UserKey.objects.update(label="laptop", expires_at=soon)
    rotated = post(alice, "/rotate", grace_seconds=30.0 * 86400).json()
    assert rotated["label"] == "laptop"
    assert datetime.fromisoformat(rotated["previous_expires_at"]) == soon.replace(microsecond=0)


@pytest.mark.parametrize("grace", [-1, 30 * 86400 + 1, 1.5, "60", True, None])
def test_an_invalid_grace_period_is_refused(alice: Person, grace: Any) -> None:
    response = post(alice, "/rotate", grace_seconds=grace)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "grace_seconds"


def test_creating_the_user_again_returns_the_rotated_key(alice: Person) -> None:
    rotated = post(alice, "/rotate").json()
    assert services.create_user("alice", actor=ACTOR).plaintext == rotated["user_key"]


def test_a_dead_key_cannot_be_rotated(alice: Person) -> None:
    key = services.issue_key(alice.user_pk, actor=ACTOR).key
    services.revoke_key(alice.user_pk, key.pk, actor=ACTOR)
    with pytest.raises(Conflict):
        services.rotate_key(alice.user_pk, key.pk, actor=ACTOR)


def test_a_revoked_key_is_rejected(alice: Person) -> None:
    issued = post(alice).json()
    response = alice.client.delete(f"{URL}/{issued['key_id']}")
    assert response.status_code == 200
    assert response.json() == {"key_id": issued["key_id"], "status": "revoked"}
    assert not works(issued["user_key"])
    assert works(alice.user_key)


def test_revoking_again_has_no_effect(alice: Person) -> None:
    issued = post(alice).json()
    answers = [alice.client.delete(f"{URL}/{issued['key_id']}") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert AuditEvent.objects.filter(action="key.revoke").count() == 1


def test_the_last_key_cannot_be_revoked(alice: Person) -> None:
    current = keys(alice)[0]["key_id"]
    response = alice.client.delete(f"{URL}/{current}")
    assert response.status_code == 409
    assert "Create another one first" in response.json()["detail"]
    assert works(alice.user_key)


def test_an_expired_key_does_not_count_as_another_valid_key(alice: Person) -> None:
    other = services.issue_key(alice.user_pk, actor=ACTOR).key
    UserKey.objects.filter(pk=other.pk).update(expires_at=timezone.now())
    current = UserKey.objects.exclude(pk=other.pk).get()
    assert alice.client.delete(f"{URL}/{current.pk}").status_code == 409


def test_a_key_of_another_user_is_404(alice: Person, charlie: Person) -> None:
    issued = post(alice).json()
    of_other_user, unknown = (
        charlie.client.delete(f"{URL}/{issued['key_id']}"),
        charlie.client.delete(f"{URL}/{uuid4()}"),
    )
    assert of_other_user.status_code == unknown.status_code == 404
    assert of_other_user.content == unknown.content
    assert works(issued["user_key"])


def test_an_invalid_key_id_is_404(alice: Person) -> None:
    assert alice.client.delete(f"{URL}/1").status_code == 404


def test_only_the_oldest_invalid_keys_are_deleted(alice: Person) -> None:
    for _ in range(services.MAX_DEAD_KEYS + 5):
        issued = services.issue_key(alice.user_pk, actor=ACTOR)
        services.revoke_key(alice.user_pk, issued.key.pk, actor=ACTOR)
    services.issue_key(alice.user_pk, actor=ACTOR)
    assert UserKey.objects.filter(revoked_at__isnull=False).count() == services.MAX_DEAD_KEYS
    assert works(alice.user_key)


def test_each_action_is_audited_with_the_acting_key(alice: Person) -> None:
    current = keys(alice)[0]["key_id"]
    issued = post(alice).json()
    alice.client.delete(f"{URL}/{issued['key_id']}")
    post(alice, "/rotate")
    events = AuditEvent.objects.filter(actor_kind="key").order_by("id")
    assert [event.action for event in events] == ["key.issue", "key.revoke", "key.issue", "key.rotate"]
    assert {event.actor for event in events} == {current}
    assert {event.user_id for event in events} == {"alice"}
    assert all(event.request_id for event in events)


@pytest.mark.django_db(transaction=True)
def test_no_request_fails_while_keys_are_rotated(alice: Person) -> None:
    stop, refused, calls = threading.Event(), [], []

    def load(_: int) -> None:
        try:
            while not stop.is_set():
                calls.append(1)
                if not works(alice.user_key):
                    refused.append(1)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(load, number) for number in range(4)]
        new_keys = [post(alice, "/rotate", grace_seconds=3600).json()["user_key"] for _ in range(20)]
        stop.set()
        for future in futures:
            future.result()
    assert len(calls) >= 20
    assert refused == []
    assert all(works(key) for key in new_keys)


@pytest.mark.django_db(transaction=True)
def test_two_keys_cannot_revoke_each_other_concurrently(alice: Person) -> None:
    second = services.issue_key(alice.user_pk, actor=ACTOR)
    first = UserKey.objects.exclude(pk=second.key.pk).get()

    def revoke(key: UserKey) -> bool:
        try:
            services.revoke_key(alice.user_pk, key.pk, actor=ACTOR)
        except Conflict:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(revoke, [first, second.key]))
    assert sorted(results) == [False, True]


def test_an_expired_key_cannot_authenticate_its_rotation(alice: Person) -> None:
    UserKey.objects.update(expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(Unauthenticated):
        services.authenticate(alice.user_key)
    assert post(alice, "/rotate").status_code == 401
