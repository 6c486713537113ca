"""Apply users' decisions to their rows, and to the memories that a model or a remote derived from messages.

A derived memory is hidden while any of its sources is deleted, and while a source reads otherwise than when it was
derived: each such reason is a tombstone with the decision as its cause. An edited text is extracted again. Deleting a
memory of a remote deletes its sources too, but not what else was derived from them. A profile is derived from many
memories: any decision about one of them removes the profile, and a new one is written.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from accounts.audit import Actor
from core.background.model_calls import backlog
from store import sessions, states, writes
from store.categories import tab_of
from store.ledger import ENDED_FIELDS, Override, Tombstone, digest_of
from store.models import (
    IS_PURGED,
    MANUAL_ORIGINS,
    Memory,
    PendingExtraction,
    PendingMedia,
    State,
    owned_by,
    owner_columns,
)
from store.types import Owner

_Kind = Tombstone.Kind
_EXTRACTED: Final = Memory.Origin.EXTRACTED
_REMOTE: Final = Memory.Origin.REMOTE
MODEL: Final = Actor.system("model")
"""The actor of what a language model decides."""
REMOTE: Final = Actor.system("remote")
"""The actor of deletions that wait for a person, of what a remote derived again (`remote.sources`)."""


def follow(owner: Owner, tombstones: Collection[Tombstone]) -> None:
    """Show or hide the memories of deletions that were just saved or ended, and what was derived from them."""
    ids = {one.memory_id for one in tombstones}
    candidates = _derived_in_sessions_of(owner, ids)
    deletions = {one.memory_id: one for one in tombstones if one.undone_at is None}
    new = [*_of_derived(candidates, deletions), *_of_sources(owner, candidates, deletions)]
    Tombstone.ledger.bulk_create(new)
    ended = end_followers([one for one in tombstones if one.undone_at is not None])
    states.refresh_memories(owner, ids | ended | {one.memory_id for one in new})
    _settle(owner, candidates)


def _of_derived(candidates: Sequence[Memory], deletions: Mapping[str, Tombstone]) -> Iterator[Tombstone]:
    """Yield the unsaved tombstones of memories whose sources are deleted."""
    for memory in candidates:
        for name in deletions.keys() & set(memory.sources):
            one = deletions[name]
            yield _Cause(_Kind.SOURCE_DELETED, one, name, one.created_at).follower(memory)


def _of_sources(owner: Owner, candidates: Sequence[Memory], deletions: Mapping[str, Tombstone]) -> Iterator[Tombstone]:
    """Yield the unsaved tombstones of the sources of a remote's memories that are deleted."""
    deleted = [one for one in candidates if one.origin == _REMOTE and one.memory_id in deletions]
    sources = _by_id(owner, {name for one in deleted for name in one.sources})
    for memory in deleted:
        one = deletions[memory.memory_id]
        cause = _Cause(_Kind.DERIVED_DELETED, one, memory.memory_id, one.created_at)
        yield from (cause.follower(sources[name]) for name in memory.sources if name in sources)


def _by_id(owner: Owner, memory_ids: Collection[str]) -> dict[str, Memory]:
    """Return memories by id. No statement for none."""
    if not memory_ids:
        return {}
    found = Memory.objects.filter(owned_by(owner), memory_id__in=list(memory_ids))
    return {memory.memory_id: memory for memory in found}


def _settle(owner: Owner, candidates: Sequence[Memory]) -> None:
    """Cover messages by what is live of a remote's memories, and replace a model's profile, after decisions."""
    cover_sources(owner, [one.pk for one in candidates if one.origin == _REMOTE])
    if any(one.chunk_index is None and one.origin == _EXTRACTED for one in candidates):
        replace_profile(owner)


def inherit(owner: Owner, derived: Sequence[Memory]) -> None:
    """Apply the decisions about a remote's memories and their sources that were made before these were known.

    Call inside a transaction that has locked the user.
    """
    sources = _by_id(owner, {name for memory in derived for name in memory.sources})
    ids = {*sources, *(memory.memory_id for memory in derived)}
    found = Tombstone.ledger.filter(owned_by(owner), memory_id__in=ids, kind=_Kind.DELETED, undone_at__isnull=True)
    found = found.exclude(actor_kind=REMOTE.kind, actor=REMOTE.name)
    deletions = {one.memory_id: one for one in found}
    edits = {one.memory_id: one for one in Override.objects.filter(row__in=sources.values(), undone_at__isnull=True)}
    corrected = (
        _Cause(_Kind.SOURCE_CORRECTED, edit, name, edit.created_at, digest_of(edit.original_text)).follower(memory)
        for memory in derived
        for name, edit in edits.items()
        if name in memory.sources and edit.text != edit.original_text
    )
    new = [*_of_derived(derived, deletions), *_of_sources(owner, derived, deletions), *corrected]
    Tombstone.ledger.bulk_create(new, ignore_conflicts=True)
    states.refresh_memories(owner, {one.memory_id for one in new})


def cover_sources(owner: Owner, rows: Collection[int], besides: Iterable[str] = ()) -> None:
    """Cover the sources of a remote's memories (by row id) that are shown; show the others, and the messages `besides`.

    `rows` are all of a flush: a message may be the source of several.
    """
    covers = dict.fromkeys(besides, writes.Cover())
    columns = ("text", "original_text", "sources", "state", "is_covered")
    for memory in Memory.objects.filter(pk__in=rows).only(*columns):
        is_live = memory.state == State.LIVE and not memory.is_covered
        for name in memory.sources:
            before = covers.get(name, writes.Cover())
            covers[name] = writes.Cover(
                before.is_covered or is_live, before.is_replaced or (is_live and memory.is_edited)
            )
    if covers:
        writes.set_cover(owner, covers)


def follow_sessions(owner: Owner, session_ids: Collection[str]) -> None:
    """Show or hide sessions whose deletions were just saved or ended."""
    states.refresh_sessions(owner, session_ids)
    forget_sessions(owner, session_ids)


def end_followers(decisions: Collection[Tombstone]) -> set[str]:
    """End what follows from ended decisions; return the memory ids. Copies deleted with a memory stay deleted."""
    by_id = {one.pk: one for one in decisions}
    if not by_id:
        return set()
    follow = Tombstone.ledger.filter(cause__in=by_id, undone_at__isnull=True)
    followers = list(follow.exclude(kind=_Kind.DELETED))
    for one in followers:
        one.end(by_id[one.cause].last_actor)
    Tombstone.ledger.bulk_update(followers, ENDED_FIELDS)
    return {one.memory_id for one in followers}


class _Cause(NamedTuple):
    """A decision about a source, whose text was `digest` before an edit. None: the text was replaced without one."""

    kind: Tombstone.Kind
    decision: Tombstone | Override | None
    source: str
    at: datetime
    digest: str = ""

    def follower(self, memory: Memory) -> Tombstone:
        """Return the unsaved tombstone of a derived memory that follows from the decision."""
        by = self.decision.last_actor if self.decision else MODEL
        return Tombstone(
            **_about(memory),
            kind=self.kind,
            cause=self.decision.pk if self.decision else "",
            other_id=self.source,
            other_digest=self.digest,
            actor_kind=by.kind,
            actor=by.name,
            created_at=self.at,
        )


def _about(memory: Memory) -> dict[str, Any]:
    """Return the fields of a tombstone that name a memory."""
    columns = ("user_id", "app_id", "project_id", "memory_id")
    return {"row_id": memory.pk, **{name: getattr(memory, name) for name in columns}}


def apply_edits(owner: Owner, memory_ids: Collection[str]) -> None:
    """Apply edits to a profile that may be derived from the memories, and to the sources of a remote's."""
    states.refresh_memories(owner, memory_ids)
    _settle(owner, _derived_in_sessions_of(owner, memory_ids))


def follow_edit(owner: Owner, memory: Memory, former_text: str) -> None:
    """Hide what was derived from the former text of an edited memory, and show what was derived from the new one.

    Derived memories that the user edited stay, and what a model said about a file, whose name alone was edited. The
    text is queued for extraction if something was hidden, and leaves the queue if it only reads again as before.
    """
    candidates = _derived_in_sessions_of(owner, [memory.memory_id])
    derived = [one for one in candidates if memory.memory_id in one.sources and one.chunk_index is None]
    if not derived:
        return
    corrected = Tombstone.ledger.filter(owned_by(owner), kind=_Kind.SOURCE_CORRECTED, undone_at__isnull=True)
    hidden = corrected.filter(other_id=memory.memory_id, memory_id__in=[one.memory_id for one in derived])
    by_memory = {one.memory_id: one for one in hidden}
    override = Override.objects.filter(owned_by(owner), memory_id=memory.memory_id).order_by("-updated_at").first()
    returning = [one for one in by_memory.values() if one.other_digest == digest_of(memory.text)]
    for one in returning:
        one.end(override.last_actor if override else MODEL)
    Tombstone.ledger.bulk_update(returning, ENDED_FIELDS)
    stale = [one for one in derived if one.memory_id not in by_memory]
    cause = _Cause(_Kind.SOURCE_CORRECTED, override, memory.memory_id, timezone.now(), digest_of(former_text))
    lost = _lost([one for one in stale if one.origin == _EXTRACTED and not one.is_edited])
    Tombstone.ledger.bulk_create(map(cause.follower, stale))
    states.refresh_memories(owner, {*by_memory, *(one.memory_id for one in stale)})
    if lost:
        PendingExtraction.objects.create(**_window(owner, memory, lost))
    elif returning and not corrected.filter(memory_id__in=(ids := {one.memory_id for one in returning})).exists():
        extracted = [one for one in derived if one.origin == _EXTRACTED]
        back = [one for one in extracted if one.memory_id in ids and not one.is_edited] or extracted
        if back:
            PendingExtraction.objects.filter(**_window(owner, memory, back)).delete()


def _lost(derived: Sequence[Memory]) -> list[Memory]:
    """Return the memories that were live, or hidden only because another source is deleted."""
    trashed = [one.pk for one in derived if one.state == State.TRASHED]
    reasons: dict[int | None, list[Tombstone]] = {}
    for reason in Tombstone.ledger.filter(row__in=trashed, undone_at__isnull=True) if trashed else ():
        reasons.setdefault(reason.row_id, []).append(reason)
    with_source = {row for row, ones in reasons.items() if states.deciding(ones).kind == _Kind.SOURCE_DELETED}
    return [one for one in derived if one.state == State.LIVE or one.pk in with_source]


def _window(owner: Owner, memory: Memory, derived: Sequence[Memory]) -> dict[str, Any]:
    """Return the columns of a pending extraction of the messages of derived memories."""
    sources = {name for one in derived for name in one.sources}
    span = Memory.objects.filter(owned_by(owner), memory_id__in=sources).aggregate(first=Min("seq"), last=Max("seq"))
    return {
        **owner_columns(owner),
        "session_id": memory.session_id,
        "batch_id": memory.batch_id,
        "after_seq": span["first"] - 1,
        "until_seq": span["last"],
    }


def replace_profile(owner: Owner) -> None:
    """Delete the owner's profile with its history, and queue a new one unless the user deleted it.

    Call after a memory that it may be derived from was deleted or edited.
    """
    profiles = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    is_wanted = profiles.exclude(states.IS_IN_TRASH).exists()
    if rows := list(profiles):
        writes.remove(owner, rows)
    if is_wanted:
        queue_profile(owner)


def queue_profile(owner: Owner) -> None:
    """Queue a new profile, once."""
    if "llm" in settings.MEMORY_GATEWAY_MODELS:
        PendingExtraction.objects.update_or_create(
            **owner_columns(owner),
            session=None,
            defaults={"attempts": 0, "refusals": 0, "retry_at": None, "last_error": "", "given_up_at": None},
        )


def purge(owner: Owner, memory_id: str) -> None:
    """Remove what a model derived from a memory. Call before that memory is purged, inside its transaction."""
    PendingMedia.objects.filter(memory__in=Memory.objects.filter(owned_by(owner), memory_id=memory_id)).delete()
    in_sessions = _derived_in_sessions_of(owner, [memory_id])
    derived = [one for one in in_sessions if one.origin == _EXTRACTED and memory_id in one.sources]
    if derived:
        writes.remove(owner, derived)


def repeated_by_remote(owner: Owner, memory: Memory) -> list[Memory]:
    """Return hidden memories of a remote that repeat a deleted memory: derived from it, or derived again, not shown."""
    in_session = _derived_in_sessions_of(owner, [memory.memory_id])
    return [
        one
        for one in in_session
        if one.origin == _REMOTE
        and one.pk != memory.pk
        and (memory.memory_id in one.sources or (one.is_covered and not set(memory.sources).isdisjoint(one.sources)))
    ]


def _derived_in_sessions_of(owner: Owner, memory_ids: Collection[str]) -> list[Memory]:
    sessions = Memory.objects.filter(owned_by(owner), memory_id__in=memory_ids).values("session_id")
    found = Memory.objects.filter(session_id__in=sessions, origin__in=(_EXTRACTED, _REMOTE)).exclude(IS_PURGED)
    return list(found.order_by("pk"))


def queue_comparison(memory: Memory) -> None:
    """Queue a memory that an operator or a tool wrote, about the user or an agent, for a comparison with older ones."""
    if "llm" in settings.MEMORY_GATEWAY_MODELS and tab_of(memory.category) in {"user", "self"}:
        columns = ("user_id", "app_id", "project_id", "session_id")
        PendingExtraction.objects.create(memory=memory, **{name: getattr(memory, name) for name in columns})


def can_be_superseded(memory: Memory) -> bool:
    """Return True for a memory that an operator, a tool or a model wrote; False for a model's that its user edited."""
    return memory.origin in MANUAL_ORIGINS or (memory.origin == Memory.Origin.EXTRACTED and not memory.is_edited)


def supersede(memories: Sequence[Memory], newer: Memory, at: datetime) -> None:
    """Hide memories that a newer one replaces, as a model decided."""
    rows = Memory.objects.filter(pk__in=[one.pk for one in memories])
    known = Tombstone.ledger.filter(row__in=rows, kind=_Kind.SUPERSEDED, undone_at__isnull=True)
    superseded = set(known.values_list("row", flat=True))
    Tombstone.ledger.bulk_create(
        Tombstone(
            **_about(one),
            kind=_Kind.SUPERSEDED,
            other_id=newer.memory_id,
            actor_kind=MODEL.kind,
            actor=MODEL.name,
            created_at=at,
        )
        for one in memories
        if one.pk not in superseded
    )
    states.MEMORIES.refresh(rows)


def show_again(owner: Owner, memory_id: str, actor: Actor) -> list[Tombstone]:
    """End what superseded a memory, or deleted it with a remote's; return these tombstones.

    A newer memory is unlinked from it.
    """
    kinds = (_Kind.SUPERSEDED, _Kind.DERIVED_DELETED)
    ended = list(Tombstone.ledger.filter(owned_by(owner), memory_id=memory_id, kind__in=kinds, undone_at__isnull=True))
    for one in ended:
        one.end(actor)
    Tombstone.ledger.bulk_update(ended, ENDED_FIELDS)
    superseding = [one.other_id for one in ended if one.kind == _Kind.SUPERSEDED]
    for newer in Memory.objects.filter(owned_by(owner), memory_id__in=superseding):
        newer.supersedes = [one for one in newer.supersedes if one != memory_id]
        writes.save(owner, [newer], ["supersedes"])
    if ended:
        apply_edits(owner, [memory_id])
    return ended


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
