"""How often a key may call, and an address that has not shown one. In memory, per process, without any SQL.

Whoever guesses is stopped before the database is asked. A key that worked lately passes all the same, so that somebody
behind the same address cannot lock others out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from functools import cache

from django.conf import settings
from django.http import HttpRequest

from accounts import services
from accounts.principal import Principal
from memory_gateway.core.errors import TooManyRequests, Unauthenticated
from memory_gateway.core.networks import network_of
from memory_gateway.core.ratelimit import Recent, TokenBuckets

PROVEN_SECONDS = 600.0


class Limits:
    """The buckets of one process. Keys are known by their digest, addresses by their network."""

    def __init__(self, *, per_key: int, failures: int, anonymous: int) -> None:
        """All three in times per minute, 0 for no limit: requests per key; failed credentials and requests without
        working ones, per address."""
        self.per_key = TokenBuckets(per_key)
        self.failures = TokenBuckets(failures)
        self.anonymous = TokenBuckets(anonymous)
        self.proven = Recent(PROVEN_SECONDS)


def current() -> Limits:
    """The limits that the settings ask for."""
    return _limits(
        settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE,
        settings.FAILED_AUTHENTICATIONS_PER_MINUTE,
        settings.ANONYMOUS_REQUESTS_PER_MINUTE,
    )


def authenticate(request: HttpRequest, key: str, user_id: str | None = None) -> Principal:
    """`services.authenticate` within the limits.

    Failures are counted once they are known: of simultaneous guesses each that runs already is still answered.
    Errors: `TooManyRequests`, before any SQL; `Unauthenticated`.
    """
    limits, name = current(), _digest(key)
    is_proven = name in limits.proven
    if is_proven:
        _require_token(limits.per_key, name)
    else:
        _refuse_guessing(limits, _network(request))
    try:
        principal = services.authenticate(key, user_id)
    except Unauthenticated:
        limits.proven.forget(name)
        limits.failures.take(_network(request))
        raise
    limits.proven.note(name, principal.user_pk)
    if not is_proven:
        _require_token(limits.per_key, name)
    return principal


def caller_of(key: str) -> Hashable:
    """Whose key it is where it worked lately, else a name of its own."""
    name = _digest(key)
    return current().proven.get(name, name)


def count_failure(request: HttpRequest) -> None:
    """After credentials of another kind were wrong. Errors: `TooManyRequests` if that happened too often."""
    limits, network = current(), _network(request)
    _refuse_guessing(limits, network)
    limits.failures.take(network)


def count_anonymous(request: HttpRequest) -> None:
    """For a request without working credentials. Errors: `TooManyRequests` if its address sends too many."""
    wait = current().anonymous.take(_network(request))
    if wait:
        raise _too_many("Too many requests without a key came from this address.", wait)


def _require_token(buckets: TokenBuckets, name: bytes) -> None:
    wait = buckets.take(name)
    if wait:
        raise _too_many(f"A key may make {buckets.per_minute} requests a minute.", wait)


def _refuse_guessing(limits: Limits, network: str) -> None:
    wait = limits.failures.wait_seconds(network)
    if wait:
        raise _too_many("Too many failed attempts came from this address.", wait)


def _too_many(sentence: str, wait_seconds: float) -> TooManyRequests:
    seconds = math.ceil(wait_seconds)
    return TooManyRequests(f"{sentence} Try again in {seconds} s.", retry_after_seconds=seconds)


def _network(request: HttpRequest) -> str:
    return network_of(request.META.get("REMOTE_ADDR", ""))


def _digest(key: str) -> bytes:
    """Keys do not lie in memory in the clear."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


@cache
def _limits(per_key: int, failures: int, anonymous: int) -> Limits:
    return Limits(per_key=per_key, failures=failures, anonymous=anonymous)
