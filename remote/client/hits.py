"""Map EverOS's records to hits: keep the owner's, restore session and agent ids, apply filters, keep the best."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.storable import Repair
from remote.client import wire
from remote.client.queries import Tree, needs_gateway
from remote.engine_ids import AgentNames
from store.filters import Filter, Filterable, parse
from store.types import UNCOUNTED_TYPES, Hit, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.remote")

_UNRETURNED_FIELDS = frozenset({"parent_type", "parent_id"})  # EverOS filters by them but does not return them
_MAX_RAW_BYTES = 2**20
_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """The user's ids for engine ids. `sessions` maps the engine ids of the user's own sessions to session ids.

    `deleted` are engine ids of sessions that the user deleted permanently, which EverOS cannot delete.
    """

    sessions: Mapping[str, str]
    agents: AgentNames
    deleted: Collection[str] = ()


def collect_hits(request: SearchRequest, answers: Iterable[wire.Records], owner: Owner, names: Names) -> list[Hit]:
    """Return the owner's hits that the request covers, each once, unordered.

    Records of sessions that are not in `names` are dropped, and counted in the log if they belong to other users.
    """
    session_ids = None if request.session_ids is None else {None, *request.session_ids}
    filters: Tree = request.filters or {}
    is_filtered_here = request.agent_id is not None or needs_gateway(filters)
    condition = parse(_without_unreturned(filters)) if filters and is_filtered_here else None
    best: dict[str, Hit] = {}
    dropped = 0
    for records in answers:
        hits, foreign = hits_of(records, owner, names, request.agent_id, is_bounded=request.method != "keyword")
        dropped += foreign
        for hit in hits:
            is_covered = session_ids is None or hit.session_id in session_ids
            known = best.get(hit.memory_id)
            if is_covered and _matches(condition, hit) and (known is None or hit.sort_key < known.sort_key):
                best[hit.memory_id] = hit
    if dropped:
        logger.error("EverOS: dropped %d records of other users", dropped)
    return list(best.values())


def build_result(request: SearchRequest, hits: Iterable[Hit], full_at: int | None) -> SearchResult:
    """Keep at most `top_k` hits, best first, not counting profiles and unprocessed messages.

    `full_at` is the `top_k` of the calls if one of them returned as many, else None.
    """
    best = sorted(hits, key=lambda hit: hit.sort_key)
    counted = [hit for hit in best if hit.memory_type not in UNCOUNTED_TYPES]
    excess = {hit.memory_id for hit in counted[request.top_k :]}
    chosen = tuple(hit for hit in best if hit.memory_id not in excess)
    return SearchResult(chosen, request.method, stopped_at=request.top_k if excess else full_at)


def hits_of(
    records: wire.Records, owner: Owner, names: Names, agent_id: str | None, *, is_bounded: bool
) -> tuple[list[Hit], int]:
    """Return the owner's hits in EverOS's order, and how many of the dropped records belong to other users.

    `is_bounded`: scores are between 0 and 1 already (False for keyword: BM25).
    """
    user_or_agent = names.agents.engine_id(agent_id) if agent_id else owner.remote_name
    hits: list[Hit] = []
    foreign = 0
    for record, raw in records.all():
        # EverOS separates memories by scope and by user or agent; an unprocessed message belongs to its session's user.
        is_own = record.filed_under == user_or_agent
        if isinstance(record, wire.PendingMessage):
            is_own = record.session_id in names.sessions or record.session_id in names.deleted
        if not is_own or (record.app_id, record.project_id) != (owner.app_id, owner.project_id):
            foreign += 1
        elif record.session_id is None or record.session_id in names.sessions:
            hits.append(_hit(record, raw, len(hits) + 1, names, is_bounded=is_bounded))
    return hits, foreign


def _hit(record: wire.AnyRecord, sent: _Json, rank: int, names: Names, *, is_bounded: bool) -> Hit:
    session_id = names.sessions[record.session_id] if record.session_id is not None else None
    raw = {**sent}
    score = record.score
    if score is not None:  # between 0 and 1 in the same order, comparable over several calls of one method
        score = max(score, 0.0)
        score = min(score, 1.0) if is_bounded else score / (1.0 + score)
    if session_id is not None and session_id != record.session_id:
        raw["session_id"] = session_id
        prefix = f"m_{record.session_id}_"  # the start of an unprocessed message's id
        if raw["id"].startswith(prefix):
            raw["id"] = f"m_{session_id}_{raw['id'].removeprefix(prefix)}"
    for key in ("id", "agent_id", "sender_id"):
        if isinstance(named := raw.get(key), str):
            raw[key] = names.agents.restore(named)
    if isinstance(senders := raw.get("sender_ids"), list):
        raw["sender_ids"] = [names.agents.restore(item) if isinstance(item, str) else item for item in senders]
    repair = Repair()
    return Hit(
        memory_id=raw["id"],
        memory_type=record.memory_type,
        session_id=session_id,
        text=record.text,
        score=score,
        created_at_ms=repair.ms("created_at_ms", record.created_at_ms),
        raw=repair.json("raw", raw, max_bytes=_MAX_RAW_BYTES),
        legs={"remote": {"score": record.score, "rank": rank}},
    )


def _without_unreturned(tree: Tree) -> _Json:
    return {
        key: [_without_unreturned(part) for part in value] if key in {"AND", "OR"} else value
        for key, value in tree.items()
        if key not in _UNRETURNED_FIELDS
    }


def _matches(condition: Filter | None, hit: Hit) -> bool:
    """Return True if a hit passes the filters on fields that EverOS returns. Profiles always pass."""
    if condition is None or hit.memory_type == "profile":
        return True
    is_message = hit.memory_type == "unprocessed_message"
    kind = "Conversation" if is_message else str(hit.raw.get("type", hit.memory_type))
    senders = hit.raw.get("sender_ids") or [hit.raw.get("sender_id") or hit.raw.get("agent_id")]
    views = (Filterable(hit.session_id, hit.created_at_ms, str(sender), kind) for sender in senders)
    return any(map(condition.matches, views))
