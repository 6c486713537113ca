"""EverOS's records as hits of one owner: checked, named as the caller knows them, the rest dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from engine.port import Hit, MemoryType, Owner
from engine.upstream import wire
from engine.upstream.names import AgentNames
from memory_gateway.core.json_data import without_base64

_Json = dict[str, Any]
_Record = TypeVar("_Record", bound=wire.Record)


@dataclass(frozen=True, slots=True)
class Names:
    """What the caller calls ids of the engine. `sessions` holds the caller's own only: engine id → session id, and
    `given_up` the engine ids of those that the caller deleted for good, which EverOS cannot."""

    sessions: Mapping[str, str]
    agents: AgentNames
    given_up: Collection[str] = ()


class _Found(NamedTuple):
    """A checked record before its names are translated; `whose` is the user or agent that EverOS filed it under."""

    memory_id: str
    memory_type: MemoryType
    whose: str | None
    scope: tuple[str, str]
    session_id: str | None
    text: str
    score: float | None
    created_at_ms: int
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
    own = [item for item in found if _is_own(item, owner, whose, names)]
    strangers = sum(not _is_filed_under(item, owner, whose, names) for item in found)
    return [_hit(item, rank, names, is_bounded=is_bounded) for rank, item in enumerate(own, 1)], strangers


def _found(records: wire.Records) -> Iterator[_Found]:
    for episode, raw in _pairs(records.episodes, records, "episodes"):
        yield _record(episode, "episode", episode.user_id, episode.episode, raw)
    for case, raw in _pairs(records.agent_cases, records, "agent_cases"):
        yield _record(case, "agent_case", case.agent_id, f"{case.task_intent}\n{case.approach}", raw)
    for skill, raw in _pairs(records.agent_skills, records, "agent_skills"):
        yield _record(skill, "agent_skill", skill.agent_id, skill.content, raw)
    for profile, raw in _pairs(records.profiles, records, "profiles"):
        yield _record(profile, "profile", profile.user_id, profile.text, raw)
    for message, raw in _pairs(records.unprocessed_messages, records, "unprocessed_messages"):
        yield _record(message, "unprocessed_message", None, message.text, raw)


def _pairs(checked: list[_Record], records: wire.Records, name: str) -> Iterator[tuple[_Record, _Json]]:
    return zip(checked, records.as_it_came(name), strict=True)


def _record(record: wire.Record, memory_type: MemoryType, whose: str | None, text: str, raw: _Json) -> _Found:
    scope = (record.app_id, record.project_id)
    return _Found(
        record.id, memory_type, whose, scope, record.session_id, text, record.score, record.created_at_ms, raw
    )


def _is_own(found: _Found, owner: Owner, whose: str, names: Names) -> bool:
    has_session = found.session_id is not None or found.memory_type == "unprocessed_message"
    return _is_filed_under(found, owner, whose, names) and (not has_session or found.session_id in names.sessions)


def _is_filed_under(found: _Found, owner: Owner, whose: str, names: Names) -> bool:
    """EverOS files by user or agent and by scope; a raw message belongs to whoever holds its session. Of the owner's it
    also finds what lies in a session that was deleted, or moved to another id: it has no deletion."""
    if found.scope != (owner.app_id, owner.project_id):
        return False
    if found.memory_type == "unprocessed_message":
        return found.session_id in names.sessions or found.session_id in names.given_up
    return found.whose == whose


def _hit(found: _Found, rank: int, names: Names, *, is_bounded: bool) -> Hit:
    session_id = names.sessions[found.session_id] if found.session_id is not None else None
    raw = _renamed({**_bare(found)}, found.session_id, session_id, names.agents)
    return Hit(
        memory_id=raw["id"],
        memory_type=found.memory_type,
        session_id=session_id,
        text=found.text,
        score=None if found.score is None else _in_unit(found.score, is_bounded=is_bounded),
        created_at_ms=found.created_at_ms,
        raw=raw,
        legs={"upstream": {"score": found.score, "rank": rank}},
    )


def _bare(found: _Found) -> _Json:
    """Raw messages alone hold the files that came with them."""
    bare: _Json = without_base64(found.raw) if found.memory_type == "unprocessed_message" else found.raw
    return bare


def _in_unit(score: float, *, is_bounded: bool) -> float:
    """0..1 in the same order; scores of one method stay comparable over several calls."""
    score = max(score, 0.0)
    return min(score, 1.0) if is_bounded else score / (1.0 + score)


def _renamed(raw: _Json, engine_session_id: str | None, session_id: str | None, agents: AgentNames) -> _Json:
    if session_id is not None and engine_session_id is not None:
        raw["session_id"] = session_id
        prefix = f"m_{engine_session_id}_"  # how EverOS names a raw message
        raw["id"] = raw["id"].replace(prefix, f"m_{session_id}_", 1) if raw["id"].startswith(prefix) else raw["id"]
    for key in ("id", "agent_id", "sender_id"):
        if isinstance(named := raw.get(key), str) and agents.suffix in named:
            raw[key] = agents.restore(named)
    if isinstance(senders := raw.get("sender_ids"), list):
        raw["sender_ids"] = [agents.restore(item) if isinstance(item, str) else item for item in senders]
    return raw
