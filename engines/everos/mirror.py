"""Our copy of the episodes that EverOS made of a session, pulled after each flush."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from core.http_client import Deadline
from engines.everos.client import wire
from engines.everos.client.client import Client
from engines.everos.client.hits import Names, hits_of
from store.external.engine_ids import AgentNames
from store.models import Memory, Session
from store.types import Hit, Owner

_PAGE_SIZE = 100


def pull(client: Client, owner: Owner, session: Session, deadline: Deadline) -> int:
    """Copy the session's episodes, newest first, until all new ones are here; return how many were new.

    Raises: the errors of the client's list call.
    """
    known = _episodes(session).count()
    new = 0
    for number in range(1, 1 + 10_000 // _PAGE_SIZE):
        page = client.list(_question(owner, session, number), deadline)
        new += _keep(owner, session, page)
        if known + new >= page.total_count or number * _PAGE_SIZE >= page.total_count:
            break
    return new


def count(session: Session) -> int:
    """Return how many episodes of the session are copied."""
    return _episodes(session).count()


def latest(session: Session) -> Memory | None:
    """Return the latest copy that is not linked to a flush."""
    return _episodes(session).filter(batch_id="").order_by("-created_at_ms", "-pk").first()


def count_unlinked(session: Session) -> int:
    """Return how many copies are not linked to a flush, because the process ended before it could link them."""
    return _episodes(session).filter(batch_id="").count()


def reaches(session: Session, last_user_ms: int, *, unlinked: bool) -> bool:
    """Return True if a copy is as late as the user's last message.

    EverOS dates an episode by its last message, to the second, and extracts a session in order. `unlinked`: consider
    only copies without a flush.
    """
    late = _episodes(session).filter(created_at_ms__gte=last_user_ms // 1000 * 1000)
    return (late.filter(batch_id="") if unlinked else late).exists()


def _question(owner: Owner, session: Session, number: int) -> dict[str, Any]:
    return {
        "user_id": owner.user_id,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "memory_type": "episode",
        "page": number,
        "page_size": _PAGE_SIZE,
        "filters": {"session_id": session.engine_session_id},
    }


def _keep(owner: Owner, session: Session, page: wire.Page) -> int:
    names = Names({session.engine_session_id: session.session_id}, AgentNames.of(owner.user_pk))
    hits, _ = hits_of(page, owner, names, None, is_bounded=True)
    known = set(
        _episodes(session).filter(memory_id__in=[hit.memory_id for hit in hits]).values_list("memory_id", flat=True)
    )
    new = [hit for hit in hits if hit.memory_id not in known]
    Memory.objects.bulk_create(_rows(owner, session, new), ignore_conflicts=True)
    return len(new)


def _episodes(session: Session) -> QuerySet[Memory]:
    return Memory.objects.filter(
        user_id=session.user_id,
        app_id=session.app_id,
        project_id=session.project_id,
        session=session,
        memory_type=Memory.Type.EPISODE,
        origin=Memory.Origin.UPSTREAM,
    )


def _rows(owner: Owner, session: Session, hits: Iterable[Hit]) -> Iterable[Memory]:
    for hit in hits:
        yield Memory(
            user_id=owner.user_pk,
            app_id=owner.app_id,
            project_id=owner.project_id,
            memory_id=hit.memory_id,
            session=session,
            memory_type=Memory.Type.EPISODE,
            sender_id=owner.user_id,
            text=hit.text,
            payload=hit.raw,
            created_at_ms=hit.created_at_ms,
            origin=Memory.Origin.UPSTREAM,
        )
