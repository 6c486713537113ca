"""Check that the states of all rows are what their open decisions say, and make them so."""

from collections.abc import Iterator
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import MemoryUser
from resources.models import Resource
from resources.states import RESOURCES
from store.ledger import Override, Tombstone
from store.ledger_fill import Tables, fill
from store.models import Memory, Session
from store.states import MEMORIES, SESSIONS, Target

_TARGETS: Final[tuple[tuple[Target, type[Any]], ...]] = (
    (MEMORIES, Memory),
    (SESSIONS, Session),
    (RESOURCES, Resource),
)


def differences(user: MemoryUser | None = None) -> Iterator[str]:
    """Yield what differs from the open decisions of a user, or of all users."""
    for target, model in _TARGETS:
        for part in target.suspects(_rows(model, user)):
            for row, columns in target.wrong(part):
                wrong = {name: getattr(row, name) for name, value in columns.items() if getattr(row, name) != value}
                yield f"{model._meta.verbose_name} {row.pk}: {wrong} instead of {dict(columns)}"  # noqa: SLF001
    ended = Tombstone.ledger.filter(undone_at__isnull=False).values("pk")
    for one in _rows(Tombstone, user).filter(undone_at__isnull=True, cause__in=ended):
        yield f"tombstone {one.pk}: open, but {one.cause} has ended"


def repair(user: MemoryUser | None = None) -> None:
    """Add tombstones for what only other columns say, then set the states. Nothing hidden is shown."""
    fill(Tables(*(_rows(model, user) for model in (Tombstone, Override, Memory, Session, Resource))))
    for target, model in _TARGETS:
        for part in target.suspects(_rows(model, user)):
            with transaction.atomic():
                target.refresh(part)


def _rows(model: type[Any], user: MemoryUser | None) -> QuerySet[Any]:
    return QuerySet(model).filter(Q() if user is None else Q(user=user))
