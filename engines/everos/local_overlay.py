"""What users put beside an upstream's memories: their corrections, what was written down here alone, and what the
embedded engine remembered, until it is moved.

It lies in our table and our keyword index. Of a memory that its user reworded the index alone decides, because an
upstream goes on finding it by the words that it still holds.

The score of such a hit is the share of the question's telling words that it holds, so that it can stand among an
upstream's 0 to 1 and one that holds them all is not cut off below. The index's own score would not do: it reaches about
0.25 where each word stands once, and its weights are of a few memories only. The two measures stay two all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from store.search import queries
from store.search.search import MAX_TERMS, hits_of, rank
from store.text.tokens import query_tokens
from store.types import Hit, Owner, SearchRequest


class Own(NamedTuple):
    """The hits of our index for each request, and which memories were reworded, so that no other hit of them counts."""

    hits: list[list[Hit]]
    reworded: frozenset[str]


def look_up(owner: Owner, requests: Sequence[SearchRequest], upstream_ids: Collection[str]) -> Own:
    """Asks our index what the upstream was asked; `upstream_ids` are the memories that came. At most two statements."""
    best = rank(owner, requests)
    pks = {pk for ranked in best for pk, _ in ranked}
    with_hidden = any(request.with_hidden for request in requests)
    rows = queries.rows_and_reworded(owner, pks, upstream_ids, with_hidden=with_hidden)
    return Own(
        [
            list(_scored(request.query, hits_of(owner, ranked, rows)))
            for request, ranked in zip(requests, best, strict=True)
        ],
        frozenset(row.memory_id for row in rows.values()),
    )


def _scored(query: str, hits: Iterable[Hit]) -> Iterable[Hit]:
    words = len(query_tokens(query)[:MAX_TERMS])
    for hit in hits:
        share = len(hit.legs["keyword"]["matched"]) / words
        yield hit._replace(score=share, raw={**hit.raw, "score": share})
