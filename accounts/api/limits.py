"""Rate limits for keys and addresses: in the memory of each process, or in Redis for all gateways together.

Every endpoint that takes a key or a token looks it up first: a valid one passes even if its address is at its limit.
`count_failure` counts an invalid one and raises 429 instead of 401 beyond the limit. An invalid key costs at most one
indexed read, and none if the text has not the form of a key.
"""

import math
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.core.cache import cache as process_cache
from django.utils.module_loading import import_string

from accounts import oauth, services
from accounts.models import Principal
from core.errors import TooManyRequests, Unauthenticated
from core.limits.rate_limit import TokenBuckets, network_of
from core.messages import Translatable as _

_USER_CACHE_SECONDS = 600
_USER_OF_KEY = "user-of-key:{}".format
_Found = TypeVar("_Found", Principal, oauth.Access)


class Limits(NamedTuple):
    """The buckets, by the digest of a key or the network of an address."""

    per_key: TokenBuckets
    failures: TokenBuckets
    anonymous: TokenBuckets
    registrations: TokenBuckets


def current() -> Limits:
    return _limits(
        per_key=settings.MEMORY_GATEWAY_RATE_LIMIT_PER_MINUTE,
        failures=settings.FAILED_AUTHENTICATIONS_PER_MINUTE,
        anonymous=settings.ANONYMOUS_REQUESTS_PER_MINUTE,
        registrations=settings.CLIENT_REGISTRATIONS_PER_MINUTE,
    )


@cache
def _limits(**per_minute: int) -> Limits:
    """Return new buckets for these limits per minute, 0 for no limit."""
    counter = shared_counter()
    return Limits(
        **{name: counter.buckets(limit, name) if counter else TokenBuckets(limit) for name, limit in per_minute.items()}
    )


@cache
def shared_counter() -> Any:
    """Return the counter of Redis; None without `MEMORY_GATEWAY_REDIS_URL`.

    Raises: `ImportError` without the extra `redis`.
    """
    url = settings.MEMORY_GATEWAY_REDIS_URL
    return import_string("core.limits.shared_limits.RedisCounter")(url) if url else None


def authenticate(address: str, key: str, user_id: str | None = None) -> Principal:
    """Return `services.authenticate` within the limits. Raises: as `_within_limits`."""
    return _within_limits(address, key, partial(services.authenticate, key, user_id))


def authenticate_token(address: str, token: str, resource: str) -> oauth.Access:
    """Return `oauth.authenticate` within the limits. Raises: as `_within_limits`."""
    return _within_limits(address, token, partial(oauth.authenticate, token, resource))


def _within_limits(address: str, credential: str, look_up: Callable[[], _Found]) -> _Found:
    """Look a credential up, and remember whose it is for `caller_of`.

    Raises: `Unauthenticated`; `TooManyRequests` for a valid credential beyond its limit, and for an invalid one if its
    address has sent too many invalid ones.
    """
    limits, name = current(), services.digest_of(credential)
    wait = limits.per_key.wait_seconds(name)  # without SQL: only valid credentials have a bucket
    if not wait:
        try:
            found = look_up()
        except Unauthenticated:
            process_cache.delete(_USER_OF_KEY(name))
            count_failure(address)
            raise
        principal = found.principal if isinstance(found, oauth.Access) else found
        process_cache.set(_USER_OF_KEY(name), principal.user_pk, _USER_CACHE_SECONDS)
        wait = limits.per_key.take(name)
    if wait:
        raise _too_many(
            _("This API key has made %(number)s requests within a minute.", number=limits.per_key.per_minute), wait
        )
    return found


def caller_of(key: str) -> Hashable:
    """Return the user of a key or token that was valid in the last minutes, otherwise its digest."""
    name = services.digest_of(key)
    caller: Hashable = process_cache.get(_USER_OF_KEY(name), name)
    return caller


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


def count_registration(address: str) -> None:
    """Count the registration of an OAuth client. Raises: `TooManyRequests` if its address has made too many."""
    wait = current().registrations.take(network_of(address))
    if wait:
        raise _too_many(_("Too many applications registered from this address."), wait)


def _too_many(sentence: str, wait_seconds: float) -> TooManyRequests:
    seconds = math.ceil(wait_seconds)
    return TooManyRequests(
        _("%(sentence)s Try again in %(seconds)s s.", sentence=sentence, seconds=seconds), retry_after_seconds=seconds
    )
