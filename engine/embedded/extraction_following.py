"""What becomes of memories that a model made when their users decide about what they were made of.

A memory goes with each message that it rests on, and comes back with it. A profile, which rests on many, goes at the
first of them and is written anew from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from django.db import transaction

from engine.embedded import storage
from engine.extraction_models import OwedExtraction
from engine.llm import client as llm
from engine.models import Memory, owned_by
from engine.port import Owner

HIDDEN_AS: Final = "hidden_as"
"""Where a payload says why a memory is hidden that no user deleted."""
Reason = Literal["superseded", "with_source"]


def follow(owner: Owner, memory_id: str, at: datetime | None) -> None:
    """Hides or shows what was made of a memory that was just hidden or shown. One statement where nothing was."""
    made = _made_in_session_of(owner, memory_id)
    if not made:
        return
    for one in made:
        if one.memory_id == memory_id:
            if one.payload.pop(HIDDEN_AS, None):  # from now on it is its user's decision
                one.save(update_fields=["payload"])
        elif memory_id in one.payload.get("sources", ()):
            _follow(owner, one, at)
    put_profile_aside(owner)


def reword(owner: Owner, memory_id: str) -> None:
    """Puts the profile aside where it rests on a memory that its user just corrected, or on what was made of it."""
    if _made_in_session_of(owner, memory_id):
        put_profile_aside(owner)


def put_profile_aside(owner: Owner) -> None:
    """Forgets the owner's profile with its history, and owes a new one. Call where something that it may rest on was
    deleted or corrected."""
    profiles = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    rows = [row for row in profiles if row.hidden_at is None or HIDDEN_AS in row.payload]
    if rows:
        storage.remove(owner, rows)
        owe_profile(owner)


def owe_profile(owner: Owner) -> None:
    """Has the profile written anew, once, however often it is owed."""
    if llm.is_set():
        OwedExtraction.objects.update_or_create(
            user_id=owner.user_pk,
            app_id=owner.app_id,
            project_id=owner.project_id,
            session=None,
            defaults={"attempts": 0, "refusals": 0, "retry_at": None, "last_error": "", "given_up_at": None},
        )


def purge(owner: Owner, memory_id: str) -> None:
    """Deletes for good what rests on a memory. Call before that goes for good, inside its transaction."""
    made = _made_in_session_of(owner, memory_id)
    resting = [one for one in made if memory_id in one.payload.get("sources", ())]
    if resting:
        storage.remove(owner, resting)


def has_made(owner: Owner, session_id: str) -> bool:
    """Whether a model made something of a session."""
    made = Memory.objects.filter(owned_by(owner), session__session_id=session_id, origin=Memory.Origin.EXTRACTED)
    return made.exists()


def _made_in_session_of(owner: Owner, memory_id: str) -> list[Memory]:
    session = Memory.objects.filter(owned_by(owner), memory_id=memory_id).values("session_id")[:1]
    return list(Memory.objects.filter(session_id__in=session, origin=Memory.Origin.EXTRACTED).order_by("pk"))


def _follow(owner: Owner, made: Memory, at: datetime | None) -> None:
    if at is not None and made.hidden_at is None:
        hide([made], "with_source", at)
    elif at is None and made.payload.get(HIDDEN_AS) == "with_source" and not _has_hidden_source(owner, made):
        show(made)


def hide(memories: Iterable[Memory], reason: Reason, at: datetime) -> None:
    for memory in memories:
        memory.hidden_at, memory.payload[HIDDEN_AS] = at, reason
        memory.save(update_fields=["hidden_at", "payload"])


def show(memory: Memory) -> None:
    memory.hidden_at = None
    memory.payload.pop(HIDDEN_AS, None)
    memory.save(update_fields=["hidden_at", "payload"])


def _has_hidden_source(owner: Owner, made: Memory) -> bool:
    sources = Memory.objects.filter(owned_by(owner), memory_id__in=made.payload.get("sources", ()))
    return sources.filter(hidden_at__isnull=False).exists()


def forget_session(owner: Owner, session_id: str) -> None:
    """Puts the profile aside where the session that goes had a part in it."""
    if has_made(owner, session_id):
        with transaction.atomic():
            put_profile_aside(owner)
