"""The reasons why memories are hidden, and the memories that caused it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, cast

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console import queries
from memories.models import Tombstone
from store.types import Owner, StoredMemory

Kind = Literal["deleted", "resource", "session", "superseded", "with_source", "reworded"]
_LABELS: Final[dict[Kind, Promise]] = {
    "deleted": _("In trash"),
    "resource": _("Resource in trash"),
    "session": _("Session in trash"),
    "superseded": _("Superseded"),
    "with_source": _("Source deleted"),
    "reworded": _("Source edited"),
}


@dataclass(frozen=True, slots=True)
class HiddenReason:
    """The reason why a memory is hidden.

    `kind` is `deleted` by a person (see `tombstone`), deleted with its `resource` or its `session`, `superseded` by a
    newer memory, `with_source` if a memory that it was derived from is hidden, or `reworded` if one of these was
    edited. `others` are the newer memory, or the sources.
    """

    kind: Kind
    tombstone: Tombstone | None = None
    others: tuple[StoredMemory, ...] = ()

    @property
    def label(self) -> Promise:
        return _LABELS[self.kind]

    @property
    def is_hidden_by_gateway(self) -> bool:
        """Return True if the gateway hid it, False if a person did."""
        return self.kind not in {"deleted", "resource", "session"}

    @property
    def can_be_restored(self) -> bool:
        """Return True if the memory itself can be restored, False if only its source, session or resource can."""
        return self.kind in {"deleted", "superseded"}


def hidden_reasons(memories: Collection[StoredMemory]) -> dict[int, HiddenReason]:
    """Return the reasons by row, for hidden memories only. At most three statements."""
    kinds: dict[int, Kind] = {}
    named: dict[int, list[tuple[Owner, str]]] = {}
    in_sessions: list[StoredMemory] = []
    for memory in memories:
        if memory.hidden_at is None:
            if memory.is_session_hidden:
                kinds[memory.row] = "session"
                in_sessions.append(memory)
            continue
        kind = kinds[memory.row] = cast("Kind", memory.hidden_reason or "deleted")
        if kind != "deleted":
            ids = [memory.superseded_by] if kind == "superseded" else memory.sources
            named[memory.row] = [(memory.owner, memory_id) for memory_id in ids if memory_id]
    trashed = queries.resources_in_trash(in_sessions)
    kinds |= {memory.row: "resource" for memory in in_sessions if memory.session_id in trashed}
    tombstones = tombstones_of([row for row, kind in kinds.items() if kind == "deleted"])
    others = queries.stored_of(pair for pairs in named.values() for pair in pairs)
    found = {}
    for row, kind in kinds.items():
        known = [others[pair] for pair in named.get(row, ()) if pair in others]
        causes = tuple(other for other in known if kind != "with_source" or other.hidden_at is not None)
        found[row] = HiddenReason(kind, tombstones.get(row), causes)
    return found


def tombstones_of(rows: Collection[int]) -> dict[int | None, Tombstone]:
    """Return the active tombstones by row."""
    found = Tombstone.objects.filter(row__in=rows, undone_at__isnull=True) if rows else ()
    return {tombstone.row_id: tombstone for tombstone in found}
