"""The filter language of search: parsed into typed conditions that are evaluated in Python, never in a database.

    {"session_id": "chat:c1", "AND": [{"timestamp": {"gte": 1780000000000}}, {"OR": [{"sender_id": "u1"}, …]}]}

All fields of one node and its `AND` must match; a plain value means equal; `AND: []` and `OR: []` are no condition.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from core.errors import InvalidInput
from core.messages import Translatable as _
from core.times import as_ms, from_ms, to_ms
from store.text import times

MAX_DEPTH: Final = 8
MAX_NODES: Final = 200
MAX_LIST: Final = 1000
MAX_MS: Final = 253_402_300_799_999
"""The end of the year 9999, the latest time that Python and the remote represent (Unix milliseconds)."""
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


class Filterable(NamedTuple):
    """The fields of a memory that filters compare. `timestamp` is Unix milliseconds.

    `type` is "Conversation" for episodes. The parent is the resource, or else the session.
    """

    session_id: str | None
    timestamp: int
    sender_id: str
    type: str
    parent_type: str | None = None
    parent_id: str | None = None


class Filter(Protocol):
    def matches(self, memory: Filterable) -> bool: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of one field with a value, for `in` a frozenset of values."""

    field: str
    operator: str
    value: Any

    def matches(self, memory: Filterable) -> bool:
        found = getattr(memory, self.field)
        return found is not None and _COMPARE[self.operator](found, self.value)


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions that must all match, or any of them: `must` is `all` or `any`."""

    parts: tuple[Filter, ...]
    must: Callable[[Iterable[bool]], bool] = all

    def matches(self, memory: Filterable) -> bool:
        return self.must(part.matches(memory) for part in self.parts)


def with_moments(tree: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """Return a filter tree with moments for days and words of time ("2026-06-01", "yesterday"), as of `now`.

    Days begin and end at midnight where `now` is: an upper bound includes the day. Times without a zone are of that
    zone, too. Other values stay, for `parse` to refuse.
    """
    found: dict[str, Any] = {}
    added: list[Mapping[str, Any]] = []
    for name, value in tree.items():
        if name == "timestamp":
            conditions = value if isinstance(value, Mapping) else {"eq": value}
            added += [_moment_condition(str(op), operand, now) for op, operand in conditions.items()]
            found |= {} if conditions else {name: value}
        elif name in {"AND", "OR"} and isinstance(value, list):
            found[name] = [with_moments(one, now) if isinstance(one, Mapping) else one for one in value]
        else:
            found[name] = value
    also = found.get("AND", [])
    if not added or not isinstance(also, list):
        return found if not added else tree
    if len(added) == 1 and "timestamp" in added[0]:
        return {**found, **added[0]}
    return {**found, "AND": [*also, *added]}


def _moment_condition(op: str, operand: Any, now: datetime) -> Mapping[str, Any]:
    """Return a condition on the time with moments in the place of days."""
    if op == "in" and isinstance(operand, list):
        if not any(isinstance(one, str) and times.days_of(one, now) for one in operand):
            return {"timestamp": {op: operand}}
        return {"OR": [_moment_condition("eq", one, now) for one in operand]}
    if not isinstance(operand, str):
        return {"timestamp": {op: operand}}
    if (days := times.days_of(operand, now)) is None:
        return {"timestamp": {op: _with_zone(operand, now)}}
    # As text: small numbers would be taken as seconds.
    first, end = (from_ms(min(bound, MAX_MS)).isoformat() for bound in times.span_of(days, now))
    if op == "ne":
        return {"OR": [{"timestamp": {"lt": first}}, {"timestamp": {"gte": end}}]}
    bounds = {"eq": {"gte": first, "lt": end}, "gt": {"gte": end}, "gte": {"gte": first}, "lt": {"lt": first}}
    return {"timestamp": bounds.get(op) or ({"lt": end} if op == "lte" else {op: operand})}


def _with_zone(written: str, now: datetime) -> str:
    """Return an ISO 8601 time with the zone of `now` if it has none; any other text unchanged."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    return written if moment.tzinfo else moment.replace(tzinfo=now.tzinfo).isoformat()


def parse(tree: Mapping[str, Any] | None) -> Filter:
    """Return the conditions of a filter tree; None and {} match everything. Raises: `InvalidInput` naming the node."""
    return _Parser().node(tree or {}, "filters", 1)


class _Parser:
    """Counts levels and nodes while it descends, so a tree that is too deep or too large is refused early."""

    def __init__(self) -> None:
        self._nodes = 0

    def node(self, tree: Any, path: str, depth: int) -> Filter:
        if not isinstance(tree, Mapping):
            raise InvalidInput.of_field(path, _("must be an object of conditions"))
        if depth > MAX_DEPTH:
            raise InvalidInput.of_field("filters", _("must nest at most %(number)s levels deep", number=MAX_DEPTH))
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise InvalidInput.of_field(
                "filters", _("must have at most %(number)s objects of conditions", number=MAX_NODES)
            )
        parts: list[Filter] = []
        for name, value in tree.items():
            if name in {"AND", "OR"}:
                parts += self._group(name, value, f"{path}.{name}", depth)
            else:
                parts += self._field(str(name), value, path)
        return parts[0] if len(parts) == 1 else Group(tuple(parts))

    def _group(self, name: str, value: Any, path: str, depth: int) -> list[Filter]:
        if not isinstance(value, list):
            raise InvalidInput.of_field(path, _("must be a list of conditions"))
        parts = [self.node(item, f"{path}.{number}", depth + 1) for number, item in enumerate(value)]
        return [Group(tuple(parts), all if name == "AND" else any)] if parts else []

    def _field(self, name: str, value: Any, path: str) -> list[Filter]:
        if name not in OPERATORS:
            allowed = ", ".join([*OPERATORS, "AND", "OR"])
            raise InvalidInput.of_field(
                path,
                _("%(name)s is not a field of filters; allowed are %(allowed)s", name=repr(name[:64]), allowed=allowed),
            )
        path = f"{path}.{name}"
        if not isinstance(value, Mapping):
            return [Condition(name, "eq", _value(name, value, path))]
        if not value:
            raise InvalidInput.of_field(path, _("must name an operator"))
        return [self._comparison(name, str(op), operand, path) for op, operand in value.items()]

    def _comparison(self, name: str, op: str, operand: Any, path: str) -> Condition:
        if op not in OPERATORS[name]:
            raise InvalidInput.of_field(
                path,
                _(
                    "%(op)s is not an operator; allowed are %(operators)s",
                    op=repr(op[:64]),
                    operators=", ".join(OPERATORS[name]),
                ),
            )
        if op != "in":
            return Condition(name, op, _value(name, operand, path))
        if not isinstance(operand, list) or not 1 <= len(operand) <= MAX_LIST:
            raise InvalidInput.of_field(path, _("'in' must be a list of 1 to %(number)s values", number=MAX_LIST))
        return Condition(name, op, frozenset(_value(name, item, path) for item in operand))


def _value(name: str, value: Any, path: str) -> str | int:
    if name == "timestamp":
        return _milliseconds(value, path)
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise InvalidInput.of_field(path, _("must be text of at most %(number)s characters", number=_MAX_TEXT))
    return value


def _milliseconds(value: Any, path: str) -> int:
    """Return Unix milliseconds, also for an ISO 8601 time, which is UTC if it names no zone."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one type of numbers: 8.0 equals 8
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_MS:
            raise InvalidInput.of_field(path, _("must be between 0 and %(number)s", number=MAX_MS))
        return as_ms(value)
    if not isinstance(value, str):
        raise InvalidInput.of_field(path, _("must be Unix milliseconds or an ISO 8601 time"))
    try:
        moment = datetime.fromisoformat(value)
        return to_ms(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except ValueError:
        raise InvalidInput.of_field(path, _("must be Unix milliseconds or an ISO 8601 time")) from None
