"""Memories as of a former time: those that were current then, in the words of then.

Only what is live or superseded now comes back: what was stored by then and what no tombstone hid then. A correction
holds for all times before it; an update by an application does not, so its former text returns. Filters, tags and
metadata are those of today. `stored_at_ms` is null for older memories; their `created_at_ms` counts.

Not chosen: copies of rows for each change, which a deletion, a correction and a purge would have to find.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from itertools import dropwhile
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, CharField, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Cast, Coalesce

from core.persistence import sql
from core.times import to_ms
from store import cover
from store.admission import unwanted
from store.ledger import OverrideRevision, Tombstone
from store.models import NOT_INCOGNITO, Memory, Session, State, owned_by, owner_columns
from store.search.snapshot import Numbers
from store.types import Owner, StoredMemory, Wording

_REMAINS: Final = (State.LIVE, State.SUPERSEDED)
"""The states of what can come back."""
_Kind = Tombstone.Kind


def memories_of(owner: Owner, at: datetime) -> QuerySet[Memory]:
    """Return the memories that were current at a time and are not hidden now but by a newer one, unordered.

    Without profiles, which have no former text, and as if no remote were attached: it derived its memories later.
    """
    hidden = Tombstone.ledger.filter(Q(undone_at=None) | Q(undone_at__gt=at), owned_by(owner), created_at__lte=at)
    of_memories = hidden.exclude(memory_id="").order_by()
    corrected = of_memories.filter(kind=_Kind.SOURCE_CORRECTED).values("memory_id")
    of_sessions = hidden.filter(memory_id="", resource_id="").order_by().values("session_id")
    closed = Session.objects.filter(~Q(state=State.LIVE) | Q(session_id__in=of_sessions), owned_by(owner))
    return (
        Memory.objects.alias(stored_ms=Coalesce("stored_at_ms", "created_at_ms", output_field=BigIntegerField()))
        .filter(NOT_INCOGNITO, owned_by(owner), stored_ms__lte=to_ms(at), state__in=_REMAINS)
        .exclude(memory_type=Memory.Type.PROFILE)
        .exclude(memory_id__in=of_memories.exclude(kind=_Kind.SOURCE_CORRECTED).values("memory_id"))
        .exclude(memory_id__in=corrected, text=F("original_text"))  # a user's own text is independent of its sources
        .exclude(session__in=closed.order_by().values("pk"))
        .exclude(cover.is_left_out(is_alone=True))
        .order_by()
    )


def rows_of(owner: Owner, at: datetime) -> Numbers:
    """Return the row ids of `memories_of`. One SQL statement."""
    found = memories_of(owner, at).annotate(value=Cast("pk", CharField())).values("value")
    return np.array(sql.column(*found.query.sql_with_params()), np.int64)


def wordings(owner: Owner, memory_ids: Collection[str], at: datetime) -> dict[str, Wording]:
    """Return the wordings of a former time, by memory id, of the memories that read otherwise now.

    No text that was corrected or deleted, also of another memory, or that the person wants never remembered is among
    them. One SQL statement, none without memories, and four if there are such wordings.
    """
    if not memory_ids:
        return {}
    revisions = _revisions_of(owner).filter(override__memory_id__in=list(memory_ids), override__undone_at=None)
    by_memory: dict[str, list[OverrideRevision]] = defaultdict(list)
    for one in revisions.annotate(of_memory=F("override__memory_id")).order_by("override", "number"):
        by_memory[one.of_memory].append(one)
    found = {memory_id: _shown(of_memory, at) for memory_id, of_memory in by_memory.items()}
    former = {memory_id: one for memory_id, one in found.items() if one is not by_memory[memory_id][-1]}
    gone = _taken_away(owner, {one.text for one in former.values()})
    return {
        memory_id: Wording(one.text, one.category, one.importance)
        for memory_id, one in former.items()
        if one.text not in gone
    }


def _revisions_of(owner: Owner) -> QuerySet[OverrideRevision]:
    scope = {f"override__{name}": value for name, value in owner_columns(owner).items()}
    return OverrideRevision.objects.filter(**scope)


def _taken_away(owner: Owner, texts: Collection[str]) -> set[str]:
    """Return those of the texts that a memory had when it or its session was deleted, corrected or expired.

    Those that are never remembered are among them.
    """
    if not texts:
        return set()
    corrections = _revisions_of(owner).filter(override=OuterRef("override"), number__gt=OuterRef("number"))
    is_undone = Q(override__undone_at__isnull=False)  # the first text holds again
    is_corrected = Exists(corrections.filter(is_update=False))
    corrected = _revisions_of(owner).filter((~is_undone & is_corrected) | (is_undone & Q(number__gt=0)))
    is_shown = Q(state__in=_REMAINS) & (Q(session=None) | Q(session__state=State.LIVE))
    hidden = Memory.objects.filter(~is_shown, owned_by(owner))
    return unwanted(owner.user_pk, texts) | {
        text
        for rows in (corrected, hidden)
        for text in rows.order_by().filter(text__in=texts).values_list("text", flat=True)
    }


def _shown(revisions: list[OverrideRevision], at: datetime) -> OverrideRevision:
    """Return the revision of a time among the last correction and the updates after it; the first holds before too."""
    last = max(place for place, one in enumerate(revisions) if place == 0 or not one.is_update)
    first, *updates = revisions[last:]
    earlier = list(dropwhile(lambda one: one.created_at > at, reversed(updates)))
    return earlier[0] if earlier else first


def reworded(owner: Owner, memories: Iterable[StoredMemory], at: datetime) -> list[StoredMemory]:
    """Return memories that were current at a time, in the words of then. One SQL statement."""
    found = list(memories)
    former = wordings(owner, [one.memory_id for one in found], at)
    current = [replace(one, state=State.LIVE.value, state_since=None) for one in found]
    return [replace(one, **former[one.memory_id]._asdict()) if one.memory_id in former else one for one in current]
