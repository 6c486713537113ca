"""Re-ingest a session into EverOS, hidden until it is complete.

Messages are sent for a staging session: it is marked as deleted, so no search or list returns its memories, and has a
unique engine id. One transaction then moves its memories to the real session. What EverOS holds of a discarded staging
session stays there under an id that no session uses, unless EverOS can delete it (`remote.deletions`).
"""

import secrets
from collections.abc import Collection
from datetime import datetime

from django.db.models import QuerySet

from remote import deletions, outbox, sessions
from remote.engine_ids import with_mark
from store import storage
from store.models import Memory, Session, State, owner_columns
from store.types import Message, Owner

# Session ids of callers contain no control characters.
_PREFIX = "\x1fmoving:"


def staging_session(owner: Owner, session: Session, now: datetime) -> Session:
    """Return the session's staging session, created if missing; one left by a crash is reused."""
    staging, _ = Session.objects.get_or_create(
        **owner_columns(owner),
        session_id=f"{_PREFIX}{session.pk}",
        defaults={
            "engine_session_id": fresh_engine_id(session),
            "kind": session.kind,
            "deleted_at": now,
            "state": State.PURGED,
        },
    )
    return staging


def fresh_engine_id(session: Session) -> str:
    """Return an engine id for the session that was never used and cannot be guessed."""
    return with_mark(session.session_id, f"~{secrets.token_hex(8)}")


def has_other_messages(staging: Session, messages: Collection[Message]) -> bool:
    """Return True if the staging session holds messages other than these, and must be discarded."""
    given = {outbox.message_id_of(staging.session_id, message) for message in messages}
    recorded = set(outbox.entries(staging).values_list("message_id", flat=True))
    return not recorded <= given


def discard(staging: Session) -> None:
    """Delete the staging session, and record what EverOS still holds of it."""
    sessions.note_left_session(staging)
    deletions.queue_session(staging.owner, staging)
    _remove(staging)


def discard_for(session: Session) -> None:
    """Delete the staging session that an interrupted move of the session left, if there is one."""
    named = Session.objects.filter(
        user_id=session.user_id,
        app_id=session.app_id,
        project_id=session.project_id,
        session_id=f"{_PREFIX}{session.pk}",
    )
    for staging in named:
        discard(staging)


def _remove(staging: Session) -> None:
    storage.remove(staging.owner, list(Memory.objects.filter(session=staging)))
    staging.delete()


def publish(staging: Session, session: Session) -> int:
    """Move all memories and outbox entries of the staging session to the session; return the number of memories.

    Call inside the transaction that deletes the session's former memories.
    """
    session.engine_session_id = staging.engine_session_id
    session.flushed_at, session.searchable_at = staging.flushed_at, staging.searchable_at
    session.save(update_fields=["engine_session_id", "flushed_at", "searchable_at"])
    outbox.reassign(session, outbox.entries(staging).order_by("pk"))
    moved = memories_of(staging)
    storage.reassign(session.owner, moved, session.pk)
    _remove(staging)
    return len(moved)


def memories_of(staging: Session) -> list[Memory]:
    """Return the memories that EverOS derived from the staging session's messages."""
    return list(_episodes(staging).order_by("pk"))


def _episodes(staging: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(session=staging, memory_type=Memory.Type.EPISODE)
