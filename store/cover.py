"""Decide which of a message and the memory that a remote derived from it is shown: one condition, for SQL and pages.

A derived memory that is live covers its sources. While a remote is attached, covered messages are not shown, whether it
answers or not. Without one they are, and its memories are not, except those that a user edited, which replace their
sources, and those without sources here.
Operators, transcripts and exports see all of them.
"""

from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q

from store.models import Memory, State

PLAIN: Final = 0
COVERED: Final = 1
"""A message that a derived memory covers."""
COPY: Final = 2
"""An unedited memory of a remote, whose sources are here."""
SOLE_COPY: Final = 3
"""An unedited memory of a remote, whose sources are not here."""
REPLACED: Final = 4
"""A message that an edited derived memory covers."""

_IS_COPY: Final = Q(origin=Memory.Origin.REMOTE, text=F("original_text")) & ~Q(sources=[])
_IS_COPY_SQL: Final = "({0}.origin = '{1}' AND {0}.text = {0}.original_text AND CAST({0}.sources AS text) <> '[]')"


def is_attached() -> bool:
    """Return True if a remote is attached, whether it answers or not."""
    return bool(settings.MEMORY_GATEWAY_BACKEND_BASE_URL)


def is_left_out(*, is_alone: bool = False) -> Q:
    """Return the condition of memories that are not shown to users and agents; `is_alone`: as without a remote."""
    return Q(is_covered=True) if is_attached() and not is_alone else _IS_COPY | Q(is_replaced=True)


def is_left_out_sql(row: str, *, is_alone: bool = False) -> str:
    """Return `is_left_out` as SQL for rows of `store_memory` with that alias."""
    return (
        f"{row}.is_covered"
        if is_attached() and not is_alone
        else f"({row}.is_replaced OR {_IS_COPY_SQL.format(row, Memory.Origin.REMOTE)})"
    )


ALONE: Final = (REPLACED, COPY)
"""The kinds of memories that a search without a remote leaves out."""


def left_out(*, remote_ranks: bool = False) -> tuple[int, ...]:
    """Return the kinds of memories that a search leaves out. A remote that answers ranks its own memories."""
    if remote_ranks:
        return (COVERED, REPLACED, COPY, SOLE_COPY)
    return (COVERED, REPLACED) if is_attached() else ALONE


def leaves_any_out(user_pk: UUID | None) -> bool:
    """Return True if a memory of the user, or of any user, is live and not shown. One SQL statement."""
    of_user = Q() if user_pk is None else Q(user_id=user_pk)
    return Memory.objects.filter(of_user, is_left_out(), state=State.LIVE).exists()


def kind_of(memory: Memory) -> int:
    """Return the kind of a memory, as the pages of facts hold it."""
    if memory.is_covered:
        return REPLACED if memory.is_replaced else COVERED
    if memory.origin != Memory.Origin.REMOTE or memory.is_edited:
        return PLAIN
    return COPY if memory.sources else SOLE_COPY
