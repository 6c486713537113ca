"""EverOS's records as the answer to one request: whose they are, which pass the filters, the best of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from engines.everos.client import wire
from engines.everos.client.filters import matches, needs_us
from engines.everos.client.hits import Names, hits_of
from store.types import UNCOUNTED_TYPES, Hit, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.upstream")


def found_by(request: SearchRequest, answers: Iterable[wire.Records], owner: Owner, names: Names) -> list[Hit]:
    """The owner's hits that the request asks for, each once, in no order.

    What lies in sessions that are not named is dropped, and reported where they are somebody else's.
    """
    asked = None if request.session_ids is None else frozenset(request.session_ids)
    filters: Mapping[str, Any] = request.filters or {}
    narrowing = filters if request.agent_id is not None or needs_us(filters) else {}
    best: dict[str, Hit] = {}
    dropped = 0
    for records in answers:
        hits, strangers = hits_of(records, owner, names, request.agent_id, is_bounded=request.method != "keyword")
        dropped += strangers
        for hit in hits:
            known = best.get(hit.memory_id)
            if _passes(hit, asked, narrowing) and (known is None or hit.sort_key < known.sort_key):
                best[hit.memory_id] = hit
    if dropped:
        logger.error("upstream: dropped %d records that are not the caller's", dropped)
    return list(best.values())


def answer_of(request: SearchRequest, hits: Iterable[Hit], full_at: int | None) -> SearchResult:
    """At most `top_k` hits, best first, profiles and raw messages not counted.

    `full_at` is the `top_k` of the calls of which one brought as many; None where none did.
    """
    best = sorted(hits, key=lambda hit: hit.sort_key)
    kept = tuple(_cut(best, request.top_k))
    return SearchResult(kept, request.method, stopped_at=request.top_k if len(kept) < len(best) else full_at)


def is_full(records: wire.Records, top_k: int) -> bool:
    """Whether an answer holds as much as was asked for, so that there may be more."""
    return max(len(records.episodes), len(records.agent_cases), len(records.agent_skills)) >= top_k


def _passes(hit: Hit, session_ids: frozenset[str] | None, filters: Mapping[str, Any]) -> bool:
    if session_ids is not None and hit.session_id is not None and hit.session_id not in session_ids:
        return False
    return matches(filters, hit) if filters else True


def _cut(hits: Iterable[Hit], top_k: int) -> Iterable[Hit]:
    for hit in hits:
        if hit.memory_type in UNCOUNTED_TYPES:
            yield hit
        elif top_k > 0:
            top_k -= 1
            yield hit
