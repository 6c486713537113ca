"""Plan and verify a move: the sessions to move, the estimated effort, and the remaining work."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length

from core.errors import InvalidInput
from engines.registry import get_engine
from memories.models import Override, Tombstone
from operations.moves.to_everos import undecided_rows
from remote.models import OutboxEntry
from resources.models import NOT_PURGED, Resource
from store.models import DeliveryState, Memory, Session

EngineName = Literal["embedded", "upstream"]
_MESSAGES_PER_CALL = 200
CALLS_PER_SESSION: Final = 4
"""An add, a flush, and calls until its memories are found."""
_SECONDS = {"embedded": 0.02, "upstream": 1.5}
_SECONDS_PER_MB = {"embedded": 2.0, "upstream": 4.0}
_BYTES_PER_TOKEN = 3.5
_LLM_PASSES = 3
"""The approximate number of times that EverOS sends a text to its LLM: to split, to summarize and to extract facts."""
_INGESTED = (Resource.Status.EXTRACTED, Resource.Status.EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The sessions to move: of all users, of one user, one session (row id), or that of a resource."""

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

    `seconds` is the time with one worker, `tokens` the input of EverOS's LLM, `cost` the price of these tokens.
    """

    seconds: int
    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a move. With `into` None, sessions are replayed into the engine of the settings.

    `messages` is the number to replay, `memories` the number to replace.
    """

    target: Target
    into: EngineName | None
    sessions: int
    resources: int
    messages: int
    memories: int
    size_bytes: int
    tombstones: int
    overrides: int
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Verified:
    """The counts of problems after a move; all are 0 if it is complete."""

    sessions_left: int
    tombstones_without_effect: int
    overrides_without_effect: int
    memories_not_indexed: int

    @property
    def is_ok(self) -> bool:
        return not any(asdict(self).values())


def plan(target: Target, into: EngineName | None = None, *, price: float | None = None) -> Plan:
    """Return the plan of a move. `price` is per million tokens.

    Raises: `InvalidInput` if the engine is not available.
    """
    require_engine(into)
    sessions = sessions_to_move(target, into)
    rows = Memory.objects.filter(session__in=sessions)
    is_replayed = Q(origin=Memory.Origin.EMBEDDED)
    counts = rows.aggregate(
        messages=Count("pk", filter=is_replayed),
        memories=Count("pk"),
        chars=Sum(Length("text"), filter=is_replayed),
    )
    without_rows = OutboxEntry.objects.filter(session__in=sessions, memory_ids=[]).exclude(message={})
    messages = counts["messages"] + without_rows.count()
    of_session = sessions.filter(user=OuterRef("user"), session_id=OuterRef("session_id"))
    resources = Resource.objects.filter(Exists(of_session), deleted_at__isnull=True)
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
        estimate=_estimate(into or _current_engine(), count, messages, size, price),
    )


def require_engine(into: EngineName | None) -> None:
    """Raise `InvalidInput` if the engine is not available."""
    if into == "upstream" and _current_engine() != "upstream":
        raise InvalidInput("EverOS is not configured. Set MEMORY_GATEWAY_BACKEND_BASE_URL for this command.")


def _sessions_of(target: Target) -> QuerySet[Session]:
    """Return the sessions of the target, without permanently deleted ones."""
    found = Session.objects.filter(deleted_at__isnull=True)
    if target.user_pk is not None:
        found = found.filter(user_id=target.user_pk)
    if target.session_pk is not None:
        found = found.filter(pk=target.session_pk)
    if target.resource_id is not None:
        of_resource = Resource.objects.filter(pk=target.resource_id, user=OuterRef("user"))
        found = found.filter(Exists(of_resource.filter(session_id=OuterRef("session_id"))))
    return found


def sessions_to_move(target: Target, into: EngineName | None) -> QuerySet[Session]:
    """Return the sessions that are not in the requested engine yet, oldest first.

    Files that are being ingested, or will be after a restore from the trash, are left out, because their ingestion uses
    the engine of the settings.
    """
    unfinished = Resource.objects.filter(NOT_PURGED, user=OuterRef("user"), session_id=OuterRef("session_id"))
    unfinished = unfinished.exclude(status__in=_INGESTED).exclude(former_status__in=_INGESTED)
    sessions = _sessions_of(target).exclude(Exists(unfinished)).order_by("pk")
    copies = Memory.objects.filter(session=OuterRef("pk"), origin=Memory.Origin.UPSTREAM)
    sent = OutboxEntry.objects.filter(session=OuterRef("pk")).exclude(message={})
    is_in_everos = Exists(copies.exclude(delivery_state=DeliveryState.PURGED)) | Exists(sent)
    is_in_store = Exists(undecided_rows(OuterRef("pk")))
    if into == "embedded":
        return sessions.filter(is_in_everos)
    if into == "upstream":
        return sessions.filter(is_in_store, hidden_at__isnull=True)
    if _current_engine() == "upstream":
        return sessions.filter(is_in_everos | is_in_store, hidden_at__isnull=True)
    ingested = Resource.objects.filter(user=OuterRef("user"), session_id=OuterRef("session_id"), status__in=_INGESTED)
    uploads = ingested.filter(deleted_at__isnull=True).exclude(storage_path="")
    return sessions.filter(is_in_everos | Exists(uploads))


def verify(target: Target, into: EngineName | None) -> Verified:
    """Count the problems after a move."""
    sessions = _sessions_of(target)
    tombstones = Tombstone.objects.filter(row__session__in=sessions, undone_at__isnull=True)
    overrides = Override.objects.filter(row__session__in=sessions, undone_at__isnull=True)
    return Verified(
        sessions_left=sessions_to_move(target, into).count() if into else 0,
        tombstones_without_effect=tombstones.filter(row__hidden_at__isnull=True).count(),
        overrides_without_effect=overrides.exclude(row__text=F("text")).count(),
        memories_not_indexed=Memory.objects.filter(
            session__in=sessions, origin=Memory.Origin.EMBEDDED, is_indexed=False
        ).count(),
    )


def _current_engine() -> EngineName:
    return "upstream" if get_engine().is_external else "embedded"


def _estimate(into: EngineName, sessions: int, messages: int, size: int, price: float | None) -> Estimate:
    seconds = sessions * _SECONDS[into] + size / 2**20 * _SECONDS_PER_MB[into]
    if into == "embedded":
        return Estimate(round(seconds), 0, 0, None if price is None else 0.0)
    calls = sessions * CALLS_PER_SESSION + messages // _MESSAGES_PER_CALL
    tokens = round(size / _BYTES_PER_TOKEN * _LLM_PASSES)
    return Estimate(round(seconds), calls, tokens, None if price is None else round(tokens / 1e6 * price, 2))
