"""Redaction of secrets in logs: in fields, inside strings and in addresses."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
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
    r"|rpc_[A-Za-z0-9_\-]{20,}"
    r"|(?<=bearer\s)[^\s\"',;]+"
    r"|(?<=basic\s)[A-Za-z0-9+/=]{8,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?<![A-Za-z0-9_])(?:x-amz-[a-z\-]*|sig|signature|awsaccesskeyid|user_key|api_?key|access_?token|token|secret|password)"
    r"(?:=|%3d|\"?\s*[:=]\s*\"?)[^&\s\"']+",
    re.IGNORECASE,
)

# The names of the last alternative above; an equals sign or colon has to follow.
_NAMES_IN_TEXT = ("sig", "user_key", "api_key", "apikey", "accesskey", "token", "secret", "password", "x-amz-")


def is_secret_name(name: str) -> bool:
    """Return True if a field of that name holds a secret: `user_key`, `apiKey`, `X-Api-Token`, `db.password`, …"""
    return bool(_SECRET_NAME.search(_CAMEL.sub("_", name)))


def redact_text(text: str) -> str:
    """Replace keys, bearer tokens, passwords in addresses and signed query parameters inside a text."""
    return _SECRET_VALUE.sub(REDACTED, text) if _may_hold_secret(text.casefold()) else text


def _may_hold_secret(folded: str) -> bool:
    """Return False if no alternative of `_SECRET_VALUE` can match: a cheap check for marks."""
    if "uk_" in folded or "rpc_" in folded or "bearer" in folded or "basic" in folded:
        return True
    if "@" in folded and "://" in folded:
        return True
    if "=" not in folded and ":" not in folded and "%3d" not in folded:
        return False
    for name in _NAMES_IN_TEXT:  # noqa: SIM110 - any() costs three times as much
        if name in folded:
            return True
    return False


# Every alternative of the two expressions above contains one of these, which are fast to find in a long text.
_MARKS = (
    b"key",
    b"token",
    b"secret",
    b"pass",
    b"pwd",
    b"auth",
    b"credential",
    b"cookie",
    b"csrf",
    b"ingest",
    b"uk_",
    b"rpc_",
    b"bearer",
    b"basic",
    b"sig",
    b"x-amz-",
    b"://",
)
# Non-ASCII letters that equal an ASCII letter when case is ignored. The first byte alone is cheap to search for.
_CASE_FOLDING = tuple((letter.encode()[:1], letter.encode()) for letter in "\u0130\u0131\u017f\u212a")
_SPACE = rb"(?:\s|[\x80-\xff]|\\u[0-9a-f]{4}|\\[bfnrt])"  # non-ASCII bytes may be a space
_MAY_BE_SECRET_VALUE = re.compile(
    rb"uk_|rpc_|b(?:earer|asic)" + _SPACE + rb"|://[^/\s]*@"
    rb"|(?:sig|key|token|secret|password|x-amz-)[a-z\-]*(?:=|%3d|(?:\\?\")?" + _SPACE + rb"*[:=])"
)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]|\\.)*+"(:?)', re.DOTALL)


def may_hold_secret(json: bytes) -> bool:
    """Return True if JSON as written by orjson may hold a secret, in a field or a string. False is certain."""
    for first, letter in _CASE_FOLDING:
        if first in json and letter in json:
            return True
    lower = json.lower()
    for mark in _MARKS:  # noqa: SIM110 - any() costs more, and every line of the log comes by here
        if mark in lower and _may_hold(lower, mark):
            return True
    return False


def _may_hold(lower: bytes, mark: bytes) -> bool:
    at, string_end = lower.find(mark), 0
    while at >= 0:
        if _MAY_BE_SECRET_VALUE.match(lower, at):
            return True
        if at >= string_end:
            rest = _REST_OF_STRING.match(lower, at)
            if rest is None or rest[1]:  # it ends like a name
                return True
            string_end = rest.end()
        at = lower.find(mark, at + 1)
    return False


def redact(value: Any, depth: int = 0) -> Any:
    """Return a copy of plain JSON data without secrets, at any depth; data deeper than `MAX_DEPTH` is cut."""
    if depth > MAX_DEPTH:
        return "[TOO DEEP]"
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {redact_text(str(name)): _redact_item(str(name), item, depth) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item, depth + 1) for item in value]
    return value


def _redact_item(name: str, item: Any, depth: int) -> Any:
    return REDACTED if item is not None and is_secret_name(name) else redact(item, depth + 1)


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
