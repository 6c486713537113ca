"""Records of other stores that no database, JSON parser or calendar takes, each beside good ones."""

from __future__ import annotations

from typing import Final

DIGITS: Final = "1" * 5000
DEEP: Final = "[" * 100_000 + "]" * 100_000
EDGES: Final = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
"""Times whose year is 0 or 10000 in some zone."""
MEM0: Final[dict[str, str]] = {
    "integer of 5,000 digits in metadata": f'{{"memory": "x", "id": "1", "metadata": {{"n": {DIGITS}}}}}',
    "integer of 4,000 digits in metadata": f'{{"memory": "x", "id": "1", "metadata": {{"n": {DIGITS[:4000]}}}}}',
    "integer of 5,000 digits as id": f'{{"memory": "x", "id": {DIGITS}}}',
    "integer of 5,000 digits as text": f'{{"memory": {DIGITS}, "id": "1"}}',
    "integer of 65 bits": '{"memory": "x", "id": "1", "categories": [18446744073709551616]}',
    "negative integer of 65 bits": '{"memory": "x", "id": "1", "metadata": {"n": -9223372036854775809}}',
    "NaN": '{"memory": "x", "id": "1", "metadata": {"n": NaN}}',
    "infinity": '{"memory": "x", "id": "1", "metadata": {"n": [-Infinity, 1e999]}}',
    "lone surrogate in the text, with an id": r'{"memory": "\ud800abc", "id": "1"}',
    "lone surrogate in the text, without an id": r'{"memory": "\ud800abc"}',
    "lone surrogate in a value": r'{"memory": "x", "id": "1", "metadata": {"a": "\ud800"}}',
    "lone surrogate in a key": r'{"memory": "x", "id": "1", "metadata": {"\udfff": 1}}',
    "lone surrogate in an id": r'{"memory": "x", "id": "\ud800"}',
    "lone surrogate in an agent": r'{"memory": "x", "id": "1", "agent_id": "\ud800"}',
    "lone surrogate in a user": r'{"memory": "\udead", "id": "1", "user_id": "\ud800"}',
    "NUL in the text": r'{"memory": "a\u0000b", "id": "1"}',
    "NUL in metadata": r'{"memory": "x", "id": "1", "metadata": {"a": "x\u0000y"}}',
    "NUL in a key": r'{"memory": "x", "id": "1", "metadata": {"\u0000": 1}}',
    "NUL in an id": r'{"memory": "x", "id": "a\u0000b"}',
    "NUL in a time": r'{"memory": "x", "id": "1", "updated_at": "2025\u0000"}',
    "id of 100,000 characters": f'{{"memory": "x", "id": "{"y" * 100_000}"}}',
    "agent of 100,000 characters": f'{{"memory": "x", "id": "1", "agent_id": "{"y" * 100_000}"}}',
    "metadata of 3 MB": f'{{"memory": "x", "id": "1", "metadata": {{"a": "{"y" * 3_000_000}"}}}}',
    "item of 5 MB": f'{{"memory": "x", "id": "1", "metadata": {{"a": "{"y" * 5_000_000}"}}}}',
    "nesting of 100,000 levels": f'{{"memory": "x", "id": "1", "metadata": {DEEP}}}',
    "nesting of 500 levels": f'{{"memory": "x", "id": "1", "metadata": {"[" * 500}{"]" * 500}}}',
    "time before the calendar": f'{{"memory": "x", "id": "1", "created_at": "{EDGES[0]}"}}',
    "time after the calendar": f'{{"memory": "x", "id": "1", "created_at": "{EDGES[1]}"}}',
    "an id that is an object": '{"memory": "x", "id": {"a": 1}}',
    "text that is an object": '{"memory": {"a": 1}, "id": "1"}',
    "broken item": '{"memory": "x", "id": undefined}',
    "broken item with brackets in texts": r'{"memory": "],[ \" }", "id": !}',
}
"""Bad items of mem0's export, as JSON."""
