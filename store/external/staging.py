"""Giving EverOS a session anew without anybody seeing it before it is whole.

A staging session stands in for the real one: it counts as deleted, so nothing of it is found, listed or shown, and it
has an id upstream that nobody else has. One transaction then gives all that came of it to the real session. EverOS has
no deletion: what it held of the session before stays there under an id that is nobody's any more.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime

from django.db.models import QuerySet

from store.external import journal, residue
from store.external.engine_ids import with_mark
from store.models import Memory, Session
from store.types import Message, Owner

# No session that a caller names holds a control character.
_PREFIX = "\x1fmoving:"


def staging_session(owner: Owner, session: Session, now: datetime) -> Session:
    """The session's stand-in, made if there is none; one that a crash left is gone on with."""
    staging, _ = Session.objects.get_or_create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=f"{_PREFIX}{session.pk}",
        defaults={
            "engine_session_id": fresh_engine_id(session),
            "kind": session.kind,
            "deleted_at": now,
        },
    )
    return staging


def fresh_engine_id(session: Session) -> str:
    """An id for the session upstream that was never used, and that nobody can guess."""
    return with_mark(session.session_id, f"~{secrets.token_hex(8)}")


def has_other_messages(staging: Session, messages: Collection[Message]) -> bool:
    """Whether the stand-in was given something else than these: then it is to be discarded."""
    given = {journal.memory_id_of(staging.session_id, message) for message in messages}
    noted = set(_journal(staging).values_list("memory_id", flat=True))
    return not noted <= given


def discard(staging: Session) -> None:
    """Forgets the stand-in; what EverOS holds of it is nobody's."""
    residue.record_session(staging)
    _remove(staging)


def discard_for(session: Session) -> None:
    """The same for the stand-in that a move of the session left, if one was broken off."""
    named = Session.objects.filter(
        user_id=session.user_id,
        app_id=session.app_id,
        project_id=session.project_id,
        session_id=f"{_PREFIX}{session.pk}",
    )
    for staging in named:
        discard(staging)


def _remove(staging: Session) -> None:
    Memory.objects.filter(session=staging).delete()
    staging.delete()


def publish(staging: Session, session: Session) -> int:
    """Gives everything that came of the stand-in to the session that it stood for; how many memories that are.

    Call inside the transaction that takes away what the session held before.
    """
    session.engine_session_id = staging.engine_session_id
    session.flushed_at, session.searchable_at = staging.flushed_at, staging.searchable_at
    session.save(update_fields=["engine_session_id", "flushed_at", "searchable_at"])
    journal.reassign(session, _journal(staging).order_by("pk"))
    made = _made(staging).update(session=session)
    _remove(staging)
    return made


def memories_of(staging: Session) -> list[Memory]:
    """The memories that EverOS made of the stand-in's messages."""
    return list(_made(staging).order_by("pk"))


def _journal(staging: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(session=staging, memory_type=Memory.Type.UNPROCESSED_MESSAGE)


def _made(staging: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(session=staging, memory_type=Memory.Type.EPISODE)
