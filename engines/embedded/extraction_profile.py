"""Who the user is, in one memory: written of what a model found out about them, anew whenever that changes."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from core.times import from_ms, to_ms
from engines.embedded.llm.extraction import Described
from store import storage
from store.categories import TABS
from store.derived_memories import HIDDEN_AS, hide
from store.index import keyword
from store.models import Memory, owned_by
from store.types import Owner

MAX_FACTS: Final = 80
_KEPT: Final = 5
"""So many former profiles stay as history."""


def facts_of(owner: Owner) -> list[Memory]:
    """What the profile is written of: the weightiest of the user's facts, preferences and decisions, oldest first."""
    found = _live().filter(owned_by(owner), category__in=TABS["user"], origin=Memory.Origin.EXTRACTED)
    best = found.order_by("-importance", "-created_at_ms", "-pk")[:MAX_FACTS]
    return sorted(best, key=lambda row: (row.created_at_ms, row.pk))


def lines_of(facts: Sequence[Memory]) -> Iterator[Mapping[str, Any]]:
    """The facts as a model is shown them."""
    for row in facts:
        yield {
            "memory": row.text,
            "kind": row.category.rpartition("_")[2],
            "day": from_ms(row.created_at_ms).date().isoformat(),
        }


def write(owner: Owner, facts: Sequence[Memory], described: Described, now: datetime) -> Memory | None:
    """Puts a new profile in the place of the last; none where one of its facts has changed since, or its session was
    deleted. Call inside a transaction that holds the user."""
    kept = _live().filter(pk__in=[row.pk for row in facts])
    if dict(kept.values_list("pk", "text")) != {row.pk: row.text for row in facts}:
        return None
    row = _row(owner, facts, described, now)
    before = [one for one in _profiles(owner) if one.hidden_at is None]
    row.payload["supersedes"] = [one.memory_id for one in before]
    storage.insert(owner, [row], [keyword.entry_of(row)])
    for one in before:
        one.payload["superseded_by"] = row.memory_id
    hide(before, "superseded", now)
    former = [one for one in _profiles(owner) if HIDDEN_AS in one.payload]
    if len(former) > _KEPT:
        storage.remove(owner, former[:-_KEPT])
    return row


def _live() -> QuerySet[Memory]:
    return Memory.objects.filter(hidden_at=None, session__hidden_at=None, session__deleted_at=None)


def _profiles(owner: Owner) -> list[Memory]:
    found = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    return list(found.order_by("pk"))


def _row(owner: Owner, facts: Sequence[Memory], described: Described, now: datetime) -> Memory:
    stated = [{"category": row.category, "description": row.text, "evidence": row.memory_id} for row in facts]
    traits = [
        {"trait": trait.trait, "description": trait.trait, "basis": trait.basis, "evidence": ""}
        for trait in described.traits
    ]
    return Memory(
        memory_id=str(uuid.uuid4()),
        memory_type=Memory.Type.PROFILE,
        sender_id=owner.user_id,
        speaker=owner.user_id,
        text=described.summary,
        created_at_ms=to_ms(now),
        origin=Memory.Origin.EXTRACTED,
        payload={
            "said": described.summary,
            "sources": [row.memory_id for row in facts],
            "explicit_info": stated,
            "implicit_traits": traits,
        },
    )
