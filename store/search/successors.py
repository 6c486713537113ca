"""Find what ended the value of the best statement, which need not share a word with the query.

"Sold the Golf, got a Kia" has no word of "What car do I drive?", but one of "I drive a Golf". The words of the value of
the best statement are looked up, and newer memories with them are read. One SQL statement if the best hits hold a
statement, another one if newer memories have its words.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from store.index import keyword
from store.search import ranking, records, snapshot
from store.search.candidates import candidate_mask
from store.search.ranking import Score
from store.search.snapshot import Snapshot
from store.text import ended_values, succession
from store.text.tokens import query_tokens
from store.text.wording import is_question
from store.types import SearchRequest

_FIRST_HITS: Final = 3
"""Places among which the statement is looked for."""
_MAX_VALUES: Final = 6
_MAX_READ: Final = 8
"""The most newer memories that are read."""


class Ended(NamedTuple):
    """A statement among the best hits, and the terms of its value."""

    older: records.Row
    score: Score
    terms: list[str]


def ended(request: SearchRequest, ranked: Sequence[tuple[int, Score]], rows: Mapping[int, records.Row]) -> Ended | None:
    """Return the best statement of the user whose value a newer memory may end, None without a question too."""
    if not is_question(request.query):
        return None
    for pk, score in ranked[:_FIRST_HITS]:
        row = rows.get(pk)
        if row is not None and _is_of_user(row) and succession.may_be_replaced(request.query, row.text):
            terms = query_tokens(" ".join(ended_values.values(request.query, row.text)[:_MAX_VALUES]))
            return Ended(row, score, list(dict.fromkeys(terms))) if terms else None
    return None


def successor(request: SearchRequest, found: Ended, seen: Snapshot) -> tuple[int, records.Row] | None:
    """Return the place and the row of the newest memory that ends the value of a statement, None for none."""
    postings = snapshot.postings_of(keyword.prefix_of(seen.owner), found.terms, seen.pks)
    matched = np.bincount(postings.documents, minlength=len(seen.facts))
    is_newer = (seen.facts["at"] > found.older.created_at_ms) & ~ranking.passages_of(seen.facts)
    places = np.flatnonzero(is_newer & (matched > 0))
    places = places[candidate_mask(request, seen, places)[places]]
    places = places[np.lexsort((-seen.facts["at"][places], -matched[places]))][:_MAX_READ]
    pks = seen.pks[places].tolist()
    rows = records.rows(seen.owner, pks, with_hidden=request.with_hidden)
    ending = [
        (place, row)
        for place, pk in zip(places.tolist(), pks, strict=True)
        if (row := rows.get(pk))
        and _is_of_user(row)
        and succession.ends_value(request.query, found.older.text, row.text)
    ]
    return max(ending, key=lambda one: one[1].created_at_ms, default=None)


def _is_of_user(row: records.Row) -> bool:
    """Return True for a fact or a message of the user, as for slots in the keyword index."""
    is_said = row.chunk_index is None and row.payload.get("role", "user") == "user"
    return is_said and not row.payload.get("is_participant")
