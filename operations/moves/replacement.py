"""Putting new memories in the place of old ones in one session of ours, with what was decided about these."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from engines.port import Replay
from engines.registry import local_engine
from memories.models import Override, Tombstone
from operations.moves.decision_transfer import NOTHING, Carrier, Decided, decided, detach, staying
from operations.moves.matching import Match, Text, match
from operations.moves.result import Moved
from store import storage
from store.models import Memory, Session
from store.types import Owner


@dataclass(frozen=True, slots=True)
class Change:
    """`olds` give way to `replays`, but for those that `stay` in any case; `told` are records that just go."""

    olds: Sequence[Memory]
    replays: Sequence[Replay]
    stay: Collection[str] = ()
    told: Sequence[Memory] = ()


def replace(owner: Owner, session: Session, change: Change) -> Moved:
    """Call inside a transaction, with the session locked. Errors: `Conflict`."""
    new = [memory for item in change.replays for memory in item.memories]
    olds = {row.memory_id: row for row in change.olds}
    decisions = decided(owner, olds)
    found = _matches(change.olds, new, decisions)
    kept_ids = staying(olds, decisions, found) | set(change.stay)
    detach(about for memory_id, about in decisions.items() if memory_id not in kept_ids)
    storage.remove(owner, [*change.told, *(row for row in change.olds if row.memory_id not in kept_ids)])
    kept = {memory_id: olds[memory_id] for memory_id in sorted(kept_ids)}
    _make_room(kept, decisions, {memory.memory_id for memory in new})
    local_engine().adopt(owner, list(kept.values()))
    local_engine().save_replays(owner, session, change.replays)
    carrier = Carrier(owner, session.session_id)
    for memory_id, about in decisions.items():
        if memory_id in kept:
            carrier.hold_back(kept[memory_id], about, found[memory_id], is_matched=memory_id in change.stay)
        else:
            carrier.carry(olds[memory_id], about, found[memory_id])
    return Moved(len(change.replays), len(new), len(olds) - len(kept), len(kept), carrier.result)


def _matches(olds: Sequence[Memory], new: Sequence[Memory], decisions: Mapping[str, Decided]) -> dict[str, Match]:
    """By what the engine said of each, also where its user put other words in its place."""
    texts = [Text(memory.memory_id, memory.text, memory.batch_id) for memory in new]
    old_texts = []
    for row in olds:
        override = decisions.get(row.memory_id, NOTHING).override
        old_texts.append(Text(row.memory_id, override.original_text if override else row.text, row.batch_id))
    return {old.memory_id: match(old, old_texts, texts) for old in old_texts}


def _make_room(kept: Mapping[str, Memory], decisions: Mapping[str, Decided], taken: Collection[str]) -> None:
    """An old memory whose id a new one needs gets another, with its decisions."""
    for memory_id in kept.keys() & set(taken):
        row = kept[memory_id]
        row.memory_id = str(uuid4())
        row.save(update_fields=["memory_id"])
        about = decisions.get(memory_id)
        for model, items in ((Tombstone, about.tombstones), (Override, about.overrides)) if about else ():
            model.objects.filter(pk__in=[item.pk for item in items]).update(memory_id=row.memory_id)
