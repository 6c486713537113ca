"""The keyword index of the user's memories, whatever the database: what is put in, taken out and looked up.

Every token carries a short hash of its user and scope in front, so that a lookup reads that user's postings alone; and
the statistics, kept in the same transaction as the entries, are that user's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from core.errors import EngineUnavailable
from core.sql import run
from core.times import from_ms
from documents.mime_types import spoken_of_as
from store.index import pages, postgresql, sqlite
from store.models import IndexVersion, Memory
from store.owned import owner_values
from store.text.tokens import TOKENIZER_VERSION, day_tokens, tokenize, weight
from store.types import Owner
from store.vectors import fill, spaces

PREFIX_CHARS = 12
_BATCH_ROWS = 200
_DAY_MS = 86_400_000
MAX_COUNT = 255
"""Beyond this a term counts no further: its weight in BM25 has long ceased to grow."""
OWED = Q(is_indexed=False) & ~Q(origin=Memory.Origin.UPSTREAM)
"""The memories that the index should hold and does not yet: while it is being rebuilt."""


class _Vendor(Protocol):
    """What a database does in its own way."""

    def add(self, cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None: ...

    def remove(self, cursor: CursorWrapper, prefix: str, rows: Sequence[tuple[int, str]]) -> None: ...

    def clear(self) -> None: ...


_VENDORS: Mapping[str, _Vendor] = {"sqlite": sqlite, "postgresql": postgresql}
IS_FILLED = """
    SELECT 1 FROM store_indexstatistics WHERE user_id = %s AND app_id = %s AND project_id = %s AND documents > 0
"""
"""Of `owner_values`: a row if the index holds anything of the owner's."""
_COUNT = """
    INSERT INTO store_indexstatistics (user_id, app_id, project_id, documents, tokens)
    SELECT %s, %s, %s, %s, %s WHERE EXISTS (SELECT 1 FROM store_indexversion WHERE tokenizer = %s)
    ON CONFLICT (user_id, app_id, project_id) DO UPDATE SET
        documents = store_indexstatistics.documents + excluded.documents,
        tokens = store_indexstatistics.tokens + excluded.tokens
    RETURNING EXISTS (SELECT 1 FROM store_embeddingspace WHERE is_active)
"""


class Entry(NamedTuple):
    """A memory's part of the index: its tokens, and what its text weighs in ranking.

    Packed into one text, each token as often as it counts, because a large document has thousands of entries at once.
    """

    packed: str
    length: int

    @classmethod
    def of(cls, tokens: Mapping[str, int], length: int) -> Entry:
        return cls(" ".join(" ".join([token] * count) for token, count in tokens.items()), length)

    @property
    def tokens(self) -> dict[str, int]:
        """How often each token stands in the memory."""
        return Counter(self.packed.split(" ") if self.packed else ())


def entry_of(memory: Memory) -> Entry:
    """What a memory is found by: a pure function of its row, so that it can be taken out again."""
    tokens = _tokens_of(memory)
    length = weight(tokens)
    if len(tokens) <= MAX_COUNT:
        return Entry(" ".join(tokens), length)
    return Entry.of({token: min(count, MAX_COUNT) for token, count in Counter(tokens).items()}, length)


class Prepared:
    """Entries worked out before a transaction begins, so that it stays short; a row that changed since is done anew."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._entries = {memory.pk: (_source(memory), entry_of(memory)) for memory in memories}

    def entry_of(self, memory: Memory) -> Entry:
        """`memory` as it was read under the lock."""
        source, entry = self._entries[memory.pk]
        return entry if source == _source(memory) else entry_of(memory)


def prefix_of(owner: Owner) -> str:
    """The first characters of all of the owner's tokens: 60 bits of a hash of user and scope."""
    return _prefix(owner.user_pk, owner.app_id, owner.project_id)


@lru_cache(maxsize=4096)
def _prefix(user_pk: UUID, app_id: str, project_id: str) -> str:
    name = "\0".join((str(user_pk), app_id, project_id))
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return base64.b32encode(digest).decode().lower()[:PREFIX_CHARS]


def add(owner: Owner, entries: Mapping[Memory, Entry]) -> None:
    """Puts saved memories into the index. Call inside the transaction that writes their rows, after that."""
    with connection.cursor() as cursor:
        put(cursor, owner, list(entries.items()))


def put(cursor: CursorWrapper, owner: Owner, entries: Sequence[tuple[Memory, Entry]]) -> None:
    """The same over a cursor that is open."""
    if not entries:
        return
    weighed = [(memory, entry.length) for memory, entry in entries]
    has_vectors = _count(cursor, owner, len(entries), sum(length for _, length in weighed))
    by_row = {memory.id: entry for memory, entry in entries}
    for rows in _batches(by_row):
        _vendor().add(cursor, prefix_of(owner), rows)
    pages.add(cursor, owner, weighed)
    if has_vectors:
        spaces.owe(cursor, by_row)


def remove(owner: Owner, entries: Mapping[int, Entry]) -> None:
    """Takes memories (by row id) out of the index. Call inside the transaction that deletes or changes their rows."""
    if not entries:
        return
    with connection.cursor() as cursor:
        _count(cursor, owner, -len(entries), -sum(entry.length for entry in entries.values()))
        for rows in _batches(entries):
            _vendor().remove(cursor, prefix_of(owner), rows)
    pages.remove(owner, entries)
    fill.forget(owner, entries)


def is_filled(owner: Owner) -> bool:
    """Whether the index holds anything of the owner's. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(IS_FILLED, owner_values(owner))
        return cursor.fetchone() is not None


def clear() -> None:
    """Empties the index of all users."""
    _vendor().clear()
    pages.clear()


def version() -> str | None:
    """Which tokenizer built the index; None while nothing has been indexed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tokenizer FROM store_indexversion ORDER BY id LIMIT 1")
        row = cursor.fetchone()
    return row[0] if row else None


def require_current_version() -> None:
    """Refuses to mix tokens of two tokenizers in one index. Errors: `EngineUnavailable` naming the remedy."""
    built_by = version()
    if built_by is None:
        IndexVersion.objects.create(tokenizer=TOKENIZER_VERSION)
    elif built_by != TOKENIZER_VERSION:
        raise EngineUnavailable("The keyword index was built by another version: run `manage.py rebuild_index`.")


def _batches(entries: Mapping[int, Entry]) -> Iterator[list[tuple[int, str]]]:
    """A large document's tokens take several times its own size once they have their prefix."""
    rows = [(pk, entry.packed) for pk, entry in entries.items()]
    return (rows[start : start + _BATCH_ROWS] for start in range(0, len(rows), _BATCH_ROWS))


def _source(memory: Memory) -> tuple[object, ...]:
    """All that an entry is made of."""
    return memory.text, memory.chunk_index, memory.created_at_ms, memory.payload


def _tokens_of(memory: Memory) -> list[str]:
    """The text's tokens; then once each, where the text lacks them, those of what it belongs to.

    A passage answers to its document's name, title and heading, and the first passage a little more, so that the name
    alone brings the document's beginning; so does what people call a file of its kind. A turn of a conversation answers
    to its day.
    """
    tokens = tokenize(memory.text)
    if memory.chunk_index is None:
        return tokens + [token for token in _of_day(memory.created_at_ms // _DAY_MS) if token not in tokens]
    around = " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "heading"))
    held = set(tokens)
    tokens += [token for token in dict.fromkeys(tokenize(around)) if token not in held]
    if memory.chunk_index == 0:
        names = " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "description"))
        tokens += tokenize(names) + tokenize(spoken_of_as(memory.payload.get("mime_type")))
    return tokens


@lru_cache(maxsize=1024)
def _of_day(number: int) -> tuple[str, ...]:
    """The tokens of a day, counted from 1970 in UTC."""
    return tuple(day_tokens(from_ms(number * _DAY_MS).date()))


def _count(cursor: CursorWrapper, owner: Owner, documents: int, tokens: int) -> bool:
    """Counts in an index of this tokenizer alone; whether there are vectors, which each memory is to have.

    Errors: `EngineUnavailable` for an index that another tokenizer built.
    """
    values = [*owner_values(owner), documents, tokens, TOKENIZER_VERSION]
    run(cursor, _COUNT, values)
    counted = cursor.fetchone()
    if counted is None:
        require_current_version()
        run(cursor, _COUNT, values)
        counted = cursor.fetchone()
    return counted is not None and bool(counted[0])


def _vendor() -> _Vendor:
    return _VENDORS[connection.vendor]
