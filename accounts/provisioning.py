"""Who may create users: anyone under `local`, and otherwise the bearer of the provisioning token."""

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
    """`local` without a token: the gateway listens on loopback only, and whoever reaches it may create users."""
    return not settings.MEMORY_GATEWAY_PROVISIONING_TOKEN and not settings.IS_PRODUCTION


def is_token(presented: str | None) -> bool:
    """Whether its bearer may create users. The user id is not looked at, so a refusal says nothing of who exists."""
    expected = settings.MEMORY_GATEWAY_PROVISIONING_TOKEN
    return bool(expected) and hmac.compare_digest((presented or "").encode(), expected.encode())


def refuse(*, address: str) -> NoReturn:
    """Writes the refusal down; `address` is where the call came from. Errors: `Unauthenticated`."""
    _record_refusal(address)
    raise Unauthenticated("Creating users needs the provisioning token: Authorization: Bearer <token>.")


def _record_refusal(address: str) -> None:
    """One event per address and minute: whoever floods us must not fill the trail."""
    since = timezone.now() - _ONE_EVENT_PER
    if not AuditEvent.objects.filter(at__gt=since, action=_REFUSED, subject_id=address).exists():
        record(Actor.provisioning(), _REFUSED, subject_type="address", subject_id=address)
