"""Carrying decisions over: what was deleted stays gone and what was corrected reads as corrected, in new memories too.

An old memory whose decisions cannot stand on one new memory stays itself, as one of ours: a correction of what is
several memories now, and what nothing new resembles. New memories that say again what was deleted or corrected are held
back by tombstones of their own, which people find in the trash and can undo.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils import timezone

from core.errors import Conflict
from memories.models import Override, OverrideRevision, Tombstone
from operations.moves.matching import Match
from store.models import Memory, owned_by
from store.table import MemoryTable
from store.types import Owner, Wording

RETOLD: Final = "Says again what {} says, which was deleted or corrected before a move to another engine."
OVERLAPS: Final = "Resembles {}, which a move to another engine could not match: restore it, or leave it deleted."


@dataclass(slots=True)
class Carried:
    """What became of the decisions of a session. `unmatched` names those that nothing new resembled, without text."""

    carried: int = 0
    kept: int = 0
    unmatched: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided about one old memory, undone decisions among it."""

    tombstones: Sequence[Tombstone]
    overrides: Sequence[Override]

    @property
    def tombstone(self) -> Tombstone | None:
        return next((item for item in self.tombstones if item.undone_at is None), None)

    @property
    def override(self) -> Override | None:
        return next((item for item in self.overrides if item.undone_at is None), None)

    @property
    def in_force(self) -> int:
        return (self.tombstone is not None) + (self.override is not None)


NOTHING: Final = Decided((), ())


def decided(owner: Owner, memory_ids: Iterable[str]) -> dict[str, Decided]:
    """What was decided about memories of an owner, by memory id. Two statements."""
    tombstones: defaultdict[str, list[Tombstone]] = defaultdict(list)
    overrides: defaultdict[str, list[Override]] = defaultdict(list)
    wanted = list(memory_ids)
    for tombstone in Tombstone.objects.filter(owned_by(owner), memory_id__in=wanted):
        tombstones[tombstone.memory_id].append(tombstone)
    for override in Override.objects.filter(owned_by(owner), memory_id__in=wanted):
        overrides[override.memory_id].append(override)
    return {
        memory_id: Decided(tombstones[memory_id], overrides[memory_id])
        for memory_id in tombstones.keys() | overrides.keys()
    }


def staying(olds: Iterable[str], decisions: Mapping[str, Decided], found: Mapping[str, Match]) -> set[str]:
    """Which old memories have to stay, because their decisions fit no single new one that is still free."""
    staying, corrected = set(), set()
    for memory_id in olds:
        about, names = decisions.get(memory_id, NOTHING), found[memory_id].memory_ids
        if about.in_force and not names:
            staying.add(memory_id)
        elif about.override is not None:
            if len(names) > 1 or names[0] in corrected:
                staying.add(memory_id)
            else:
                corrected.add(names[0])
    return staying


def detach(decisions: Iterable[Decided]) -> None:
    """Lets decisions outlive the rows that they were made about. Call before these go."""
    items = list(decisions)
    Tombstone.objects.filter(pk__in=[one.pk for item in items for one in item.tombstones]).update(row=None)
    Override.objects.filter(pk__in=[one.pk for item in items for one in item.overrides]).update(row=None)


class Carrier:
    """Puts decisions on the new memories of one session; call inside the transaction that makes these."""

    def __init__(self, owner: Owner, session_id: str) -> None:
        self._owner = owner
        self._session_id = session_id
        self._table = MemoryTable()
        rows = Memory.objects.filter(owned_by(owner), session__session_id=session_id)
        self._rows = {row.memory_id: row for row in rows}
        already = Tombstone.objects.filter(owned_by(owner), undone_at__isnull=True, row__in=list(self._rows.values()))
        self._buried = set(already.values_list("memory_id", flat=True))
        self.result = Carried()

    def carry(self, old: Memory, decisions: Decided, found: Match) -> None:
        """Puts the decisions about an old memory, which is no more, on those that it is now."""
        new, tombstone, in_force = self._found(found.memory_ids), decisions.tombstone, decisions.in_force
        if in_force and not new:
            raise Conflict("A decision has lost the memory that it is to be carried to.")
        self._carry_category(old, decisions, new)
        if new:
            self._rekey(decisions, new[0])
        if tombstone is not None:
            self._bury(new, tombstone, tombstone.reason)
            self._leave_mark(old, tombstone)
        self.result.carried += in_force

    def hold_back(self, old: Memory, decisions: Decided, found: Match, *, is_matched: bool) -> None:
        """Hides what says again what an old memory says that stays, if this was deleted or corrected. `is_matched`: it
        stays for another reason than that nothing new resembles it."""
        model = decisions.tombstone or decisions.override
        if model is None:
            return
        reason = (RETOLD if found.memory_ids else OVERLAPS).format(old.memory_id)
        hidden = self._bury(self._found(found.memory_ids or found.overlapping), model, reason)
        self.result.kept += decisions.in_force
        if not found.memory_ids and not is_matched:
            self.result.unmatched.append(self._finding(old, decisions, hidden))

    def _found(self, memory_ids: Iterable[str]) -> list[Memory]:
        return [self._rows[memory_id] for memory_id in memory_ids if memory_id in self._rows]

    def _finding(self, old: Memory, decisions: Decided, hidden: list[str]) -> dict[str, Any]:
        return {
            "memory_id": old.memory_id,
            "tombstone_id": decisions.tombstone.tombstone_id if decisions.tombstone else "",
            "override_id": decisions.override.override_id if decisions.override else "",
            "hides": hidden,
        }

    def _rekey(self, decisions: Decided, new: Memory) -> None:
        is_free = new.memory_id not in self._buried
        for tombstone in decisions.tombstones:
            tombstone.memory_id, tombstone.row = new.memory_id, new
            if not is_free:  # deleted already, which one tombstone says
                tombstone.undone_at = tombstone.undone_at or timezone.now()
            tombstone.save(update_fields=["memory_id", "row", "undone_at"])
        if decisions.tombstone is not None and is_free:
            self._buried.add(new.memory_id)
            self._table.hide(self._owner, [new.memory_id], decisions.tombstone.created_at)
        for override in decisions.overrides:
            self._rekey_override(override, new)

    def _rekey_override(self, override: Override, new: Memory) -> None:
        """The new memory's own words become what the correction can be undone to."""
        was_reworded = override.text != override.original_text
        override.memory_id, override.row, override.original_text = new.memory_id, new, new.text
        override.text = override.text if was_reworded else new.text
        override.save(update_fields=["memory_id", "row", "original_text", "text"])
        first = OverrideRevision.objects.filter(override=override, number=0)
        first.update(text=new.text, category=new.category, importance=new.importance)
        if override.undone_at is None:
            last = override.revisions.order_by("number").last() or new
            wording = Wording(override.text, last.category, last.importance)
            self._table.replace(self._owner, {new.memory_id: wording})

    def _bury(self, rows: Iterable[Memory], model: Tombstone | Override, reason: str) -> list[str]:
        """Tombstones for all that have none, by whoever decided first; the ids of those that got one."""
        made = []
        for row in rows:
            if row.memory_id in self._buried:
                continue
            self._buried.add(row.memory_id)
            self._make_tombstone(row.memory_id, row, model, reason)
            self._table.hide(self._owner, [row.memory_id], model.created_at)
            made.append(row.memory_id)
        return made

    def _leave_mark(self, old: Memory, model: Tombstone) -> None:
        """A search that asked an upstream before this moment looks at decisions after it: the old id stays deleted."""
        if old.memory_id not in self._rows:
            self._make_tombstone(old.memory_id, None, model, model.reason)

    def _make_tombstone(self, memory_id: str, row: Memory | None, model: Tombstone | Override, reason: str) -> None:
        tombstone = Tombstone.objects.create(
            user_id=self._owner.user_pk,
            app_id=self._owner.app_id,
            project_id=self._owner.project_id,
            session_id=self._session_id,
            memory_id=memory_id,
            row=row,
            reason=reason,
            actor_kind=model.actor_kind,
            actor=model.actor,
        )
        Tombstone.objects.filter(pk=tombstone.pk).update(created_at=model.created_at)

    def _carry_category(self, old: Memory, decisions: Decided, new: Sequence[Memory]) -> None:
        """What an upstream's memory is filed under was somebody's choice: it knows no categories itself."""
        if old.category and decisions.override is None:
            for row in new:
                row.category = old.category
            wordings = {row.memory_id: Wording(row.text, old.category, row.importance) for row in new}
            self._table.replace(self._owner, wordings)
