"""How often one may try to sign in as an operator. The counts are rows, so that all processes share them."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import SignInThrottle
from core.errors import TooManyRequests
from core.networks import network_of

FAILURES_PER_NAME = 5
FAILURES_PER_NETWORK = 50
WINDOW = timedelta(minutes=15)
_EVERY_NAME = ""


def begin(username: str, address: str) -> None:
    """Counts an attempt before the password is looked at, so that simultaneous guesses are counted too.

    A name is locked for a quarter of an hour after five failures from one network, everything from a network after
    fifty. Errors: `TooManyRequests`, the same for names that exist and names that do not.
    """
    now = timezone.now()
    network = network_of(address)
    with transaction.atomic():
        SignInThrottle.objects.filter(counted_since__lt=now - 2 * WINDOW).delete()
        whole = _row(network, _EVERY_NAME, now)
        single = _row(network, _digest(username), now)
        _refuse_if_locked(whole, now)
        _refuse_if_locked(single, now)
        _count(whole, FAILURES_PER_NETWORK, now)
        _count(single, FAILURES_PER_NAME, now)


def succeed(username: str, address: str) -> None:
    """Forgets the failures of a name once its password was right."""
    network = network_of(address)
    with transaction.atomic():
        single = SignInThrottle.objects.filter(network=network, name_digest=_digest(username)).first()
        if single is not None:
            _forgive(network, single.failures)
            single.delete()
        record(Actor.operator(username), "operator.sign_in", subject_type="operator", subject_id=username)


def fail(username: str, address: str) -> None:
    """Writes down a lock-out when this failure brought one. What was typed as a name may be a password: not kept."""
    network = network_of(address)
    single = SignInThrottle.objects.filter(network=network, name_digest=_digest(username)).first()
    if single is not None and single.failures == FAILURES_PER_NAME:
        record(Actor.system("sign-in"), "operator.lock_out", subject_type="network", subject_id=network)


def _row(network: str, name_digest: str, now: datetime) -> SignInThrottle:
    SignInThrottle.objects.get_or_create(network=network, name_digest=name_digest, defaults={"counted_since": now})
    return SignInThrottle.objects.select_for_update().get(network=network, name_digest=name_digest)


def _refuse_if_locked(row: SignInThrottle, now: datetime) -> None:
    if row.locked_until is not None and row.locked_until > now:
        seconds = int((row.locked_until - now).total_seconds()) + 1
        raise TooManyRequests("Too many failed attempts: try again later.", retry_after_seconds=seconds)


def _count(row: SignInThrottle, limit: int, now: datetime) -> None:
    if row.counted_since <= now - WINDOW or row.locked_until is not None:
        row.failures, row.counted_since, row.locked_until = 0, now, None
    row.failures += 1
    if row.failures >= limit:
        row.locked_until = now + WINDOW
    row.save()


def _forgive(network: str, failures: int) -> None:
    """The whole network's count without these; its lock goes too, since somebody there knew a password."""
    whole = _row(network, _EVERY_NAME, timezone.now())
    whole.failures = max(0, whole.failures - failures)
    whole.locked_until = None
    whole.save()


def _digest(username: str) -> str:
    """Keyed, so that the table cannot be tried against a list of names."""
    return hmac.new(settings.SECRET_KEY.encode(), username.casefold().encode(), hashlib.sha256).hexdigest()
