"""Leave out the terms that more than half of a user's memories contain, if others of the query match.

They hardly rank, and reading them takes longest. How many memories contain a term is known once it was read, and kept
by this process for some minutes: stored, each add would have to count all its words.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from store.search.ranking import QueryTerms
from store.search.snapshot import Snapshot

LEAST_MEMORIES: Final = 1000
"""Fewer memories of a user are read with all terms."""
KEPT_SECONDS: Final = 600.0
MAX_KEPT: Final = 16_384


class _Counts:
    """Numbers of memories that contain a term, by owner and term, of terms that were common when they were read."""

    def __init__(self) -> None:
        self._by_term: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, prefix: str, term: str) -> int:
        """Return the count, 0 if it is not known or too old."""
        count, read_at = self._by_term.get((prefix, term), (0, 0.0))
        return count if time.monotonic() - read_at < KEPT_SECONDS else 0

    def keep(self, prefix: str, term: str, count: int) -> None:
        with self._lock:
            self._by_term[prefix, term] = count, time.monotonic()
            self._by_term.move_to_end((prefix, term))
            if len(self._by_term) > MAX_KEPT:
                self._by_term.popitem(last=False)


_counts = _Counts()


def known(prefix: str, terms: Iterable[str], queries: Iterable[QueryTerms]) -> dict[str, int]:
    """Return the terms that need not be read, each with the number of memories that contained it."""
    return _without_needed({term: count for term in terms if (count := _counts.get(prefix, term))}, queries)


def are_common(counts: Iterable[int], snapshot: Snapshot) -> bool:
    """Return True if terms that so many memories contain are common among those of the snapshot."""
    return all(_is_common(count, len(snapshot.facts)) for count in counts)


def keep(prefix: str, terms: Sequence[str], snapshot: Snapshot, queries: Iterable[QueryTerms]) -> list[int]:
    """Note which of `terms`, which were read, are common; return the numbers of those that may be left out."""
    if len(snapshot.facts) < LEAST_MEMORIES:
        return []
    counts = np.bincount(snapshot.postings.terms, minlength=len(terms)).tolist()
    common = {term: count for term, count in zip(terms, counts, strict=True) if _is_common(count, len(snapshot.facts))}
    for term, count in common.items():
        _counts.keep(prefix, term, count)
    unneeded = _without_needed(common, queries)
    return [number for number, term in enumerate(terms) if term in unneeded]


def _is_common(count: int, memories: int) -> bool:
    return memories >= LEAST_MEMORIES and memories < 2 * count <= 2 * memories


def _without_needed(common: dict[str, int], queries: Iterable[QueryTerms]) -> dict[str, int]:
    """Return the common terms without those of queries that have no other, except words of every question."""
    needed = {term for query in queries if common.keys() >= set(query.own) - query.common for term in query.looked_up}
    return {term: count for term, count in common.items() if term not in needed}
