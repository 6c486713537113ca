"""The record of refused uploads, from which operators see what users could not store and why."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from core.errors import GatewayError
from resources.models import RefusedUpload
from resources.services.receiving import clean_filename
from store.models import owner_columns
from store.types import Owner

KEPT: Final = timedelta(days=30)
STATUSES: Final = frozenset({413, 415, 422})
MAX_OF_A_DAY: Final = 1_000
"""The refusals of one user that are recorded in a day: a client in a loop must not fill the disk."""


class Incoming:
    """The name and the size of a file, as far as they were read before it was refused."""

    filename = ""
    size_bytes: int | None = None


@contextmanager
def recorded_refusals(owner: Owner, incoming: Incoming) -> Iterator[None]:
    """Record an error that refuses the file, and raise it again."""
    try:
        yield
    except GatewayError as error:
        if error.status in STATUSES:
            _record(owner, incoming, error)
        raise


def _record(owner: Owner, incoming: Incoming, error: GatewayError) -> None:
    now = timezone.now()
    of_day = RefusedUpload.objects.filter(user=owner.user_pk, at__gt=now - timedelta(days=1))
    if of_day.count() >= MAX_OF_A_DAY:
        return
    RefusedUpload.objects.create(
        **owner_columns(owner),
        at=now,
        filename=clean_filename(incoming.filename) if incoming.filename else "",
        size_bytes=incoming.size_bytes,
        status=error.status,
        reason=error.errors[0].message if error.errors else error.detail,
    )


def delete_old(now: datetime) -> None:
    RefusedUpload.objects.filter(at__lt=now - KEPT).delete()
