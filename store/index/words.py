"""The word index: the memories of all users that contain a word. Only the panel's lists use it.

It contains every memory that a list can show, also those that only an external engine finds. Memories of the keyword
index are added in the same transaction. Triggers queue all others for `store.derived` and remove deleted ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from django.db import connection
from django.db.backends.utils import CursorWrapper

from core.persistence.sql import rows, slots
from store.index.keyword import Entry, entry_of
from store.models import Memory, owned_by
from store.types import Owner

_ADD: Final = {
    "sqlite": "INSERT OR REPLACE INTO store_words (rowid, tokens) VALUES (%s, %s)",
    "postgresql": """
        INSERT INTO store_words (memory_id, tokens)
        SELECT id, string_to_array(words, ' ') FROM unnest(%s::bigint[], %s::text[]) AS added (id, words)
        ON CONFLICT (memory_id) DO UPDATE SET tokens = excluded.tokens
    """,
}
_COMPARED_ROWS: Final = 500
_CLEAR: Final = ("DELETE FROM store_words", "DELETE FROM store_words_pending")
QUEUE_ALL: Final = """
    INSERT INTO store_words_pending SELECT id FROM store_memory WHERE true ON CONFLICT DO NOTHING
"""
"""Purged memories leave the queue when it is filled."""
_DIFFERENCES: Final = """
    SELECT (
        SELECT count(*) FROM store_memory WHERE state <> 'purged'
            AND id NOT IN (SELECT {key} FROM store_words) AND id NOT IN (SELECT memory_id FROM store_words_pending)
    ), (SELECT count(*) FROM store_words WHERE {key} NOT IN (SELECT id FROM store_memory))
"""


def add(cursor: CursorWrapper, _owner: Owner, entries: Mapping[Memory, Entry]) -> None:
    """Add or replace the words of saved memories."""
    put(cursor, {memory.pk: entry.packed for memory, entry in entries.items()})


def put(cursor: CursorWrapper, packed: Mapping[int, str]) -> None:
    """Add or replace the words of memories, given by row id as tokens separated by spaces."""
    added = [(row, " ".join(_words(tokens))) for row, tokens in packed.items()]
    if connection.vendor == "sqlite":
        cursor.executemany(_ADD["sqlite"], added)
    else:
        cursor.execute(_ADD["postgresql"], [[row for row, _ in added], [words for _, words in added]])


def _words(packed: str) -> list[str]:
    return list(dict.fromkeys(packed.split(" ")))


def empty() -> None:
    """Empty the index and queue all memories."""
    with connection.cursor() as cursor:
        for statement in (*_CLEAR, QUEUE_ALL):
            cursor.execute(statement)


def pending_count() -> int:
    """Return the number of queued memories."""
    [(number,)] = rows("SELECT count(*) FROM store_words_pending", [])
    return int(number)


def pending(limit: int) -> list[int]:
    """Return the row ids of queued memories, newest first."""
    found = rows("SELECT memory_id FROM store_words_pending ORDER BY memory_id DESC LIMIT %s", [limit])
    return [row for (row,) in found]


def dequeue(cursor: CursorWrapper, pks: Sequence[int]) -> None:
    """Remove memories from the queue."""
    cursor.execute(f"DELETE FROM store_words_pending WHERE memory_id IN ({slots(pks)})", pks)


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the words of some owners with their memories, and the totals of all; yield the differences."""
    key, tokens = "memory_id", "array_to_string(tokens, ' ')"
    if connection.vendor == "sqlite":
        key, tokens = "rowid", "tokens"
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO store_words (store_words) VALUES ('integrity-check')")
    [(missing, surplus)] = rows(_DIFFERENCES.format(key=key), [])
    found = {"memories are missing": missing, "entries are orphaned": surplus}
    yield from (f"{number:,} {what}" for what, number in found.items() if number)
    for owner in owners:
        memories = Memory.objects.filter(owned_by(owner), is_indexed=True)
        expected = {one.pk: " ".join(_words(entry_of(one).packed)) for one in memories.iterator()}
        held: dict[int, str] = {}
        for start in range(0, len(expected), _COMPARED_ROWS):
            keys = list(expected)[start : start + _COMPARED_ROWS]
            held |= dict(rows(f"SELECT {key}, {tokens} FROM store_words WHERE {key} IN ({slots(keys)})", keys))
        if wrong := sum(held.get(pk, words) != words for pk, words in expected.items()):
            yield f"{wrong:,} memories of {owner.user_id} have other words"
