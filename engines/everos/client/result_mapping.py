"""Map EverOS's records to the result of one request: the owner's, those that pass the filters, the best of them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from engines.everos.client import wire
from engines.everos.client.filters import matches, needs_us
from engines.everos.client.hits import Names, hits_of
from store.types import UNCOUNTED_TYPES, Hit, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.upstream")


def collect_hits(request: SearchRequest, answers: Iterable[wire.Records], owner: Owner, names: Names) -> list[Hit]:
    """Return the owner's hits that the request covers, each once, unordered.

    Records of unnamed sessions are dropped, and logged if they belong to other users.
    """
    session_ids = None if request.session_ids is None else frozenset(request.session_ids)
    filters: Mapping[str, Any] = request.filters or {}
    narrowing = filters if request.agent_id is not None or needs_us(filters) else {}
    best: dict[str, Hit] = {}
    dropped = 0
    for records in answers:
        hits, foreign = hits_of(records, owner, names, request.agent_id, is_bounded=request.method != "keyword")
        dropped += foreign
        for hit in hits:
            known = best.get(hit.memory_id)
            if _passes(hit, session_ids, narrowing) and (known is None or hit.sort_key < known.sort_key):
                best[hit.memory_id] = hit
    if dropped:
        logger.error("upstream: dropped %d records that are not the caller's", dropped)
    return list(best.values())


def build_result(request: SearchRequest, hits: Iterable[Hit], full_at: int | None) -> SearchResult:
    """Keep at most `top_k` hits, best first, not counting profiles and unprocessed messages.

    `full_at` is the `top_k` of the calls if one of them returned as many, else None.
    """
    best = sorted(hits, key=lambda hit: hit.sort_key)
    kept = tuple(_cut(best, request.top_k))
    return SearchResult(kept, request.method, stopped_at=request.top_k if len(kept) < len(best) else full_at)


def is_full(records: wire.Records, top_k: int) -> bool:
    """Return True if an answer holds as many records as requested, so there may be more."""
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
