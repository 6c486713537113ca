"""Rate limits for keys and addresses, in the memory of each process.

Every endpoint that takes a key or a token looks it up first: a valid one passes, whatever else its address sends. A
refused one is counted by `count_failure`, which answers 429 in the place of 401 beyond the limit. A refusal costs at
most one indexed read, and none where the text cannot be a key.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from functools import cache

from django.conf import settings

from accounts import services
from accounts.principal import Principal
from core.errors import TooManyRequests, Unauthenticated
from core.networks import network_of
from core.rate_limit import Recent, TokenBuckets

_USER_KNOWN_SECONDS = 600.0


class Limits:
    """The buckets of one process. Keys are named by their digest, addresses by their network."""

    def __init__(self, *, per_key: int, failures: int, anonymous: int) -> None:
        """All three in times per minute, 0 for no limit: requests per key; refused credentials and requests without
        credentials, per address."""
        self.per_key = TokenBuckets(per_key)
        self.failures = TokenBuckets(failures)
        self.anonymous = TokenBuckets(anonymous)
        self.users = Recent(_USER_KNOWN_SECONDS)


def current() -> Limits:
    """The limits that the settings ask for."""
    return _limits(
        settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE,
        settings.FAILED_AUTHENTICATIONS_PER_MINUTE,
        settings.ANONYMOUS_REQUESTS_PER_MINUTE,
    )


def authenticate(address: str, key: str, user_id: str | None = None) -> Principal:
    """`services.authenticate` within the limits.

    Errors: `Unauthenticated`; `TooManyRequests` for a valid key beyond its own limit, and for an invalid one whose
    address sent too many.
    """
    limits, name = current(), _digest(key)
    _require_key_limit(limits, limits.per_key.wait_seconds(name))  # without SQL: only valid keys have a bucket
    try:
        principal = services.authenticate(key, user_id)
    except Unauthenticated:
        limits.users.forget(name)
        count_failure(address)
        raise
    limits.users.note(name, principal.user_pk)
    _require_key_limit(limits, limits.per_key.take(name))
    return principal


def caller_of(key: str) -> Hashable:
    """The user of a key that was valid lately, otherwise the key's digest."""
    name = _digest(key)
    return current().users.get(name, name)


def count_failure(address: str) -> None:
    """Count a key or token that was refused. Errors: `TooManyRequests` if its address sent too many."""
    wait = current().failures.take(network_of(address))
    if wait:
        raise _too_many("Too many failed attempts came from this address.", wait)


def count_anonymous(address: str) -> None:
    """Count a request without valid credentials. Errors: `TooManyRequests` if its address sent too many."""
    wait = current().anonymous.take(network_of(address))
    if wait:
        raise _too_many("Too many requests without a key came from this address.", wait)


def _require_key_limit(limits: Limits, wait: float) -> None:
    if wait:
        raise _too_many(f"A key may make {limits.per_key.per_minute} requests a minute.", wait)


def _too_many(sentence: str, wait_seconds: float) -> TooManyRequests:
    seconds = math.ceil(wait_seconds)
    return TooManyRequests(f"{sentence} Try again in {seconds} s.", retry_after_seconds=seconds)


def _digest(key: str) -> bytes:
    """Keys do not lie in memory in the clear."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


@cache
def _limits(per_key: int, failures: int, anonymous: int) -> Limits:
    return Limits(per_key=per_key, failures=failures, anonymous=anonymous)
