"""Pages of memories: by key, so that the last page is as quick as the first; whole turns; one by one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Length

from core.errors import NotFound
from store.browse.ledger import skipped
from store.browse.selection import Selection, of_turns, rows_of
from store.models import Memory
from store.table import stored, visible
from store.types import Position, StoredMemory

_MAX_ROW: Final = 2**63 - 1  # what a database has; of a larger number it makes an error


@dataclass(frozen=True, slots=True)
class BrowsePage:
    """`newer` and `older` are where the neighbouring pages begin, None where there is none.

    Newest first: `after=page.older` is the next page, `before=page.newer` the one before; oldest first the other way
    round (`after=page.newer`, `before=page.older`).
    """

    memories: tuple[StoredMemory, ...]
    newer: Position | None
    older: Position | None


@dataclass(frozen=True, slots=True)
class Turn:
    """The memories that came together, in their order. One that came alone has no `batch_id`."""

    batch_id: str
    memories: tuple[StoredMemory, ...]


@dataclass(frozen=True, slots=True)
class TurnPage:
    """`newer` and `older` as for `BrowsePage`."""

    turns: tuple[Turn, ...]
    newer: Position | None
    older: Position | None


class _Window(NamedTuple):
    """A page's rows in the order in which they are shown, and the positions that lead on."""

    keys: Sequence[Position]
    newer: Position | None
    older: Position | None


def page(
    selection: Selection,
    *,
    after: Position | None = None,
    before: Position | None = None,
    limit: int = 50,
    oldest_first: bool = False,
) -> BrowsePage:
    """The memories that follow `after`, or those that come before `before`, in the order shown. Two statements."""
    window = _window(_parts(selection), after, before, limit, oldest_first=oldest_first)
    return BrowsePage(tuple(get_many([key.row for key in window.keys])), window.newer, window.older)


def turn_page(
    selection: Selection,
    *,
    after: Position | None = None,
    before: Position | None = None,
    limit: int = 25,
    oldest_first: bool = False,
) -> TurnPage:
    """The same in whole turns, of which each stands where its newest memory does (oldest first: its oldest).

    Three statements.
    """
    same = of_turns(selection)
    parts = [_heads(part, same, oldest_first=oldest_first) for part in _parts(selection)]
    window = _window(parts, after, before, limit, oldest_first=oldest_first)
    heads = get_many([key.row for key in window.keys])
    return TurnPage(_turns(heads, same), window.newer, window.older)


def offset_page(selection: Selection, *, offset: int, limit: int, oldest_first: bool = False) -> list[StoredMemory]:
    """A page by its number, for those who cannot page by key. What lies before it is skipped by the rollups' days."""
    rest = skipped(selection, offset, oldest_first=oldest_first) if offset else (selection, 0)
    if rest is None:
        return []
    selection, offset = rest
    found = _found(_parts(selection), offset + limit, ascending=oldest_first)
    return get_many([key.row for key in found[offset:]])


def keys(
    selection: Selection, *, after: Position | None, limit: int, up_to_row: int, rows: Collection[int] | None = None
) -> list[Position]:
    """Where the next memories stand, oldest first, leaving out rows beyond `up_to_row`; of `rows` alone if given.

    One statement.
    """
    found = rows_of(selection).filter(pk__lte=up_to_row)
    if rows is not None:
        found = found.filter(pk__in=rows)
    return list(_window([found], after, None, limit, oldest_first=True).keys)


def lengths(selection: Selection) -> list[tuple[int, int]]:
    """The memories' rows in the order of time, each with how many characters its text has. One statement, no text."""
    measured = rows_of(selection).order_by("created_at_ms", "pk").annotate(characters=Length("text"))
    return list(measured.values_list("pk", "characters"))


def get(row: int) -> StoredMemory:
    """A memory by its row, a deleted one too. Errors: `NotFound`."""
    found = get_many([row]) if row <= _MAX_ROW else []
    if not found:
        raise NotFound("There is no such memory.")
    return found[0]


def get_many(rows: Collection[int]) -> list[StoredMemory]:
    """Memories by their rows in the order given, deleted ones too; what is gone is left out. One statement."""
    if not rows:
        return []
    found = {memory.pk: memory for memory in visible(Memory.objects.filter(pk__in=rows))}
    return [stored(found[row]) for row in rows if row in found]


def _parts(selection: Selection) -> list[QuerySet[Memory]]:
    """The selected rows in parts of which an index has each in order: one of many categories has not."""
    categories = selection.wanted_categories()
    if categories is None or len(categories) < 2 or selection.session_id is not None or selection.in_trash:
        return [rows_of(selection)]
    return [rows_of(replace(selection, tab=None, categories=(category,))) for category in categories]


def _window(
    parts: Sequence[QuerySet[Memory]],
    after: Position | None,
    before: Position | None,
    limit: int,
    *,
    oldest_first: bool,
) -> _Window:
    """The keys of a page. A page before a position is read backwards from there."""
    is_backwards = before is not None
    ascending = oldest_first != is_backwards
    beyond = [_beyond(part, before or after, ascending=ascending) for part in parts]
    keys = _found(beyond, limit + 1, ascending=ascending)
    has_more = len(keys) > limit
    del keys[limit:]
    if is_backwards:
        keys.reverse()
    previous = keys[0] if keys and (has_more if is_backwards else after is not None) else None
    following = keys[-1] if keys and (is_backwards or has_more) else None
    newer, older = (following, previous) if oldest_first else (previous, following)
    return _Window(keys, newer, older)


def _found(parts: Sequence[QuerySet[Memory]], limit: int, *, ascending: bool) -> list[Position]:
    """The first keys of all parts together. One statement, in which each part gives no more than is wanted."""
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
    """The first condition is for the index, which cannot use a choice of two."""
    if position is None:
        return rows
    at, row = position
    if ascending:
        return rows.filter(Q(created_at_ms__gt=at) | Q(pk__gt=row), created_at_ms__gte=at)
    return rows.filter(Q(created_at_ms__lt=at) | Q(pk__lt=row), created_at_ms__lte=at)


def _heads(part: QuerySet[Memory], rows: QuerySet[Memory], *, oldest_first: bool) -> QuerySet[Memory]:
    """Of each turn the row that decides where it stands: of `part`, with none of its turn's `rows` ahead of it."""
    # An expression, so that no index of sessions is taken: the turn's own is the one to use.
    same = rows.alias(plain_session=Coalesce("session_id", Value(0))).filter(
        batch_id=OuterRef("batch_id"), plain_session=Coalesce(OuterRef("session_id"), Value(0))
    )
    ahead = Q(created_at_ms=OuterRef("created_at_ms"), pk__gt=OuterRef("pk"))
    ahead |= Q(created_at_ms__gt=OuterRef("created_at_ms"))
    if oldest_first:
        ahead = Q(created_at_ms=OuterRef("created_at_ms"), pk__lt=OuterRef("pk"))
        ahead |= Q(created_at_ms__lt=OuterRef("created_at_ms"))
    return part.filter(Q(batch_id="") | ~Exists(same.filter(ahead)))


def _turns(heads: Sequence[StoredMemory], rows: QuerySet[Memory]) -> tuple[Turn, ...]:
    """The turns of the heads, each with those of `rows` that belong to it, in their order."""
    members: dict[Any, list[StoredMemory]] = {head.turn: [] for head in heads if head.batch_id}
    names = {head.batch_id for head in heads if head.batch_id}
    for row in rows.filter(batch_id__in=names).order_by("created_at_ms", "seq", "pk") if names else ():
        memory = stored(row)
        if memory.turn in members:
            members[memory.turn].append(memory)
    return tuple(Turn(head.batch_id, tuple(members.get(head.turn, [head]))) for head in heads)
