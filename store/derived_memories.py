"""Apply users' decisions about messages to the memories that a model derived from them.

A derived memory is hidden with any of its sources, and shown again with them. If a source is edited, the memory is
hidden and the edited text is extracted again. A profile is derived from many memories: any decision about one of them
removes the profile, and a new one is written.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from core.background.model_calls import backlog
from store import sessions, storage
from store.categories import tab_of
from store.models import MANUAL_ORIGINS, Memory, PendingExtraction, PendingMedia, owned_by, owner_columns
from store.types import Owner

_Reason = Memory.HiddenReason


def apply_visibility(owner: Owner, memory_ids: Collection[str], at: datetime | None) -> None:
    """Hide or show the memories derived from ones just hidden or shown. One SQL statement if there are none."""
    candidates = _derived_in_sessions_of(owner, memory_ids)
    if not candidates:
        return
    decided = set(memory_ids)
    derived = [
        memory for memory in candidates if memory.memory_id not in decided and not decided.isdisjoint(memory.sources)
    ]
    if at is not None:
        hide([memory for memory in derived if memory.hidden_at is None], _Reason.WITH_SOURCE, at)
    else:
        hidden = [memory for memory in derived if memory.hidden_reason == _Reason.WITH_SOURCE]
        sources = {name for memory in hidden for name in memory.sources}
        still_hidden = Memory.objects.filter(owned_by(owner), memory_id__in=sources, hidden_at__isnull=False)
        hidden_sources = set(still_hidden.values_list("memory_id", flat=True))
        shown = [memory.pk for memory in hidden if hidden_sources.isdisjoint(memory.sources)]
        Memory.objects.filter(pk__in=shown).update(hidden_at=None, hidden_reason="")
    if any(memory.chunk_index is None for memory in candidates):
        replace_profile(owner)


def apply_edits(owner: Owner, memory_ids: Collection[str]) -> None:
    """Remove a profile that may be derived from memories that their user just edited."""
    if any(memory.chunk_index is None for memory in _derived_in_sessions_of(owner, memory_ids)):
        replace_profile(owner)


def extract_again(owner: Owner, memory: Memory) -> None:
    """Hide what a model derived from a memory that its user just edited, and queue the new text for extraction.

    Derived memories that the user edited stay, and what a model said about a file, whose name alone was edited.
    """
    stale = [
        derived
        for derived in _derived_in_sessions_of(owner, [memory.memory_id])
        if memory.memory_id in derived.sources and derived.chunk_index is None and not derived.is_edited
        and (derived.hidden_at is None or derived.hidden_reason == _Reason.WITH_SOURCE)
    ]  # fmt: skip
    if not stale:
        return
    hide(stale, _Reason.REWORDED, timezone.now())
    sources = {name for derived in stale for name in derived.sources}
    span = Memory.objects.filter(owned_by(owner), memory_id__in=sources).aggregate(first=Min("seq"), last=Max("seq"))
    PendingExtraction.objects.create(
        **owner_columns(owner),
        session_id=memory.session_id,
        batch_id=memory.batch_id,
        after_seq=span["first"] - 1,
        until_seq=span["last"],
    )


def replace_profile(owner: Owner) -> None:
    """Delete the owner's profile with its history, and queue a new one unless the user deleted it.

    Call after a memory that it may be derived from was deleted or edited.
    """
    profiles = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    rows = list(profiles)
    if rows:
        storage.remove(owner, rows)
    if any(row.hidden_at is None or row.hidden_reason for row in rows):
        queue_profile(owner)


def queue_profile(owner: Owner) -> None:
    """Queue a new profile, once."""
    if settings.MEMORY_GATEWAY_LLM_BASE_URL:
        PendingExtraction.objects.update_or_create(
            **owner_columns(owner),
            session=None,
            defaults={"attempts": 0, "refusals": 0, "retry_at": None, "last_error": "", "given_up_at": None},
        )


def purge(owner: Owner, memory_id: str) -> None:
    """Purge the memories derived from a memory. Call before that memory is purged, inside its transaction."""
    PendingMedia.objects.filter(memory__in=Memory.objects.filter(owned_by(owner), memory_id=memory_id)).delete()
    derived = [one for one in _derived_in_sessions_of(owner, [memory_id]) if memory_id in one.sources]
    if derived:
        storage.remove(owner, derived)


def _derived_in_sessions_of(owner: Owner, memory_ids: Collection[str]) -> list[Memory]:
    sessions = Memory.objects.filter(owned_by(owner), memory_id__in=memory_ids).values("session_id")
    return list(Memory.objects.filter(session_id__in=sessions, origin=Memory.Origin.EXTRACTED).order_by("pk"))


def hide(memories: Sequence[Memory], reason: Memory.HiddenReason, at: datetime) -> None:
    """Hide derived memories for a reason other than their user's decision."""
    Memory.objects.filter(pk__in=[one.pk for one in memories]).update(hidden_at=at, hidden_reason=reason)


def queue_comparison(memory: Memory) -> None:
    """Queue a memory that an operator or a tool wrote, about the user or an agent, for a comparison with older ones."""
    if settings.MEMORY_GATEWAY_LLM_BASE_URL and tab_of(memory.category) in {"user", "self"}:
        columns = ("user_id", "app_id", "project_id", "session_id")
        PendingExtraction.objects.create(memory=memory, **{name: getattr(memory, name) for name in columns})


def can_be_superseded(memory: Memory) -> bool:
    """Return True for a memory that an operator, a tool or a model wrote; False for a model's that its user edited."""
    return memory.origin in MANUAL_ORIGINS or (memory.origin == Memory.Origin.EXTRACTED and not memory.is_edited)


def supersede(memories: Sequence[Memory], newer: Memory, at: datetime) -> None:
    """Hide memories that a newer one replaces."""
    Memory.objects.filter(pk__in=[one.pk for one in memories]).update(
        hidden_at=at, hidden_reason=_Reason.SUPERSEDED, superseded_by=newer.memory_id
    )


def restore_superseded(owner: Owner, memory_id: str) -> None:
    """Show a superseded memory again, and unlink it from the newer one."""
    memory = Memory.objects.get(owned_by(owner), memory_id=memory_id)
    for newer in Memory.objects.filter(owned_by(owner), memory_id=memory.superseded_by):
        newer.supersedes = [one for one in newer.supersedes if one != memory_id]
        newer.save(update_fields=["supersedes"])
    Memory.objects.filter(pk=memory.pk).update(hidden_at=None, hidden_reason="", superseded_by="")
    apply_edits(owner, [memory_id])


def forget_sessions(owner: Owner, session_ids: Collection[str]) -> None:
    """Remove a profile that may be derived from sessions that were just deleted.

    A profile that is being written waits for the lock, and then finds the sessions deleted.
    """
    derived = Memory.objects.filter(
        owned_by(owner), session__session_id__in=session_ids, origin=Memory.Origin.EXTRACTED, chunk_index=None
    )
    if derived.exists():
        with transaction.atomic():
            sessions.lock_decisions(owner)
            replace_profile(owner)


def extraction_backlog() -> dict[str, int]:
    """Return how many extractions are `pending`, and how many were `given_up`."""
    return backlog(PendingExtraction.objects.all())
