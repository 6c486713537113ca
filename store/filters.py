"""The filter language of searches, lists and tools: parsed into typed conditions.

    {"session_id": "chat:c1", "AND": [{"created_at": {"gte": "2026-01-01"}}, {"NOT": {"tags": {"any": ["draft"]}}}]}

All fields of one node, its `AND` and `NOT` must match; a plain value means equal; `AND: []`, `OR: []` and `NOT: {}` are
no condition. `store.search.filter_masks` applies conditions to a search, `store.filter_queries` to a list.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
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
_NAMES = ("eq", "ne", "in")
METADATA: Final = "metadata."
"""The beginning of the names of metadata keys, whose parts are separated by dots."""
_OF_METADATA: Final = ("eq", "in", "exists", "gt", "gte", "lt", "lte")
OPERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "session_id": _ALL,
    "parent_type": _ALL,
    "parent_id": _ALL,
    "timestamp": _ALL,
    "sender_id": ("eq", "in"),
    "type": _NAMES,
    "created_at": _ALL,
    "category": _NAMES,
    "importance": ("eq", "gt", "gte", "lt", "lte"),
    "agent_id": _NAMES,
    "role": _NAMES,
    "tags": ("any", "all", "none"),
}
_OF_HITS: Final = frozenset({"session_id", "parent_type", "parent_id", "timestamp", "sender_id", "type"})
"""The fields that the hits of a remote have. `created_at` is another name of `timestamp`."""
OF_SESSIONS: Final = frozenset({"session_id", "parent_type", "parent_id"})
"""The fields that memories have by their session."""
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
        return self.compares(getattr(memory, self.field, None))

    def compares(self, found: Any) -> bool:
        """Return True if a value of the field meets the condition; no value does not."""
        return found is not None and _COMPARE[self.operator](found, self.value)


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions that must all match, or any of them: `must` is `all` or `any`."""

    parts: tuple[Filter, ...]
    must: Callable[[Iterable[bool]], bool] = all

    def matches(self, memory: Filterable) -> bool:
        return self.must(part.matches(memory) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """A condition that must not match."""

    part: Filter

    def matches(self, memory: Filterable) -> bool:
        return not self.part.matches(memory)


def has_condition(part: Filter) -> bool:
    """Return True if a parsed filter compares anything."""
    return any(True for _field in fields_of(part))


def fields_of(part: Filter) -> Iterator[str]:
    """Yield the fields that a parsed filter compares."""
    if isinstance(part, Group):
        for one in part.parts:
            yield from fields_of(one)
    elif isinstance(part, Not):
        yield from fields_of(part.part)
    elif isinstance(part, Condition):
        yield part.field


def needs_rows(tree: Mapping[str, Any]) -> bool:
    """Return True if only rows have all that the filters compare, and the hits of a remote lack some of it."""
    return any(
        any(map(needs_rows, value)) if name in {"AND", "OR"} else name not in _OF_HITS for name, value in tree.items()
    )


def with_moments(tree: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """Return a filter tree with moments for days and words of time ("2026-06-01", "yesterday"), as of `now`.

    Days begin and end at midnight where `now` is: an upper bound includes the day. Times without a zone are of that
    zone, too. Other values stay, for `parse` to refuse.
    """
    found: dict[str, Any] = {}
    added: list[Mapping[str, Any]] = []
    for name, value in tree.items():
        if name in {"timestamp", "created_at"}:
            conditions = value if isinstance(value, Mapping) else {"eq": value}
            added += [_moment_condition(str(op), operand, now) for op, operand in conditions.items()]
            found |= {} if conditions else {name: value}
        elif name in {"AND", "OR", "NOT"} and isinstance(value, list):
            found[name] = [with_moments(one, now) if isinstance(one, Mapping) else one for one in value]
        elif name == "NOT" and isinstance(value, Mapping):
            found[name] = with_moments(value, now)
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
            elif name == "NOT":
                parts += self._negation(value, f"{path}.{name}", depth)
            elif name == "metadata" and isinstance(value, Mapping):
                parts += [one for key, item in value.items() for one in self._field(f"{METADATA}{key}", item, path)]
            else:
                parts += self._field(str(name), value, path)
        return parts[0] if len(parts) == 1 else Group(tuple(parts))

    def _group(self, name: str, value: Any, path: str, depth: int) -> list[Filter]:
        if not isinstance(value, list):
            raise InvalidInput.of_field(path, _("must be a list of conditions"))
        parts = [self.node(item, f"{path}.{number}", depth + 1) for number, item in enumerate(value)]
        return [Group(tuple(parts), all if name == "AND" else any)] if parts else []

    def _negation(self, value: Any, path: str, depth: int) -> list[Filter]:
        """Return the negation of a node, or of each node in a list."""
        items = value if isinstance(value, list) else [value]
        return [Not(self.node(item, path, depth + 1)) for item in items if item != {}]

    def _field(self, name: str, value: Any, path: str) -> list[Filter]:
        is_metadata = name.startswith(METADATA) and len(name) > len(METADATA)
        if name not in OPERATORS and not is_metadata:
            allowed = ", ".join([*OPERATORS, f"{METADATA}KEY", "AND", "OR", "NOT"])
            raise InvalidInput.of_field(
                path,
                _("%(name)s is not a field of filters; allowed are %(allowed)s", name=repr(name[:64]), allowed=allowed),
            )
        operators = _OF_METADATA if is_metadata else OPERATORS[name]
        path = f"{path}.{name}"
        if not isinstance(value, Mapping):
            if name == "tags":
                return [Condition(name, "any", _tags(value if isinstance(value, list) else [value], path))]
            return [self._comparison(name, "eq", value, path, operators)]
        if not value:
            raise InvalidInput.of_field(path, _("must name an operator"))
        return [self._comparison(name, str(op), operand, path, operators) for op, operand in value.items()]

    def _comparison(self, name: str, op: str, operand: Any, path: str, operators: tuple[str, ...]) -> Filter:
        if op not in operators:
            raise InvalidInput.of_field(
                path,
                _(
                    "%(op)s is not an operator; allowed are %(operators)s",
                    op=repr(op[:64]),
                    operators=", ".join(operators),
                ),
            )
        if name == "tags":
            return _of_tags(op, _tags(operand, path))
        if op == "exists":
            if not isinstance(operand, bool):
                raise InvalidInput.of_field(path, _("'exists' must be true or false"))
            exists = Condition(name, op, value=True)
            return exists if operand else Not(exists)
        field = "timestamp" if name == "created_at" else name
        if op != "in":
            return Condition(field, op, _value(field, operand, path, op))
        if not isinstance(operand, list) or not 1 <= len(operand) <= MAX_LIST:
            raise InvalidInput.of_field(path, _("'in' must be a list of 1 to %(number)s values", number=MAX_LIST))
        return Condition(field, op, frozenset(_value(field, item, path, op) for item in operand))


def _tags(value: Any, path: str) -> frozenset[str]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_LIST:
        raise InvalidInput.of_field(path, _("must be a list of 1 to %(number)s values", number=MAX_LIST))
    return frozenset(str(_value("tags", item, path, "any")).strip() for item in value)


def _of_tags(op: str, tags: frozenset[str]) -> Filter:
    """Return the condition that a memory has any, all or none of some tags."""
    if op == "all":
        return Group(tuple(Condition("tags", "any", frozenset({tag})) for tag in sorted(tags)))
    has_any = Condition("tags", "any", tags)
    return has_any if op == "any" else Not(has_any)


def _value(name: str, value: Any, path: str, op: str) -> str | int | float | bool | None:
    if name == "timestamp":
        return _milliseconds(value, path)
    if name == "importance":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidInput.of_field(path, _("must be between 0 and 1"))
        return value
    if name.startswith(METADATA) and (value is None or isinstance(value, bool | int | float)):
        if op in {"eq", "in"} or (value is not None and not isinstance(value, bool)):
            return value
        raise InvalidInput.of_field(path, _("must be a number or text to compare with"))
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
