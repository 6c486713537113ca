"""Rows as no checked write stores them, planted by SQL: what a former version, an import or another program left."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.db import connection

DIGITS = "1" * 4000
DEEP = '{"a":' + "[" * 900 + "]" * 900 + "}"
# Values of `payload`. PostgreSQL refuses lone surrogates, NUL and NaN.
EVERYWHERE = {
    "4,000 digits": f'{{"filename": "log.txt", "n": {DIGITS}}}',
    "5,000 digits": '{"n": 1' + "0" * 5000 + "}",
    "more than 64 bits": '{"n": 36893488147419103232, "m": -9223372036854775809}',
    "as a text": '"text"',
    "as a list": "[1]",
    "as a null": "null",
    "as a number": DIGITS,
    "deep": DEEP,
    "too deep for parsers": '{"a":' + "[" * 1500 + "]" * 1500 + "}",
    "too deep for the answer": '{"role": ' + '{"a":' * 240 + "1" + "}" * 240 + "}",
    "fields of other kinds": (
        '{"message": 5, "role": [1], "sender_name": {}, "tool_calls": 7, "tool_call_id": 1.5, "filename": {"a": 1},'
        ' "title": [], "mime_type": ["x"], "page": "x", "box": 1, "second": "x", "heading": 4, "resource_id": [1]}'
    ),
    "a message of other kinds": '{"message": {"role": 1, "content": "x", "tool_calls": 3}}',
}
ON_SQLITE = {
    "a surrogate": r'{"filename": "\ud800x", "role": "\udfff", "n": ["\ud800"]}',
    "a surrogate in a key": r'{"\ud800": 1, "\udc00": 2}',
    "NUL": r'{"filename": "a\u0000b", "a\u0000": 1, "role": "\u0000"}',
    "infinity": '{"n": 1e999}',
    "NaN": '{"n": NaN}',
    "no JSON": "{",
}
TIMES = {
    "year 10000": 253_402_300_800_000,
    "year 1, by a minute": -62_135_596_740_000,
    "year 9999, to the minute": 253_402_300_740_000,
    "before year 1": -62_135_596_800_001,
    "the largest": 2**63 - 1,
    "the smallest": -(2**63),
}


@contextlib.contextmanager
def unchecked() -> Iterator[Any]:
    """Yield a cursor without the constraints of SQLite's columns, as for a file that another program wrote."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        try:
            yield cursor
        finally:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA ignore_check_constraints = OFF")


def plant(table: str, column: str, value: object, where: str, *values: object) -> None:
    with unchecked() as cursor:
        cast = "CAST(%s AS jsonb)" if connection.vendor == "postgresql" and column in JSON_COLUMNS else "%s"
        cursor.execute(f"UPDATE {table} SET {column} = {cast} WHERE {where}", [value, *values])
        assert cursor.rowcount == 1


JSON_COLUMNS = {"message", "payload", "sources", "supersedes", "content", "detail", "events", "data"}


def plant_memory(memory_id: str, column: str, value: object) -> None:
    plant("store_memory", column, value, "memory_id = %s", memory_id)
