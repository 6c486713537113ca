"""Permission to create users: everyone under `local`, else the bearer of the provisioning token."""

from __future__ import annotations

import hmac
from datetime import timedelta
from typing import NoReturn

from django.conf import settings
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent
from core.errors import Unauthenticated

_REFUSED = "provisioning.refuse"
_ONE_EVENT_PER = timedelta(minutes=1)


def is_open() -> bool:
    """Return True under `local` without a token: the gateway is on loopback only, and every client may create users."""
    return not settings.MEMORY_GATEWAY_PROVISIONING_TOKEN and not settings.IS_PRODUCTION


def is_token(presented: str | None) -> bool:
    """Return True for the provisioning token.

    The user id is ignored, so a refusal does not reveal which users exist.
    """
    expected = settings.MEMORY_GATEWAY_PROVISIONING_TOKEN
    return bool(expected) and hmac.compare_digest((presented or "").encode(), expected.encode())


def refuse(*, address: str) -> NoReturn:
    """Record a refusal; `address` is the client's.

    Raises: `Unauthenticated`.
    """
    _record_refusal(address)
    raise Unauthenticated("Creating users needs the provisioning token: Authorization: Bearer <token>.")


def _record_refusal(address: str) -> None:
    """Record one event per address and minute, so that a flood does not fill the audit trail."""
    since = timezone.now() - _ONE_EVENT_PER
    if not AuditEvent.objects.filter(at__gt=since, action=_REFUSED, subject_id=address).exists():
        record(Actor.provisioning(), _REFUSED, subject_type="address", subject_id=address)
