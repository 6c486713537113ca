"""The floor of a search: which words of a question inform, and which memories hold enough of them to be a result.

Common words alone do not make a result: words of more than half of a user's memories, names of speakers, and words that
every question may hold (`store.search.question`). A date informs.
"""

import math
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from store.text.slots import SLOT_PREFIX

Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]

LEAST_MEMORIES: Final = 50
"""With fewer memories no word is common because many of them hold it."""
LEAST_VECTORS: Final = 20
UNCALIBRATED: Final = 0.25
"""The cosine of a related memory, for users with fewer vectors."""
_STOP_PREFIXES: Final = ("w:", "s:", "c:")
PARTLY_KNOWN: Final = 1 / 3
"""From this share of unknown words on, a question for a property is only partly known."""
MOST_COVERED: Final = 0.7
"""Unless one of the best memories covers this share of what is asked, all are of low relevance."""
MOST_PARTLY_KNOWN: Final = 3
RELATED: Final = 0.5
"""The least relevance of a memory that is found by its vector alone."""
LOW_RELEVANCE: Final = 0.49
_DATES: Final = (("d:", "md:"), ("m:", "said-m:"), ("mo:", "said-mo:"), ("y:",))
"""Prefixes of the tokens of dates, the most exact first: only the most exact ones of a question inform."""


class Judged(NamedTuple):
    """The terms of a question, and which of them inform.

    `informs`: it tells what is asked for. `is_known`: a memory of the user holds it. `shares` are the terms' shares of
    what is asked, which sum to 1. Terms with the same number in `words` are readings of one word.
    """

    informs: Flags
    is_known: Flags
    shares: Reals
    words: npt.NDArray[np.int64]

    @property
    def has_content(self) -> bool:
        """Return True if a word of the question informs, whether the user knows it or not."""
        return bool(self.informs.any())

    @property
    def unknown_share(self) -> float:
        """Return the share of what is asked that no memory holds."""
        return float(self.shares[self.informs & ~self.is_known].sum())

    @property
    def is_answerable(self) -> bool:
        """Return True if a word that informs is known, or none informs."""
        return not self.has_content or bool((self.informs & self.is_known).any())


def judge(
    terms: Sequence[str], containing: Sequence[int], common: Collection[str], *, memories: int, total: int
) -> Judged:
    """Judge the terms of a question by the number of the user's memories that contain each.

    `common` are those that never inform or were not read. `memories` are live, `total` those of the statistics. A slot
    that no memory fills says nothing, because the words of the question may still find the answer.
    """
    dates = _exact_dates(terms)
    half = memories / 2 if memories >= LEAST_MEMORIES else math.inf
    informs = np.array(
        [
            count <= half
            and term not in common
            and not term.startswith(_STOP_PREFIXES)
            and dates.get(term, True)
            and (count > 0 or not term.startswith(SLOT_PREFIX))
            for term, count in zip(terms, containing, strict=True)
        ],
        np.bool_,
    )
    known = np.array([count > 0 for count in containing], np.bool_)
    words = np.arange(len(terms))
    if exact := [place for place, term in enumerate(terms) if dates.get(term)]:
        words[exact] = exact[0]
        known[exact] = known[exact].any()
    counted = informs if informs.any() else np.ones(len(terms), np.bool_)
    counted = counted & ~_are_seams(terms, known)
    weights = np.zeros(len(terms))
    for place in np.flatnonzero(counted).tolist():
        weight = math.log(1 + (max(total - containing[place], 0) + 0.5) / (containing[place] + 0.5))
        word = int(words[place])
        weights[word] = weight if weights[word] == 0 else min(weights[word], weight)
    return Judged(informs, known, weights / (weights.sum() or 1.0), words)


def calibrated(cosines: Reals) -> Reals:
    """Return the relevance of cosines with a query, NaN for none: 0.5 is the most that unrelated memories reach.

    Of the user's own memories nearly all are unrelated. The highest of n random numbers is about sqrt(2 ln n) standard
    deviations above their middle; these are taken from the median, which related memories do not move. With fewer than
    LEAST_VECTORS the scale is that of common models.
    """
    known = cosines[~np.isnan(cosines)]
    middle, least = 0.0, UNCALIBRATED
    if len(known) >= LEAST_VECTORS:
        middle = float(np.median(known))
        spread = 1.4826 * float(np.median(np.abs(known - middle)))
        least = min(middle + math.sqrt(2 * math.log(len(known))) * max(spread, 1e-6), 1.0)
    below = 0.5 * (cosines - middle) / max(least - middle, 1e-6)
    above = 0.5 + 0.5 * (cosines - least) / max(1 - least, 1e-6)
    relevance: Reals = np.clip(np.where(cosines < least, below, above), 0.0, 1.0)
    return relevance


def names_time(terms: Sequence[str]) -> bool:
    """Return True if a term of a question is a date, month or year."""
    return any(term.startswith(prefixes) for term in terms for prefixes in _DATES)


def _exact_dates(terms: Sequence[str]) -> dict[str, bool]:
    """Return the terms of dates, True for those of the most exact kind."""
    kinds = {term: kind for term in terms for kind, prefixes in enumerate(_DATES) if term.startswith(prefixes)}
    best = min(kinds.values(), default=0)
    return {term: kind == best for term, kind in kinds.items()}


def _are_seams(terms: Sequence[str], known: Flags) -> Flags:
    """Return a mask of unknown pairs of characters between known ones: where two Chinese words meet."""
    pairs = [len(term) == 2 and not term.isascii() for term in terms]
    if not any(pairs):
        return np.zeros(len(terms), np.bool_)
    held = {char for term, is_known in zip(terms, known.tolist(), strict=True) if is_known for char in term}
    return np.array(
        [is_pair and not is_known and held.issuperset(term)
         for term, is_pair, is_known in zip(terms, pairs, known.tolist(), strict=True)], np.bool_
    )  # fmt: skip
