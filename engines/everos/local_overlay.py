"""Find what EverOS does not hold: overrides, memories written by operators and tools, and those of the embedded engine
that are not moved yet.

They are in our table and keyword index. An overridden memory is found by our index only, because EverOS still finds it
by its original words. The score of such a hit is the share of the query's terms that it holds, to compare with EverOS's
0 to 1: our own score is about 0.25 where each term occurs once. The two scales remain different.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from store.search import queries
from store.search.search import MAX_TERMS, hits_of, rank
from store.text.tokens import query_tokens
from store.types import Hit, Owner, SearchRequest


class LocalHits(NamedTuple):
    """The hits of our index for each request, and the ids of overridden memories, whose EverOS hits are dropped."""

    hits: list[list[Hit]]
    overridden: frozenset[str]


def look_up(owner: Owner, requests: Sequence[SearchRequest], everos_ids: Collection[str]) -> LocalHits:
    """Search our index; `everos_ids` are the memories that EverOS returned. At most two statements."""
    best = rank(owner, requests)
    pks = {pk for ranked in best for pk, _ in ranked}
    with_hidden = any(request.with_hidden for request in requests)
    rows = queries.rows_and_reworded(owner, pks, everos_ids, with_hidden=with_hidden)
    return LocalHits(
        [
            list(_scored(request.query, hits_of(owner, ranked, rows)))
            for request, ranked in zip(requests, best, strict=True)
        ],
        frozenset(row.memory_id for row in rows.values()),
    )


def _scored(query: str, hits: Iterable[Hit]) -> Iterable[Hit]:
    terms = len(query_tokens(query)[:MAX_TERMS])
    for hit in hits:
        share = len(hit.legs["keyword"]["matched"]) / terms
        yield hit._replace(score=share, raw={**hit.raw, "score": share})
