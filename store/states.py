"""The state of a row, and since when it has it, as its open tombstones say.

`columns_of`, `columns_of_memory` and `resources.states` compute them, and `Target.refresh` writes them after
every decision and its end; `Target.wrong` checks rows by the same functions. The order is purged, trashed or
expired, superseded, live. A purge cannot end, so the row itself records it. What expires gets a deletion by
`store.ledger.EXPIRY`: no state depends on the clock.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from store import expiry
from store.ledger import EXPIRY, Tombstone
from store.models import Memory, Session, State, owned_by
from store.types import Owner

Columns = Mapping[str, Any]
_SCOPE: Final = ("user_id", "app_id", "project_id")
_Kind = Tombstone.Kind
_RANKS: Final = {kind: rank for rank, kind in enumerate(_Kind)}
_CHECKED_AT_ONCE: Final = 1000
_DELETIONS: Final = {_Kind.DELETED, _Kind.RESOURCE_DELETED}
_EXPIRY: Final = (EXPIRY.kind, EXPIRY.name)
_HAS_TIME: Final = Q(state_since__isnull=False)


IS_IN_TRASH: Final = Exists(
    Tombstone.objects.filter(**{name: OuterRef(name) for name in (*_SCOPE, "memory_id")}, undone_at__isnull=True)
)
"""Memories that a person deleted, which the trash lists."""


def deciding(tombstones: Iterable[Any]) -> Any:
    """Return the open tombstone that decides a row's state, None without tombstones."""
    return min(tombstones, key=lambda one: (_RANKS[one.kind], one.created_at), default=None)


def in_force(memory: Any, tombstones: Iterable[Any]) -> list[Any]:
    """Return the open tombstones that hide a memory: what a user's own text replaced is independent of its sources."""
    # Only a corrected source needs the text, which `Target` has not read.
    return [one for one in tombstones if one.kind != _Kind.SOURCE_CORRECTED or memory.text == memory.original_text]


def columns_of_memory(row: Any, tombstones: Sequence[Any]) -> Columns:
    """Return the columns of a memory."""
    return columns_of(row, in_force(row, tombstones))


def columns_of(row: Any, tombstones: Sequence[Any]) -> Columns:
    """Return the columns of a row with open tombstones."""
    if row.state == State.PURGED:
        return {"state": State.PURGED}
    if first := deciding(tombstones):
        return {"state": _state_of(first), "state_since": first.created_at}
    return {"state": State.LIVE, "state_since": None}


def _state_of(tombstone: Any) -> State:
    if tombstone.kind == _Kind.SUPERSEDED:
        return State.SUPERSEDED
    is_expiry = tombstone.kind in _DELETIONS and (tombstone.actor_kind, tombstone.actor) == _EXPIRY
    return State.EXPIRED if is_expiry else State.TRASHED


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of row that tombstones are about: those that meet `condition` and have the row's `name`, a column of both.

    `columns_of(row, tombstones)` reads the columns in `read`. `unlike_live` are rows that one of them contradicts if
    they are live.
    """

    name: str
    condition: Q
    columns_of: Callable[[Any, Sequence[Any]], Columns]
    read: tuple[str, ...]
    unlike_live: Q = _HAS_TIME

    def refresh(self, rows: QuerySet[Any], tombstones: QuerySet[Any] | None = None) -> int:
        """Set the columns of rows to what their open tombstones say; return how many rows have changed.

        Two statements, one for each group of equal new values, and one for each user of whom a row can expire. A
        migration gives the `tombstones` of its time.
        """
        groups: dict[tuple[tuple[str, Any], ...], list[Any]] = defaultdict(list)
        expiring: list[Any] = []
        for row, columns in self.wrong(rows, tombstones):
            groups[tuple(columns.items())].append(row.pk)
            if columns["state"] in expiry.EXPIRING_STATES:
                expiring.append(row)
        for values, keys in groups.items():
            QuerySet(rows.model, using=rows.db).filter(pk__in=keys).update(**dict(values))
        expiry.note(expiring)
        return sum(map(len, groups.values()))

    def wrong(self, rows: QuerySet[Any], tombstones: QuerySet[Any] | None = None) -> Iterator[tuple[Any, Columns]]:
        """Yield the rows whose columns differ from what their open tombstones say, with these. Two statements."""
        found = list(rows.order_by().only("pk", *_SCOPE, self.name, *self.read))
        tombstones = Tombstone.ledger.all() if tombstones is None else tombstones
        of_rows = tombstones.filter(self.condition, undone_at__isnull=True) if found else tombstones.none()
        of_rows = of_rows.filter(
            **{"user__in": {row.user_id for row in found}, f"{self.name}__in": [self._key(row)[-1] for row in found]}
        )
        by_key: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
        for one in of_rows:
            by_key[self._key(one)].append(one)
        for row in found:
            columns = self.columns_of(row, by_key[self._key(row)])
            if any(getattr(row, name) != value for name, value in columns.items()):
                yield row, columns

    def _key(self, row: Any) -> tuple[Any, ...]:
        return (*(getattr(row, name) for name in _SCOPE), getattr(row, self.name))

    def suspects(self, rows: QuerySet[Any], tombstones: QuerySet[Any] | None = None) -> Iterator[QuerySet[Any]]:
        """Yield the rows that are not live or have open tombstones, in parts: no other row can be wrong."""
        tombstones = Tombstone.ledger.all() if tombstones is None else tombstones
        outer = {name: OuterRef(name) for name in (*_SCOPE, self.name)}
        own = tombstones.filter(self.condition, undone_at__isnull=True, **outer)
        found = rows.filter(~Q(state=State.LIVE) | self.unlike_live | Exists(own)).order_by("pk")
        keys = list(found.values_list("pk", flat=True)[:_CHECKED_AT_ONCE])
        while keys:
            yield QuerySet(rows.model, using=rows.db).filter(pk__in=keys)
            keys = list(found.filter(pk__gt=keys[-1]).values_list("pk", flat=True)[:_CHECKED_AT_ONCE])


_READ: Final = ("expires_at", "state", "state_since")
MEMORIES: Final = Target("memory_id", Q(), columns_of_memory, _READ)
SESSIONS: Final = Target("session_id", Q(memory_id="", resource_id=""), columns_of, _READ)


def trash_with_time(rows: QuerySet[Any]) -> None:
    """Let rows that are live, but have the time of another state, be in the trash."""
    rows.filter(_HAS_TIME, state=State.LIVE).update(state=State.TRASHED)


def refresh_memories(owner: Owner, memory_ids: Collection[str]) -> None:
    """Refresh some memories of an owner."""
    if memory_ids:
        MEMORIES.refresh(Memory.objects.filter(owned_by(owner), memory_id__in=list(memory_ids)))


def refresh_sessions(owner: Owner, session_ids: Collection[str]) -> None:
    """Refresh some sessions of an owner."""
    SESSIONS.refresh(Session.objects.filter(owned_by(owner), session_id__in=list(session_ids)))
