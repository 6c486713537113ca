"""Keyset pagination: the last page is as fast as the first, and new rows do not shift pages."""

from typing import Final, Generic, NamedTuple, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet

from console.filters import Cursor, Filters
from core import pagination

ROWS: Final = 50
_Row = TypeVar("_Row", bound=Model)


class Page(NamedTuple, Generic[_Row]):
    """A page of rows, newest first, and the addresses of the previous and the next page, empty if there is none."""

    rows: list[_Row]
    previous: str
    following: str


def newest_first(rows: QuerySet[_Row], filters: Filters, *, time: str = "") -> Page[_Row]:
    """Return at most `ROWS` rows after or before the cursor in `filters`.

    Rows are ordered by the column `time` and, for equal times, by key; without `time` by key only. A cursor of another
    list gives the first page.
    """
    after, before = (_valid_cursor(rows, filters.cleaned_data[side]) for side in ("after", "before"))
    cursor = after or before
    is_backwards = cursor is not after
    if cursor is not None:
        side = "gt" if is_backwards else "lt"
        beyond = Q(**{f"pk__{side}": cursor.key})
        if time:  # the first condition can use the index, the second is for rows with equal times
            beyond = Q(**{f"{time}__{side}e": cursor.at}) & (Q(**{f"{time}__{side}": cursor.at}) | beyond)
        rows = rows.filter(beyond)
    sign = "" if is_backwards else "-"
    found = list(rows.order_by(*(sign + name for name in (time, "pk") if name))[: ROWS + 1])
    has_more = len(found) > ROWS
    page = found[:ROWS][::-1] if is_backwards else found[:ROWS]
    has_newer, has_older = (has_more, True) if is_backwards else (after is not None, has_more)
    return Page(
        page,
        filters.further_page(-ROWS, before=_encode_cursor(page[0], time)) if page and has_newer else "",
        filters.further_page(len(page), after=_encode_cursor(page[-1], time)) if page and has_older else "",
    )


def _valid_cursor(rows: QuerySet[_Row], cursor: Cursor | None) -> Cursor | None:
    """Return the cursor, or None if its key has another type than the keys of these rows."""
    try:
        if cursor:
            rows.model._meta.pk.to_python(cursor.key)  # noqa: SLF001
    except ValidationError:
        return None
    return cursor


def _encode_cursor(row: Model, time: str) -> str:
    at = pagination.microseconds(getattr(row, time)) if time else 0
    return f"{at}.{row.pk}"
