"""Read the keyword index without the code under test, and check it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import orjson
from django.db import connection

from store import cover
from store.index import keyword
from store.index.fact_pages import FACTS, PAGE_ROWS
from store.models import FactPage, IndexStatistics, Memory, owned_by
from store.types import Owner


def entries_of(owner: Owner) -> dict[int, dict[str, int]]:
    """Return the counts of the owner's tokens, without their prefix, by row id, as the tables contain them."""
    prefix = keyword.prefix_of(owner)
    found: dict[int, Counter[str]] = {}
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT k.memory_id, u.lexeme, u.positions[1] FROM store_keywords k, unnest(k.tokens) u "
                "WHERE starts_with(u.lexeme, %s)",
                [prefix],
            )
        else:
            cursor.execute(
                "SELECT doc, term, count(*) FROM store_keyword_postings WHERE term >= %s AND term < %s GROUP BY 1, 2",
                [prefix, prefix + "\U0010ffff"],
            )
        for pk, term, count in cursor.fetchall():
            found.setdefault(pk, Counter())[term[len(prefix) :]] = count
    return {pk: dict(counts) for pk, counts in found.items()}


def facts_of(owner: Owner) -> dict[int, tuple[object, ...]]:
    """Return session, sequence number, time, token count, cover and speaker of each row in the pages, by row id."""
    found: dict[int, tuple[object, ...]] = {}
    for page in FactPage.objects.filter(owned_by(owner)):
        facts, names = np.frombuffer(page.facts, FACTS), orjson.loads(page.names)
        assert 0 < len(facts) <= PAGE_ROWS
        for fact in facts:
            assert int(fact["pk"]) not in found
            numbers = (int(fact[field]) for field in ("session", "seq", "at", "length", "cover"))
            found[int(fact["pk"])] = (*numbers, names[fact["speaker"]])
    return found


def assert_consistent(owner: Owner) -> None:
    """Assert that index, fact pages and statistics of an owner agree with the rows."""
    memories = list(Memory.objects.filter(owned_by(owner), is_indexed=True))
    expected = {memory.pk: keyword.entry_of(memory) for memory in memories}
    assert entries_of(owner) == {pk: dict(entry.tokens) for pk, entry in expected.items() if entry.tokens}
    assert {memory.pk: memory.token_count for memory in memories} == {
        pk: entry.length for pk, entry in expected.items()
    }
    statistics = IndexStatistics.objects.filter(owned_by(owner)).first()
    assert facts_of(owner) == {
        memory.pk: (
            memory.session_id or 0,
            memory.seq,
            memory.created_at_ms,
            memory.token_count,
            cover.kind_of(memory),
            memory.speaker,
        )
        for memory in memories
    }
    counted = (statistics.documents, statistics.tokens) if statistics else (0, 0)
    assert counted == (len(memories), sum(memory.token_count for memory in memories))
