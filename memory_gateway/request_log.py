"""Request log: one JSON line per API request, with secrets redacted.

Bodies are logged in part: each is copied up to `MAX_BODY_CHARS`, and every name and text in that part is redacted, so
the cost does not grow with the body. A part without signs of a secret is copied in large pieces.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

import orjson

from core.redaction import MAX_DEPTH, REDACTED, is_secret_name, may_hold_secret, redact_text
from core.times import isoformat

logger = logging.getLogger("memory_gateway.api")

MAX_BODY_CHARS = 8 * 1024
_CUT = "…"
# A secret that begins within the logged part may end behind it; it has to be complete to be recognised.
_LOOKAHEAD_CHARS = 4 * 1024
_LONG_NAME_CHARS = 64
# Above this size, finding pieces costs more than copying name by name.
_LARGE_PIECES_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response.

    `request_body` and `response_body` are plain JSON data, or None to log nothing; their sizes in bytes are None if
    unknown.
    """

    request_id: str
    started_at: datetime
    duration_ms: float
    method: str
    scheme: str
    host: str
    path: str
    query_string: str
    client: str
    user_id: str | None
    status: int
    request_body: Any = None
    response_body: Any = None
    request_size: int | None = None
    response_size: int | None = None


def write(exchange: Exchange) -> None:
    path = redact_text(exchange.path)
    query = redacted_query(exchange.query_string)
    line = {
        "request_time": isoformat(exchange.started_at),
        "duration_ms": round(exchange.duration_ms, 2),
        "method": exchange.method,
        "path": path,
        "url": redact_text(f"{exchange.scheme}://{exchange.host}") + path + (f"?{_encoded(query)}" if query else ""),
        "client": exchange.client,
        "request_id": exchange.request_id,
        "user_id": exchange.user_id,
        "input": {"query": query, "body": excerpt(exchange.request_body, exchange.request_size)},
        "output": {"status": exchange.status, "body": excerpt(exchange.response_body, exchange.response_size)},
    }
    # orjson escapes control characters, so the path cannot break the line.
    logger.info("%s", _json(line).decode())


def redacted_query(query_string: str) -> dict[str, Any]:
    """Return the query parameters by name; a repeated one is a list."""
    query: dict[str, Any] = {}
    for name, value in parse_qsl(query_string[:MAX_BODY_CHARS], keep_blank_values=True, errors="replace"):
        shown = REDACTED if is_secret_name(name) else redact_text(value)
        shown_name = redact_text(name)
        query[shown_name] = [*_as_list(query[shown_name]), shown] if shown_name in query else shown
    return query


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _encoded(query: Mapping[str, Any]) -> str:
    return urlencode(query, doseq=True, safe="[]")


def excerpt(value: Any, size_bytes: int | None = None) -> Any:
    """Return a redacted copy of plain JSON data for orjson, cut with `…` where it grows long."""
    if size_bytes is not None and size_bytes <= _LARGE_PIECES_BYTES:
        plain = _Excerpt(MAX_BODY_CHARS)
        secrets = _secrets(value)
        copied = plain.without_secrets(value) if secrets else plain.copy(value, 0)
        shown = _json(copied)
        if not any(may_hold_secret(looked_at) for looked_at in (shown, *plain.cut)):
            return {**secrets, **copied} if secrets else orjson.Fragment(shown)
    return _RedactedExcerpt(MAX_BODY_CHARS).copy(value, 0)


def _secrets(value: Any) -> dict[str, str]:
    """Return the secret fields of a body, redacted: most requests send their API key as one."""
    if not isinstance(value, dict):
        return {}
    shown_names = (_known_name(name)[0] for name, item in value.items() if _is_secret(name, item))
    return dict.fromkeys(shown_names, REDACTED)


def _is_secret(name: str, item: Any) -> bool:
    return item is not None and len(name) <= _LONG_NAME_CHARS and _known_name(name)[1]


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=str)


@lru_cache(maxsize=4096)
def _known_name(name: str) -> tuple[str, bool]:
    """Return a name as logged, and True if it names a secret. Cached: bodies repeat their few names for every item."""
    return redact_text(name), is_secret_name(name)


class _Excerpt:
    """A copier of as large pieces as the remaining room allows.

    `cut` holds the cut pieces as JSON, with what follows them.
    """

    def __init__(self, chars: int) -> None:
        self._left = chars
        self.cut: list[bytes] = []

    def copy(self, value: Any, depth: int) -> Any:
        piece = _json(value)
        if len(piece) <= self._left:
            self._left -= len(piece)
            return orjson.Fragment(piece)
        return self._in_parts(value, depth)

    def without_secrets(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of all fields of a body but those of `_secrets`."""
        return self._mapping({name: item for name, item in value.items() if not _is_secret(name, item)}, 0)

    def _in_parts(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if depth > MAX_DEPTH:
            return "[TOO DEEP]"
        if isinstance(value, dict):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth)
        self._left -= 4
        return value

    def _text(self, text: str) -> str:
        room = max(0, self._left)
        shown = self._redacted(text[: room + _LOOKAHEAD_CHARS])
        if len(shown) > room:
            self._left -= room + 2
            return shown[:room] + _CUT
        self._left -= len(shown) + 2
        return shown

    def _redacted(self, text: str) -> str:
        self.cut.append(_json(text))
        return text

    def _name(self, name: str) -> tuple[str, bool]:
        """Return the name as logged, and True if its value is secret."""
        if len(name) > _LONG_NAME_CHARS:
            self.cut.append(_json({name: None}))
            return self._text(name), False
        self._left -= len(name) + 2
        return name, False

    def _mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for name, item in value.items():
            if self._left <= 0:
                copied[_CUT] = f"{len(value)} in all"
                break
            shown_name, is_secret = self._name(str(name))
            copied[shown_name] = REDACTED if is_secret and item is not None else self.copy(item, depth + 1)
        return copied

    def _has_room_for(self, item: Any) -> bool:
        """Return True if an item fits whole; the first item of a list may be cut."""
        return len(_json(item)) <= self._left

    def _sequence(self, value: Sequence[Any], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if copied and not self._has_room_for(item):
                copied.append(f"{_CUT} {len(value)} in all")
                break
            copied.append(self.copy(item, depth + 1))
        return copied


class _RedactedExcerpt(_Excerpt):
    """An `_Excerpt` that redacts secrets name by name and text by text."""

    def copy(self, value: Any, depth: int) -> Any:
        return self._in_parts(value, depth)

    def _has_room_for(self, item: Any) -> bool:
        return self._left > 0

    def _redacted(self, text: str) -> str:
        return redact_text(text)

    def _name(self, name: str) -> tuple[str, bool]:
        if len(name) > _LONG_NAME_CHARS:
            return self._text(name), is_secret_name(name)
        self._left -= len(name) + 2
        return _known_name(name)
