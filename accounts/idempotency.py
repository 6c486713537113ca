"""Requests with an `Idempotency-Key`: claim a key, keep the result of its request, forget old keys.

A key is claimed by a row with a lease, committed before the request is carried out. The unique constraint decides
between concurrent requests. A claim whose process has ended is free again.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.models import IdempotencyKey, Principal
from core.background.leases import new_holder, renewed, take
from core.errors import Conflict, InvalidInput
from core.messages import Translatable as _

HEADER: Final = "Idempotency-Key"
MAX_KEY_CHARS: Final = 255
KEPT_FOR: Final = timedelta(hours=24)
LEASE: Final = timedelta(seconds=30)
_LONGEST_WAIT_SECONDS: Final = 30


@dataclass(frozen=True, slots=True)
class Claim:
    """A key that was claimed for one attempt. `kept` is what an interrupted attempt kept of its result."""

    row: IdempotencyKey
    kept: Mapping[str, Any]

    @property
    def held(self) -> QuerySet[IdempotencyKey]:
        """Return the row while it has this claim."""
        return IdempotencyKey.objects.filter(pk=self.row.pk, lease_holder=self.row.lease_holder, status=None)

    def settle(self, status: int, result: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Keep the result. Raises: `Conflict` if the claim was lost to another attempt."""
        values = {"status": status, "result": result, "headers": headers, "leased_until": None}
        if not self.held.update(**values):
            raise _still_running(self.row, timezone.now())


_current: ContextVar[Claim | None] = ContextVar("idempotency_claim", default=None)


def claim(
    principal: Principal, key: str, request_digest: str, *, now: datetime | None = None
) -> Claim | IdempotencyKey:
    """Claim a key for a request, or return the row of the same request if its result is kept.

    Raises: `InvalidInput` for an invalid key and for one of another request, `Conflict` while the request runs.
    """
    if not (0 < len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable()):
        raise InvalidInput.of_field(
            HEADER, _("must be 1 to %(number)s printable ASCII characters", number=MAX_KEY_CHARS)
        )
    now = now or timezone.now()
    fresh: dict[str, Any] = {
        "request_digest": request_digest,
        "status": None,
        "result": {},
        "headers": {},
        "created_at": now,
    }
    identity = {"user_id": principal.user_pk, "key_digest": sha256(key.encode()).hexdigest()}
    lease = {"lease_holder": new_holder(), "leased_until": now + LEASE}
    row, is_new = IdempotencyKey.objects.get_or_create(**identity, defaults=fresh | lease)
    if is_new:
        return Claim(row, {})
    is_old = row.created_at <= now - KEPT_FOR
    if not is_old and row.request_digest != request_digest:
        raise InvalidInput.of_field(HEADER, _("was used for another request: send a new key"))
    if not is_old and row.status is not None:
        return row
    kept = {} if is_old else row.result
    unchanged = IdempotencyKey.objects.filter(pk=row.pk, created_at=row.created_at, status=row.status)
    if not (taken := take(unchanged, 1, LEASE, now=now, **fresh | {"result": kept})):
        raise _still_running(row, now)
    return Claim(taken[0], kept)


@contextmanager
def carrying_out(claimed: Claim, *, in_transaction: bool, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Carry out the request inside the block, which settles the claim. After an exception the key is free again.

    What the attempt has kept stays for the next one: its change was committed.

    With `in_transaction`, the change and the result of the key are committed together. `before` is called before that.
    """
    token = _current.set(claimed)
    try:
        with renewed(claimed.held, LEASE):
            before()
            with transaction.atomic() if in_transaction else nullcontext():
                yield
    except BaseException:
        claimed.held.filter(result={}).delete()
        claimed.held.update(leased_until=None)
        raise
    finally:
        _current.reset(token)


def keep(**ids: str) -> None:
    """Keep ids of the result that the request has so far, if it has a key. Call in the transaction of its change."""
    if claimed := _current.get():
        claimed.held.update(result=ids)


def kept(name: str) -> str | None:
    """Return an id that an interrupted attempt of the request kept."""
    claimed = _current.get()
    return claimed.kept.get(name) if claimed else None


def forget_old(now: datetime) -> int:
    """Delete the keys of more than 24 hours ago, and return their number."""
    return IdempotencyKey.objects.filter(created_at__lte=now - KEPT_FOR).delete()[0]


def _still_running(row: IdempotencyKey, now: datetime) -> Conflict:
    """Return the error for a running request. Its `Retry-After` is the time that the request has taken so far."""
    seconds = min(max(1, round((now - row.created_at).total_seconds())), _LONGEST_WAIT_SECONDS)
    return Conflict(
        _(
            "A request with this %(header)s is still running. Repeat it in %(seconds)s s.",
            header=HEADER,
            seconds=seconds,
        ),
        retry_after_seconds=seconds,
    )
