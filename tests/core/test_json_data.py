from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory_gateway.core.json_data import without_base64

KEYS = st.sampled_from(["base64", "BASE64", "Base64", "base32", "text", "base64 "])
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


def plainly(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plainly(item) for key, item in value.items() if key.lower() != "base64"}
    return [plainly(item) for item in value] if isinstance(value, list) else value


@given(DATA)
def test_file_contents_are_left_out_at_any_depth_and_nothing_else(value: Any) -> None:
    before = copy.deepcopy(value)
    assert json.dumps(without_base64(value)) == json.dumps(plainly(value))
    assert value == before


def test_data_without_file_contents_is_not_copied() -> None:
    value = {"text": "hello", "items": [{"name": "base64"}]}
    assert without_base64(value) is value
