from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.json_data import without_base64
from core.rest import repeated_key

KEYS = st.sampled_from(["base64", "BASE64", "Base64", "base32", "text", "base64 "])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


def expected_without_base64(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: expected_without_base64(item) for key, item in value.items() if key.lower() != "base64"}
    return [expected_without_base64(item) for item in value] if isinstance(value, list) else value


@given(DATA)
def test_only_base64_values_are_removed_at_any_depth(value: Any) -> None:
    before = copy.deepcopy(value)
    assert json.dumps(without_base64(value)) == json.dumps(expected_without_base64(value))
    assert value == before


def test_data_without_base64_is_not_copied() -> None:
    value = {"text": "hello", "items": [{"name": "base64"}]}
    assert without_base64(value) is value


@given(DATA, st.booleans())
def test_serialized_values_have_no_repeated_key(value: Any, is_ascii: bool) -> None:
    written = json.dumps(value, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    assert repeated_key(written) is None


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"text": "a", "text": "b"}', "text"),
        (b'{"text": "a", "text": "a"}', "text"),
        (b'{"a": [{"b": {"deep:er": 1, "deep:er": [1]}}], "text": "16:30"}', "deep:er"),
        (b'{"te\\u0078t": "a", "text": "b"}', "text"),
        (b'{"text": "a\\u003a\\u003a", "t": 1, "t": 2}', "t"),
        (b'{"n": %s, "x": 1, "x": 2}' % (b"9" * 5000), "x"),
        (b'{"text": "a", "Text": "16:30"}', None),
        (b'[{"text": "a"}, {"text": "\\u003a"}]', None),
    ],
)
def test_a_repeated_key_is_found_at_any_depth(data: bytes, name: str | None) -> None:
    """A parser would silently drop one of the values."""
    assert repeated_key(data) == name
