"""The keyword index: adds and removes memories on either database.

Every token begins with a short hash of its user and scope, so a lookup reads the postings of that user only. Statistics
are kept per user and scope too, and change in the same transaction as the entries.

They say which version of the tokenizer wrote the entries. Those of another version are not read, because the prefix
names the version too; they are removed by what the index holds, because their tokens cannot be computed.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from typing import NamedTuple, Self

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from core import readable
from documents.mime_types import search_words_of
from store.index import VENDORS
from store.index.schema import PREFIX_CHARS, mark_of
from store.models import IndexStatistics, Memory, State, owner_values
from store.text import times
from store.text.pronouns import CONTINUATION_SIGN, continues
from store.text.statements import slots_of
from store.text.succession import topics_of
from store.text.tokens import TOKENIZER_VERSION, day_tokens, read
from store.types import Owner

_BATCH_ROWS = 200
_DAY_MS = 86_400_000
_MINUTE_MS = 60_000
MAX_COUNT = 255
"""The highest count stored of a term in a memory: its weight in BM25 hardly grows beyond."""
PENDING = Q(is_indexed=False) & ~Q(state=State.PURGED)
"""Memories that still have to be indexed, after a rebuild began or because earlier versions did not index copies."""


IS_FILLED = """
    SELECT 1 FROM store_indexstatistics WHERE user_id = %s AND app_id = %s AND project_id = %s AND documents > 0
"""
"""SQL with the parameters `owner_values`: returns a row if the index has an entry of the owner."""
_UPDATE_STATISTICS = """
    INSERT INTO store_indexstatistics (user_id, app_id, project_id, documents, tokens, tokenizer)
    VALUES (%s, %s, %s, %s, %s, %s)
    ON CONFLICT (user_id, app_id, project_id) DO UPDATE SET
        documents = store_indexstatistics.documents + excluded.documents,
        tokens = store_indexstatistics.tokens + excluded.tokens,
        tokenizer = CASE
            WHEN store_indexstatistics.tokenizer IN (excluded.tokenizer, %s) THEN store_indexstatistics.tokenizer
            WHEN excluded.documents < 0 THEN store_indexstatistics.tokenizer
            ELSE '' END
    RETURNING tokenizer
"""


class IndexEntry(NamedTuple):
    """A memory's tokens in the index, and the length of its text for ranking.

    The tokens are packed into one string, each repeated by its count: a large document has thousands of entries.
    """

    packed: str
    length: int

    @classmethod
    def of(cls, tokens: Mapping[str, int], length: int) -> Self:
        return cls(" ".join(" ".join([token] * count) for token, count in tokens.items()), length)

    @property
    def tokens(self) -> dict[str, int]:
        """Return the count of each token."""
        return Counter(self.packed.split(" ") if self.packed else ())


def entry_of(memory: Memory) -> IndexEntry:
    """Return the index entry of a memory. It depends on its row alone: removing needs the same tokens again."""
    tokens, length = _tokens_of(memory)
    tokens += _slot_tokens(memory)
    if len(tokens) <= MAX_COUNT:
        return IndexEntry(" ".join(tokens), length)
    return IndexEntry.of({token: min(count, MAX_COUNT) for token, count in Counter(tokens).items()}, length)


class Prepared:
    """Entries computed before a transaction begins, to keep it short; a row that changed since is computed again."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._entries = {memory.pk: (_content_of(memory), entry_of(memory)) for memory in memories}

    def entry_of(self, memory: Memory) -> IndexEntry:
        """Return the entry of `memory`, as it was read under the lock."""
        content, entry = self._entries[memory.pk]
        return entry if content == _content_of(memory) else entry_of(memory)

    def is_of(self, memory: Memory) -> bool:
        """Return True if the memory has not changed since."""
        return self._entries[memory.pk][0] == _content_of(memory)


def prefix_of(owner: Owner) -> str:
    """Return the first characters of all of the owner's tokens that this version writes."""
    return owner_prefix(owner) + mark_of(TOKENIZER_VERSION)


@lru_cache(maxsize=4096)
def owner_prefix(owner: Owner) -> str:
    """Return the first characters of the owner's tokens of all versions: 60 bits of a hash of user and scope."""
    name = "\0".join((str(owner.user_pk), owner.app_id, owner.project_id))
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return base64.b32encode(digest).decode().lower()[:PREFIX_CHARS]


def add(cursor: CursorWrapper, owner: Owner, entries: Mapping[Memory, IndexEntry]) -> None:
    """Add saved memories to the index."""
    _update_statistics(cursor, owner, len(entries), sum(entry.length for entry in entries.values()))
    for rows in _batches({memory.pk: entry.packed for memory, entry in entries.items()}):
        VENDORS[connection.vendor].add(cursor, prefix_of(owner), rows)


def remove(cursor: CursorWrapper, owner: Owner, entries: Mapping[int, IndexEntry]) -> None:
    """Remove memories (by row id) from the index."""
    written_by = _update_statistics(cursor, owner, -len(entries), -sum(entry.length for entry in entries.values()))
    prefix, packed = prefix_of(owner), {row: entry.packed for row, entry in entries.items()}
    if written_by != TOKENIZER_VERSION:
        prefix = owner_prefix(owner)
        packed = packed_of(VENDORS[connection.vendor].entries(cursor, prefix, list(entries)))
    for rows in _batches(packed):
        VENDORS[connection.vendor].remove(cursor, prefix, rows)


def merge() -> bool:
    """Merge a part of the index, so that look-ups read less; return True if there may be more."""
    with connection.cursor() as cursor:
        return bool(VENDORS[connection.vendor].merge(cursor))


def is_filled(owner: Owner) -> bool:
    """Return True if the index has an entry of the owner. One SQL statement."""
    with connection.cursor() as cursor:
        cursor.execute(IS_FILLED, owner_values(owner))
        return cursor.fetchone() is not None


def packed_of(counts: Mapping[int, Mapping[str, int]]) -> dict[int, str]:
    """Return entries that the index holds, by row id, as `Entry.packed`."""
    return {pk: IndexEntry.of(tokens, 0).packed for pk, tokens in counts.items()}


def rewriting_by_this() -> str:
    """Return what the statistics say while this version writes entries of another one again."""
    return f"{TOKENIZER_VERSION}…"


def clear() -> None:
    """Remove all entries."""
    VENDORS[connection.vendor].clear()


def empty() -> None:
    """Empty the index of all users, with its statistics."""
    clear()
    IndexStatistics.objects.all().delete()


def _batches(packed: Mapping[int, str]) -> Iterator[list[tuple[int, str]]]:
    """Yield batches of rows: prefixed tokens take several times the size of the text."""
    rows = list(packed.items())
    for start in range(0, len(rows), _BATCH_ROWS):
        yield rows[start : start + _BATCH_ROWS]


def _content_of(memory: Memory) -> tuple[object, ...]:
    """Return the values that the entry of a memory depends on, and whether it has one."""
    return memory.is_indexed, memory.text, memory.chunk_index, memory.created_at_ms, memory.payload


def _tokens_of(memory: Memory) -> tuple[list[str], int]:
    """Return the tokens of the text, then once each the tokens of its context that the text lacks; and its length.

    The context of a message is its day where it was written, the days that it means ("tomorrow"), which do not make
    it longer, and a sign if it begins with a pronoun; that of a passage is the name, title and heading of its document.
    The first passage repeats the name and adds words for the file type: a search for the document ranks its beginning
    first.
    """
    text = read(memory.text)
    tokens, length = [*text.words, *text.readings, *text.stop_words], len(text.words)
    if memory.chunk_index is None:
        offset = memory.payload.get("utc_offset")
        local_ms = memory.created_at_ms + (offset * _MINUTE_MS if isinstance(offset, int) else 0)
        day, tokens_of_day = _day(local_ms // _DAY_MS)
        meant = times.message_tokens(memory.text, day, tokens)
        added = [token for token in tokens_of_day if token not in tokens]
        tokens += [*added, *(token for token in meant if token not in tokens and token not in added)]
        tokens += [CONTINUATION_SIGN] if continues(memory.text) else []
        return tokens, length + len(added)
    context = read(
        " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "heading")), text.language
    )
    known = set(tokens)
    added = [token for token in dict.fromkeys(context.words) if token not in known]
    tokens += [*added, *dict.fromkeys(token for token in context.readings + context.stop_words if token not in known)]
    length += len(added)
    if memory.chunk_index == 0:
        names = " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "description"))
        kind = search_words_of(memory.payload.get("mime_type"))
        for words in (read(names, text.language), read(kind, text.language)):
            tokens += [*words.words, *words.readings, *words.stop_words]
            length += len(words.words)
    return tokens, length


def _slot_tokens(memory: Memory) -> list[str]:
    """Return the tokens of the slots that a fact or a message of the user speaks about; none for other memories."""
    if memory.chunk_index is not None or memory.payload.get("role", "user") != "user":
        return []
    if memory.payload.get("is_participant"):
        return []
    return list(dict.fromkeys(slot.token for slot in (*slots_of(memory.text), *topics_of(memory.text))))


@lru_cache(maxsize=1024)
def _day(number: int) -> tuple[date, tuple[str, ...]]:
    """Return a day, given in days since 1970, and its tokens."""
    day = readable.moment(number * _DAY_MS).date()
    return day, tuple(day_tokens(day))


def _update_statistics(cursor: CursorWrapper, owner: Owner, documents: int, tokens: int) -> str:
    """Update the statistics, whose row is the lock of all who write for the owner; return who wrote the entries."""
    values = [*owner_values(owner), documents, tokens, TOKENIZER_VERSION, rewriting_by_this()]
    cursor.execute(_UPDATE_STATISTICS, values)
    return str(cursor.fetchone()[0])
