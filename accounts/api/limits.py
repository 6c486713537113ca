"""Rate limits for keys and addresses, in the memory of each process.

Every endpoint that takes a key or a token looks it up first: a valid one passes even if its address is at its limit.
`count_failure` counts an invalid one and raises 429 instead of 401 beyond the limit. An invalid key costs at most one
indexed read, and none if the text has not the form of a key.
"""

import math
from collections.abc import Hashable
from functools import cache
from typing import NamedTuple

from django.conf import settings

from accounts import services
from accounts.models import Principal
from core.errors import TooManyRequests, Unauthenticated
from core.messages import Message as _
from core.rate_limit import Recent, TokenBuckets, network_of

_USER_CACHE_SECONDS = 600.0


class Limits(NamedTuple):
    """The buckets of one process, by the digest of a key or the network of an address; `users` by the digest."""

    per_key: TokenBuckets
    failures: TokenBuckets
    anonymous: TokenBuckets
    users: Recent


def current() -> Limits:
    return _limits(
        settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE,
        settings.FAILED_AUTHENTICATIONS_PER_MINUTE,
        settings.ANONYMOUS_REQUESTS_PER_MINUTE,
    )


@cache
def _limits(per_key: int, failures: int, anonymous: int) -> Limits:
    """Return new buckets for these limits per minute, 0 for no limit."""
    return Limits(TokenBuckets(per_key), TokenBuckets(failures), TokenBuckets(anonymous), Recent(_USER_CACHE_SECONDS))


def authenticate(address: str, key: str, user_id: str | None = None) -> Principal:
    """Return `services.authenticate` within the limits.

    Raises: `Unauthenticated`; `TooManyRequests` for a valid key beyond its limit, and for an invalid one if its address
    has sent too many invalid ones.
    """
    limits, name = current(), services.digest_of(key)
    wait = limits.per_key.wait_seconds(name)  # without SQL: only valid keys have a bucket
    if not wait:
        try:
            principal = services.authenticate(key, user_id)
        except Unauthenticated:
            limits.users.forget(name)
            count_failure(address)
            raise
        limits.users.note(name, principal.user_pk)
        wait = limits.per_key.take(name)
    if wait:
        raise _too_many(
            _("This API key has made %(number)s requests within a minute.", number=limits.per_key.per_minute), wait
        )
    return principal


def caller_of(key: str) -> Hashable:
    """Return the user of a key that was valid in the last minutes, otherwise the key's digest."""
    name = services.digest_of(key)
    return current().users.get(name, name)


def count_failure(address: str) -> None:
    """Count an invalid key or token. Raises: `TooManyRequests` if its address has sent too many."""
    wait = current().failures.take(network_of(address))
    if wait:
        raise _too_many(_("Too many failed attempts came from this address."), wait)


def count_anonymous(address: str) -> None:
    """Count a request without valid credentials. Raises: `TooManyRequests` if its address has sent too many."""
    wait = current().anonymous.take(network_of(address))
    if wait:
        raise _too_many(_("Too many requests without a key came from this address."), wait)


def _too_many(sentence: str, wait_seconds: float) -> TooManyRequests:
    seconds = math.ceil(wait_seconds)
    return TooManyRequests(
        _("%(sentence)s Try again in %(seconds)s s.", sentence=sentence, seconds=seconds), retry_after_seconds=seconds
    )
