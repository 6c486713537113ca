"""Replace old memories by new ones in one session, and transfer deletions and overrides to the new ones.

An old memory with a decision that fits no single new memory stays, as a memory of the embedded engine: if its override
would apply to several memories, or if no new one matches. New memories that repeat a deleted or overridden one that
stays are hidden by tombstones, which users find in the trash and can undo.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from django.utils import timezone

from core.errors import Conflict, EngineUnavailable
from engines.registry import local_engine
from memories.models import Override, OverrideRevision, Tombstone
from store import derived_memories, storage
from store.models import Memory, Session, owned_by, owner_columns
from store.port import Replay
from store.table import MemoryTable
from store.text.matching import Match, Text, match
from store.types import Owner, Wording

REPEATS: Final = "Repeats {}, which was deleted or overridden before a move to another engine."
OVERLAPS: Final = "Resembles {}, which a move to another engine could not match. Restore it, or leave it deleted."


class Changed(EngineUnavailable):
    """Raised if messages or decisions of the session changed meanwhile. Try again."""


@dataclass(slots=True)
class Moved:
    """The counts of one session.

    Messages: `messages` were replayed. Memories: `made` are new, `replaced` old ones were removed, `stayed` old ones
    remain. Decisions: `carried` were transferred to new memories, `kept` remain on old ones; `unmatched` lists those
    without a similar new memory.
    """

    messages: int = 0
    made: int = 0
    replaced: int = 0
    stayed: int = 0
    carried: int = 0
    kept: int = 0
    unmatched: list[dict[str, Any]] = field(default_factory=list)


OnMoved = Callable[[Moved], None]
"""A callback inside the transaction that moves a session."""


class Decisions:
    """Tombstones and overrides of an owner by memory id, including undone ones. Reads them with two SQL statements."""

    def __init__(self, owner: Owner, memory_ids: Iterable[str]) -> None:
        wanted = list(memory_ids)
        self.tombstones: dict[str, list[Tombstone]] = {}
        self.overrides: dict[str, list[Override]] = {}
        for tombstone in Tombstone.objects.filter(owned_by(owner), memory_id__in=wanted):
            self.tombstones.setdefault(tombstone.memory_id, []).append(tombstone)
        for override in Override.objects.filter(owned_by(owner), memory_id__in=wanted):
            self.overrides.setdefault(override.memory_id, []).append(override)

    @property
    def memory_ids(self) -> set[str]:
        return self.tombstones.keys() | self.overrides.keys()

    def tombstone(self, memory_id: str) -> Tombstone | None:
        return next((item for item in self.tombstones.get(memory_id, ()) if item.undone_at is None), None)

    def override(self, memory_id: str) -> Override | None:
        return next((item for item in self.overrides.get(memory_id, ()) if item.undone_at is None), None)

    def in_force(self, memory_id: str) -> int:
        return (self.tombstone(memory_id) is not None) + (self.override(memory_id) is not None)

    def update(self, memory_ids: Iterable[str], **values: Any) -> None:
        """Change columns of all decisions about some memories."""
        for memory_id in memory_ids:
            Tombstone.objects.filter(pk__in=[item.pk for item in self.tombstones.get(memory_id, ())]).update(**values)
            Override.objects.filter(pk__in=[item.pk for item in self.overrides.get(memory_id, ())]).update(**values)


def detach(owner: Owner, memory_ids: Iterable[str]) -> None:
    """Detach decisions from their rows, so that they remain. Call before the rows are removed."""
    decisions = Decisions(owner, memory_ids)
    decisions.update(decisions.memory_ids, row=None)


def replace(
    owner: Owner,
    session: Session,
    rows: Sequence[Memory],
    replays: Sequence[Replay],
    *,
    stay: Collection[str] = (),
) -> Moved:
    """Replace `rows` by the memories of `replays`, except those that `stay`.

    Call inside a transaction, with the session locked. Raises: `Conflict`.
    """
    new = [memory for item in replays for memory in item.memories]
    old_rows = {row.memory_id: row for row in rows}
    decisions = Decisions(owner, old_rows)
    old_texts = []
    for row in rows:  # matched by the engine's own text, also if the user overrode it
        override = decisions.override(row.memory_id)
        old_texts.append(Text(row.memory_id, override.original_text if override else row.text, row.batch_id))
    new_texts = [Text(memory.memory_id, memory.text, memory.batch_id) for memory in new]
    matches = {old.memory_id: match(old, old_texts, new_texts) for old in old_texts}
    kept_ids = sorted({*stay, *_staying(old_rows, decisions, matches)})
    removed = old_rows.keys() - set(kept_ids)
    decisions.update(decisions.memory_ids & removed, row=None)
    storage.remove(owner, [row for row in rows if row.memory_id in removed])
    new_ids = {memory.memory_id for memory in new}
    for memory_id in kept_ids:
        if memory_id in new_ids:  # give the old memory another id
            old_rows[memory_id].memory_id = str(uuid4())
            old_rows[memory_id].save(update_fields=["memory_id"])
            decisions.update([memory_id], memory_id=old_rows[memory_id].memory_id)
    local_engine().adopt(owner, [old_rows[memory_id] for memory_id in kept_ids])
    local_engine().save_replays(owner, session, replays)
    moved = Moved(len(replays), len(new), len(removed), len(kept_ids))
    transfer = _Transfer(owner, session.session_id, decisions, moved)
    for memory_id in sorted(decisions.memory_ids):
        if memory_id in removed:
            transfer.transfer(old_rows[memory_id], matches[memory_id])
        elif decisions.in_force(memory_id):
            transfer.hold_back(memory_id, old_rows[memory_id], matches[memory_id], is_matched=memory_id in stay)
    return moved


def _staying(old_ids: Iterable[str], decisions: Decisions, matches: dict[str, Match]) -> set[str]:
    """Return the ids of old memories with decisions that fit no single new memory without an override."""
    staying, overridden = set(), set()
    for memory_id in old_ids:
        names = matches[memory_id].memory_ids
        if decisions.in_force(memory_id) and not names:
            staying.add(memory_id)
        elif decisions.override(memory_id) is not None:
            if len(names) > 1 or names[0] in overridden:
                staying.add(memory_id)
            else:
                overridden.add(names[0])
    return staying


class _Transfer:
    """Transfers decisions to the new memories of one session, inside the transaction that creates these."""

    def __init__(self, owner: Owner, session_id: str, decisions: Decisions, moved: Moved) -> None:
        self._owner = owner
        self._session_id = session_id
        self._decisions = decisions
        self._moved = moved
        self._table = MemoryTable()
        rows = Memory.objects.filter(owned_by(owner), session__session_id=session_id)
        self._rows = {row.memory_id: row for row in rows}
        deleted = Tombstone.objects.filter(owned_by(owner), undone_at__isnull=True, row__in=list(self._rows.values()))
        self._deleted = set(deleted.values_list("memory_id", flat=True))

    def transfer(self, old: Memory, found: Match) -> None:
        """Apply the decisions about a removed old memory to its new ones."""
        key = old.memory_id
        new = [self._rows[memory_id] for memory_id in found.memory_ids if memory_id in self._rows]
        tombstone, in_force = self._decisions.tombstone(key), self._decisions.in_force(key)
        if in_force and not new:
            raise Conflict("The new memory of a decision no longer exists.")
        if old.category and self._decisions.override(key) is None:
            # The user chose the category, because EverOS has no categories.
            for row in new:
                row.category = old.category
            wordings = {row.memory_id: Wording(row.text, old.category, row.importance) for row in new}
            self._table.replace(self._owner, wordings)
        if new:
            self._rekey(key, new[0])
        if tombstone is not None:
            self._delete(new, tombstone, tombstone.reason)
            if key not in self._rows:
                # Keep the old id deleted for searches that asked EverOS before this transaction.
                self._create_tombstone(key, None, tombstone, tombstone.reason)
        self._moved.carried += in_force

    def hold_back(self, key: str, old: Memory, found: Match, *, is_matched: bool) -> None:
        """Hide new memories that repeat a deleted or overridden old memory that stays.

        `is_matched`: the old memory stays for another reason than a missing match.
        """
        tombstone, override = self._decisions.tombstone(key), self._decisions.override(key)
        reason = (REPEATS if found.memory_ids else OVERLAPS).format(old.memory_id)
        names = found.memory_ids or found.overlapping
        new = [self._rows[memory_id] for memory_id in names if memory_id in self._rows]
        hidden = self._delete(new, tombstone or override, reason)
        self._moved.kept += self._decisions.in_force(key)
        if not found.memory_ids and not is_matched:
            self._moved.unmatched.append(
                {
                    "memory_id": old.memory_id,
                    "tombstone_id": tombstone.tombstone_id if tombstone else "",
                    "override_id": override.override_id if override else "",
                    "hides": hidden,
                }
            )

    def _rekey(self, key: str, new: Memory) -> None:
        """Move the decisions to a new memory. The undo of an override then restores the new memory's own text."""
        is_free = new.memory_id not in self._deleted
        for tombstone in self._decisions.tombstones.get(key, ()):
            tombstone.memory_id, tombstone.row = new.memory_id, new
            if not is_free:  # it has an active tombstone already
                tombstone.undone_at = tombstone.undone_at or timezone.now()
            tombstone.save(update_fields=["memory_id", "row", "undone_at"])
            if is_free and tombstone.undone_at is None:
                self._deleted.add(new.memory_id)
                derived_memories.follow(self._owner, [tombstone])
        for override in self._decisions.overrides.get(key, ()):
            has_own_text = override.text != override.original_text
            override.memory_id, override.row, override.original_text = new.memory_id, new, new.text
            override.text = override.text if has_own_text else new.text
            override.save(update_fields=["memory_id", "row", "original_text", "text"])
            first = OverrideRevision.objects.filter(override=override, number=0)
            first.update(text=new.text, category=new.category, importance=new.importance)
            if override.undone_at is None:
                last = override.revisions.order_by("number").last() or new
                wording = Wording(override.text, last.category, last.importance)
                self._table.replace(self._owner, {new.memory_id: wording})

    def _delete(self, rows: Iterable[Memory], decision: Tombstone | Override | None, reason: str) -> list[str]:
        """Create tombstones for rows without one, with the actor of `decision`; return the ids of those rows."""
        if decision is None:
            return []
        new = [row for row in rows if row.memory_id not in self._deleted]
        names = [row.memory_id for row in new]
        self._deleted.update(names)
        created = [self._create_tombstone(row.memory_id, row, decision, reason) for row in new]
        derived_memories.follow(self._owner, created)
        return names

    def _create_tombstone(
        self, memory_id: str, row: Memory | None, decision: Tombstone | Override, reason: str
    ) -> Tombstone:
        return Tombstone.objects.create(
            **owner_columns(self._owner),
            session_id=self._session_id,
            memory_id=memory_id,
            row=row,
            reason=reason,
            actor_kind=decision.actor_kind,
            actor=decision.actor,
            created_at=decision.created_at,
        )
