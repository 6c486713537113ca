"""Replace the passages of a file by new ones, and transfer deletions and overrides to these.

An old passage with a decision that fits no single new one stays: if its override would apply to several, or if no new
one matches. New passages that repeat a deleted or overridden one that stays are hidden by tombstones, which users find
in the trash and can undo.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.utils import timezone

from core.errors import Conflict, EngineUnavailable
from engines.registry import local_engine
from memories.models import Override, OverrideRevision, Tombstone
from store import derived_memories, writes
from store.models import Memory, Session, owned_by, owner_columns
from store.port import Replay
from store.table import MemoryTable
from store.text.matching import Match, Text, match
from store.types import Owner, Wording

REPEATS: Final = "Repeats {}, which was deleted or overridden before its file was read again."
OVERLAPS: Final = "Resembles {}, which no passage of the file matches now. Restore it, or leave it deleted."


class Changed(EngineUnavailable):
    """Raised if messages or decisions of the session changed meanwhile. Try again."""


@dataclass(slots=True)
class Done:
    """The counts of one session.

    Messages: `messages` were read again or sent. Memories: `made` are new, `replaced` old ones were removed, `stayed`
    old ones remain. Decisions: `carried` were transferred to new memories, `kept` remain on old ones.
    """

    messages: int = 0
    made: int = 0
    replaced: int = 0
    stayed: int = 0
    carried: int = 0
    kept: int = 0


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


def replace(owner: Owner, session: Session, rows: Sequence[Memory], replay: Replay) -> Done:
    """Replace `rows` by the memories of `replay`. Call inside a transaction, with the session locked.

    Raises: `Conflict`.
    """
    new = replay.memories
    old_rows = {row.memory_id: row for row in rows}
    decisions = Decisions(owner, old_rows)
    old_texts = []
    for row in rows:  # matched by the engine's own text, also if the user overrode it
        override = decisions.override(row.memory_id)
        old_texts.append(Text(row.memory_id, override.original_text if override else row.text, row.batch_id))
    new_texts = [Text(memory.memory_id, memory.text, memory.batch_id) for memory in new]
    matches = {old.memory_id: match(old, old_texts, new_texts) for old in old_texts}
    new_by_id = {memory.memory_id: memory for memory in new}
    stored_ms = min((row.stored_at_ms or row.created_at_ms for row in rows), default=None)
    for memory in new:
        memory.stored_at_ms = stored_ms
    for row in rows:
        for name in matches[row.memory_id].memory_ids if row.expires_at else ():
            new_by_id[name].expires_at = row.expires_at
    kept_ids = sorted(_staying(old_rows, decisions, matches))
    removed = old_rows.keys() - set(kept_ids)
    decisions.update(decisions.memory_ids & removed, row=None)
    writes.remove(owner, [row for row in rows if row.memory_id in removed])
    new_ids = {memory.memory_id for memory in new}
    for memory_id in kept_ids:
        if memory_id in new_ids:  # give the old memory another id
            old_rows[memory_id].memory_id = str(uuid4())
            writes.save(owner, [old_rows[memory_id]], ["memory_id"])
            decisions.update([memory_id], memory_id=old_rows[memory_id].memory_id)
    local_engine().save_replays(owner, session, [replay])
    done = Done(1, len(new), len(removed), len(kept_ids))
    transfer = _Transfer(owner, session.session_id, decisions, done)
    for memory_id in sorted(decisions.memory_ids):
        if memory_id in removed:
            transfer.transfer(memory_id, matches[memory_id])
        elif decisions.in_force(memory_id):
            transfer.hold_back(memory_id, old_rows[memory_id], matches[memory_id])
    return done


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

    def __init__(self, owner: Owner, session_id: str, decisions: Decisions, done: Done) -> None:
        self._owner = owner
        self._session_id = session_id
        self._decisions = decisions
        self._done = done
        self._table = MemoryTable()
        rows = Memory.objects.filter(owned_by(owner), session__session_id=session_id)
        self._rows = {row.memory_id: row for row in rows}
        deleted = Tombstone.objects.filter(owned_by(owner), undone_at__isnull=True, row__in=list(self._rows.values()))
        self._deleted = set(deleted.values_list("memory_id", flat=True))

    def transfer(self, key: str, found: Match) -> None:
        """Apply the decisions about a removed old memory to its new ones."""
        new = [self._rows[memory_id] for memory_id in found.memory_ids if memory_id in self._rows]
        tombstone, in_force = self._decisions.tombstone(key), self._decisions.in_force(key)
        if in_force and not new:
            raise Conflict("The new memory of a decision no longer exists.")
        if new:
            self._rekey(key, new[0])
        if tombstone is not None:
            self._delete(new, tombstone, tombstone.reason)
        self._done.carried += in_force

    def hold_back(self, key: str, old: Memory, found: Match) -> None:
        """Hide new memories that repeat a deleted or overridden old memory that stays."""
        tombstone, override = self._decisions.tombstone(key), self._decisions.override(key)
        reason = (REPEATS if found.memory_ids else OVERLAPS).format(old.memory_id)
        names = found.memory_ids or found.overlapping
        new = [self._rows[memory_id] for memory_id in names if memory_id in self._rows]
        self._delete(new, tombstone or override, reason)
        self._done.kept += self._decisions.in_force(key)

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

    def _delete(self, rows: Iterable[Memory], decision: Tombstone | Override | None, reason: str) -> None:
        """Create tombstones for rows without one, with the actor of `decision`."""
        if decision is None:
            return
        new = [row for row in rows if row.memory_id not in self._deleted]
        self._deleted.update(row.memory_id for row in new)
        created = [
            Tombstone.objects.create(
                **owner_columns(self._owner),
                session_id=self._session_id,
                memory_id=row.memory_id,
                row=row,
                reason=reason,
                actor_kind=decision.actor_kind,
                actor=decision.actor,
                created_at=decision.created_at,
            )
            for row in new
        ]
        derived_memories.follow(self._owner, created)
