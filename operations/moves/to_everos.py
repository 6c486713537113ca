"""One session out of our keeping into an upstream's: told again but for what people decided about.

What was deleted or corrected stays a memory of ours, found beside the upstream's: no other engine learns a deleted
text, and a decision cannot miss what it was made about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from core.errors import EngineRefused
from engines.port import ExternalEngine
from memories.models import Override
from memories.services import lookup
from operations.moves.decision_transfer import decided, detach
from operations.moves.matching import Text, match
from operations.moves.messages import Given, given_by
from operations.moves.result import Changed, Moved, Note, owner_of
from store import storage
from store.external import sessions
from store.external import staging as upstream_staging
from store.models import Memory, Session
from store.types import Message, Owner

_FULL_CONTEXT = "full_context_"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The rows that are to be told again, and the messages that tell them: flushed ones, and such as wait for it."""

    rows: Sequence[Memory]
    flushed: Sequence[Message]
    waiting: Sequence[Message]


def free_rows(session_pk: int | OuterRef) -> QuerySet[Memory]:
    """The memories of a session that are ours and that nobody decided about."""
    corrected = Override.objects.filter(row=OuterRef("pk"), undone_at__isnull=True)
    rows = Memory.objects.filter(session=session_pk, origin=Memory.Origin.EMBEDDED, hidden_at__isnull=True)
    return rows.filter(~Exists(corrected))


def move(session: Session, engine: ExternalEngine, note: Note, *, is_retry: bool = False) -> Moved:
    """Tells the upstream the session under an id that is nobody's; one transaction then makes that the session's own
    and removes what was told. `note(moved)` runs inside it.

    Errors: `Changed`, and those of the engine. Broken off anywhere, the same call goes on; `is_retry` where that was in
    this process just now.
    """
    owner = owner_of(session)
    snapshot = _snapshot(session)
    if not snapshot.rows:
        return Moved()
    staging = _staging(owner, session, snapshot, is_retry=is_retry)
    try:
        engine.stage(owner, staging, snapshot.flushed, snapshot.waiting)
    except EngineRefused:
        upstream_staging.discard(staging)
        raise
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        held = Session.objects.select_for_update().get(pk=session.pk)
        if not _is_as_before(held, snapshot):
            moved = None
        else:
            moved = _publish(owner, held, staging, snapshot)
            note(moved)
    if moved is None:
        upstream_staging.discard(staging)
        raise Changed("Somebody decided about the session while it was moved.")
    return moved


def _snapshot(session: Session) -> _Snapshot:
    rows = list(free_rows(session.pk).order_by("seq", "pk"))
    given = given_by(session, rows)
    return _Snapshot(rows, _messages(given, is_flushed=True), _messages(given, is_flushed=False))


def _messages(given: Sequence[Given], *, is_flushed: bool) -> list[Message]:
    return [item.message for item in given if item.is_flushed is is_flushed]


def _staging(owner: Owner, session: Session, snapshot: _Snapshot, *, is_retry: bool) -> Session:
    """The stand-in that an earlier try left, unless it was told what is no longer to be told, or its process died while
    the upstream made memories of it: whether they will ever show could not be said for minutes, and nobody would miss
    them."""
    staging = upstream_staging.staging_session(owner, session, timezone.now())
    is_doubtful = not is_retry and sessions.is_flush_open(staging)
    if not is_doubtful and not upstream_staging.has_other_messages(staging, [*snapshot.flushed, *snapshot.waiting]):
        return staging
    upstream_staging.discard(staging)
    return upstream_staging.staging_session(owner, session, timezone.now())


def _is_as_before(session: Session, snapshot: _Snapshot) -> bool:
    """Whether everything that was told may still be told."""
    keys = [row.pk for row in snapshot.rows]
    return session.deleted_at is None and free_rows(session.pk).filter(pk__in=keys).count() == len(keys)


def _publish(owner: Owner, session: Session, staging: Session, snapshot: _Snapshot) -> Moved:
    _carry_categories(upstream_staging.memories_of(staging), snapshot.rows)
    detach(decided(owner, [row.memory_id for row in snapshot.rows]).values())  # what was undone is history
    storage.remove(owner, snapshot.rows)
    made = upstream_staging.publish(staging, session)
    stayed = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED).count()
    return Moved(len(snapshot.flushed) + len(snapshot.waiting), made, len(snapshot.rows), stayed)


def _carry_categories(made: Sequence[Memory], told: Sequence[Memory]) -> None:
    """A new memory is filed where all that it says was filed, if that is one place."""
    filed = {row.memory_id: row.category for row in told if not row.category.startswith(_FULL_CONTEXT)}
    if not any(filed.values()):
        return
    texts = [Text(row.memory_id, row.text) for row in told]
    for memory in made:
        names = match(Text(memory.memory_id, memory.text), (), texts).memory_ids
        categories = {filed.get(name, "") for name in names}
        memory.category = categories.pop() if len(categories) == 1 else ""
    Memory.objects.bulk_update([memory for memory in made if memory.category], ["category"])
