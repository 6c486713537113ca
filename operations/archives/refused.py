"""Leave out of an archive what the user whom it replaces wants never remembered.

What that user has still is kept: they saw it when they chose what is never remembered, and did not delete it.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from django.db.models import QuerySet

from accounts.controls import Never, never_of
from accounts.models import MemoryUser
from operations.cleanup import purge
from store.admission import is_never_kept, offer_of
from store.models import IS_PURGED, Memory, State
from store.types import Owner

_Named = tuple[str, str, str, str]
"""The app, the project, the id and the text of a memory."""


@dataclass(frozen=True, slots=True)
class NeverKept:
    """The words and topics that a replaced user wants never remembered, and the live memories with them."""

    never: Never
    kept: frozenset[_Named]

    @classmethod
    def of(cls, user: MemoryUser) -> Self:
        never = never_of(user.pk)
        live = _rows(user).filter(state=State.LIVE) if never else Memory.objects.none()
        return cls(never, frozenset(_named(one) for one in live.iterator() if is_never_kept(never, offer_of(one))))

    def take_out(self, user: MemoryUser) -> int:
        """Empty the imported memories that are never kept. Call in the transaction that saves them."""
        if not self.never:
            return 0
        found: defaultdict[Owner, list[int]] = defaultdict(list)
        for one in _rows(user).iterator():
            if _named(one) not in self.kept and is_never_kept(self.never, offer_of(one)):
                found[Owner(user.pk, user.user_id, one.app_id, one.project_id)].append(one.pk)
        return sum(purge.empty(owner, rows) for owner, rows in found.items())


def _rows(user: MemoryUser) -> QuerySet[Memory]:
    return Memory.objects.filter(~IS_PURGED, user=user).order_by("pk")


def _named(memory: Memory) -> _Named:
    return memory.app_id, memory.project_id, memory.memory_id, memory.text
