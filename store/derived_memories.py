"""What becomes of memories that a model made when their users decide about what they were made of.

A memory goes with each message that it rests on, and comes back with it. One whose message was corrected is set aside
until a model has read the corrected words. A profile, which rests on many, goes at the first of them and is written
anew from what is left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Literal

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Min, Q
from django.utils import timezone

from store import sessions, storage
from store.extraction_models import OwedExtraction
from store.models import Memory, owned_by
from store.types import Owner

HIDDEN_AS: Final = "hidden_as"
"""Where a payload says why a memory is hidden that no user deleted."""
Reason = Literal["superseded", "with_source", "reworded"]


def follow(owner: Owner, memory_ids: Collection[str], at: datetime | None) -> None:
    """Hide or show what was made of memories that were just hidden or shown. One statement where nothing was made."""
    made = _made_in_sessions_of(owner, memory_ids)
    if not made:
        return
    decided = set(memory_ids)
    own = [one for one in made if one.memory_id in decided and one.payload.pop(HIDDEN_AS, None)]
    Memory.objects.bulk_update(own, ["payload"])  # from now on they are their user's decision
    derived = [
        one for one in made if one.memory_id not in decided and not decided.isdisjoint(one.payload.get("sources", ()))
    ]
    if at is not None:
        hide([one for one in derived if one.hidden_at is None], "with_source", at)
    else:
        waiting = [one for one in derived if one.payload.get(HIDDEN_AS) == "with_source"]
        sources = {name for one in waiting for name in one.payload["sources"]}
        still = Memory.objects.filter(owned_by(owner), memory_id__in=sources, hidden_at__isnull=False)
        hidden = set(still.values_list("memory_id", flat=True))
        show([one for one in waiting if hidden.isdisjoint(one.payload["sources"])])
    put_profile_aside(owner)


def reword(owner: Owner, memory_ids: Collection[str]) -> None:
    """Put the profile aside where it may rest on memories that their user just edited."""
    if _made_in_sessions_of(owner, memory_ids):
        put_profile_aside(owner)


def read_again(owner: Owner, memory: Memory) -> None:
    """Sets aside what a model made of a memory whose words its user just changed, and has it read the new ones: what
    still holds is said again. What its user corrected themselves stays."""
    made = [one for one in _made_in_sessions_of(owner, [memory.memory_id]) if _rests_on(one, memory.memory_id)]
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
    if settings.MEMORY_GATEWAY_LLM_BASE_URL:
        OwedExtraction.objects.update_or_create(
            user_id=owner.user_pk,
            app_id=owner.app_id,
            project_id=owner.project_id,
            session=None,
            defaults={"attempts": 0, "refusals": 0, "retry_at": None, "last_error": "", "given_up_at": None},
        )


def purge(owner: Owner, memory_id: str) -> None:
    """Deletes for good what rests on a memory. Call before that goes for good, inside its transaction."""
    made = _made_in_sessions_of(owner, [memory_id])
    resting = [one for one in made if memory_id in one.payload.get("sources", ())]
    if resting:
        storage.remove(owner, resting)


def _made_in_sessions_of(owner: Owner, memory_ids: Collection[str]) -> list[Memory]:
    sessions = Memory.objects.filter(owned_by(owner), memory_id__in=memory_ids).values("session_id")
    return list(Memory.objects.filter(session_id__in=sessions, origin=Memory.Origin.EXTRACTED).order_by("pk"))


def hide(memories: Sequence[Memory], reason: Reason, at: datetime) -> None:
    for memory in memories:
        memory.hidden_at, memory.payload[HIDDEN_AS] = at, reason
    Memory.objects.bulk_update(memories, ["hidden_at", "payload"])


def show(memories: Sequence[Memory]) -> None:
    for memory in memories:
        memory.hidden_at = None
        memory.payload.pop(HIDDEN_AS, None)
    Memory.objects.bulk_update(memories, ["hidden_at", "payload"])


def forget_sessions(owner: Owner, session_ids: Collection[str]) -> None:
    """Put the profile aside where sessions that are gone had a part in it. A profile that is being written waits, and
    then finds the sessions gone."""
    made = Memory.objects.filter(owned_by(owner), session__session_id__in=session_ids, origin=Memory.Origin.EXTRACTED)
    if made.exists():
        with transaction.atomic():
            sessions.lock_decisions(owner)
            put_profile_aside(owner)


def extraction_backlog() -> dict[str, int]:
    """Return how many extractions are pending (`owed`) and how many failed for the last time (`given_up`)."""
    is_given_up = Q(given_up_at__isnull=False)
    return OwedExtraction.objects.aggregate(
        owed=Count("pk", filter=~is_given_up), given_up=Count("pk", filter=is_given_up)
    )
