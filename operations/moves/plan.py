"""What a move would do, counted before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Length

from core.errors import InvalidInput
from engines.registry import get_engine
from memories.models import Override, Tombstone
from operations.moves.purged import WORDLESS
from operations.moves.to_everos import free_rows
from resources.models import Resource
from store.models import Memory, Session

EngineName = Literal["embedded", "upstream"]
MESSAGES_PER_CALL: Final = 200
_CALLS_PER_SESSION = 4  # an add, a flush, and what shows that its memories can be found
_SECONDS = {"embedded": 0.02, "upstream": 1.5}
_SECONDS_PER_MB = {"embedded": 2.0, "upstream": 4.0}
_BYTES_PER_TOKEN = 3.5
_READ_TIMES = 3
"""How often EverOS shows its LLM a text, about: to cut it, to tell it, to draw facts from it."""
_OPEN = (Resource.Status.EXTRACTED, Resource.Status.EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which sessions: of all users, of one, or one session (by row), or a resource's. None is no condition."""

    user_pk: UUID | None = None
    session_pk: int | None = None
    resource_id: str | None = None

    def params(self) -> dict[str, Any]:
        return {**asdict(self), "user_pk": str(self.user_pk) if self.user_pk else None}

    @classmethod
    def of_params(cls, params: Mapping[str, Any]) -> Target:
        user_pk = params["user_pk"]
        return cls(
            user_pk=UUID(user_pk) if user_pk else None,
            session_pk=params["session_pk"],
            resource_id=params["resource_id"],
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """`seconds` with one worker; `tokens` are what an upstream's LLM reads, `cost` at a price per million of them."""

    seconds: int
    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """A move that nobody has made yet. `into` None: anew into the engine that the settings name. `messages` are to be
    told again, `memories` to be replaced."""

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

    def counts(self) -> dict[str, Any]:
        """As JSON data, without whom it is about."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name != "target"}


def plan(target: Target, into: EngineName | None = None, *, price: float | None = None) -> Plan:
    """Counts; changes nothing. `price` is per million tokens. Errors: `InvalidInput` if the engine is not at hand."""
    require_engine(into)
    sessions = to_move(target, into)
    rows = Memory.objects.filter(session__in=sessions)
    told = rows.aggregate(
        messages=Count("pk", filter=_is_message()),
        memories=Count("pk"),
        chars=Sum(Length("text"), filter=_is_message()),
    )
    resources = resources_of(sessions)
    files = resources.aggregate(count=Count("pk"), size=Sum("size_bytes"))
    size = (files["size"] or 0) + 2 * (told["chars"] or 0)
    count = sessions.count()
    return Plan(
        target,
        into,
        sessions=count,
        resources=files["count"],
        messages=told["messages"],
        memories=told["memories"],
        size_bytes=size,
        tombstones=Tombstone.objects.filter(row__session__in=sessions, undone_at__isnull=True).count(),
        overrides=Override.objects.filter(row__session__in=sessions, undone_at__isnull=True).count(),
        estimate=_estimate(into or _present(), count, told["messages"], size, price),
    )


def require_engine(into: EngineName | None) -> None:
    """Errors: `InvalidInput`."""
    if into == "upstream" and _present() != "upstream":
        raise InvalidInput("There is no upstream to move into: set MEMORY_GATEWAY_BACKEND_BASE_URL for this command.")


def sessions_of(target: Target) -> QuerySet[Session]:
    """Those that were not deleted for good."""
    found = Session.objects.filter(deleted_at__isnull=True)
    if target.user_pk is not None:
        found = found.filter(user_id=target.user_pk)
    if target.session_pk is not None:
        found = found.filter(pk=target.session_pk)
    if target.resource_id is not None:
        of_resource = Resource.objects.filter(pk=target.resource_id, user=OuterRef("user"))
        found = found.filter(Exists(of_resource.filter(session_id=OuterRef("session_id"))))
    return found


def to_move(target: Target, into: EngineName | None) -> QuerySet[Session]:
    """The sessions that are not yet where they are to be, oldest first. A file that is being ingested is left out: its
    ingestion goes to the engine of the settings by itself."""
    unfinished = Resource.objects.filter(user=OuterRef("user"), session_id=OuterRef("session_id"))
    unfinished = unfinished.filter(deleted_at__isnull=True).exclude(status__in=_OPEN)
    sessions = sessions_of(target).exclude(Exists(unfinished)).order_by("pk")
    theirs = Memory.objects.filter(session=OuterRef("pk"), origin=Memory.Origin.UPSTREAM)
    held_upstream = Exists(theirs.exclude(WORDLESS))
    held_here = Exists(free_rows(OuterRef("pk")))
    if into == "embedded":
        return sessions.filter(held_upstream)
    if into == "upstream":
        return sessions.filter(held_here, hidden_at__isnull=True)
    if _present() == "upstream":
        return sessions.filter(held_upstream | held_here, hidden_at__isnull=True)
    return sessions.filter(held_upstream | Exists(resources_by(OuterRef("user"), OuterRef("session_id"))))


def resources_of(sessions: QuerySet[Session]) -> QuerySet[Resource]:
    of_session = sessions.filter(user=OuterRef("user"), session_id=OuterRef("session_id"))
    return Resource.objects.filter(Exists(of_session), deleted_at__isnull=True)


def resources_by(user: OuterRef, session_id: OuterRef) -> QuerySet[Resource]:
    """The uploads of a user's session."""
    live = Resource.objects.filter(user=user, session_id=session_id, deleted_at__isnull=True, status__in=_OPEN)
    return live.exclude(storage_path="")


def _is_message() -> Q:
    """What is told again: an upstream's journal, and memories of ours."""
    journal = Q(origin=Memory.Origin.UPSTREAM, memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    return journal | Q(origin=Memory.Origin.EMBEDDED)


def _present() -> EngineName:
    return "upstream" if get_engine().is_external else "embedded"


def _estimate(into: EngineName, sessions: int, messages: int, size: int, price: float | None) -> Estimate:
    seconds = sessions * _SECONDS[into] + size / 2**20 * _SECONDS_PER_MB[into]
    if into == "embedded":
        return Estimate(round(seconds), 0, 0, None if price is None else 0.0)
    calls = sessions * _CALLS_PER_SESSION + messages // MESSAGES_PER_CALL
    tokens = round(size / _BYTES_PER_TOKEN * _READ_TIMES)
    return Estimate(round(seconds), calls, tokens, None if price is None else round(tokens / 1e6 * price, 2))
