"""Signatures match the vector that Standard Webhooks publishes."""

from __future__ import annotations

import base64

from webhooks.services import signing

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SIGNED = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
BODY = b'{"test": 2432232314}'


def test_the_published_vector() -> None:
    assert signing.headers([SECRET], SIGNED["webhook-id"], 1614265330, BODY) == SIGNED


def test_each_secret_signs() -> None:
    other = signing.new_secret()
    both = signing.headers([other, SECRET], SIGNED["webhook-id"], 1614265330, BODY)["webhook-signature"].split(" ")
    assert both[1] == SIGNED["webhook-signature"]
    assert both[0] != both[1]


def test_a_secret_has_256_bits_and_is_stored_encrypted() -> None:
    secret = signing.new_secret()
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    stored = signing.sealed(secret)
    assert secret not in stored
    assert signing.opened(stored) == secret
