"""What the keyword index really holds, read past our own code."""

from __future__ import annotations

from collections import Counter

import numpy as np
import orjson
from django.db import connection

from store.index import keyword
from store.index.pages import FACTS, PAGE_ROWS
from store.models import FactPage, IndexStatistics, Memory, owned_by
from store.types import Owner


def entries_of(owner: Owner) -> dict[int, dict[str, int]]:
    """Row id → how often each of the owner's tokens (without prefix) stands there, from the database's own tables."""
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
    return {pk: dict(held) for pk, held in found.items()}


def facts_of(owner: Owner) -> dict[int, tuple[object, ...]]:
    """Row id → what the pages say of it: session, place, time, weight and speaker."""
    found: dict[int, tuple[object, ...]] = {}
    for page in FactPage.objects.filter(owned_by(owner)):
        facts, names = np.frombuffer(page.facts, FACTS), orjson.loads(page.names)
        assert 0 < len(facts) <= PAGE_ROWS
        for fact in facts:
            assert int(fact["pk"]) not in found
            said = (int(fact[field]) for field in ("session", "seq", "at", "length"))
            found[int(fact["pk"])] = (*said, names[fact["speaker"]])
    return found


def assert_consistent(owner: Owner) -> None:
    """Index, rows and statistics of an owner agree, counted anew."""
    memories = list(Memory.objects.filter(owned_by(owner), is_indexed=True))
    wanted = {memory.pk: keyword.entry_of(memory) for memory in memories}
    assert entries_of(owner) == {pk: dict(entry.tokens) for pk, entry in wanted.items() if entry.tokens}
    assert {memory.pk: memory.token_count for memory in memories} == {pk: entry.length for pk, entry in wanted.items()}
    statistics = IndexStatistics.objects.filter(owned_by(owner)).first()
    assert facts_of(owner) == {
        memory.pk: (memory.session_id or 0, memory.seq, memory.created_at_ms, memory.token_count, memory.speaker)
        for memory in memories
    }
    counted = (statistics.documents, statistics.tokens) if statistics else (0, 0)
    assert counted == (len(memories), sum(memory.token_count for memory in memories))
