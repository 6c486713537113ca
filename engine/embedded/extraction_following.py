"""What becomes of memories that a model made when their users decide about what they were made of.

A memory goes with each message that it rests on, and comes back with it. One whose message was corrected is set aside
until a model has read the corrected words. A profile, which rests on many, goes at the first of them and is written
anew from what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone

from engine.embedded import sessions, storage
from engine.extraction_models import OwedExtraction
from engine.llm import client as llm
from engine.models import Memory, owned_by
from engine.port import Owner

HIDDEN_AS: Final = "hidden_as"
"""Where a payload says why a memory is hidden that no user deleted."""
Reason = Literal["superseded", "with_source", "reworded"]


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


def read_again(owner: Owner, memory: Memory) -> None:
    """Sets aside what a model made of a memory whose words its user just changed, and has it read the new ones: what
    still holds is said again. What its user corrected themselves stays."""
    made = [one for one in _made_in_session_of(owner, memory.memory_id) if _rests_on(one, memory.memory_id)]
    stale = [one for one in made if one.hidden_at is None or one.payload.get(HIDDEN_AS) == "with_source"]
    if not stale:
        return
    hide(stale, "reworded", timezone.now())
    sources = {name for one in stale for name in one.payload["sources"]}
    places = Memory.objects.filter(owned_by(owner), memory_id__in=sources).aggregate(first=Min("seq"), last=Max("seq"))
    OwedExtraction.objects.create(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=memory.session_id,
        batch_id=memory.batch_id,
        after_seq=places["first"] - 1,
        until_seq=places["last"],
    )


def _rests_on(made: Memory, memory_id: str) -> bool:
    return memory_id in made.payload.get("sources", ()) and made.text == made.payload.get("said")


def put_profile_aside(owner: Owner) -> None:
    """Forgets the owner's profile with its history, what lies in the trash of it too, and owes a new one unless it was
    its user who deleted it. Call where something that it may rest on was deleted or corrected."""
    profiles = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    rows = list(profiles)
    if rows:
        storage.remove(owner, rows)
    if any(row.hidden_at is None or HIDDEN_AS in row.payload for row in rows):
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
    """Puts the profile aside where the session that is gone had a part in it; one that is being written waits, and then
    finds the session gone."""
    if has_made(owner, session_id):
        with transaction.atomic():
            sessions.lock_decisions(owner)
            put_profile_aside(owner)
