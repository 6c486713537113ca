"""Deletions that an external engine has to carry out, recorded in the transaction that removes our rows.

A row remains until the engine accepts the deletion, and a day longer, so that the receipt of an erasure can count it.
Deletions in the engine are permanent: only a purge, an erasure and a session that was sent again record them.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from remote import remote_sessions
from remote.engine_ids import AgentNames
from remote.models import OutboxEntry, Resend
from store.models import IS_PURGED, Memory, PendingDeletion, Session
from store.types import Owner

KEPT: Final = timedelta(days=1)
"""The time for which an accepted deletion is kept."""
_MARGIN: Final = timedelta(seconds=30)
_KEY: Final = ("base_url", "owner_id", "app_id", "project_id", "engine_session_id", "memory_id")
_RESET: Final = ("queued_at", "attempts", "retry_at", "accepted_at", "accepted_count")


def is_enabled() -> bool:
    """Return True if the settings name an external engine and allow deletions there."""
    return bool(settings.MEMORY_GATEWAY_BACKEND_BASE_URL and settings.MEMORY_GATEWAY_EVEROS_DELETE)


def queue_session(owner: Owner, session: Session) -> bool:
    """Record that the engine has to delete what the owner and their agents have in a session.

    Call inside the transaction that removes the session's rows, before they are removed. Return False if deletions are
    not enabled or the session was never sent. A call to the session that may still run is waited for.
    """
    copies = Memory.objects.filter(session=session, origin=Memory.Origin.REMOTE)
    sent = OutboxEntry.objects.filter(session=session)
    if not is_enabled() or not (sent.exists() or copies.exists()):
        return False
    is_running = remote_sessions.is_flush_open(session) or sent.filter(state=OutboxEntry.State.UNCONFIRMED).exists()
    resend = Resend.objects.filter(session=session).first()
    names = [session.engine_session_id, *(resend.former_ids if resend else ())]
    _queue_names(owner, session, names, _longest_call() if is_running else timedelta(0))
    return True


def queue_former(owner: Owner, session: Session, former_ids: Collection[str]) -> None:
    """Record that the engine has to delete what it has of a session under former ids. Call inside a transaction."""
    if is_enabled():
        _queue_names(owner, session, former_ids, _longest_call())


def _longest_call() -> timedelta:
    return timedelta(seconds=settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS) + _MARGIN


def _queue_names(owner: Owner, session: Session, names: Collection[str], wait: timedelta) -> None:
    agents = _agents(owner.user_pk, OutboxEntry.objects.filter(session=session))
    rows = [_row(owner, wait, owner_id=owner.remote_name, engine_session_id=name) for name in names]
    rows += [
        _row(owner, wait, owner_id=agent_id, is_agent=True, engine_session_id=name)
        for name in names
        for agent_id in agents
    ]
    _record(rows)


def queue_memory(owner: Owner, memory: Memory) -> None:
    """Record that the engine has to delete a memory, if it is a copy of the engine's. Call before it is emptied."""
    is_copy = memory.origin == Memory.Origin.REMOTE and memory.memory_type == Memory.Type.EPISODE
    if is_enabled() and is_copy:
        _record([_row(owner, timedelta(0), owner_id=owner.remote_name, memory_id=memory.memory_id)])


def queue_user(user_key: UUID, user_id: str) -> None:
    """Record the deletions of a user who is being erased, except those of sessions that are still open.

    These are all that the user's agents have, and deleted sessions. The user's name alone would also mean a later user
    of the same name, so that it is never deleted without a session.
    """
    if not is_enabled():
        return
    sent = OutboxEntry.objects.filter(user_id=user_key)
    for app_id, project_id in sent.order_by().values_list("app_id", "project_id").distinct():
        owner = Owner(user_key, user_id, app_id, project_id)
        of_scope = sent.filter(app_id=app_id, project_id=project_id)
        names = _agents(user_key, of_scope)
        _record([_row(owner, timedelta(0), owner_id=agent_id, is_agent=True) for agent_id in names])
    for session in Session.objects.filter(IS_PURGED, user_id=user_key):
        queue_session(Owner(user_key, user_id, session.app_id, session.project_id), session)


def due(now: datetime, limit: int, user_key: UUID | None = None) -> list[PendingDeletion]:
    """Return due deletions of the engine in the settings, those that wait longest first; of a user also later ones."""
    found = _pending().filter(retry_at__lte=now) if user_key is None else _pending().filter(user_key=user_key)
    return list(found.order_by("retry_at", "pk")[:limit])


def postpone(rows: Collection[PendingDeletion], until: datetime) -> None:
    """Record a failed attempt."""
    for row in rows:
        PendingDeletion.objects.filter(_unchanged(row)).update(attempts=row.attempts + 1, retry_at=until)


def accept(rows: Sequence[PendingDeletion], count: int, now: datetime) -> None:
    """Record that the engine accepted these deletions together, of `count` entries.

    A deletion that was recorded again meanwhile stays pending.
    """
    for number, row in enumerate(rows):
        accepted = {"accepted_at": now, "accepted_count": 0 if number else count}
        PendingDeletion.objects.filter(_unchanged(row)).update(**accepted)


def forget_accepted(before: datetime, user_key: UUID | None = None) -> None:
    """Remove the rows of deletions that were accepted before that time, of one user or of all."""
    of_user = Q() if user_key is None else Q(user_key=user_key)
    PendingDeletion.objects.filter(of_user, accepted_at__lt=before).delete()


def counts(user_key: UUID) -> dict[str, int]:
    """Return how many deletions of a user the engine accepted, of how many entries, and how many are pending."""
    accepted = Q(accepted_at__isnull=False)
    rows = PendingDeletion.objects.filter(user_key=user_key)
    found = rows.aggregate(
        accepted=Count("pk", filter=accepted),
        entries=Sum("accepted_count", filter=accepted, default=0),
        pending=Count("pk", filter=~accepted),
    )
    return dict(found)


def _pending() -> QuerySet[PendingDeletion]:
    base_url = settings.MEMORY_GATEWAY_BACKEND_BASE_URL
    return PendingDeletion.objects.filter(accepted_at__isnull=True, base_url=base_url)


def _unchanged(row: PendingDeletion) -> Q:
    return Q(pk=row.pk, queued_at=row.queued_at)


def _agents(user_key: UUID, sent: QuerySet[OutboxEntry]) -> list[str]:
    names = sent.exclude(agent_id="").order_by().values_list("agent_id", flat=True).distinct()
    return [AgentNames(user_key).engine_id(name) for name in names]


def _row(
    owner: Owner,
    wait: timedelta,
    *,
    owner_id: str,
    is_agent: bool = False,
    engine_session_id: str = "",
    memory_id: str = "",
) -> PendingDeletion:
    now = timezone.now()
    return PendingDeletion(
        base_url=settings.MEMORY_GATEWAY_BACKEND_BASE_URL,
        user_key=owner.user_pk,
        **owner.scope,
        owner_id=owner_id,
        is_agent=is_agent,
        engine_session_id=engine_session_id,
        memory_id=memory_id,
        queued_at=now,
        retry_at=now + wait,
    )


def _record(rows: Collection[PendingDeletion]) -> None:
    PendingDeletion.objects.bulk_create(rows, update_conflicts=True, unique_fields=_KEY, update_fields=_RESET)
