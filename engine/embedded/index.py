"""The keyword index of the user's memories, whatever the database: what is put in, taken out and looked up.

Every token carries a short hash of its user and scope in front, so that a lookup reads that user's postings alone; and
the statistics, kept in the same transaction as the entries, are that user's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from django.db import connection
from django.db.models import Q

from engine.embedded import index_postgresql, index_sqlite
from engine.embedded.ranking import Candidate, Statistics
from engine.models import IndexVersion, Memory
from engine.port import EngineUnavailable, Owner
from engine.text.mime_types import spoken_of_as
from engine.text.tokens import TOKENIZER_VERSION, day_tokens, tokenize, weight
from memory_gateway.core.times import from_ms

PREFIX_CHARS = 12
_BATCH_ROWS = 200
MAX_COUNT = 255
"""Beyond this a term counts no further: its weight in BM25 has long ceased to grow."""
OWED = Q(is_indexed=False) & ~Q(origin=Memory.Origin.UPSTREAM)
"""The memories that the index should hold and does not yet: while it is being rebuilt."""


class _Vendor(Protocol):
    """What a database does in its own way."""

    def found(self, terms: Sequence[str], prefix_length: int) -> tuple[str, list[Any]]:
        """A subquery and its parameters: the memories that hold any of the terms, as `memory_id` and `terms`."""

    def counts(self, terms: str) -> Mapping[str, int]:
        """The subquery's `terms`, without their prefix, and how often each stands in the memory."""

    def add(self, rows: Sequence[tuple[int, Mapping[str, int]]]) -> None: ...

    def remove(self, rows: Sequence[tuple[int, Mapping[str, int]]]) -> None: ...

    def clear(self) -> None: ...


_VENDORS: Mapping[str, _Vendor] = {"sqlite": index_sqlite, "postgresql": index_postgresql}
_CANDIDATES = """
    SELECT stats.documents, stats.tokens, found.terms, m.id, m.token_count,
        CASE WHEN m.chunk_index IS NULL THEN (m.session_id << 32) + m.seq END,
        m.speaker, m.memory_type, s.session_id, m.created_at_ms, m.seq, m.chunk_index, m.sender_id, m.agent_id
    FROM engine_indexstatistics stats
    CROSS JOIN ({found}) found
    CROSS JOIN engine_memory m
    LEFT JOIN engine_session s ON s.id = m.session_id
    WHERE stats.user_id = %s AND stats.app_id = %s AND stats.project_id = %s
        AND m.id = found.memory_id AND m.user_id = %s AND m.app_id = %s AND m.project_id = %s
        AND m.hidden_at IS NULL AND s.hidden_at IS NULL AND s.deleted_at IS NULL
"""
_OF_ORIGINS = "        AND m.origin IN ({slots})\n"
_COUNT = """
    INSERT INTO engine_indexstatistics (user_id, app_id, project_id, documents, tokens) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (user_id, app_id, project_id) DO UPDATE SET
        documents = engine_indexstatistics.documents + excluded.documents,
        tokens = engine_indexstatistics.tokens + excluded.tokens
"""


class Entry(NamedTuple):
    """A memory's part of the index: its tokens, and what its text weighs in ranking.

    Packed into one text, because a large document has thousands of entries at once.
    """

    packed: str
    length: int

    @classmethod
    def of(cls, tokens: Mapping[str, int], length: int) -> Entry:
        return cls(" ".join(f"{token} {count}" for token, count in tokens.items()), length)

    @property
    def tokens(self) -> dict[str, int]:
        """How often each token stands in the memory."""
        parts = iter(self.packed.split(" ") if self.packed else ())
        return {token: int(count) for token, count in zip(parts, parts, strict=True)}


def entry_of(memory: Memory) -> Entry:
    """What a memory is found by: a pure function of its row, so that it can be taken out again."""
    tokens = _tokens_of(memory)
    counted = Counter(tokens)
    return Entry.of({token: min(count, MAX_COUNT) for token, count in counted.items()}, weight(tokens))


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
    name = "\0".join((str(owner.user_pk), owner.app_id, owner.project_id))
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return base64.b32encode(digest).decode().lower()[:PREFIX_CHARS]


def add(owner: Owner, entries: Mapping[int, Entry]) -> None:
    """Puts memories (by row id) into the index. Call inside the transaction that writes their rows."""
    if entries:
        require_current_version()
        for rows in _prefixed(owner, entries):
            _vendor().add(rows)
        _count(owner, len(entries), sum(entry.length for entry in entries.values()))


def remove(owner: Owner, entries: Mapping[int, Entry]) -> None:
    """Takes memories (by row id) out of the index. Call inside the transaction that deletes or changes their rows."""
    if entries:
        require_current_version()
        for rows in _prefixed(owner, entries):
            _vendor().remove(rows)
        _count(owner, -len(entries), -sum(entry.length for entry in entries.values()))


def clear() -> None:
    """Empties the index of all users."""
    _vendor().clear()


def candidates(
    owner: Owner, terms: Iterable[str], *, origins: Collection[str] = ()
) -> tuple[list[Candidate], Statistics]:
    """The owner's live memories that hold any of the terms, and the owner's statistics. One statement.

    Where `origins` names some, memories of those alone.
    """
    vendor, prefix = _vendor(), prefix_of(owner)
    prefixed = [prefix + term for term in terms]
    owned = owner_values(owner)
    found, parameters = vendor.found(prefixed, PREFIX_CHARS)
    statement = _CANDIDATES.format(found=found)
    if origins:
        statement += _OF_ORIGINS.format(slots=", ".join(["%s"] * len(origins)))
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, *owned, *owned, *origins])
        rows = cursor.fetchall()
    statistics = Statistics(*rows[0][:2]) if rows else Statistics(0, 0)
    return [Candidate._make(row[2:]) for row in rows], statistics


def counts(terms: str) -> Mapping[str, int]:
    """How often each term stands in a candidate, from its `terms`."""
    return _vendor().counts(terms)


def version() -> str | None:
    """Which tokenizer built the index; None while nothing has been indexed."""
    return IndexVersion.objects.values_list("tokenizer", flat=True).first()


def require_current_version() -> None:
    """Refuses to mix tokens of two tokenizers in one index. Errors: `EngineUnavailable` naming the remedy."""
    built_by = version()
    if built_by is None:
        IndexVersion.objects.create(tokenizer=TOKENIZER_VERSION)
    elif built_by != TOKENIZER_VERSION:
        raise EngineUnavailable("The keyword index was built by another version: run `manage.py rebuild_index`.")


def _prefixed(owner: Owner, entries: Mapping[int, Entry]) -> Iterator[list[tuple[int, dict[str, int]]]]:
    """The entries with their owner's prefix, unpacked a batch at a time."""
    prefix, items = prefix_of(owner), list(entries.items())
    for start in range(0, len(items), _BATCH_ROWS):
        batch = items[start : start + _BATCH_ROWS]
        yield [(pk, {prefix + token: count for token, count in entry.tokens.items()}) for pk, entry in batch]


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
        said_on = day_tokens(from_ms(memory.created_at_ms).date())
        return tokens + [token for token in said_on if token not in tokens]
    around = " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "heading"))
    held = set(tokens)
    tokens += [token for token in dict.fromkeys(tokenize(around)) if token not in held]
    if memory.chunk_index == 0:
        names = " \n ".join(str(memory.payload.get(name) or "") for name in ("filename", "title", "description"))
        tokens += tokenize(names) + tokenize(spoken_of_as(memory.payload.get("mime_type")))
    return tokens


def _count(owner: Owner, documents: int, tokens: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [*owner_values(owner), documents, tokens])


def _vendor() -> _Vendor:
    return _VENDORS[connection.vendor]


def owner_values(owner: Owner) -> list[UUID | str]:
    """User and scope as plain SQL has to be given them."""
    user_pk = owner.user_pk if connection.features.has_native_uuid_field else owner.user_pk.hex
    return [user_pk, owner.app_id, owner.project_id]
