"""The log of searches. A search only appends to a list in memory; the worker writes the list every two seconds.

What a process has not written is lost when it is killed.
"""

import math
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import accumulate, chain, islice
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone

from accounts.controls import Never, never_by_user, paused_users
from accounts.models import MemoryUser
from core.logs import redact_text, request_id
from core.persistence import replica, sql
from memories import queries
from memories.models import LoggedSearch, SearchCount
from memories.services.scoped_hits import SCOPES, ScopedHit, SearchCommand
from memories.services.search import OPTIONS, SearchAnswer, search
from store.admission import never_kept
from store.models import Memory, Session, owned_by, owner_values
from store.types import UNCOUNTED_TYPES, Owner

Interface = Literal["rest", "tools", "mcp", "rpc"]

DURATION_BASE: Final = 1.25
MAX_QUERY_CHARS: Final = 2000
_MAX_PENDING: Final = 20_000
_BATCH_ROWS: Final = 500
_DELETED_ROWS: Final = 5_000
_HOUR: Final = 3600
_COLUMNS: Final = {"method", "top_k"}
_DEFAULTS: Final = {one.name: one.default for one in fields(SearchCommand) if one.name in {*OPTIONS} - _COLUMNS}
_ADD_COUNTS: Final = """
INSERT INTO memories_searchcount (hour, duration, searches, without_hits) VALUES (%s, %s, %s, %s)
ON CONFLICT (hour, duration) DO UPDATE SET searches = memories_searchcount.searches + excluded.searches,
    without_hits = memories_searchcount.without_hits + excluded.without_hits
"""
_INSERTED: Final = (
    "user_id", "app_id", "project_id", "at", "interface", "agent_id", "scopes", "conversation_id", "method", "top_k",
    "options", "has_filters", "hits", "ms", "query_chars", "query", "request_id",
)  # fmt: skip
_ADD_RETURNED: Final = "INSERT INTO memories_returnedmemory (search_id, rank, row, version) VALUES (%s, %s, %s, %s)"


class _Returned(NamedTuple):
    memory_id: str
    row: int | None
    is_edited: bool


class _Search(NamedTuple):
    owner: Owner
    command: SearchCommand
    interface: Interface
    method: str
    hits: int
    ms: float
    at: datetime
    request_id: str
    returned: tuple[_Returned, ...]


_pending: deque[_Search] = deque()
_writing = threading.Lock()


def logged_search(owner: Owner, command: SearchCommand, *, interface: Interface) -> SearchAnswer:
    """Search as `search` does and log it, unless the log is off. Failed searches are not logged."""
    started = time.perf_counter()
    answer = replica.read(replica.user_of(owner.user_pk), lambda: search(owner, command))
    # Beyond the limit, the database has not accepted writes for long: the newest searches are left out.
    if settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS and len(_pending) < _MAX_PENDING:
        ms = (time.perf_counter() - started) * 1000
        hits = sum(found.hit.memory_type not in UNCOUNTED_TYPES for found in answer.results)
        returned = tuple(map(_returned, answer.results)) if settings.MEMORY_GATEWAY_LOG_RESULTS else ()
        _pending.append(
            _Search(owner, command, interface, answer.method, hits, ms, timezone.now(), request_id.get(), returned)
        )
    return answer


def _returned(found: ScopedHit) -> _Returned:
    return _Returned(found.hit.memory_id, found.hit.row, found.override_id is not None)


def write() -> int:
    """Write the searches of this process and return their number, without those of users who were erased."""
    written = 0
    with _writing:
        while batch := list(islice(_pending, _BATCH_ROWS)):
            written += _write(batch)
            for _ in batch:
                _pending.popleft()
    return written


@transaction.atomic
def _write(batch: list[_Search]) -> int:
    # The lock keeps an erasure from ending between this query and the insert.
    users = MemoryUser.objects.select_for_update(no_key=True).order_by("pk")
    existing = set(users.filter(pk__in={one.owner.user_pk for one in batch}).values_list("pk", flat=True))
    found = [one for one in batch if one.owner.user_pk in existing]
    counts, without_hits = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for one in found:
        cell = _hour_of(one.at), math.floor(math.log(max(one.ms, 0.01), DURATION_BASE))
        counts[cell] += 1
        without_hits[cell] += not one.hits
    # Agents search with what was just said. A pause may have ended between a search and this writing.
    paused = paused_users("chats", since=min(one.at for one in batch))
    without_words = set(paused.filter(user__in=existing))
    limits, closed = never_by_user(existing), _incognito_chats(found)
    rows = (
        _row(one, has_words=one.owner.user_pk not in without_words and not _is_refused(one, limits, closed))
        for one in found
    )
    _write_returned(list(zip(_insert(list(rows)), found, strict=True)))
    with connection.cursor() as cursor:
        cursor.executemany(_ADD_COUNTS, [(*cell, counts[cell], without_hits[cell]) for cell in sorted(counts)])
    return len(found)


def _incognito_chats(searches: list[_Search]) -> set[tuple[UUID, str]]:
    """Return the incognito sessions, ended ones too, whose conversations searches name. At most one statement."""
    named = {(one.owner.user_pk, name) for one in searches for name in _session_ids(one)}
    if not named:
        return set()
    found = Session.objects.filter(
        incognito_until__isnull=False,
        user__in={user_pk for user_pk, _name in named},
        session_id__in={name for _user_pk, name in named},
    )
    return set(found.values_list("user_id", "session_id"))


def _session_ids(one: _Search) -> tuple[str, ...]:
    conversation = one.command.conversation_id
    return (conversation, f"chat:{conversation}") if conversation else ()


def _is_refused(one: _Search, limits: Mapping[UUID, Never], incognito: Collection[tuple[UUID, str]]) -> bool:
    """Return True if the query is of an incognito session, or says what the person wants never remembered.

    It may say it as a user or as a note about them.
    """
    if any((one.owner.user_pk, name) in incognito for name in _session_ids(one)):
        return True
    never, query = limits.get(one.owner.user_pk, Never()), [one.command.query]
    return bool(never) and (never_kept(never, query, "user") or never_kept(never, query, "note"))


def _insert(rows: Sequence[tuple[Any, ...]]) -> list[int]:
    """Insert rows of `_INSERTED` and return their keys. Objects of the model would take twice as long."""
    if not rows:
        return []
    row = f"({', '.join(['%s'] * len(_INSERTED))})"
    statement = f"INSERT INTO memories_loggedsearch ({', '.join(_INSERTED)}) VALUES {', '.join([row] * len(rows))}"
    return [pk for (pk,) in sql.rows(f"{statement} RETURNING id", list(chain.from_iterable(rows)))]


def _write_returned(searches: Sequence[tuple[int, _Search]]) -> None:
    """Write what searches returned. A memory of the remote has the row of the gateway's copy, if there is one."""
    ids: defaultdict[Owner, set[str]] = defaultdict(set)
    for owner, memory_id in ((one.owner, hit.memory_id) for _, one in searches for hit in one.returned if not hit.row):
        ids[owner].add(memory_id)
    rows: dict[tuple[Owner, str], int] = {}
    for owner, of_owner in ids.items():
        known = Memory.objects.filter(owned_by(owner), memory_id__in=of_owner).values_list("memory_id", "pk")
        rows |= {(owner, memory_id): pk for memory_id, pk in known}
    returned = [
        (logged, one.at, rank, hit.row or rows.get((one.owner, hit.memory_id)), hit.is_edited)
        for logged, one in searches
        for rank, hit in enumerate(one.returned, 1)
    ]
    edits = queries.edits_of({row for *_, row, is_edited in returned if is_edited and row is not None})
    # Rows of a model would take several times as long.
    with connection.cursor() as cursor:
        cursor.executemany(
            _ADD_RETURNED,
            [
                (logged, rank, row, queries.version_at(at, edits.get(row or 0, ())) if is_edited else 0)
                for logged, at, rank, row, is_edited in returned
            ],
        )


def _row(one: _Search, *, has_words: bool) -> tuple[Any, ...]:
    """Return the values of `_INSERTED`."""
    command = one.command
    has_words = has_words and settings.MEMORY_GATEWAY_LOG_QUERIES
    # PostgreSQL refuses NUL.
    query = redact_text(command.query).replace("\x00", "") if has_words else ""
    options = {name: value for name, default in _DEFAULTS.items() if (value := getattr(command, name)) != default}
    return (
        *owner_values(one.owner),
        connection.ops.adapt_datetimefield_value(one.at),
        one.interface,
        command.agent_id or command.reader or "",
        " ".join(scope for scope in SCOPES if scope in command.scopes),
        command.conversation_id or "",
        one.method,
        command.top_k,
        connection.ops.adapt_json_value(options, None),
        bool(command.filters),
        one.hits,
        round(one.ms, 2),
        len(command.query),
        query[:MAX_QUERY_CHARS],
        one.request_id[:64],
    )


def delete_old(now: datetime) -> None:
    """Delete the searches and counts that are older than the setting allows."""
    before = now - timedelta(days=settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS)
    old = LoggedSearch.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)
    while pks := list(old[:_DELETED_ROWS]):  # in parts, which do not hold up writers on SQLite
        LoggedSearch.objects.filter(pk__in=pks).delete()
    SearchCount.objects.filter(hour__lt=_hour_of(before)).delete()


def hours(since: datetime, until: datetime) -> list[tuple[datetime, int, int]]:
    """Return start, searches and searches without hits of each hour in which there were searches, in order."""
    found = _counts(since, until).values_list("hour").annotate(Sum("searches"), Sum("without_hits")).order_by("hour")
    return [(datetime.fromtimestamp(hour * _HOUR, UTC), searches, none) for hour, searches, none in found]


def quantiles(since: datetime, until: datetime, *shares: float) -> list[float]:
    """Return the milliseconds within which these shares of the searches ended, up to 12 % wrong; none without any."""
    found = list(_counts(since, until).values_list("duration").annotate(Sum("searches")).order_by("duration"))
    total = sum(searches for _duration, searches in found)
    ends = list(accumulate(searches for _duration, searches in found))
    return [DURATION_BASE ** (found[bisect_left(ends, share * total)][0] + 0.5) for share in shares if total]


def _counts(since: datetime, until: datetime) -> QuerySet[SearchCount]:
    return SearchCount.objects.filter(hour__gte=_hour_of(since), hour__lt=math.ceil(until.timestamp() / _HOUR))


def _hour_of(moment: datetime) -> int:
    return math.floor(moment.timestamp() / _HOUR)
