"""The filter language of search: parsed once into typed conditions, applied to memories, never handed to a database.

    {"session_id": "chat:c1", "AND": [{"timestamp": {"gte": 1780000000000}}, {"OR": [{"sender_id": "u1"}, …]}]}

The fields of one node and its `AND` hold together; a plain value means equal; `AND: []` is no condition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from core.errors import InvalidInput
from core.times import as_ms, to_ms

MAX_DEPTH: Final = 8
MAX_NODES: Final = 200
MAX_LIST: Final = 1000
MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999: beyond it no clock of ours and no upstream can go."""
_MAX_TEXT: Final = 512

_ALL = ("eq", "ne", "gt", "gte", "lt", "lte", "in")
OPERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "session_id": _ALL,
    "parent_type": _ALL,
    "parent_id": _ALL,
    "timestamp": _ALL,
    "sender_id": ("eq", "in"),
    "type": ("eq", "ne", "in"),
}
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "in": lambda value, allowed: value in allowed,
}


class Filterable(Protocol):
    """What conditions speak of; `timestamp` in Unix milliseconds, `type` "Conversation" of episodes."""

    @property
    def session_id(self) -> str | None: ...
    @property
    def parent_type(self) -> str | None: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def sender_id(self) -> str: ...
    @property
    def type(self) -> str: ...


class Filter(Protocol):
    def matches(self, memory: Filterable) -> bool: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """One field compared with a value (with `in`: a frozenset)."""

    field: str
    operator: str
    value: Any

    def matches(self, memory: Filterable) -> bool:
        found = getattr(memory, self.field)
        return found is not None and _COMPARE[self.operator](found, self.value)


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Filter, ...]

    def matches(self, memory: Filterable) -> bool:
        return all(part.matches(memory) for part in self.parts)


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Filter, ...]

    def matches(self, memory: Filterable) -> bool:
        return any(part.matches(memory) for part in self.parts)


def parse(tree: Mapping[str, Any] | None) -> Filter:
    """The caller's tree as conditions; None and {} match everything. Errors: `InvalidInput` naming the node."""
    return _Parser().node(tree or {}, "filters", 1)


class _Parser:
    """Counts while it descends: what is too deep or too large is refused before it is built."""

    def __init__(self) -> None:
        self._nodes = 0

    def node(self, tree: Any, path: str, depth: int) -> Filter:
        if not isinstance(tree, Mapping):
            raise InvalidInput.of_field(path, "must be an object of conditions")
        if depth > MAX_DEPTH:
            raise InvalidInput.of_field("filters", f"must nest at most {MAX_DEPTH} levels deep")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidInput.of_field("filters", f"must hold at most {MAX_NODES} objects of conditions")
        parts: list[Filter] = []
        for name, value in tree.items():
            if name in {"AND", "OR"}:
                parts += self._group(name, value, f"{path}.{name}", depth)
            else:
                parts += self._field(str(name), value, path)
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _group(self, name: str, value: Any, path: str, depth: int) -> list[Filter]:
        if not isinstance(value, list):
            raise InvalidInput.of_field(path, "must be a list of conditions")
        parts = [self.node(item, f"{path}.{number}", depth + 1) for number, item in enumerate(value)]
        if not parts:
            return []
        return [AllOf(tuple(parts)) if name == "AND" else AnyOf(tuple(parts))]

    def _field(self, name: str, value: Any, path: str) -> list[Filter]:
        if name not in OPERATORS:
            allowed = ", ".join([*OPERATORS, "AND", "OR"])
            raise InvalidInput.of_field(path, f"{name[:64]!r} is not a field of filters; allowed are {allowed}")
        path = f"{path}.{name}"
        if not isinstance(value, Mapping):
            return [Condition(name, "eq", _value(name, value, path))]
        if not value:
            raise InvalidInput.of_field(path, "must name an operator")
        return [self._comparison(name, str(op), operand, path) for op, operand in value.items()]

    def _comparison(self, name: str, op: str, operand: Any, path: str) -> Condition:
        if op not in OPERATORS[name]:
            raise InvalidInput.of_field(path, f"{op[:64]!r} is no operator; allowed are {', '.join(OPERATORS[name])}")
        if op != "in":
            return Condition(name, op, _value(name, operand, path))
        if not isinstance(operand, list) or not 1 <= len(operand) <= MAX_LIST:
            raise InvalidInput.of_field(path, f"'in' must be a list of 1 to {MAX_LIST} values")
        return Condition(name, op, frozenset(_value(name, item, path) for item in operand))


def _value(name: str, value: Any, path: str) -> str | int:
    if name == "timestamp":
        return _milliseconds(value, path)
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise InvalidInput.of_field(path, f"must be text of at most {_MAX_TEXT} characters")
    return value


def _milliseconds(value: Any, path: str) -> int:
    """Unix milliseconds, or an ISO 8601 time (UTC where it names no zone)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON knows no integers: 8.0 is the same number as 8
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_MS:
            raise InvalidInput.of_field(path, f"must lie between 0 and {MAX_MS}")
        return as_ms(value)
    if not isinstance(value, str):
        raise InvalidInput.of_field(path, "must be Unix milliseconds or an ISO 8601 time")
    try:
        moment = datetime.fromisoformat(value)
        return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except ValueError:
        raise InvalidInput.of_field(path, "must be Unix milliseconds or an ISO 8601 time") from None
