"""Plan a re-ingest: its sessions, and the estimated effort."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length

from accounts.controls import SOURCES, paused_users, require_not_paused
from core.errors import InvalidInput
from memories.models import Override, Tombstone
from operations.reingest.sending import rows_not_sent
from remote import sources
from remote.models import OutboxEntry
from resources.models import Resource
from store.cover import is_attached
from store.models import Memory, Session, State

Into = Literal["remote"]
_MESSAGES_PER_CALL = 200
CALLS_PER_SESSION: Final = 4
"""An add, a flush, and calls until its memories are found."""
_SECONDS = {False: 0.02, True: 1.5}
"""Of a session, without and with a remote."""
_SECONDS_PER_MB = {False: 2.0, True: 4.0}
_BYTES_PER_TOKEN = 3.5
_LLM_PASSES = 3
"""The approximate number of times that a remote sends a text to its LLM: to split, to summarize, to extract facts."""
_INGESTED = (Resource.Status.EXTRACTED, Resource.Status.EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The sessions to ingest again: of all users, of one user, one session (row id), or that of a resource."""

    user_pk: UUID | None = None
    session_pk: int | None = None
    resource_id: str | None = None

    @classmethod
    def of_params(cls, params: Mapping[str, Any]) -> Self:
        user_pk = params["user_pk"] and UUID(params["user_pk"])
        return cls(user_pk=user_pk, session_pk=params["session_pk"], resource_id=params["resource_id"])


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated effort.

    `seconds` is the time with one worker, `tokens` the input of the remote's LLM, `cost` the price of these tokens.
    """

    seconds: int
    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a re-ingest. With `into` None, files are read again, and sessions sent again that the remote has.

    `messages` is the number of messages and passages, `memories` that of all memories of the sessions.
    """

    target: Target
    into: Into | None
    sessions: int
    resources: int
    messages: int
    memories: int
    size_bytes: int
    tombstones: int
    overrides: int
    estimate: Estimate


def plan(target: Target, into: Into | None = None, *, price: float | None = None) -> Plan:
    """Return the plan of a re-ingest. `price` is per million tokens.

    Raises: `InvalidInput` if no remote is attached, `Paused` for the sessions of a user who paused remembering.
    """
    require_remote(into)
    if target.user_pk is not None:
        require_not_paused(target.user_pk)
    sessions = sessions_of(target, into)
    rows = Memory.objects.filter(session__in=sessions)
    is_ours = Q(origin=Memory.Origin.EMBEDDED)
    counts = rows.aggregate(
        messages=Count("pk", filter=is_ours),
        memories=Count("pk"),
        chars=Sum(Length("text"), filter=is_ours),
    )
    without_rows = OutboxEntry.objects.filter(session__in=sessions, memory_ids=[]).exclude(message={})
    messages = counts["messages"] + without_rows.count()
    of_session = sessions.filter(user=OuterRef("user"), session_id=OuterRef("session_id"))
    resources = Resource.objects.filter(Exists(of_session), state=State.LIVE)
    files = resources.aggregate(count=Count("pk"), size=Sum("size_bytes"))
    size = (files["size"] or 0) + 2 * (counts["chars"] or 0)
    count = sessions.count()
    return Plan(
        target,
        into,
        sessions=count,
        resources=files["count"],
        messages=messages,
        memories=counts["memories"],
        size_bytes=size,
        tombstones=Tombstone.objects.filter(row__session__in=sessions, undone_at__isnull=True).count(),
        overrides=Override.objects.filter(row__session__in=sessions, undone_at__isnull=True).count(),
        estimate=_estimate(count, messages, size, price),
    )


def require_remote(into: Into | None) -> None:
    """Raise `InvalidInput` if sessions cannot be sent."""
    if into and not is_attached():
        raise InvalidInput("No remote is attached. Set MEMORY_GATEWAY_BACKEND_BASE_URL for this command.")


def sessions_of(target: Target, into: Into | None) -> QuerySet[Session]:
    """Return the sessions that the remote lacks, or those to ingest again; oldest first, without deleted ones.

    Files that are being ingested, or will be after a restore from the trash, are left out.
    """
    of_session = Resource.objects.filter(user=OuterRef("user"), session_id=OuterRef("session_id"))
    unfinished = of_session.exclude(state=State.PURGED).exclude(status__in=_INGESTED)
    sessions = _of_target(target).exclude(Exists(unfinished)).order_by("pk")
    if into:
        return sessions.filter(Exists(rows_not_sent(OuterRef("pk"))))
    uploads = of_session.filter(state=State.LIVE, status__in=_INGESTED).exclude(storage_path="")
    sent = OutboxEntry.objects.filter(sources.of_remote(), session=OuterRef("pk")).exclude(message={})
    return sessions.filter(Exists(uploads) | Exists(sent) if is_attached() else Exists(uploads))


def _of_target(target: Target) -> QuerySet[Session]:
    """Return the live sessions of the target, without incognito ones and those of users who paused."""
    found = Session.objects.filter(state=State.LIVE, incognito_until=None).exclude(user__in=paused_users(*SOURCES))
    if target.user_pk is not None:
        found = found.filter(user_id=target.user_pk)
    if target.session_pk is not None:
        found = found.filter(pk=target.session_pk)
    if target.resource_id is not None:
        of_resource = Resource.objects.filter(pk=target.resource_id, user=OuterRef("user"))
        found = found.filter(Exists(of_resource.filter(session_id=OuterRef("session_id"))))
    return found


def _estimate(sessions: int, messages: int, size: int, price: float | None) -> Estimate:
    is_sent = is_attached()
    seconds = sessions * _SECONDS[is_sent] + size / 2**20 * _SECONDS_PER_MB[is_sent]
    if not is_sent:
        return Estimate(round(seconds), 0, 0, None if price is None else 0.0)
    calls = sessions * CALLS_PER_SESSION + messages // _MESSAGES_PER_CALL
    tokens = round(size / _BYTES_PER_TOKEN * _LLM_PASSES)
    return Estimate(round(seconds), calls, tokens, None if price is None else round(tokens / 1e6 * price, 2))
