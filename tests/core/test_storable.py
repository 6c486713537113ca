"""One set of checks and repairs for whatever becomes a row."""

from __future__ import annotations

import json
import math
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import storable
from core.storable import NotStorable, Repair
from core.times import from_ms

# Strings of any code points, also of those that no text has.
TEXTS = st.text(st.characters(codec=None) | st.sampled_from("\x00\ud800\udfff"), max_size=5)
NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([2**63, -(2**63) - 1, 2**64, 10**400, 1e16, 1e300, -1e19, float("inf"), float("nan")])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def can_be_stored(value: Any) -> bool:
    """Return True if the value survives both databases: UTF-8, no NUL, integers of 64 bits, and no NaN or infinity."""
    if isinstance(value, dict):
        return all(can_be_stored(name) and can_be_stored(item) for name, item in value.items())
    if isinstance(value, list):
        return all(map(can_be_stored, value))
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**64
    return not isinstance(value, float) or math.isfinite(value)


@given(VALUES, st.integers(0, 6))
def test_what_passes_the_check_can_be_stored_and_rendered(value: Any, max_depth: int) -> None:
    try:
        assert storable.check_json(value, max_depth=max_depth) is value
    except NotStorable:
        assert not can_be_stored(value) or depth_of(value) > max_depth
    else:
        assert can_be_stored(value)
        assert depth_of(value) <= max_depth
        assert orjson.loads(orjson.dumps(value)) == value


@given(VALUES, st.integers(1, 6), st.none() | st.integers(4, 60))
def test_a_repaired_value_passes_the_check(value: Any, max_depth: int, max_bytes: int | None) -> None:
    # A limit has room for null, which stands for what is too large.
    repair = Repair()
    repaired = repair.json("payload", value, max_depth=max_depth, max_bytes=max_bytes)
    if max_bytes is None or isinstance(value, dict):
        assert storable.check_json(repaired, max_depth=max_depth, max_bytes=max_bytes) is repaired
    assert bool(repair.changes) == (repaired is not value)


@pytest.mark.parametrize(
    ("value", "place", "message"),
    [
        ({"a": ["b", {"c": "x\0"}]}, "a.1.c", "must not contain NUL"),
        ({"a": {"b\0": 1}}, "a", "must not contain NUL"),
        ({"a": "\ud800"}, "a", "must not contain a lone surrogate"),
        ({"\udfff": 1}, "", "must not contain a lone surrogate"),
        ({"n": [1, 2**64]}, "n.1", "is too large a number"),
        ({"n": 10**4000}, "n", "is too large a number"),
        ({"n": float("inf")}, "n", "is too large a number"),
        ({"n": float("nan")}, "n", "must be a number"),
        (nested(101), ".".join("0" * 100), "must nest at most 100 levels deep"),
    ],
)
def test_the_place_of_what_cannot_be_stored_is_named(value: Any, place: str, message: str) -> None:
    with pytest.raises(NotStorable, match=message) as caught:
        storable.check_json(value)
    assert ".".join(caught.value.path) == place


def test_large_data_is_refused_by_its_size() -> None:
    with pytest.raises(NotStorable, match="must be at most 20 bytes of JSON"):
        storable.check_json({"a": "x" * 20}, max_bytes=20)
    assert storable.check_json({"a": "x" * 12}, max_bytes=20)


def test_a_repair_says_what_it_changed_and_where() -> None:
    repair = Repair()
    assert repair.text("text", "a\0b\ud83d\ude00c\ud800", 5) == "a\ufffdb😀c"
    given = {"n": 10**30, "m": json.loads('{"\\ud800": NaN, "\\udfff": 1}')}
    assert repair.json("payload", given) == {
        "n": "1000000000000000000000000000000",
        "m": {"\ufffd": None, "\ufffd\ufffd": 1},
    }
    assert repair.ms("created_at_ms", -(10**20)) == storable.FIRST_MS
    assert [change.field for change in repair.changes] == ["text", "text", "payload.n", "created_at_ms"]


def test_a_repair_keeps_what_can_be_stored() -> None:
    repair, value = Repair(), {"a": [1, "x", None, 1.5e18], "é": {"\\u0000": "no NUL, but its name"}}
    assert repair.json("payload", value) is value
    assert repair.text("text", "é\n") == "é\n"
    assert repair.changes == []


def test_of_too_large_an_object_the_largest_values_are_left_out() -> None:
    value = {"id": "e1", "text": "x" * 1000, "list": ["y"] * 10}
    assert list(Repair().json("raw", value, max_bytes=100)) == ["id", "list"]


ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.integers(storable.FIRST_MS, storable.LAST_MS), ZONES)
@example(storable.FIRST_MS, timezone(-timedelta(hours=14)))
@example(storable.LAST_MS, timezone(timedelta(hours=14)))
def test_a_checked_time_is_one_in_every_zone(at_ms: int, zone: timezone) -> None:
    moment = from_ms(storable.check_ms(at_ms))
    assert 1 <= moment.astimezone(zone).year <= 9999
    storable.check_moment(moment)


@pytest.mark.parametrize("at_ms", [storable.FIRST_MS - 1, storable.LAST_MS + 1, 10**30])
def test_other_times_are_refused_and_moved(at_ms: int) -> None:
    with pytest.raises(NotStorable, match="years 1 to 9999"):
        storable.check_ms(at_ms)
    assert storable.FIRST_MS <= Repair().ms("created_at_ms", at_ms) <= storable.LAST_MS


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_moments_at_the_ends_of_the_calendar_are_refused_and_moved(moment: str) -> None:
    with pytest.raises(NotStorable, match="years 1 to 9999"):
        storable.check_moment(datetime.fromisoformat(moment))
    moved = storable.check_moment(Repair().moment("created_at", datetime.fromisoformat(moment)))
    assert moved.astimezone(UTC).year in {1, 9999}


def test_numbers_of_any_length_are_parsed_for_the_check() -> None:
    digits = "1" * 5000
    for text in (digits, f"-{digits}", "1e999"):
        with pytest.raises(NotStorable, match="too large"):
            storable.check_json(storable.parse_json(f'{{"n": {text}}}'))
    with pytest.raises(NotStorable, match="levels deep"):
        storable.parse_json("[" * 100_000)


json_values = st.recursive(
    st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30
)


@given(json_values)
def test_the_counted_depth_is_that_of_the_parsed_value(value: Any) -> None:
    data, depth = json.dumps(value, ensure_ascii=False).encode(errors="ignore"), depth_of(value)
    assert storable.depth_exceeds(data, depth - 1) == (depth > 0)
    assert not storable.depth_exceeds(data, depth)


@pytest.mark.parametrize("text", ["[[[[", '\\"[[[', "\\\\", 'a\\\\"b', "\n[", "]]]]"])
def test_brackets_inside_strings_do_not_count(text: str) -> None:
    assert not storable.depth_exceeds(json.dumps([text]).encode(), 1)
    assert storable.depth_exceeds(json.dumps([text, [1]]).encode(), 1)


def test_an_unterminated_string_is_scanned_in_linear_time() -> None:
    started = time.perf_counter()
    storable.depth_exceeds(b'"' + b'\\"' * 1_000_000, 64)
    assert time.perf_counter() - started < 5
