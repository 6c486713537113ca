"""Read the memories that a search found, in plain SQL, and render them as the record that answers carry as `raw`."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from django.db import connection

from core import readable
from core.persistence import sql
from store import as_of, cover
from store.models import Memory, owner_values
from store.types import MemoryType, Owner, Wording

_ROWS = """
    SELECT CAST(m.payload AS text), CAST(m.sources AS text), CAST(m.supersedes AS text), m.id, m.memory_id,
        s.session_id, m.chunk_index, m.memory_type, m.category, m.agent_id, m.sender_id, m.speaker, m.text,
        m.text <> m.original_text, m.created_at_ms, m.origin{vector}
    FROM store_memory m LEFT JOIN store_session s ON s.id = m.session_id {embedding}
    WHERE {plus}m.user_id = %s AND m.app_id = %s AND m.project_id = %s AND {shown}
        AND NOT {left_out} AND {which}
"""
_PLUS = {"sqlite": "+", "postgresql": ""}
"""Keeps SQLite from scanning the index by user or origin to find a few memories by their ids."""
_EMBEDDING = "LEFT JOIN store_embedding e ON e.memory_id = m.id AND e.space_id = %s"
_IS_LIVE = "m.state = 'live' AND COALESCE(s.state, 'live') = 'live'"
_REMAINS = "m.state IN ('live', 'superseded') AND COALESCE(s.state, 'live') = 'live'"
_IS_NOT_PURGED = "COALESCE(s.state, 'live') <> 'purged'"
_OVERRIDDEN = "{plus}m.origin = '{remote}' AND m.text <> m.original_text AND m.memory_id IN ({slots})"


class Row(NamedTuple):
    """A memory and, if requested, its vector: half-precision floats, empty or None for none.

    `is_edited`: see `store.models.Memory.is_edited`.
    """

    payload: dict[str, Any]
    sources: list[str]
    supersedes: list[str]
    pk: int
    memory_id: str
    session_id: str | None
    chunk_index: int | None
    memory_type: MemoryType
    category: str
    agent_id: str
    sender_id: str
    speaker: str
    text: str
    is_edited: bool
    created_at_ms: int
    origin: str
    vector: bytes | None = None


def rows(
    owner: Owner,
    pks: Collection[int],
    *,
    with_hidden: bool = False,
    space: int | None = None,
    at: datetime | None = None,
) -> dict[int, Row]:
    """Return the owner's live memories by row id, optionally hidden ones too, with their vectors of a space.

    `at`: also superseded ones, in the words of that time. One SQL statement, two with `at`, none for an empty
    collection.
    """
    if not pks:
        return {}
    found = _fetch(owner, f"m.id IN ({sql.slots(pks)})", pks, with_hidden=with_hidden, space=space, at=at)
    former = as_of.wordings(owner, [row.memory_id for row in found.values()], at) if at else {}
    return {pk: _reworded(row, former.get(row.memory_id)) for pk, row in found.items()} if former else found


def _reworded(row: Row, wording: Wording | None) -> Row:
    return row if wording is None else row._replace(text=wording.text, category=wording.category, is_edited=True)


def rows_and_overridden(
    owner: Owner, pks: Collection[int], memory_ids: Collection[str], *, with_hidden: bool = False
) -> dict[int, Row]:
    """Return memories by row id, and those of the given memories of the remote that have an override.

    One SQL statement, none if both collections are empty.
    """
    if not pks and not memory_ids:
        return {}
    overridden = _OVERRIDDEN.format(
        plus=_PLUS[connection.vendor], remote=Memory.Origin.REMOTE, slots=sql.slots(memory_ids)
    )
    which = f"(m.id IN ({sql.slots(pks)}) OR ({overridden}))"
    return _fetch(owner, which, [*pks, *memory_ids], with_hidden=with_hidden)


def _fetch(
    owner: Owner,
    which: str,
    values: Collection[int | str],
    *,
    with_hidden: bool,
    space: int | None = None,
    at: datetime | None = None,
) -> dict[int, Row]:
    statement = _ROWS.format(
        vector="" if space is None else ", e.vector",
        embedding="" if space is None else _EMBEDDING,
        plus=_PLUS[connection.vendor],
        which=which,
        shown=_REMAINS if at else _IS_NOT_PURGED if with_hidden else _IS_LIVE,
        left_out=cover.is_left_out_sql("m", is_alone=at is not None),
    )
    found = sql.rows(statement, [*([] if space is None else [space]), *owner_values(owner), *values])
    return {row[3]: Row(*_json_of(*row[:5]), *row[3:]) for row in found}


def _json_of(payload: str, sources: str, supersedes: str, pk: int, memory_id: str) -> tuple[Any, ...]:
    """Return the JSON columns of a row, up to what is readable."""
    place = f"memory {memory_id} (row {pk})"
    return (
        readable.read_json(payload, dict, place),
        readable.read_strings(sources, place),
        readable.read_strings(supersedes, place),
    )


RECORD_TYPE = "Conversation"
"""The type of every episode at the remote, also of documents; `filters.type` compares it."""
_CALL_FIELDS = ("sender_name", "tool_calls", "tool_call_id")
_PASSAGE_FIELDS = ("filename", "title", "page", "heading", "position", "mime_type", "resource_id")
_PLACE_FIELDS = ("box", "second", "until_second")


def raw_of(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
    """Return a memory in the remote's format, with the position of passages and the sources of derived memories."""
    shared: dict[str, Any] = {
        "id": row.memory_id,
        "app_id": owner.app_id,
        "project_id": owner.project_id,
        "session_id": row.session_id,
        "timestamp": _timestamp(row.created_at_ms),
    }
    if row.chunk_index is not None:
        shared |= {name: row.payload.get(name) for name in _PASSAGE_FIELDS}
        # Of recognized text and of speech.
        shared |= {name: row.payload[name] for name in _PLACE_FIELDS if name in row.payload}
    if row.memory_type == "unprocessed_message":
        return shared | _message(row)
    shared |= {name: row.payload[name] for name in _CALL_FIELDS if name in row.payload}
    if row.sources:
        shared |= {"sources": row.sources, "supersedes": row.supersedes}
    return shared | _RENDERERS.get(row.memory_type, _episode)(owner, row, score)


def _episode(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
    return {
        "user_id": owner.user_id,
        "sender_ids": [row.sender_id] if row.sender_id else [],
        # Not summarized by a model: the text itself.
        "summary": row.text,
        "subject": _subject(row),
        "episode": row.text,
        "type": RECORD_TYPE,
        "category": row.category,
        "score": score,
        "atomic_facts": [],
    }


def _case(_: Owner, row: Row, score: float | None) -> dict[str, Any]:
    task_intent, *approach = row.text.split("\n", 1)
    return {
        "agent_id": row.agent_id,
        "task_intent": task_intent,
        "approach": "".join(approach),
        "quality_score": row.payload.get("quality_score"),
        "key_insight": _unless_edited(row, "key_insight", None),
        "score": score,
    }


def _skill(_: Owner, row: Row, score: float | None) -> dict[str, Any]:
    return {
        "agent_id": row.agent_id,
        "name": row.payload.get("name"),
        "description": _unless_edited(row, "description", ""),
        "content": row.text,
        "confidence": None,
        "maturity_score": None,
        "source_case_ids": [],
        "score": score,
    }


def _profile(owner: Owner, row: Row, score: float | None) -> dict[str, Any]:
    return {
        "user_id": owner.user_id,
        "profile_data": {
            "summary": row.text,
            "explicit_info": _unless_edited(row, "explicit_info", []),
            "implicit_traits": _unless_edited(row, "implicit_traits", []),
            "profile_timestamp_ms": row.created_at_ms,
        },
        "score": score,
    }


def _unless_edited(row: Row, name: str, default: Any) -> Any:
    """Return a field that a model wrote; `default` if the user edited the memory: it may repeat the old text."""
    return default if row.is_edited else row.payload.get(name, default)


_RENDERERS: Final[Mapping[str, Callable[[Owner, Row, float | None], dict[str, Any]]]] = {
    "agent_case": _case,
    "agent_skill": _skill,
    "profile": _profile,
}


def _message(row: Row) -> dict[str, Any]:
    return {
        "sender_id": row.sender_id,
        "sender_name": row.payload.get("sender_name"),
        "role": row.payload.get("role", "user"),
        "content": row.text,
        "tool_calls": row.payload.get("tool_calls"),
        "tool_call_id": row.payload.get("tool_call_id"),
    }


def _subject(row: Row) -> str:
    """Return a document's name; for a turn, its speaker and day."""
    if row.chunk_index is not None:
        return str(row.payload.get("filename") or row.payload.get("title") or "")
    day = _timestamp(row.created_at_ms)[:10]
    return f"{row.speaker}, {day}" if row.speaker else day


@lru_cache(maxsize=1024)
def _timestamp(created_at_ms: int) -> str:
    return readable.moment(created_at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
