"""Register sessions and copy memories that EverOS has and the gateway does not.

A session belongs to the user if EverOS has an episode of the user in it, unless its id names another user, another user
holds it here, or it is residue of an erased user or of a move to another engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from django.db import transaction

from core.ids import check_session_id, parse_session_id
from engines.everos import mirror
from engines.everos.client import wire
from engines.everos.client.client import Client
from store.external import residue
from store.models import Session, owned_by
from store.types import Owner

_PAGE_SIZE = 100
# Ids that the gateway made: of a moved session (`store.external.staging`), or for a second user of the same id.
_GATEWAY_ID = re.compile(r".+(~[0-9a-f]{16}|\+[0-9a-f]{32})")


def sessions(client: Client, owner: Owner) -> Iterator[int]:
    """Register the user's sessions that EverOS has episodes of, and yield after each page how many were new.

    Raises: the errors of the client's list call.
    """
    if residue.holds_user(owner.user_id):
        return
    number, seen, total = 1, 0, 1
    while seen < total:
        page = client.list(_question(owner, number), client.deadline())
        yield sum(_register(owner, name) for name in _names(owner, page))
        number, seen, total = number + 1, seen + _PAGE_SIZE, page.total_count


def memories(client: Client, owner: Owner, session: Session) -> int:
    """Copy the memories of a session that our table lacks, and return how many.

    Raises: the errors of the client's list call.
    """
    return mirror.pull(client, owner, session, client.deadline())


def _question(owner: Owner, number: int) -> dict[str, object]:
    return {
        "user_id": owner.user_id,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "memory_type": "episode",
        "page": number,
        "page_size": _PAGE_SIZE,
        "sort_by": "timestamp",
        "sort_order": "asc",
    }


def _names(owner: Owner, page: wire.Page) -> set[str]:
    return {one.session_id for one in page.episodes if one.session_id is not None and one.user_id == owner.user_id}


def _register(owner: Owner, name: str) -> bool:
    """Register the session, and return True if it was unknown and is the user's."""
    if not _can_belong_to(owner, name):
        return False
    session = Session(
        user_id=owner.user_pk,
        app_id=owner.app_id,
        project_id=owner.project_id,
        session_id=name,
        engine_session_id=name,
        kind=parse_session_id(name).kind,
    )
    with transaction.atomic():
        held = Session.objects.filter(engine_session_id=name, app_id=owner.app_id, project_id=owner.project_id)
        known = Session.objects.filter(owned_by(owner), session_id=name)
        if held.exists() or known.exists() or residue.holds_session(session):
            return False
        session.save()
        return True


def _can_belong_to(owner: Owner, name: str) -> bool:
    try:
        check_session_id(name)
    except ValueError:
        return False
    named = parse_session_id(name).user_id
    return named in {None, owner.user_id} and not _GATEWAY_ID.fullmatch(name)
