"""What was written down in the same words as a text. Ranking would not do: it puts what repeats a word before it."""

from __future__ import annotations

from typing import Final

import numpy as np

from store.index import keyword
from store.search import snapshot
from store.search.candidates import is_written_down, of_agents
from store.search.snapshot import Numbers, Snapshot
from store.text.tokens import telling, tokenize
from store.types import Owner

MAX_TERMS: Final = 2048
_DAY_TOKENS: Final = 4
"""At most so many are found in a memory beside its text, for the day on which it was said."""


def written_alike(owner: Owner, text: str, agent_id: str) -> list[int]:
    """The row ids of an agent's live memories that were written down and hold all words of a text, and about as many.

    They need not say the same. One statement.
    """
    words = telling(tokenize(text))
    terms = list(dict.fromkeys(words))[:MAX_TERMS]
    seen = snapshot.read(owner, terms, keyword.prefix_of(owner))
    lengths = seen.facts["length"]
    found = is_written_down(seen) & of_agents(seen, {agent_id})
    found &= (lengths >= len(words)) & (lengths <= len(words) + _DAY_TOKENS) & (_held(seen) == len(terms))
    return [int(pk) for pk in seen.facts["pk"][found]]


def _held(seen: Snapshot) -> Numbers:
    """How many of the terms each memory holds."""
    return np.bincount(seen.postings.documents, minlength=len(seen.facts))
