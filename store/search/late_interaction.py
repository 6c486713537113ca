"""Compare each word of a query with the most similar one of each of the best memories by keyword (MaxSim).

Words count by how rare they are among the user's memories, as for the keyword score; `ranking.fuse` uses the mean as a
cosine. A memory whose tokens have no vectors counts as an average one; if most have none, the order by keyword stays.

Ours, because libraries for it (ColBERT) keep an index outside the database's transactions, or need PyTorch. Not chosen:
all memories as candidates, which costs a matrix of all tokens for a tenth of a point.
"""

import math
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from store.search.ranking import KeywordScores, best
from store.search.snapshot import Numbers, Reals, Snapshot
from store.text.tokens import query_tokens
from store.vectors import token_vectors
from store.vectors.local_model import Encoded, Vectors

CANDIDATES: Final = 100
_LEAST_WEIGHT: Final = 0.1
"""Of a word, such as a stop word, as a share of the weight of the query's rarest word."""
_LEAST_SHARE: Final = 0.5
"""Of the candidates whose tokens have vectors."""


def similarities(
    snapshot: Snapshot,
    keywords: KeywordScores,
    documents: Numbers,
    query: tuple[str, Encoded, str],
    unread: Collection[str],
) -> Reals | None:
    """Return the similarity of the best of some documents, NaN for all others; None if too few have vectors.

    `query` is its text, its vectors and the name of the model. `unread` are common terms whose postings were left out.
    One SQL statement.
    """
    text, encoded, model = query
    candidates = best(snapshot.facts, documents[keywords.totals[documents] > 0], keywords.totals, CANDIDATES)
    pks = snapshot.pks[candidates].tolist()
    stored = token_vectors.read(model, pks)
    if stored is None:
        return None
    usable = [place for place, pk in enumerate(pks) if stored.by_memory.get(pk)]
    if not usable or len(usable) < _LEAST_SHARE * len(pks):
        return None
    weights = _weights(text, encoded, _rarities(snapshot, keywords, unread))
    own = np.flatnonzero(weights)
    near = token_vectors.similarities(
        token_vectors.reduced(encoded.tokens[own], stored.reduction),
        weights[own],
        [stored.by_memory[pks[place]] for place in usable],
    )
    found = np.full(len(snapshot.facts), np.nan)
    found[candidates] = float(np.median(near))
    found[candidates[usable]] = near
    return found


def _rarities(snapshot: Snapshot, keywords: KeywordScores, unread: Collection[str]) -> dict[str, float]:
    """Return the inverse document frequency of each of the query's own terms, without the common ones."""
    terms, total = keywords.terms, snapshot.documents
    containing = np.bincount(keywords.postings.terms, minlength=len(terms.looked_up)).tolist()
    return {
        term: math.log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))
        for term, count in zip(terms.own, containing, strict=False)
        if term not in unread
    }


def _weights(text: str, encoded: Encoded, rarities: Mapping[str, float]) -> Vectors:
    """Return the weight of each token of a query: that of its word, divided among the word's tokens. They sum to 1."""
    of_word = {span: _rarity(text[slice(*span)], rarities) for span in encoded.spans if span[1]}
    least = _LEAST_WEIGHT * max(of_word.values(), default=0.0) or 1.0
    weights = np.array(
        [max(of_word[span], least) / encoded.spans.count(span) if span[1] else 0.0 for span in encoded.spans],
        np.float32,
    )
    total = float(weights.sum())
    return weights / total if total else np.full(len(weights), 1 / len(weights), np.float32)


def _rarity(word: str, rarities: Mapping[str, float]) -> float:
    return max((rarities.get(term, 0.0) for term in query_tokens(word)), default=0.0)
