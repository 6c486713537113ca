"""Log records: redaction of secrets in fields, inside strings and in addresses; the id of the current request."""

import logging
import math
import random
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

REDACTED = "[REDACTED]"
MAX_DEPTH = 12

_SECRET_NAME = re.compile(
    r"(?:^|[_\-.\s])(?:user_?key|api_?key|access_?key|private_?key|key|token|secret|password|passwd|pwd|passphrase|"
    r"authorization|auth|credential|credentials|cookie|signature|session_?key|csrf\w*|bearer|ingest_?ur[il])s?(?:$|[_\-.\s])",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_VALUE = re.compile(
    r"uk_[A-Za-z0-9_\-]+"
    r"|(?:rpc|oac|oat|ort|upl)_[A-Za-z0-9_\-]{20,}"
    r"|(?<=bearer\s)[^\s\"',;]+"
    r"|(?<=basic\s)[A-Za-z0-9+/=]{8,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?<![A-Za-z0-9_])(?:x-amz-[a-z\-]*|sig|signature|awsaccesskeyid|user_key|api_?key|access_?token|token|secret|password)"
    r"(?:=|%3d|\"?\s*[:=]\s*\"?)[^&\s\"']+",
    re.IGNORECASE,
)

# Every alternative above contains one of these. Searching for them is cheaper than matching.
_MARKS = (
    "uk_",
    "rpc_",
    "oac_",
    "oat_",
    "ort_",
    "upl_",
    "bearer",
    "basic",
    "://",
    "sig",
    "key",
    "token",
    "secret",
    "password",
    "x-amz-",
)


def is_secret_name(name: str) -> bool:
    """Return True if a field of that name holds a secret: `user_key`, `apiKey`, `X-Api-Token`, `db.password`, …"""
    return bool(_SECRET_NAME.search(_CAMEL.sub("_", name)))


def redact_text(text: str) -> str:
    """Replace keys, bearer tokens, passwords in addresses and signed query parameters inside a text."""
    folded = text.casefold()
    return _SECRET_VALUE.sub(REDACTED, text) if any(map(folded.__contains__, _MARKS)) else text


def redact(value: Any, max_chars: int | None = None) -> Any:
    """Return a redacted copy of plain JSON data, cut with `…` after about `max_chars` characters.

    Data deeper than `MAX_DEPTH` is left out.
    """
    return _Redaction(max_chars).copy(value, 0)


# A secret that begins within the copied part may end behind it; it has to be complete to be recognized.
_LOOKAHEAD_CHARS = 4 * 1024
_LONG_NAME_CHARS = 64
_CUT = "…"


class _Redaction:
    """One redacted copy. `_left` is the number of characters that still fit."""

    def __init__(self, max_chars: int | None) -> None:
        self._left: float = math.inf if max_chars is None else max_chars

    def copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if depth > MAX_DEPTH:
            return "[TOO DEEP]"
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        self._left -= 4
        return value

    def _text(self, text: str) -> str:
        if self._left == math.inf:
            return redact_text(text)
        room = max(0, int(self._left))
        shown = redact_text(text[: room + _LOOKAHEAD_CHARS])
        self._left -= min(len(shown), room) + 2
        return shown if len(shown) <= room else shown[:room] + _CUT

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if self._left <= 0:
                copied[_CUT] = f"{len(value)} in all"
                break
            name = str(key)
            if len(name) <= _LONG_NAME_CHARS:
                self._left -= len(name) + 2
                shown, is_secret = _known_name(name)
            else:
                shown, is_secret = self._text(name), is_secret_name(name)
            copied[shown] = REDACTED if is_secret and item is not None else self.copy(item, depth + 1)
        return copied

    def _list(self, value: Sequence[Any], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self._left <= 0:
                copied.append(f"{_CUT} {len(value)} in all")
                break
            copied.append(self.copy(item, depth + 1))
        return copied


@lru_cache(maxsize=4096)
def _known_name(name: str) -> tuple[str, bool]:
    """Return a name as logged, and True if it names a secret. Cached: bodies repeat their few names for every item."""
    return redact_text(name), is_secret_name(name)


class RedactingFilter(logging.Filter):
    """A logging filter that redacts messages, arguments and tracebacks of all libraries before they reach a handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = redact_text(record.getMessage())
        record.args = ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact_text(record.exc_text)
        return True


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the current request; empty outside requests, in commands and workers."""
are_bodies_private: ContextVar[bool] = ContextVar("are_bodies_private", default=False)
"""True if no log may have the bodies of the request: the person pauses, refuses to keep it, or is incognito."""
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def choose_request_id(given: str) -> str:
    """Return the caller's `X-Request-Id` if it is valid and no secret, else a new one.

    The new id need not be unguessable, so the event loop does not wait for the system's random source.
    """
    return given if _SANE_ID.fullmatch(given) and redact_text(given) == given else f"{random.getrandbits(128):032x}"


class RequestIdFilter(logging.Filter):
    """A logging filter that adds the request id to each log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get() or "-"
        return True
