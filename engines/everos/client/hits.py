"""EverOS's records as hits of one owner: checked, named as the caller knows them, the rest dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from core.json_data import without_base64
from engines.everos.client import wire
from store.external.engine_ids import AgentNames
from store.types import Hit, MemoryType, Owner

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Names:
    """What the caller calls ids of the engine. `sessions` holds the caller's own only: engine id → session id, and
    `given_up` the engine ids of those that the caller deleted for good, which EverOS cannot."""

    sessions: Mapping[str, str]
    agents: AgentNames
    given_up: Collection[str] = ()


class _Found(NamedTuple):
    """A checked record before its names are translated; `whose` is the user or agent that EverOS filed it under."""

    record: wire.Record
    memory_type: MemoryType
    whose: str | None
    text: str
    raw: _Json


def session_ids_of(records: wire.Records) -> set[str]:
    """Every engine session id that the records name."""
    named: Iterable[wire.Record] = chain(records.episodes, records.agent_cases, records.unprocessed_messages)
    return {record.session_id for record in named if record.session_id}


def hits_of(
    records: wire.Records, owner: Owner, names: Names, agent_id: str | None, *, is_bounded: bool
) -> tuple[list[Hit], int]:
    """The owner's hits in EverOS's order, and how many of the records dropped are filed under somebody else.

    `is_bounded` says whether scores lie in 0..1 already (not so for keyword: BM25).
    """
    whose = names.agents.engine_id(agent_id) if agent_id else owner.user_id
    found = list(_found(records))
    filed = [item for item in found if _is_filed_under(item, owner, whose, names)]
    own = [item for item in filed if item.record.session_id is None or item.record.session_id in names.sessions]
    return [_hit(item, rank, names, is_bounded=is_bounded) for rank, item in enumerate(own, 1)], len(found) - len(filed)


def _found(records: wire.Records) -> Iterator[_Found]:
    came = records.as_it_came
    for episode, raw in zip(records.episodes, came.get("episodes", ()), strict=True):
        yield _Found(episode, "episode", episode.user_id, episode.episode, raw)
    for case, raw in zip(records.agent_cases, came.get("agent_cases", ()), strict=True):
        yield _Found(case, "agent_case", case.agent_id, f"{case.task_intent}\n{case.approach}", raw)
    for skill, raw in zip(records.agent_skills, came.get("agent_skills", ()), strict=True):
        yield _Found(skill, "agent_skill", skill.agent_id, skill.content, raw)
    for profile, raw in zip(records.profiles, came.get("profiles", ()), strict=True):
        yield _Found(profile, "profile", profile.user_id, profile.text, raw)
    for message, raw in zip(records.unprocessed_messages, came.get("unprocessed_messages", ()), strict=True):
        yield _Found(message, "unprocessed_message", None, message.text, raw)


def _is_filed_under(found: _Found, owner: Owner, whose: str, names: Names) -> bool:
    """EverOS files by user or agent and by scope; a raw message belongs to whoever holds its session. Of the owner's it
    also finds what lies in a session that was deleted, or moved to another id: it has no deletion."""
    record = found.record
    if record.app_id != owner.app_id or record.project_id != owner.project_id:
        return False
    if found.memory_type == "unprocessed_message":
        return record.session_id in names.sessions or record.session_id in names.given_up
    return found.whose == whose


def _hit(found: _Found, rank: int, names: Names, *, is_bounded: bool) -> Hit:
    record = found.record
    session_id = names.sessions[record.session_id] if record.session_id is not None else None
    # Raw messages alone hold the files that came with them.
    bare: _Json = without_base64(found.raw) if found.memory_type == "unprocessed_message" else found.raw
    raw = _renamed({**bare}, record.session_id, session_id, names.agents)
    return Hit(
        memory_id=raw["id"],
        memory_type=found.memory_type,
        session_id=session_id,
        text=found.text,
        score=None if record.score is None else _in_unit(record.score, is_bounded=is_bounded),
        created_at_ms=record.created_at_ms,
        raw=raw,
        legs={"upstream": {"score": record.score, "rank": rank}},
    )


def _in_unit(score: float, *, is_bounded: bool) -> float:
    """0..1 in the same order; scores of one method stay comparable over several calls."""
    score = max(score, 0.0)
    return min(score, 1.0) if is_bounded else score / (1.0 + score)


def _renamed(raw: _Json, engine_session_id: str | None, session_id: str | None, agents: AgentNames) -> _Json:
    if session_id is not None and session_id != engine_session_id:
        raw["session_id"] = session_id
        prefix = f"m_{engine_session_id}_"  # how EverOS names a raw message
        raw["id"] = raw["id"].replace(prefix, f"m_{session_id}_", 1) if raw["id"].startswith(prefix) else raw["id"]
    for key in ("id", "agent_id", "sender_id"):
        if isinstance(named := raw.get(key), str) and agents.suffix in named:
            raw[key] = agents.restore(named)
    if isinstance(senders := raw.get("sender_ids"), list):
        raw["sender_ids"] = [agents.restore(item) if isinstance(item, str) else item for item in senders]
    return raw
