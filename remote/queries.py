"""Read queries of the outbox, for the panel and the API: figures, lists, and how far each session is at the remote."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from django.conf import settings
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet

from core.persistence import sql
from core.times import isoformat_or_none
from remote import sources
from remote.models import OutboxEntry
from store import cover
from store.models import IS_PURGED, Memory, Residue, Session, State
from store.types import Owner

_State = OutboxEntry.State
_IS_WAITING: Final = Q(state__in=(_State.PENDING, _State.UNCONFIRMED))
_IS_REFUSED: Final = Q(state=_State.REFUSED)
_IS_HELD: Final = Q(state__in=(_State.UNCONFIRMED, _State.BUFFERED, _State.FLUSHED, _State.PURGED))
"""Entries that a remote has, or may have."""
_IS_SENT: Final = Q(state__in=(_State.BUFFERED, _State.FLUSHED))
_SESSIONS_AT_ONCE: Final = 1000
_IS_USED: Final = "SELECT EXISTS (SELECT 1 FROM remote_outboxentry) OR EXISTS (SELECT 1 FROM store_residue)"


class RemoteState(NamedTuple):
    """The state of a session at the attached remote.

    `off`: nothing of it is for the remote. `pending`: a message waits. `sent`: the remote has all, and derived nothing
    from the latest yet. `derived`: it did. `refused`: it refused a message, and `detail` says why.

    `since` is when the oldest message of that state was stored, and of `derived` when its memories could be found.
    """

    state: Literal["off", "pending", "sent", "derived", "refused"] = "off"
    since: datetime | None = None
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the state as the API does."""
        return {"state": self.state, "since": isoformat_or_none(self.since), "detail": self.detail or None}


OFF: Final = RemoteState()


def states_of(sessions: Collection[Session]) -> dict[int, RemoteState]:
    """Return the states of sessions by primary key.

    At most three statements for each thousand sessions, none without a remote.
    """
    found = dict.fromkeys((session.pk for session in sessions), OFF)
    if cover.is_attached():
        ordered = list(sessions)
        for start in range(0, len(ordered), _SESSIONS_AT_ONCE):
            found |= _states_of(ordered[start : start + _SESSIONS_AT_ONCE])
    return found


def _states_of(sessions: Sequence[Session]) -> dict[int, RemoteState]:
    """Return the states of those of the sessions that have entries for the attached remote."""
    by_pk = {session.pk: session for session in sessions}
    entries = OutboxEntry.objects.filter(sources.of_remote(), session__in=by_pk).order_by()
    rows = entries.values("session_id").annotate(
        last_refused=Max("pk", filter=_IS_REFUSED),
        refused=Min("recorded_at", filter=_IS_REFUSED),
        waiting=Min("recorded_at", filter=_IS_WAITING),
        buffered=Min("recorded_at", filter=Q(state=_State.BUFFERED)),
        sent=Min("recorded_at", filter=_IS_SENT),
    )
    facts: dict[int, dict[str, Any]] = {row["session_id"]: dict(row) for row in rows}
    refused = [row["last_refused"] for row in facts.values() if row["last_refused"]]
    causes = {one.session_id: one.cause for one in OutboxEntry.objects.filter(pk__in=refused)} if refused else {}
    derived = _with_memories([pk for pk, row in facts.items() if row["sent"] and not row["buffered"]])
    return {pk: _state(by_pk[pk], row, causes.get(pk, ""), pk in derived) for pk, row in facts.items()}


def _with_memories(session_pks: Collection[int]) -> set[int]:
    """Return which sessions have memories that the attached remote derived. No statement for none."""
    if not session_pks:
        return set()
    copies = Memory.objects.filter(sources.is_of_remote(), session=OuterRef("pk"), origin=Memory.Origin.REMOTE)
    return set(Session.objects.filter(Exists(copies), pk__in=session_pks).values_list("pk", flat=True))


def _state(session: Session, row: dict[str, Any], cause: str, is_derived: bool) -> RemoteState:
    if row["refused"]:
        return RemoteState("refused", row["refused"], cause)
    if row["waiting"]:
        return RemoteState("pending", row["waiting"])
    if is_derived:
        return RemoteState("derived", session.searchable_at or session.flushed_at)
    return RemoteState("sent", row["buffered"] or row["sent"]) if row["sent"] else OFF


def states_of_files(places: Collection[tuple[Owner, str]]) -> dict[tuple[Owner, str], RemoteState]:
    """Return the states of the sessions of files, by owner and session id.

    All are of one user. At most four statements for each thousand, none without a remote.
    """
    found = dict.fromkeys(places, OFF)
    if not places or not cover.is_attached():
        return found
    owner = next(iter(places))[0]
    names = [session_id for _owner, session_id in places]
    for start in range(0, len(names), _SESSIONS_AT_ONCE):
        part = names[start : start + _SESSIONS_AT_ONCE]
        sessions = Session.objects.filter(user_id=owner.user_pk, kind=Session.Kind.RESOURCE, session_id__in=part)
        by_pk = {session.pk: session for session in sessions.select_related("user")}
        states = states_of(by_pk.values())
        found |= {(one.owner, one.session_id): states[one.pk] for one in by_pk.values()}
    return found


class Address(NamedTuple):
    """A remote that is not attached: how many messages it has, and how many wait for it."""

    base_url: str
    held: int
    waiting: int


class Summary(NamedTuple):
    """Counts of messages for the attached remote, and what remotes hold besides.

    `waiting` messages are not confirmed, `unconfirmed` ones of these were sent. They belong to `sessions`, and the
    oldest was recorded at `oldest`. The next flush takes the `buffered` ones. `residue` are the names of erased users
    and of sessions that left, whose data a remote keeps.
    """

    waiting: int
    oldest: datetime | None
    sessions: int
    unconfirmed: int
    buffered: int
    refused: int
    withheld: int
    residue: int
    others: Sequence[Address]


def summary() -> Summary:
    """Return the figures of the page of the remote. Each statement reads a small index."""
    here = OutboxEntry.objects.filter(sources.of_remote())
    waiting = here.filter(_IS_WAITING).aggregate(
        waiting=Count("pk"),
        oldest=Min("recorded_at"),
        sessions=Count("session", distinct=True),
        unconfirmed=Count("pk", filter=Q(state=_State.UNCONFIRMED)),
    )
    return Summary(
        **waiting,
        buffered=here.filter(state=_State.BUFFERED).count(),
        refused=here.filter(_IS_REFUSED).count(),
        withheld=here.filter(state=_State.WITHHELD).count(),
        residue=Residue.objects.count(),
        others=_other_addresses(),
    )


def _other_addresses() -> list[Address]:
    """Return the other addresses with messages. One statement over an index, two if there are any."""
    addresses = set(OutboxEntry.objects.order_by().values_list("base_url", flat=True).distinct())
    others = addresses - {"", settings.MEMORY_GATEWAY_BACKEND_BASE_URL}
    if not others:
        return []
    rows = OutboxEntry.objects.filter(base_url__in=others).order_by("base_url").values_list("base_url")
    counts = rows.annotate(held=Count("pk", filter=_IS_HELD), waiting=Count("pk", filter=Q(state=_State.PENDING)))
    return [Address(*row) for row in counts if row[1] or row[2]]


def is_used() -> bool:
    """Return True if a remote is attached, or once was. At most one statement."""
    return cover.is_attached() or bool(sql.rows(_IS_USED, [])[0][0])


def refused_entries() -> QuerySet[OutboxEntry]:
    """Return the entries that the attached remote refused, with their users and sessions."""
    found = OutboxEntry.objects.filter(sources.of_remote(), _IS_REFUSED).exclude(session__state=State.PURGED)
    return found.select_related("user", "session")


def waiting_sessions() -> QuerySet[Session]:
    """Return the sessions with messages that wait for the attached remote, with their users."""
    waiting = OutboxEntry.objects.filter(sources.of_remote(), _IS_WAITING)
    found = Session.objects.filter(~IS_PURGED, pk__in=waiting.order_by().values("session"))
    return found.select_related("user")


class Waiting(NamedTuple):
    """Messages of a session that wait, and when the oldest was recorded."""

    messages: int
    oldest: datetime


def waiting_of(sessions: Collection[Session]) -> dict[int, Waiting]:
    """Return what waits of these sessions, by primary key. One statement."""
    waiting = OutboxEntry.objects.filter(sources.of_remote(), _IS_WAITING, session__in=sessions).order_by()
    rows = waiting.values_list("session").annotate(messages=Count("pk"), oldest=Min("recorded_at"))
    return {pk: Waiting(messages, oldest) for pk, messages, oldest in rows}
