"""The filter language: which filters are valid, how invalid ones are reported, and which memories match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidInput
from store import filters


@dataclass(frozen=True)
class Memo:
    session_id: str | None = "chat:c1"
    parent_type: str | None = "session"
    parent_id: str | None = "chat:c1"
    timestamp: int = 1_780_000_000_000
    sender_id: str = "alice"
    type: str = "Conversation"


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {"AND": []},
        {"session_id": "chat:c1"},
        {"session_id": {"eq": "chat:c1", "ne": "chat:c2"}},
        {"session_id": {"in": ["x", "chat:c1"]}},
        {"session_id": {"gte": "chat:", "lt": "chat;"}},
        {"timestamp": 1_780_000_000_000},
        {"timestamp": 1_780_000_000},
        {"timestamp": {"gt": 1_779_999_999_999, "lte": "2026-05-28T20:26:40Z"}},
        {"timestamp": {"gte": "2026-05-28"}},
        {"timestamp": {"in": [1, "2026-05-28T22:26:40+02:00"]}},
        {"sender_id": {"in": ["alice"]}},
        {"type": "Conversation"},
        {"type": {"ne": "Document"}},
        {"OR": [{"type": "Document"}, {"AND": [{"sender_id": "alice"}, {"OR": [{"parent_id": "chat:c1"}]}]}]},
        {"session_id": "chat:c1", "AND": [{"sender_id": "alice"}], "OR": [{"type": "Conversation"}]},
    ],
)
def test_a_filter_matches(tree: Any) -> None:
    assert filters.parse(tree).matches(Memo())


@pytest.mark.parametrize(
    "tree",
    [
        {"session_id": "chat:c2"},
        {"session_id": {"eq": "chat:c1", "ne": "chat:c1"}},
        {"timestamp": {"gt": 1_780_000_000_000}},
        {"timestamp": {"gt": 1_780_000_000}},
        {"timestamp": {"gt": 1_780_000_000_000.0}},
        {"sender_id": {"in": ["bob"]}},
        {"type": {"in": ["Document"]}},
        {"session_id": "chat:c1", "AND": [{"sender_id": "bob"}]},
        {"session_id": "chat:c1", "OR": [{"sender_id": "bob"}]},
        {"OR": [{"AND": [{"sender_id": "alice"}, {"type": "Document"}]}, {"session_id": "x"}]},
    ],
)
def test_a_filter_does_not_match(tree: Any) -> None:
    assert not filters.parse(tree).matches(Memo())


def test_a_missing_value_matches_no_condition() -> None:
    nothing = Memo(session_id=None, parent_id=None, parent_type=None)
    for op in ("eq", "ne", "gt", "lte"):
        assert not filters.parse({"session_id": {op: "chat:c1"}}).matches(nothing)


def nested(depth: int) -> dict[str, Any]:
    return {"sender_id": "alice"} if depth == 1 else {"AND": [nested(depth - 1)]}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"user_id": "x"}, "allowed are session_id, parent_type, parent_id, timestamp, sender_id, type, created_at, "),
        ({"app_id": "x"}, "not a field"),
        ({"XOR": {}}, "not a field"),
        ({"session_id": {"like": "x"}}, "allowed are eq, ne, gt, gte, lt, lte, in"),
        ({"sender_id": {"gt": "x"}}, "allowed are eq, in"),
        ({"session_id": {"in": []}}, "1 to 1000"),
        ({"session_id": {"in": ["x"] * 1001}}, "1 to 1000"),
        ({"session_id": {"in": "x"}}, "list"),
        ({"session_id": {}}, "operator"),
        ({"session_id": 5}, "text"),
        ({"session_id": None}, "text"),
        ({"session_id": ["x"]}, "text"),
        ({"session_id": "x" * 513}, "512"),
        ({"timestamp": True}, "Unix milliseconds"),
        ({"timestamp": "yesterday"}, "Unix milliseconds"),
        ({"timestamp": 1.5}, "Unix milliseconds"),
        ({"timestamp": -1}, "between 0 and"),
        ({"timestamp": {"in": [10**30]}}, "between 0 and"),
        ({"AND": {}}, "list"),
        ({"AND": ["x"]}, "object"),
        ({"OR": [[]]}, "object"),
        (nested(9), "8 levels"),
        ({"OR": [{"sender_id": "x"}] * 200}, "200 objects"),
        ({"AND": [{}] * 200}, "200 objects"),
    ],
)
def test_an_invalid_filter_is_rejected_with_an_explanation(tree: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filters.parse(tree)
    assert message in refused.value.detail
    assert refused.value.errors[0].field.startswith("filters")


def test_filters_at_the_limits_of_depth_and_size_are_valid() -> None:
    assert filters.parse(nested(8)).matches(Memo())
    assert filters.parse({"OR": [{"sender_id": "x"}] * 198 + [{"sender_id": "alice"}]}).matches(Memo())


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20))
keys = st.one_of(st.sampled_from([*filters.OPERATORS, "AND", "OR", "in", "eq", "gt"]), st.text(max_size=5))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=20,
)


@given(st.dictionaries(keys, trees, max_size=4))
def test_any_tree_is_either_rejected_or_matched(tree: dict[str, Any]) -> None:
    try:
        parsed = filters.parse(tree)
    except InvalidInput:
        return
    assert parsed.matches(Memo()) in {True, False}
