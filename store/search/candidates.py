"""Select the memories that a request covers, by its sessions, agents and filters."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from store import filters
from store.index import keyword
from store.index.fact_pages import ORIGINS
from store.models import MANUAL_ORIGINS
from store.search import filter_masks, snapshot
from store.search.floor import Flags
from store.search.snapshot import Numbers, Snapshot
from store.text.tokens import read
from store.types import Owner, SearchRequest


def sessions_of(requests: Sequence[SearchRequest]) -> list[str] | None:
    """Return the sessions that the requests name; None for all, if filters compare sessions."""
    trees = [request.filters for request in requests if request.filters]
    if not all(filters.OF_SESSIONS.isdisjoint(filters.fields_of(filters.parse(tree))) for tree in trees):
        return None
    return list(dict.fromkeys(one for request in requests for one in request.session_ids or ()))


def candidate_mask(request: SearchRequest, snapshot: Snapshot, documents: Numbers | None = None) -> Flags:
    """Return a mask of the documents that the request covers. It holds for `documents` only; None: for all."""
    facts = snapshot.facts
    mask = np.ones(len(facts), np.bool_)
    if request.session_ids is not None:
        sessions = [snapshot.sessions[name] for name in request.session_ids if name in snapshot.sessions]
        mask &= np.isin(facts["session"], sessions)
    if request.agent_id is not None:
        mask &= agent_mask(snapshot, {request.agent_id})
    if request.reader is not None:
        mask &= ~manual_mask(snapshot) | agent_mask(snapshot, {"", request.reader})
    if request.filters:
        mask &= filter_masks.mask_of(request.filters, snapshot, documents)
    return mask


def agent_mask(snapshot: Snapshot, agent_ids: Collection[str]) -> Flags:
    agents = [place for place, name in enumerate(snapshot.names) if name in agent_ids]
    return np.isin(snapshot.facts["agent"], agents)


def manual_mask(snapshot: Snapshot) -> Flags:
    return np.isin(snapshot.facts["origin"], [ORIGINS[origin] for origin in MANUAL_ORIGINS])


MAX_TERMS: Final = 2048
DAY_TOKENS: Final = 4
"""The most tokens that a message has besides its text: those of its day."""
_MIN_SHARED: Final = 2
_MIN_SHARE: Final = 0.3
_MAX_NEAR: Final = 12


class SimilarNotes(NamedTuple):
    """Row ids of an agent's live notes. `equal` may have the same text; `near` share many words, the nearest first."""

    equal: list[int]
    near: list[int]


def find_similar_notes(owner: Owner, text: str, agent_id: str) -> SimilarNotes:
    """Return the notes that may have the same text (all its words, and about as many), and near ones.

    One SQL statement.
    """
    words = read(text).words
    terms = list(dict.fromkeys(words))[:MAX_TERMS]
    seen = snapshot.read(owner, terms, keyword.prefix_of(owner), read_from=None)
    lengths = seen.facts["length"]
    own = manual_mask(seen) & agent_mask(seen, {agent_id})
    matched = np.bincount(seen.postings.documents, minlength=len(seen.facts))  # terms in each memory
    is_equal = own & (lengths >= len(words)) & (lengths <= len(words) + DAY_TOKENS) & (matched == len(terms))
    others = np.maximum(lengths - DAY_TOKENS, matched)
    share = matched / np.maximum(len(terms) + others - matched, 1)  # of the terms of both
    near = np.flatnonzero(own & ~is_equal & (matched >= _MIN_SHARED) & (share >= _MIN_SHARE))
    nearest = near[np.argsort(-share[near], kind="stable")][:_MAX_NEAR]
    pks = seen.facts["pk"]
    return SimilarNotes(pks[is_equal].tolist(), pks[nearest].tolist())
