"""Recognize messages that a client sends again: a growing transcript, a hook that fires twice.

A batch whose first messages, at least three, are the session's first ones is sent again up to where both differ; so is
one whose first messages, at least two, are the session's last ones. One of them has at least 20 characters: a greeting
and its answer are said often. A single message without time is sent again if the session's last one is the same and at
most a minute old.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple

from django.db.models import OuterRef, Q, Subquery

from memories.models import Override
from store.models import Memory, Session, State

_MIN_AT_BEGINNING: Final = 3
_MIN_AT_END: Final = 2
_MIN_CHARS: Final = 20
_SAME_MS: Final = 60_000


class Said(NamedTuple):
    """A message to compare. `text` None: it has files, and equals no other."""

    role: str
    sender_id: str
    text: str | None

    def is_same(self, row: "_Row") -> bool:
        """Return True if a row holds the message, held it before it was edited, or may have held it: it is purged."""
        if row.is_purged or self.text is None:
            return row.is_purged
        return (self.role, self.sender_id) == row.sent_by and self.text in row.texts


class _Row(NamedTuple):
    memory_id: str
    sent_by: tuple[str, str]
    texts: tuple[str, ...]
    created_at_ms: int
    is_purged: bool


def find_resent(session: Session, batch: Sequence[Said], *, now_ms: int | None) -> list[str]:
    """Return the ids of the session's memories that the first messages of a batch repeat, in their order.

    `now_ms` is the time of a single message without its own; None for others. At most one SQL statement.
    """
    if not batch or (len(batch) < _MIN_AT_END and now_ms is None):
        return []
    first, last = _ends(session, len(batch))
    if len(batch) == 1:
        same = last[-1:] if last and not last[-1].is_purged and batch[0].is_same(last[-1]) else []
        is_recent = bool(same) and now_ms is not None and abs(now_ms - same[0].created_at_ms) <= _SAME_MS
        return [same[0].memory_id] if is_recent else []
    count = next((at for at, (one, row) in enumerate(zip(batch, first, strict=False)) if not one.is_same(row)), None)
    beginning = first[: min(len(batch), len(first)) if count is None else count]
    if resent := _resent(batch, beginning, _MIN_AT_BEGINNING):
        return resent
    for size in range(min(len(batch), len(last)), _MIN_AT_END - 1, -1):
        overlap = last[-size:]
        is_same = all(one.is_same(row) for one, row in zip(batch, overlap, strict=False))
        if is_same and (resent := _resent(batch, overlap, _MIN_AT_END)):
            return resent
    return []


def _resent(batch: Sequence[Said], overlap: Sequence[_Row], least: int) -> list[str]:
    """Return the ids of an overlap up to its last message that is known; none if too few are known, or they are short.

    A purged message counts only before one that is known: a transcript that is sent again must not bring it back.
    """
    known = [place for place, row in enumerate(overlap) if not row.is_purged]
    if len(known) < least or not any(len(batch[place].text or "") >= _MIN_CHARS for place in known):
        return []
    return [row.memory_id for row in overlap[: known[-1] + 1]]


def _ends(session: Session, count: int) -> tuple[list[_Row], list[_Row]]:
    """Return the first and the last `count` memories of a session, in their order. One SQL statement."""
    messages = Memory.objects.filter(session=session, original_text="")  # without those that a model derived
    ends = (messages.order_by(order).values("pk")[:count] for order in ("seq", "-seq"))
    near_an_end = reduce(or_, (Q(pk__in=Subquery(rows)) for rows in ends))
    former = Override.objects.filter(row=OuterRef("pk"), undone_at=None).values("original_text")[:1]
    rows = messages.filter(near_an_end).order_by("seq").annotate(former=Subquery(former))
    found = [_row(_Columns(*row)) for row in rows.values_list(*_Columns._fields)]
    return found[:count], found[-count:]


def _row(row: "_Columns") -> _Row:
    texts = (row.text, row.former) if row.former is not None else (row.text,)
    sent_by = str(row.payload.get("role", "")), row.sender_id
    is_purged = row.state == State.PURGED
    return _Row(row.memory_id, sent_by, texts if row.chunk_index is None else (), row.created_at_ms, is_purged)


class _Columns(NamedTuple):
    memory_id: str
    payload: Mapping[str, Any]
    sender_id: str
    text: str
    chunk_index: int | None
    created_at_ms: int
    former: str | None
    state: str
