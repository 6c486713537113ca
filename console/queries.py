"""Queries of the panel's pages. Each function takes one statement for any number of rows, unless it says otherwise."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    Max,
    Min,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)  # fmt: skip
from django.db.models.functions import Cast, RowNumber, Substr

from accounts import tenants
from accounts.credential_names import credential_names, credentials_named
from accounts.models import AuditEvent, MemoryUser, UserKey
from core.ids import parse_session_id, user_id_form
from core.json_data import without_base64
from core.lookalikes import plain_form
from documents.guards import DAMAGED, ENCRYPTED
from memories.models import Override
from resources.models import DELETED, Resource
from resources.queries import waiting_for_operator
from store.admission import unwanted
from store.models import DayCount, Memory, Session, SessionCount, State, owned_by
from store.table import stored, visible
from store.types import Owner, StoredMemory

_Row = TypeVar("_Row", bound=Model)
MAX_CAUSES: Final = 20
CREDENTIALS: Final = (AuditEvent.ActorKind.KEY, AuditEvent.ActorKind.TOKEN)
_ID_START: Final = re.compile("[0-9a-f]{8}[0-9a-f-]{0,28}", re.IGNORECASE)
TITLE_CHARS: Final = 120
MAX_NAMES: Final = 200
SHOWN_USERS: Final = 3
FIRST_MESSAGES: Final = 20
# The file itself has to change: a retry cannot succeed.
LASTING_CAUSES: Final = (ENCRYPTED, DAMAGED)


class SourceFile(NamedTuple):
    """The file from which a memory was extracted."""

    resource_id: str
    filename: str


def without_nul(values: Iterable[str]) -> list[str]:
    """Return the values without NUL characters, which PostgreSQL refuses."""
    return [value for value in values if "\x00" not in value]


def narrowed(rows: QuerySet[_Row], **conditions: object) -> QuerySet[_Row]:
    """Return the rows that meet the conditions; those without a value are ignored."""
    return rows.filter(**{name: value for name, value in conditions.items() if value})


def reachable_users() -> QuerySet[MemoryUser]:
    return tenants.reachable(MemoryUser.objects.all(), "")


def user_pk(user_id: str) -> UUID | None:
    """Return the primary key of a user, None for an unknown or empty user id."""
    if not user_id:
        return None
    return reachable_users().filter(user_id=user_id_form(user_id)).values_list("pk", flat=True).first()


def find_user(id_or_key: str) -> tuple[UUID, str] | None:
    """Return the primary key and the user id of the user with that user id or primary key."""
    condition = Q(user_id=user_id_form(id_or_key))
    with suppress(ValueError):
        condition |= Q(pk=UUID(id_or_key))
    return reachable_users().filter(condition).values_list("pk", "user_id").first()


def users_by_key(keys: Iterable[str]) -> list[str]:
    """Return the user ids of primary keys in text form; those of erased users, and empty ones, are missing."""
    wanted = set(keys) - {""}
    return list(reachable_users().filter(pk__in=wanted).values_list("user_id", flat=True)) if wanted else []


class People(NamedTuple):
    """Users of an event: the first ones, and how many there are more."""

    shown: tuple[str, ...]
    more: int


def name_people(events: Collection[AuditEvent], *, first: str = "") -> set[str]:
    """Add `people` to the events, `first` before others, and return all users that are shown.

    One statement, two for operators who are limited to tenants.
    """
    tenants.hide_others(events)
    order = Case(When(user_id=first, then=0), default=1), F("user_id")
    rows = (
        tenants.subjects_of_events()
        .filter(event__in=events)
        .annotate(
            place=Window(RowNumber(), partition_by=F("event"), order_by=order),
            total=Window(Count("pk"), partition_by=F("event")),
        )
    )
    names: defaultdict[int, list[str]] = defaultdict(list)
    totals: dict[int, int] = {}
    for event, name, total in (
        rows.filter(place__lte=SHOWN_USERS).order_by("event", "place").values_list("event", "user_id", "total")
    ):
        names[event].append(name)
        totals[event] = total
    for one in events:
        shown = tuple(names[one.pk])
        vars(one)["people"] = People(shown, totals.get(one.pk, 0) - len(shown))
    return {name for shown in names.values() for name in shown}


def trail_of(user_id: str, kind: str = "") -> QuerySet[AuditEvent]:
    """Return the events that show or concern a user, of one kind if given.

    The cast keeps SQLite from reading all events of the kind by their index, 0.1 s for 200,000 of them, instead of the
    user's.
    """
    events = AuditEvent.objects.filter(subjects__user_id=user_id)
    if tenants.current() is not None and user_pk(user_id) is None:
        return events.none()
    return events.alias(plain_kind=Cast("kind", CharField())).filter(plain_kind=kind) if kind else events


def first_events(*parts: QuerySet[AuditEvent]) -> list[AuditEvent]:
    """Return the events of several limited queries, newest first. SQLite takes no such parts in `QuerySet.union`."""
    try:
        statements = [part.query.sql_with_params() for part in parts]
    except EmptyResultSet:
        return []
    union = " UNION ALL ".join(f"SELECT * FROM ({text}) part{place}" for place, (text, _) in enumerate(statements))
    found = AuditEvent.objects.raw(union, [value for _, values in statements for value in values])
    return sorted(found, key=lambda event: event.pk, reverse=True)


def name_actors(events: Iterable[AuditEvent]) -> None:
    """Look up the names of the keys and tokens of events for the tag `actor`. At most two statements for all."""
    named = [pair for one in events for pair in ((one.actor_kind, one.actor), (one.subject_type, one.subject_id))]
    credential_names({name for kind, name in named if kind in CREDENTIALS})


def actor_condition(text: str) -> Q:
    """Return the condition that an event has this actor: a name or id, or the shown characters of a key or token."""
    if text.startswith(("uk_", "rpc_")):
        return Q(actor__in=credentials_named(text))
    if _ID_START.fullmatch(text):  # how lists named keys once
        return Q(actor=text) | Q(actor_kind__in=CREDENTIALS, actor__startswith=text.lower())
    return Q(actor=text)


def edited(rows: Collection[int]) -> set[int]:
    """Return the rows of those memories that have an override."""
    return set(Override.objects.filter(row__in=rows, undone_at__isnull=True).values_list("row_id", flat=True))


def originals(override_ids: Iterable[str]) -> dict[str, str]:
    """Return the original texts by the ids of their overrides, except those that are never remembered."""
    found = Override.objects.filter(pk__in=list(override_ids)).values_list("override_id", "original_text", "user_id")
    by_user: dict[UUID, dict[str, str]] = defaultdict(dict)
    for override_id, text, user_pk in found:
        by_user[user_pk][override_id] = text
    return {
        override_id: text
        for user_pk, texts in by_user.items()
        for withheld in [unwanted(user_pk, texts.values())]
        for override_id, text in texts.items()
        if text not in withheld
    }


def original_text(row: int) -> str | None:
    """Return the engine's text of an edited memory, None for others and for one that is never remembered."""
    active = Override.objects.filter(row=row, undone_at__isnull=True)
    return next(iter(originals(active.values_list("pk", flat=True)).values()), None)


def addition(memory: StoredMemory) -> AuditEvent | None:
    """Return the event of adding a memory by hand or by a tool, which names the actor."""
    if memory.origin not in {Memory.Origin.PANEL, Memory.Origin.TOOL}:
        return None
    events = AuditEvent.objects.filter(user_id=memory.owner.user_id, action="memory.add", subject_id=memory.memory_id)
    return events.order_by("at").first()


def source_files(memories: Iterable[StoredMemory]) -> dict[str, SourceFile]:
    """Return the files from which memories were extracted, by session id."""
    parsed = {memory.session_id: parse_session_id(memory.session_id or "") for memory in memories}
    ids = {name.rest: session_id for session_id, name in parsed.items() if name.kind == "resource" and session_id}
    found = Resource.objects.filter(pk__in=ids).values_list("resource_id", "filename") if ids else ()
    return {ids[resource_id]: SourceFile(resource_id, filename) for resource_id, filename in found}


def resources_in_trash(memories: Iterable[StoredMemory]) -> set[str]:
    """Return those of the memories' sessions whose resource is in the trash."""
    parsed = [parse_session_id(memory.session_id or "") for memory in memories]
    ids = [name.rest for name in parsed if name.kind == "resource"]
    found = Resource.objects.filter(pk__in=ids, state=State.TRASHED).values_list("session_id", flat=True) if ids else ()
    return set(found)


def stored_of(hits: Iterable[tuple[Owner, str]]) -> dict[tuple[Owner, str], StoredMemory]:
    """Return memories by owner and memory id. Each owner's memories are found by index."""
    ids_by_owner: defaultdict[Owner, list[str]] = defaultdict(list)
    for owner, memory_id in hits:
        ids_by_owner[owner].append(memory_id)
    if not ids_by_owner:
        return {}
    of_owners = (owned_by(owner) & Q(memory_id__in=ids) for owner, ids in ids_by_owner.items())
    rows = [stored(row) for row in visible(Memory.objects.filter(reduce(or_, of_owners)))]
    return {(row.owner, row.memory_id): row for row in rows}


def covering(memory: StoredMemory) -> list[StoredMemory]:
    """Return the memories of a remote that are shown in the place of a message. No statement for other memories."""
    if not memory.is_covered:
        return []
    copies = Memory.objects.filter(owned_by(memory.owner), session__session_id=memory.session_id, state=State.LIVE)
    shown = visible(copies.filter(origin=Memory.Origin.REMOTE, is_covered=False)).order_by("pk")
    return [stored(row) for row in shown if memory.memory_id in row.sources]


def counts_by(column: str, rows: QuerySet[Any]) -> dict[Any, int]:
    return dict(rows.order_by().values_list(column).annotate(number=Count("pk")))


def memories_of_sessions(session_rows: Collection[int]) -> dict[int, int]:
    """Return the numbers of live memories by session row, from the rollups. Empty sessions may be missing."""
    rows = SessionCount.objects.filter(session_row__in=session_rows, of_agent=False)
    return dict(rows.values_list("session_row").annotate(number=Sum("memories")))


def memories_of_users(user_pks: Collection[UUID]) -> dict[UUID, int]:
    """Return the numbers of live memories from the rollups; users without any are missing."""
    rows = DayCount.objects.filter(owner__in=[pk.hex for pk in user_pks])
    numbers = rows.values_list("owner").annotate(number=Sum("memories"))
    return {UUID(owner): number for owner, number in numbers}


def users_with_most_memories() -> list[UUID]:
    """Return the users that have memories, those with most first."""
    rows = DayCount.objects.exclude(owner="").values_list("owner")
    return [UUID(owner) for owner, _ in rows.annotate(number=Sum("memories")).order_by("-number", "owner")]


def latest_users() -> list[UUID]:
    """Return the users whose API keys were used, those used last first."""
    rows = UserKey.objects.filter(last_used_at__isnull=False).order_by().values_list("user")
    return [pk for pk, _ in rows.annotate(last=Max("last_used_at")).order_by("-last", "user")]


def session_rows(names: Mapping[tuple[UUID, str, str, str], str]) -> dict[str, int]:
    """Return the rows of sessions by name. `names` has the name for user, app, project and session id."""
    found = Session.objects.filter(session_id__in=[session_id for *_scope, session_id in names]).values_list(
        "user_id", "app_id", "project_id", "session_id", "pk"
    )
    return {names[row[:4]]: row[4] for row in found if row[:4] in names}


def files_of_sessions(sessions: Iterable[Session]) -> dict[int, str]:
    """Return the names of the files of sessions, by session row. No statement if none is of a file."""
    ids = {parsed.rest: one.pk for one in sessions if (parsed := parse_session_id(one.session_id)).kind == "resource"}
    files = Resource.objects.filter(pk__in=ids).values_list("pk", "filename") if ids else ()
    return {ids[resource_id]: filename for resource_id, filename in files}


class Talk(NamedTuple):
    """The first words of a session, the number and the times of its memories, and the first speakers."""

    title: str = ""
    memories: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    speakers: tuple[str, ...] = ()


def with_talks(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Return the sessions with what `talks` needs of each."""
    first = Memory.objects.filter(session=OuterRef("pk"), state=State.LIVE).order_by("seq", "pk")
    counts = SessionCount.objects.filter(session_row=OuterRef("pk"), of_agent=False).order_by().values("session_row")
    return sessions.annotate(
        begins=Substr(Subquery(first.values("text")[:1]), 1, TITLE_CHARS),
        held=Subquery(counts.annotate(total=Sum("memories")).values("total")),
        first_ms=Subquery(counts.annotate(least=Min("first_ms")).values("least")),
        last_ms=Subquery(counts.annotate(most=Max("last_ms")).values("most")),
    )


def talks(sessions: Iterable[Session]) -> dict[int, Talk]:
    """Return what sessions `with_talks` hold, by session row; nothing of one in the trash."""
    live = {session.pk: vars(session) for session in sessions if session.state == State.LIVE}
    speakers: defaultdict[int, list[str]] = defaultdict(list)
    begun = Memory.objects.filter(session__in=live, state=State.LIVE, seq__lt=FIRST_MESSAGES).exclude(sender_id="")
    for row, name in begun.order_by("session", "sender_id").values_list("session_id", "sender_id").distinct():
        speakers[row].append(name)
    found = defaultdict[int, Talk](Talk)
    for row, of in live.items():
        title, names = " ".join((of["begins"] or "").split()), tuple(speakers[row][:SHOWN_USERS])
        found[row] = Talk(title, of["held"], of["first_ms"], of["last_ms"], names) if of["held"] else Talk()
    return found


def waiting() -> QuerySet[Resource]:
    """Return the failed files that wait for an operator."""
    return tenants.reachable(waiting_for_operator())


def failures_waiting() -> int:
    return waiting().count()


def resources_by_status(resources: QuerySet[Resource]) -> dict[str, int]:
    """Count resources by their status, those that are not live as `deleted`."""
    shown = Case(When(state=State.LIVE, then=F("status")), default=Value(DELETED))
    return counts_by("shown_status", resources.annotate(shown_status=shown))


def failure_causes() -> list[dict[str, Any]]:
    """Return the most frequent error messages, each with its key in addresses and some file names. Two statements."""
    groups = waiting().order_by().values_list("error_message")
    counted = groups.annotate(count=Count("pk"), last=Max("updated_at"))
    found = list(counted.order_by("-count", "error_message")[:MAX_CAUSES])
    names: defaultdict[str, list[str]] = defaultdict(list)
    if found:
        failed = waiting().filter(error_message__in=[message for message, *_rest in found])
        for message, name in failed.order_by("-updated_at").values_list("error_message", "filename")[:MAX_NAMES]:
            names[message].append(name)
    return [
        {
            "key": cause_key(message),
            "message": message,
            "count": count,
            "last": last,
            "names": names[message][:4],
            "can_retry": message not in LASTING_CAUSES,
        }
        for message, count, last in found
    ]


def failed_with_cause(key: str) -> QuerySet[Resource]:
    """Return the failed files whose error message has this key. Two statements."""
    failed = waiting()
    messages = failed.order_by().values_list("error_message", flat=True).distinct()
    return failed.filter(error_message__in=[message for message in messages if cause_key(message) == key])


def cause_key(message: str) -> str:
    return hashlib.sha256(message.encode()).hexdigest()[:16]


def as_json(found: StoredMemory) -> dict[str, Any]:
    """Return all stored fields of a memory as plain JSON data, without file contents."""
    columns = {column.name: getattr(found, column.name) for column in fields(found)}
    for name in ("owner", "row", "state_since", "is_session_hidden"):
        del columns[name]
    return {
        "id": columns.pop("memory_id"),
        "user_id": found.owner.user_id,
        "app_id": found.owner.app_id,
        "project_id": found.owner.project_id,
        "timestamp_ms": columns.pop("created_at_ms"),
        **columns,
        "payload": without_base64(dict(found.payload)),
    }


def imitations(user_ids: Iterable[str]) -> dict[str, str]:
    """Return the users whose ids some ids look like, by those ids. One statement, none for plain ids."""
    plain = {user_id: form for user_id in user_ids if (form := plain_form(user_id)) != user_id}
    if not plain:
        return {}
    known = set(reachable_users().filter(user_id__in=plain.values()).values_list("user_id", flat=True))
    return {user_id: form for user_id, form in plain.items() if form in known}
