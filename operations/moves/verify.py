"""Looking, after a move, whether everything is as it must be."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.db.models import F

from memories.models import Override, Tombstone
from operations.moves.plan import EngineName, Target, sessions_of, to_move
from store.models import Memory


@dataclass(frozen=True, slots=True)
class Verified:
    """How many sessions are still elsewhere, tombstones hide nothing, corrections do not read as corrected, and
    memories of ours are not in the index."""

    sessions_left: int
    tombstones_without_effect: int
    overrides_without_effect: int
    memories_not_indexed: int

    @property
    def is_ok(self) -> bool:
        return not any(self.as_dict().values())

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def verify(target: Target, into: EngineName | None) -> Verified:
    """Four counts."""
    sessions = sessions_of(target)
    tombstones = Tombstone.objects.filter(row__session__in=sessions, undone_at__isnull=True)
    overrides = Override.objects.filter(row__session__in=sessions, undone_at__isnull=True)
    return Verified(
        sessions_left=to_move(target, into).count() if into else 0,
        tombstones_without_effect=tombstones.filter(row__hidden_at__isnull=True).count(),
        overrides_without_effect=overrides.exclude(row__text=F("text")).count(),
        memories_not_indexed=Memory.objects.filter(
            session__in=sessions, origin=Memory.Origin.EMBEDDED, is_indexed=False
        ).count(),
    )
