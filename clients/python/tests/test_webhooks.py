"""`verify_webhook` takes what the gateway signed, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import pytest

from memory_gateway_client import InvalidWebhook, verify_webhook
from webhooks.services import signing

# The vector that Standard Webhooks publishes.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NOW = 1614265330
VECTOR = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(NOW),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
BODY = (
    b'{"type":"memory.deleted","timestamp":"2026-06-10T10:00:00+00:00","sequence":7,'
    b'"data":{"user_id":"u_123","memory_ids":["m1"]}}'
)


def signed(*secrets: str, at: int = NOW, body: bytes = BODY) -> dict[str, str]:
    return signing.headers(secrets or [SECRET], "msg_1", at, body)


def test_the_published_vector() -> None:
    with pytest.raises(InvalidWebhook, match="not an event"):  # so the signature matched
        verify_webhook(SECRET, VECTOR, '{"test": 2432232314}', now=NOW)


def test_an_event_of_the_gateway() -> None:
    event = verify_webhook(SECRET, {name.title(): value for name, value in signed().items()}, BODY, now=NOW)
    assert (event.id, event.type, event.sequence) == ("msg_1", "memory.deleted", 7)
    assert event.data == {"user_id": "u_123", "memory_ids": ["m1"]}
    now = int(time.time())
    assert verify_webhook(SECRET, signed(at=now), BODY).id == "msg_1"


@pytest.mark.parametrize("seconds", [-300, 300])
def test_five_minutes_are_tolerated(seconds: int) -> None:
    assert verify_webhook(SECRET, signed(at=NOW + seconds), BODY, now=NOW).sequence == 7


@pytest.mark.parametrize("seconds", [-301, 301])
def test_older_and_later_messages_are_refused(seconds: int) -> None:
    with pytest.raises(InvalidWebhook, match="five minutes"):
        verify_webhook(SECRET, signed(at=NOW + seconds), BODY, now=NOW)


def test_either_secret_verifies_during_a_rotation() -> None:
    new = signing.new_secret()
    for secret in (new, SECRET):
        assert verify_webhook(secret, signed(new, SECRET), BODY, now=NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-id": "msg_2"},
        {"webhook-id": ""},
        {"webhook-timestamp": str(NOW + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": "١٦"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,é"},
        {"webhook-signature": "v1a," + signed()["webhook-signature"].partition(",")[2]},
        {"webhook-signature": signing.headers([signing.new_secret()], "msg_1", NOW, BODY)["webhook-signature"]},
    ],
)
def test_changed_headers_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidWebhook):
        verify_webhook(SECRET, signed() | changes, BODY, now=NOW)


def test_a_changed_body_is_refused() -> None:
    with pytest.raises(InvalidWebhook, match="No signature"):
        verify_webhook(SECRET, signed(), BODY + b" ", now=NOW)


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b"{}"])
def test_a_signed_body_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidWebhook):
        verify_webhook(SECRET, signed(body=body), body, now=NOW)


def test_a_secret_in_another_form_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="whsec_"):
        verify_webhook("whsec_é", signed(), BODY, now=NOW)
