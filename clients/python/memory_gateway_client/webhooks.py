"""Verify webhooks of a gateway by the Standard Webhooks specification."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from memory_gateway_client.errors import MemoryGatewayError

TOLERANCE_SECONDS: Final = 300
"""The largest difference between the clocks of gateway and receiver: later messages may be repeated by an attacker."""


class InvalidWebhook(MemoryGatewayError):
    """A request that is not a message of the gateway, or an old one. Answer it with 400."""


class WebhookEvent(BaseModel):
    """An event. `id` is the same for every try; `sequence` numbers the events of one webhook from 1."""

    id: str
    type: str
    timestamp: datetime
    sequence: int
    data: dict[str, Any]


def verify_webhook(
    secret: str, headers: Mapping[str, str], body: bytes | str, *, now: float | None = None
) -> WebhookEvent:
    """Return the event of a request with a valid signature. `body` is the body as it was received.

    `now` is in Unix seconds, by default the present time. Raises: `InvalidWebhook`.
    """
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not (message_id and timestamp.isascii() and timestamp.isdigit()):
        raise InvalidWebhook("The headers webhook-id and webhook-timestamp are missing or invalid.")
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        raise InvalidWebhook("The timestamp differs from the present time by more than five minutes.")
    raw = body.encode() if isinstance(body, str) else body
    expected = f"v1,{_signature(secret, message_id, timestamp, raw)}".encode()
    signatures = given.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(expected, one.encode()) for one in signatures):
        raise InvalidWebhook("No signature matches the secret.")
    try:
        return WebhookEvent.model_validate({**_event(raw), "id": message_id})
    except ValidationError as error:
        raise InvalidWebhook("The body is not an event of Memory Gateway.") from error


def _signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError as error:
        raise ValueError("The secret must read whsec_ and base64.") from error
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def _event(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise InvalidWebhook("The body is not JSON.") from error
    return document if isinstance(document, dict) else {}
