"""Pages of memories and of whole turns, by key: the last page is as fast as the first. Single memories by row id."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Length

from core.errors import NotFound
from core.messages import Translatable as _
from store.browse import word_condition
from store.browse.rollup_queries import skip_days
from store.browse.selection import Selection, conditions_of_rare, rows_of, unindexed_rows_of
from store.models import Memory
from store.table import stored, visible
from store.types import Position, StoredMemory

_MAX_ROW: Final = 2**63 - 1  # the largest bigint; a larger number would be a database error


@dataclass(frozen=True, slots=True)
class BrowsePage:
    """A page of memories. `newer` and `older` are the positions that neighboring pages begin at, None if there is none.

    Newest first, `after=page.older` is the next page and `before=page.newer` the previous one; oldest first,
    `after=page.newer` is the next page and `before=page.older` the previous one.
    """

    memories: tuple[StoredMemory, ...]
    newer: Position | None
    older: Position | None


@dataclass(frozen=True, slots=True)
class Turn:
    """Memories that were added together, in their order. A memory that was added alone has no `batch_id`."""

    batch_id: str
    memories: tuple[StoredMemory, ...]


@dataclass(frozen=True, slots=True)
class TurnPage:
    """A page of turns. `newer` and `older` as in `BrowsePage`."""

    turns: tuple[Turn, ...]
    newer: Position | None
    older: Position | None


def page(
    selection: Selection,
    *,
    after: Position | None = None,
    before: Position | None = None,
    limit: int = 50,
    oldest_first: bool = False,
    among: QuerySet[Any] | None = None,
) -> BrowsePage:
    """Return the memories after `after`, or those before `before`, in display order. Two SQL statements.

    `among` restricts them to the row ids that this query yields.
    """
    parts = [part if among is None else part.filter(pk__in=among) for part in _parts(selection)]
    keys, newer, older = _window(parts, after, before, limit, oldest_first=oldest_first)
    return BrowsePage(tuple(get_many([key.row for key in keys])), newer, older)


def turn_page(
    selection: Selection,
    *,
    after: Position | None = None,
    before: Position | None = None,
    limit: int = 25,
    oldest_first: bool = False,
) -> TurnPage:
    """Return a page of whole turns, each sorted by its newest memory (oldest first: oldest). Three SQL statements."""
    same = unindexed_rows_of(selection)
    parts = [_heads(part, same, oldest_first=oldest_first) for part in _parts(selection)]
    keys, newer, older = _window(parts, after, before, limit, oldest_first=oldest_first)
    return TurnPage(_turns(get_many([key.row for key in keys]), same), newer, older)


def offset_page(selection: Selection, *, offset: int, limit: int, oldest_first: bool = False) -> list[StoredMemory]:
    """Return a page by its offset. The rollups of days tell how far to skip."""
    rest = skip_days(selection, offset, oldest_first=oldest_first) if offset else (selection, 0)
    if rest is None:
        return []
    selection, offset = rest
    found = _first_keys(_parts(selection), offset + limit, ascending=oldest_first)
    return get_many([key.row for key in found[offset:]])


def keys(
    selection: Selection, *, after: Position | None, limit: int, up_to_row: int, rows: Collection[int] | None = None
) -> list[Position]:
    """Return the positions of the next memories, oldest first: row ids up to `up_to_row`, and in `rows` if given."""
    found = rows_of(selection).filter(pk__lte=up_to_row)
    if rows is not None:
        found = found.filter(pk__in=rows)
    return _window([found], after, None, limit, oldest_first=True)[0]


def lengths(selection: Selection) -> list[tuple[int, int]]:
    """Return the row id and text length in characters of each memory, oldest first. One SQL statement."""
    measured = rows_of(selection).order_by("created_at_ms", "pk").annotate(characters=Length("text"))
    return list(measured.values_list("pk", "characters"))


def get(row: int) -> StoredMemory:
    """Return a memory by its row id, even if it is deleted. Raises: `NotFound`, also for one that is incognito."""
    found = get_many([row]) if row <= _MAX_ROW else []
    if not found or found[0].is_incognito:
        raise NotFound(_("There is no such memory."))
    return found[0]


def get_many(rows: Collection[int]) -> list[StoredMemory]:
    """Return memories by row id in the given order, even if deleted; missing rows are left out. One SQL statement."""
    if not rows:
        return []
    found = {memory.pk: memory for memory in visible(Memory.objects.filter(pk__in=rows))}
    return [stored(found[row]) for row in rows if row in found]


def _parts(selection: Selection) -> list[QuerySet[Memory]]:
    """Split a selection into parts that an index sorts: no index sorts several categories together."""
    categories, begins_with_words = selection.wanted_categories(), word_condition.come_first(selection.words)
    has_another_index = selection.session_id is not None or selection.in_trash or conditions_of_rare(selection)
    if categories is None or len(categories) < 2 or has_another_index or begins_with_words:
        return [rows_of(selection, begins_with_words=begins_with_words)]
    each = (replace(selection, tab=None, categories=(category,)) for category in categories)
    return [rows_of(part, begins_with_words=False) for part in each]


def _window(
    parts: Sequence[QuerySet[Memory]],
    after: Position | None,
    before: Position | None,
    limit: int,
    *,
    oldest_first: bool,
) -> tuple[list[Position], Position | None, Position | None]:
    """Return the keys of a page in display order, and the positions of the newer and the older page.

    A page before a position is read backwards from there.
    """
    is_backwards = before is not None
    ascending = oldest_first != is_backwards
    beyond = [_beyond(part, before or after, ascending=ascending) for part in parts]
    keys = _first_keys(beyond, limit + 1, ascending=ascending)
    has_more = len(keys) > limit
    del keys[limit:]
    if is_backwards:
        keys.reverse()
    previous = keys[0] if keys and (has_more if is_backwards else after is not None) else None
    following = keys[-1] if keys and (is_backwards or has_more) else None
    newer, older = (following, previous) if oldest_first else (previous, following)
    return keys, newer, older


def _first_keys(parts: Sequence[QuerySet[Memory]], limit: int, *, ascending: bool) -> list[Position]:
    """Return the first keys of all parts together, in one SQL statement that limits each part."""
    order = ("created_at_ms", "pk") if ascending else ("-created_at_ms", "-pk")
    wanted = [part.order_by(*order).values_list("created_at_ms", "pk")[:limit] for part in parts]
    if len(wanted) == 1:
        return [Position._make(key) for key in wanted[0]]
    try:
        statements = [part.query.sql_with_params() for part in wanted]
    except EmptyResultSet:
        return []
    direction = "ASC" if ascending else "DESC"
    union = " UNION ALL ".join(f"SELECT * FROM ({text}) part{number}" for number, (text, _) in enumerate(statements))
    with connection.cursor() as cursor:
        cursor.execute(
            f"{union} ORDER BY 1 {direction}, 2 {direction} LIMIT %s",
            [*(value for _, values in statements for value in values), limit],
        )
        return [Position._make(key) for key in cursor.fetchall()]


def _beyond(rows: QuerySet[Memory], position: Position | None, *, ascending: bool) -> QuerySet[Memory]:
    """Return the rows beyond a position. The comparison of times is repeated outside the OR for the index."""
    if position is None:
        return rows
    at, row = position
    if ascending:
        return rows.filter(Q(created_at_ms__gt=at) | Q(pk__gt=row), created_at_ms__gte=at)
    return rows.filter(Q(created_at_ms__lt=at) | Q(pk__lt=row), created_at_ms__lte=at)


def _heads(part: QuerySet[Memory], rows: QuerySet[Memory], *, oldest_first: bool) -> QuerySet[Memory]:
    """Return for each turn the row it is sorted by: the row of `part` that no other of its turn's `rows` precedes."""
    # Expressions keep the database from the index of sessions: the index of turns is faster.
    same = rows.alias(unindexed_session=Coalesce("session_id", Value(0))).filter(
        batch_id=OuterRef("batch_id"), unindexed_session=Coalesce(OuterRef("session_id"), Value(0))
    )
    ahead = Q(created_at_ms=OuterRef("created_at_ms"), pk__gt=OuterRef("pk"))
    ahead |= Q(created_at_ms__gt=OuterRef("created_at_ms"))
    if oldest_first:
        ahead = Q(created_at_ms=OuterRef("created_at_ms"), pk__lt=OuterRef("pk"))
        ahead |= Q(created_at_ms__lt=OuterRef("created_at_ms"))
    return part.filter(Q(batch_id="") | ~Exists(same.filter(ahead)))


def _turns(heads: Sequence[StoredMemory], rows: QuerySet[Memory]) -> tuple[Turn, ...]:
    """Return the turns of the heads, each with its rows in their order."""
    members: dict[Any, list[StoredMemory]] = {head.turn: [] for head in heads if head.batch_id}
    names = {head.batch_id for head in heads if head.batch_id}
    for row in rows.filter(batch_id__in=names).order_by("created_at_ms", "seq", "pk") if names else ():
        memory = stored(row)
        if memory.turn in members:
            members[memory.turn].append(memory)
    return tuple(Turn(head.batch_id, tuple(members.get(head.turn, [head]))) for head in heads)
