"""Which files a found memory speaks of."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from core.ids import parse_session_id
from memories.services import raw
from resources.queries import AttachmentRow, attachments_of
from store.types import Hit, Owner


def attach(owner: Owner, hits: Sequence[Hit]) -> dict[str, tuple[AttachmentRow, ...]]:
    """The files of each hit by memory id: one SQL statement for all of them.

    A file belongs to a hit of its session when its full name stands in a string of `raw`, or when it is the resource
    that the session was made for.
    """
    sessions = sorted({hit.session_id for hit in hits if hit.session_id is not None})
    rows = attachments_of(owner, sessions) if sessions else {}
    return {hit.memory_id: _files_of(hit, rows) for hit in hits}


def _files_of(hit: Hit, rows: Mapping[str, Sequence[AttachmentRow]]) -> tuple[AttachmentRow, ...]:
    candidates = rows.get(hit.session_id or "", ())
    if not candidates:
        return ()
    resource_id = parse_session_id(hit.session_id or "").rest
    others = [row for row in candidates if row.resource_id is None or row.resource_id != resource_id]
    if not others:
        return tuple(candidates)
    unnamed = frozenset(others) - _named(others, hit)
    return tuple([row for row in candidates if row not in unnamed])


def _named(rows: Sequence[AttachmentRow], hit: Hit) -> frozenset[AttachmentRow]:
    """Those whose name the hit's record says."""
    texts = [_folded(text) for text in raw.strings(hit.raw)]
    return frozenset(row for row in rows if any(_names(row.name, text) for text in texts))


def _names(name: str, text: str) -> bool:
    """Whether the full file name stands in an already folded text: `a.pdf` does not stand in `data.pdf`.

    Only ASCII neighbours count as part of a longer name: Chinese text runs on without spaces.
    """
    name = _folded(name)
    start = text.find(name)
    while name and start >= 0:
        end = start + len(name)
        if not _continues(text[:start][-1:]) and not _continues_after(text[end : end + 2]):
            return True
        start = text.find(name, start + 1)
    return False


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


def _continues(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in {"_", "-", "."}) if char else False


def _continues_after(two: str) -> bool:
    """A name ends before a sentence's full stop, but goes on in `a.pdf.zip`."""
    if two[:1] in {".", "-"}:
        return two[1:].isascii() and two[1:].isalnum()
    return _continues(two[:1])
