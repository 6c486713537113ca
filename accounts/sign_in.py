"""Limits on failed sign-ins of operators. The counts are database rows, which all processes share."""

import hashlib
import hmac
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from accounts.audit import Actor, record, record_anonymous
from accounts.models import SignInThrottle
from core.errors import TooManyRequests
from core.limits.rate_limit import network_of
from core.messages import Translatable as _

FAILURES_PER_NAME = 5
FAILURES_PER_NETWORK = 50
WINDOW = timedelta(minutes=15)
_ALL_NAMES = ""


def begin(username: str, address: str) -> None:
    """Count an attempt before its password is checked: concurrent guesses are counted too.

    After five failures from one network a name is locked for 15 minutes, after fifty all names are. The error is the
    same for names that exist and names that do not. Raises: `TooManyRequests`.
    """
    now = timezone.now()
    network = network_of(address)
    with transaction.atomic():
        forget_old(now)
        of_network = _row(network, _ALL_NAMES, now)
        of_name = _row(network, _digest(username), now)
        for row in (of_network, of_name):
            if row.locked_until is not None and row.locked_until > now:
                seconds = int((row.locked_until - now).total_seconds()) + 1
                raise TooManyRequests(_("Too many failed attempts. Try again later."), retry_after_seconds=seconds)
        for row, limit in ((of_network, FAILURES_PER_NETWORK), (of_name, FAILURES_PER_NAME)):
            if row.counted_since <= now - WINDOW or row.locked_until is not None:
                row.failures, row.counted_since, row.locked_until = 0, now, None
            row.failures += 1
            if row.failures >= limit:
                row.locked_until = now + WINDOW
            row.save()


def succeed(username: str, address: str) -> None:
    """Record a sign-in, and reset the failures of the name."""
    with transaction.atomic():
        forgive(username, address)
        record(Actor.operator(username), "operator.sign_in", username)


def forgive(username: str, address: str) -> None:
    """Reset the failures of a name, which has shown who it is, and unlock its network."""
    network = network_of(address)
    with transaction.atomic():
        of_name = SignInThrottle.objects.filter(network=network, name_digest=_digest(username)).first()
        if of_name is not None:
            of_network = _row(network, _ALL_NAMES, timezone.now())
            of_network.failures = max(0, of_network.failures - of_name.failures)
            of_network.locked_until = None
            of_network.save()
            of_name.delete()


def fail(username: str, address: str) -> None:
    """Record a failure, and a lock-out if it caused one."""
    record_failure(username, address)
    network = network_of(address)
    of_name = SignInThrottle.objects.filter(network=network, name_digest=_digest(username)).first()
    if of_name is not None and of_name.failures == FAILURES_PER_NAME:
        record_anonymous(Actor.system("sign-in"), "operator.lock_out", network, subject_type="network")


def record_failure(username: str, address: str, *, method: str = "password") -> None:
    """Record a failed or refused sign-in. Equal ones within ten minutes are one event with a count.

    Only the name of an operator is recorded: another may be a password.
    """
    known = User.objects.filter(username__iexact=username, is_staff=True).values_list("username", flat=True).first()
    detail = {"network": network_of(address), "method": method}
    record_anonymous(
        Actor.system("sign-in"), "operator.fail_sign_in", known or "", subject_type="operator", detail=detail
    )


def forget_old(now: datetime) -> None:
    """Delete counts that no limit needs any longer."""
    SignInThrottle.objects.filter(counted_since__lt=now - 2 * WINDOW).delete()


def _row(network: str, name_digest: str, now: datetime) -> SignInThrottle:
    SignInThrottle.objects.get_or_create(network=network, name_digest=name_digest, defaults={"counted_since": now})
    return SignInThrottle.objects.select_for_update().get(network=network, name_digest=name_digest)


def _digest(username: str) -> str:
    """Return a keyed digest: without the secret key, the table cannot be compared with a list of names."""
    return hmac.new(settings.SECRET_KEY.encode(), username.casefold().encode(), hashlib.sha256).hexdigest()
