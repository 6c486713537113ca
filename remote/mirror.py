"""Copy EverOS's episodes into the store after each flush, and its sessions that the gateway does not have.

What the person's controls refuse of an episode leaves a purged row without text, which hides the episode in searches.

A session in EverOS belongs to the user if it has an episode of the user, unless its id names another user, another user
has it in the store, or it is left from an erased user or a session that was sent again (`remote.residue`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from core.ids import check_session_id, parse_session_id
from core.network.http_client import Deadline
from core.persistence.checked_rows import repair_row
from remote import resend, residue, sources
from remote.client import wire
from remote.client.client import Client
from remote.client.hits import Names, hits_of
from remote.engine_ids import AgentNames
from store import admission, topic_model, writes
from store.models import Memory, Session, State, owned_by, owner_columns
from store.types import Owner

_PAGE_SIZE = 100
_MAX_PAGES = 100
# Ids that the gateway created: of a session that was sent again (`remote.resend`), or for a second user of its id.
_GATEWAY_ID = re.compile(r".+(~[0-9a-f]{16}|\+[0-9a-f]{32})")


def pull(client: Client, owner: Owner, session: Session, deadline: Deadline) -> int:
    """Copy the session's episodes, newest first, until all new ones are copied; return the number of new ones.

    Raises: the errors of the client's list call.
    """
    if session.incognito_until is not None:
        return 0  # EverOS got nothing of it
    known = episodes(session).count()
    new = 0
    conditions = {"filters": {"session_id": session.engine_session_id}}
    for number in range(1, 1 + _MAX_PAGES):
        page = _page(client, owner, number, deadline, conditions)
        new += _copy_page(owner, session, page)
        if known + new >= page.total_count or number * _PAGE_SIZE >= page.total_count:
            break
    return new


def episodes(session: Session) -> QuerySet[Memory]:
    """Return the session's copies of what the attached remote has under its id."""
    copies = Memory.objects.filter(session=session, memory_type=Memory.Type.EPISODE, origin=Memory.Origin.REMOTE)
    return copies.filter(sources.is_present())


def unlinked(session: Session) -> QuerySet[Memory]:
    """Return the copies that are not linked to a flush yet."""
    return episodes(session).filter(batch_id="")


def are_complete(copies: QuerySet[Memory], last_user_ms: int) -> bool:
    """Return True if a copy is at least as new as the user's last message, so that the copies are complete.

    EverOS dates an episode by its last message, to the second, and extracts messages in order.
    """
    return copies.filter(created_at_ms__gte=last_user_ms // 1000 * 1000).exists()


def find_sessions(client: Client, owner: Owner) -> Iterator[int]:
    """Record the user's sessions that EverOS has episodes of; yield the number of new ones after each page.

    Raises: the errors of the client's list call.
    """
    if residue.holds_user(owner.remote_name):
        return
    number, seen, total = 1, 0, 1
    while seen < total:
        order = {"sort_by": "timestamp", "sort_order": "asc"}
        page = _page(client, owner, number, client.deadline(), order)
        names = {one.session_id for one in page.episodes if one.session_id and one.filed_under == owner.remote_name}
        yield sum(_record(owner, name) for name in names)
        number, seen, total = number + 1, seen + _PAGE_SIZE, page.total_count


def _page(client: Client, owner: Owner, number: int, deadline: Deadline, conditions: Mapping[str, Any]) -> wire.Page:
    query = {
        "user_id": owner.remote_name,
        **owner.scope,
        "memory_type": "episode",
        "page": number,
        "page_size": _PAGE_SIZE,
        **conditions,
    }
    return client.list(query, deadline)


def _copy_page(owner: Owner, session: Session, page: wire.Page) -> int:
    names = Names({session.engine_session_id: session.session_id}, AgentNames(owner.user_pk))
    hits, _foreign = hits_of(page, owner, names, None, is_bounded=True)
    copied = episodes(session).filter(memory_id__in=[hit.memory_id for hit in hits])
    known = set(copied.values_list("memory_id", flat=True))
    new = [
        Memory(
            **owner_columns(owner),
            memory_id=hit.memory_id,
            session=session,
            memory_type=Memory.Type.EPISODE,
            sender_id=owner.user_id,
            text=hit.text,
            original_text=hit.text,
            payload=hit.raw,
            created_at_ms=hit.created_at_ms,
            origin=Memory.Origin.REMOTE,
        )
        for hit in hits
        if hit.memory_id not in known
    ]
    refused = _refused(owner, session, new)
    for memory in new:
        repair_row(memory)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)  # another process may copy the same
        if locked.engine_session_id != session.engine_session_id:
            return 0  # it is sent again meanwhile
        if resend.is_open(locked):
            resend.make_room(owner, [memory.memory_id for memory in new])
            for memory in new:
                memory.is_covered = memory.is_replaced = True
        known = writes.known(owner, [memory.memory_id for memory in new])
        new = [memory for memory in new if memory.memory_id not in known]
        kept = [memory for memory in new if memory.memory_id not in refused]
        writes.insert(owner, kept)
        writes.hold_deletions(owner, kept)
        sources.hold_repetitions(session, kept)
        writes.insert_unindexed(memory for memory in new if memory.memory_id in refused)
    return len(new)


def _refused(owner: Owner, session: Session, new: Sequence[Memory]) -> set[str]:
    """Purge what the person's controls refuse of new copies, and return its ids."""
    said = [admission.Derived(memory.text, memory.created_at_ms, session.session_id) for memory in new]
    places = admission.refused_derived(owner.user_pk, said, ask_seconds=topic_model.SECONDS)
    for memory in (new[place] for place in places):
        memory.text, memory.original_text, memory.payload = "", "", {}
        memory.state, memory.state_since = State.PURGED, timezone.now()
    return {new[place].memory_id for place in places}


def _record(owner: Owner, name: str) -> bool:
    """Record a session if it is new and belongs to the user; return True if so."""
    try:
        check_session_id(name)
    except ValueError:
        return False
    named = parse_session_id(name)
    if named.user_id not in {None, owner.session_name} or _GATEWAY_ID.fullmatch(name):
        return False
    session = Session(
        **owner_columns(owner),
        session_id=name,
        engine_session_id=name,
        kind=named.kind,
    )
    with transaction.atomic():
        held = Session.objects.filter(engine_session_id=name, **owner.scope)
        known = Session.objects.filter(owned_by(owner), session_id=name)
        if held.exists() or known.exists() or residue.holds_session(session):
            return False
        session.save()
        return True
