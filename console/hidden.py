"""The reasons why memories are hidden, and the memories that caused it."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console import queries
from memories.models import Tombstone
from store.states import deciding, in_force
from store.types import StoredMemory

RESOURCE, SESSION = "resource", "session"
_Kind = Tombstone.Kind
_LABELS: Final[dict[str, Promise]] = {
    RESOURCE: _("Resource in trash"),
    SESSION: _("Session in trash"),
    _Kind.DELETED: _("In trash"),
    _Kind.SUPERSEDED: _("Superseded"),
    _Kind.SOURCE_DELETED: _("Source deleted"),
    _Kind.SOURCE_CORRECTED: _("Source edited"),
    _Kind.DERIVED_DELETED: _("Derived memory deleted"),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a memory is hidden.

    `kind` is that of the tombstone which decides, or that its `resource` or its `session` is deleted. `tombstone` is
    its own deletion. `others` are the newer memory, the deleted or edited sources, or the deleted derived memory.
    """

    kind: str
    tombstone: Tombstone | None = None
    others: tuple[StoredMemory, ...] = ()

    @property
    def label(self) -> Promise:
        return _("Expired") if self.tombstone and self.tombstone.is_expiry else _LABELS[self.kind]

    @property
    def is_of_gateway(self) -> bool:
        """Return True if the gateway hid it, False if a person did."""
        return self.kind not in {_Kind.DELETED, RESOURCE, SESSION}

    @property
    def can_be_restored(self) -> bool:
        """Return True if the memory itself can be restored, False if only its source, session or resource can."""
        return self.kind in {_Kind.DELETED, _Kind.SUPERSEDED, _Kind.DERIVED_DELETED}


def reasons_of(memories: Collection[StoredMemory]) -> dict[int, Reason]:
    """Return the reasons by row, for hidden memories only. At most three statements."""
    hidden = {memory.row: memory for memory in memories if not memory.is_live}
    in_sessions = [memory for memory in memories if memory.is_live and memory.is_session_hidden]
    trashed = queries.resources_in_trash(in_sessions)
    found = {one.row: Reason(RESOURCE if one.session_id in trashed else SESSION) for one in in_sessions}
    open_ones = _open_tombstones(hidden)
    in_force_by_row = {row: in_force(memory, open_ones[row]) for row, memory in hidden.items()}
    alike = {row: [one for one in ones if one.kind == deciding(ones).kind] for row, ones in in_force_by_row.items()}
    named = {row: [(hidden[row].owner, one.other_id) for one in ones if one.other_id] for row, ones in alike.items()}
    others = queries.stored_of(pair for pairs in named.values() for pair in pairs)
    for row, ones in alike.items():
        first = next(iter(ones), None)
        kind = first.kind if first else _Kind.DELETED
        known = tuple(others[pair] for pair in named[row] if pair in others)
        found[row] = Reason(kind, first if kind == _Kind.DELETED else None, known)
    return found


def _open_tombstones(rows: Collection[int]) -> defaultdict[int, list[Tombstone]]:
    found: defaultdict[int, list[Tombstone]] = defaultdict(list)
    for one in Tombstone.ledger.filter(row__in=rows, undone_at__isnull=True) if rows else ():
        found[one.row_id or 0].append(one)
    return found


def tombstones_of(rows: Collection[int]) -> dict[int | None, Tombstone]:
    """Return the active tombstones by row."""
    found = Tombstone.objects.filter(row__in=rows, undone_at__isnull=True) if rows else ()
    return {tombstone.row_id: tombstone for tombstone in found}
