"""Find what replaced the best statement, or what it replaced, which need not share a word with the query.

"Sold the Golf, got a Kia" has no word of "What car do I drive?", but one of "I drive a Golf". The words of the value of
the best statement and its topics are looked up, and newer memories with them are read; of a question about the past,
older ones. One SQL statement if the best hits hold a statement, another one if other memories have its words.
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
from store.text.statements import is_about_past
from store.text.tokens import query_tokens
from store.text.wording import is_question
from store.types import SearchRequest

_FIRST_HITS: Final = 3
"""Places among which the statement is looked for."""
_MAX_VALUES: Final = 6
_MAX_READ: Final = 8
"""The most newer memories that are read."""


class Known(NamedTuple):
    """A statement among the best hits, its score, and the terms by which another one of the same may be found.

    `is_newer`: it replaces others; otherwise another one may replace it.
    """

    row: records.Row
    score: Score
    terms: list[str]
    is_newer: bool


def known(request: SearchRequest, ranked: Sequence[tuple[int, Score]], rows: Mapping[int, records.Row]) -> Known | None:
    """Return the best statement of the user that another memory may replace, None without a question too.

    Of a question about the past, the best one that may replace another.
    """
    if not is_question(request.query):
        return None
    is_past = is_about_past(request.query)
    may_be_it = succession.may_replace if is_past else succession.may_be_replaced
    for pk, score in ranked[:_FIRST_HITS]:
        row = rows.get(pk)
        if row is not None and _is_of_user(row) and may_be_it(request.query, row.text):
            terms = query_tokens(" ".join(ended_values.values(request.query, row.text)[:_MAX_VALUES]))
            terms += [slot.token for slot in succession.topics_of(row.text)]
            return Known(row, score, list(dict.fromkeys(terms)), is_past) if terms else None
    return None


def other(request: SearchRequest, found: Known, seen: Snapshot) -> tuple[int, records.Row] | None:
    """Return the place and the row of the newest memory that replaces a statement, or that it replaces."""
    postings = snapshot.postings_of(keyword.prefix_of(seen.owner), found.terms, seen.pks)
    matched = np.bincount(postings.documents, minlength=len(seen.facts))
    at, known_at = seen.facts["at"], found.row.created_at_ms
    is_other = ((at < known_at) if found.is_newer else (at > known_at)) & ~ranking.passages_of(seen.facts)
    places = np.flatnonzero(is_other & (matched > 0))
    places = places[candidate_mask(request, seen, places)[places]]
    places = places[np.lexsort((-at[places], -matched[places]))][:_MAX_READ]
    pks = seen.pks[places].tolist()
    rows = records.rows(seen.owner, pks, with_hidden=request.with_hidden)
    linked = [
        (place, row)
        for place, pk in zip(places.tolist(), pks, strict=True)
        if (row := rows.get(pk)) and _is_of_user(row) and _are_linked(request.query, found, row)
    ]
    return max(linked, key=lambda one: one[1].created_at_ms, default=None)


def _are_linked(query: str, found: Known, row: records.Row) -> bool:
    older, newer = (row, found.row) if found.is_newer else (found.row, row)
    return succession.follows(query, older.text, newer.text) is not None


def _is_of_user(row: records.Row) -> bool:
    """Return True for a fact or a message of the user, as for slots in the keyword index."""
    is_said = row.chunk_index is None and row.payload.get("role", "user") == "user"
    return is_said and not row.payload.get("is_participant")
