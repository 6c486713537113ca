"""The entries of users' profiles that fit a query. Profiles find them: nothing below profiles imports them."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

ADDRESSES: Final = {"profile:user": "/api/v1/memories/user", "profile:work": "/api/v1/memories/work"}
"""The ids of entries in search results, with the address of their document."""
_KEPT_SECONDS: Final = 60.0
_MAX_KEPT: Final = 10_000


class ProfileEntry(NamedTuple):
    """An entry of a document, `id` as in `ADDRESSES`, `path` as errors name it, `relevance` to the query 0..1."""

    id: str
    path: str
    text: str
    relevance: float
    updated_at_ms: int


class Question(NamedTuple):
    """A query for entries, and the least relevance of an entry; None: the default one."""

    query: str
    least: float | None = None


_Reader = Callable[[UUID, Question], Sequence[ProfileEntry] | None]


def _no_profile(_user_pk: UUID, _question: Question) -> None:
    return None


_read: _Reader = _no_profile
_without: OrderedDict[UUID, float] = OrderedDict()


def read_with(reader: _Reader) -> None:
    """Set the function that returns the entries that fit a query, best first; None for a user without documents."""
    global _read  # noqa: PLW0603  set once, when the app that holds the profiles is ready
    _read = reader


def fitting(user_pk: UUID, question: Question) -> Sequence[ProfileEntry]:
    """Return the entries of a user's profile that fit a query, best first.

    At most one SQL statement; none for a minute after a user had no documents.
    """
    now = time.monotonic()
    if now - _without.get(user_pk, float("-inf")) <= _KEPT_SECONDS:
        return ()
    found = _read(user_pk, question)
    if found is None:
        _without[user_pk] = now
        _without.move_to_end(user_pk)
        while len(_without) > _MAX_KEPT:
            _without.popitem(last=False)
    return found or ()


def forget(user_pk: UUID) -> None:
    """Read the documents of a user again, because one was written."""
    _without.pop(user_pk, None)
