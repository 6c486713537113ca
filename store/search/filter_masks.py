"""Apply conditions of filters to all memories of a snapshot at once."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.db import connection

from core.ids import parse_session_id
from core.persistence import sql
from store import attributes, filters
from store.filters import Condition, Filter, Group, Not
from store.index import VENDORS
from store.index.fact_pages import NO_IMPORTANCE, ROLES
from store.search.floor import Flags
from store.search.records import RECORD_TYPE
from store.search.snapshot import Numbers, Snapshot, parse_ids

_NUMBERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
_NAMES: Final = {"sender_id": "sender", "agent_id": "agent", "category": "category"}
_NUMBERED: Final = {"timestamp": "at", "importance": "importance"}
_FEW: Final = 1_500
"""Looking up so many memories takes less time than reading all that meet a condition."""
_ROLE_NAMES: Final = {number: role for role, number in ROLES.items()}


def mask_of(tree: Mapping[str, Any], snapshot: Snapshot, documents: Numbers | None = None) -> Flags:
    """Return a mask of the documents that meet the filters. One SQL statement for each condition on tags or metadata.

    It holds for `documents` only, which may be looked up one by one; None: for all. Raises: `InvalidInput`.
    """
    return _mask(filters.parse(tree), snapshot, documents)


def _mask(condition: Filter, snapshot: Snapshot, documents: Numbers | None) -> Flags:
    if isinstance(condition, Not):
        return ~_mask(condition.part, snapshot, documents)
    if isinstance(condition, Group):
        masks = [_mask(part, snapshot, documents) for part in condition.parts]
        every = np.full(len(snapshot.facts), condition.must is all, np.bool_)
        join = np.logical_and if condition.must is all else np.logical_or
        joined: Flags = join.reduce([every, *masks])
        return joined
    if not isinstance(condition, Condition):
        raise TypeError(condition)
    return _of_condition(condition, snapshot, documents)


def _of_condition(condition: Condition, snapshot: Snapshot, documents: Numbers | None) -> Flags:
    facts, field = snapshot.facts, condition.field
    if field in filters.OF_SESSIONS:
        named = (pk for name, pk in snapshot.sessions.items() if condition.compares(of_session(name)[field]))
        return _is_one_of(facts["session"], np.fromiter(named, np.int64))
    if field in _NUMBERED:
        return _compare(condition, facts[_NUMBERED[field]])
    if field == "type":
        return np.full(len(facts), condition.compares(RECORD_TYPE), np.bool_)
    if field == "role":
        numbers = [number for number, role in _ROLE_NAMES.items() if condition.compares(role)]
        return np.isin(facts["role"], numbers)
    if field in _NAMES:
        places = [place for place, name in enumerate(snapshot.names) if condition.compares(name)]
        return np.isin(facts[_NAMES[field]], places)
    return _has_attribute(condition, snapshot, documents)


def of_session(session_id: str) -> dict[str, str]:
    """Return the fields of filters that memories have by their session: the parent is the resource, or the session."""
    name = parse_session_id(session_id)
    parent = ("resource", name.rest) if name.kind == "resource" else ("session", session_id)
    return {"session_id": session_id, "parent_type": parent[0], "parent_id": parent[1]}


def _compare(condition: Condition, values: npt.NDArray[Any]) -> Flags:
    if condition.operator == "in":
        return np.isin(values, list(condition.value))
    found: Flags = _NUMBERS[condition.operator](values, values.dtype.type(condition.value))
    found &= values != NO_IMPORTANCE  # no time is negative
    return found


def _has_attribute(condition: Condition, snapshot: Snapshot, documents: Numbers | None) -> Flags:
    """Look up an attribute of the documents, of all if there are many."""
    pks = snapshot.pks
    among = pks[documents].tolist() if documents is not None and len(documents) <= _FEW else None
    if among == []:
        return np.zeros(len(pks), np.bool_)
    found = attributes.matching(snapshot.owner, condition, among).values("memory_id")
    statement, values = found.query.sql_with_params()
    joined = VENDORS[connection.vendor].joined_ids("memory_id")
    [(ids,)] = sql.rows(f"SELECT {joined} FROM ({statement}) AS found", values)
    return _is_one_of(pks, parse_ids([ids]))


def _is_one_of(values: Numbers, wanted: Numbers) -> Flags:
    return np.isin(values, wanted) if len(wanted) else np.zeros(len(values), np.bool_)
