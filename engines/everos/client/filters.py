"""Split checked filters into the part that EverOS can apply and the part that the gateway applies to its hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core.times import as_ms, from_ms
from store.filters import parse
from store.types import Hit

_LOCAL_FIELDS = frozenset({"type"})
_NOT_RETURNED = frozenset({"parent_type", "parent_id"})  # EverOS filters by them but does not return them

Tree = Mapping[str, Any]


def session_ids_in(tree: Tree) -> set[str]:
    """Return every session id in the filters."""
    found: set[str] = set()
    for key, value in tree.items():
        if key in {"AND", "OR"}:
            found.update(*(session_ids_in(part) for part in value))
        elif key == "session_id":
            operands = value.values() if isinstance(value, Mapping) else [value]
            for operand in operands:
                found.update(operand if isinstance(operand, list | tuple) else [operand])
    return found


def for_upstream(tree: Tree, sessions: Mapping[str, str]) -> dict[str, Any]:
    """Return the filters that EverOS can apply, never narrower than the whole, with engine session ids.

    An OR with a branch that EverOS cannot apply is left out.
    """
    translated: dict[str, Any] = {}
    for key, value in tree.items():
        if key in {"AND", "OR"}:
            parts = [for_upstream(part, sessions) for part in value]
            if key == "AND" or all(parts):
                translated[key] = [part for part in parts if part]
        elif key == "session_id":
            translated[key] = _renamed(value, sessions)
        elif key == "timestamp":
            translated[key] = _as_iso(value)
        elif key not in _LOCAL_FIELDS:
            translated[key] = value
    return {key: value for key, value in translated.items() if value != []}


def _as_iso(value: Any) -> Any:
    """Return the time as ISO 8601 with its zone.

    EverOS reads milliseconds before September 2001 as seconds, and text without a zone as local time.
    """
    if isinstance(value, Mapping):
        return {operator: _as_iso(operand) for operator, operand in value.items()}
    if isinstance(value, list | tuple):
        return [_as_iso(item) for item in value]
    moment = datetime.fromisoformat(value) if isinstance(value, str) else from_ms(as_ms(int(value)))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _renamed(value: Any, sessions: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {operator: _renamed(operand, sessions) for operator, operand in value.items()}
    if isinstance(value, list | tuple):
        return [sessions.get(item, item) for item in value]
    return sessions.get(value, value)


def needs_us(tree: Tree) -> bool:
    """Return True if EverOS cannot apply all of the filters."""
    return any(
        key in _LOCAL_FIELDS or (key in {"AND", "OR"} and any(needs_us(part) for part in value))
        for key, value in tree.items()
    )


def matches(tree: Tree, hit: Hit) -> bool:
    """Return True if a hit passes the filters on fields that EverOS returns. Profiles always pass."""
    if hit.memory_type == "profile":
        return True
    condition = parse(_without_unreturned(tree))
    return any(condition.matches(_FilterView(hit, sender)) for sender in _senders(hit))


def _without_unreturned(tree: Tree) -> dict[str, Any]:
    return {
        key: [_without_unreturned(part) for part in value] if key in {"AND", "OR"} else value
        for key, value in tree.items()
        if key not in _NOT_RETURNED
    }


@dataclass(frozen=True, slots=True)
class _FilterView:
    """A hit with the field names of the filter language, for one of its senders."""

    hit: Hit
    sender_id: str
    parent_type: str | None = None
    parent_id: str | None = None

    @property
    def session_id(self) -> str | None:
        return self.hit.session_id

    @property
    def timestamp(self) -> int:
        return self.hit.created_at_ms

    @property
    def type(self) -> str:
        if self.hit.memory_type == "unprocessed_message":
            return "Conversation"
        return str(self.hit.raw.get("type", self.hit.memory_type))


def _senders(hit: Hit) -> list[str]:
    senders = hit.raw.get("sender_ids") or [hit.raw.get("sender_id") or hit.raw.get("agent_id")]
    return [str(sender) for sender in senders]
