"""Signatures by the Standard Webhooks specification (standardwebhooks.com): HMAC-SHA256 of `id.timestamp.body`."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from core.crypto import Purpose

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32
_PURPOSE: Final = Purpose("webhook-secret", "webhooks.Webhook.secret", "webhooks.Webhook.previous_secret")


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sealed(secret: str) -> str:
    """Return the secret as it is stored: encrypted."""
    return _PURPOSE.encrypt(secret)


def opened(ciphertext: str) -> str:
    """Return a stored secret in plain text. Raises: `Undecryptable`."""
    return _PURPOSE.decrypt(ciphertext)


def headers(given: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of a message, with a signature by each secret. `timestamp` is in Unix seconds."""
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{_signature(secret, content)}" for secret in given),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
