"""Reading what the upstream answers: bounded, JSON only, in one of its envelopes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from engine.upstream.failures import odd_answer
from engine.upstream.transport import Response

MAX_ANSWER_BYTES = 16 * 2**20
_MAX_ERROR_BYTES = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_Model = TypeVar("_Model", bound=BaseModel)


class _Error(BaseModel):
    code: str = ""
    message: str = ""


class _Envelope(BaseModel):
    request_id: str = ""
    data: Any = None


class _Refusal(BaseModel):
    """Both shapes: `{"error": {...}}` of EverOS, `{"detail": …}` of its framework."""

    error: _Error | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A successful answer: `data` as it came, checked by nobody yet."""

    request_id: str
    data: Any


def read_body(response: Response, limit_bytes: int = MAX_ANSWER_BYTES) -> bytearray:
    """The body, unpacked. Errors: `OddAnswer` as soon as it grows beyond the limit or is packed in an unknown way;
    the transport's own errors for a body that ends early."""
    declared = response.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit_bytes:
        raise odd_answer(f"a body of {declared} bytes")
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        raise odd_answer(f"a body packed as {encoding}")
    unpacker = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    body = bytearray()
    while chunk := response.read():
        body += _unpacked(unpacker, chunk, limit_bytes + 1 - len(body)) if unpacker else chunk
        if len(body) > limit_bytes:
            raise odd_answer(f"a body of more than {limit_bytes} bytes")
    if unpacker and body and not unpacker.eof:
        raise odd_answer("a packed body that ends early")
    return body


def _unpacked(unpacker: Any, chunk: bytes, limit_bytes: int) -> bytes:
    try:
        return bytes(unpacker.decompress(chunk, limit_bytes))
    except zlib.error as error:
        raise odd_answer(f"a damaged packed body: {error}") from None


def read_json(response: Response) -> Any:
    """Errors: `OddAnswer` for anything but JSON."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise odd_answer(f"{response.status} as {content_type[:80] or 'nothing'}")
    try:
        return orjson.loads(read_body(response))
    except orjson.JSONDecodeError as error:
        raise odd_answer(f"no JSON: {error}") from None


def read_envelope(response: Response) -> Envelope:
    """`{"request_id": …, "data": …}`. Errors: `OddAnswer`."""
    envelope = checked(_Envelope, read_json(response))
    return Envelope(envelope.request_id[:128], envelope.data)


def read_refusal(response: Response) -> tuple[str, str]:
    """The error's code and text, empty where it has none: proxies answer in other shapes, and their status counts."""
    body = bytes(read_body(response, _MAX_ERROR_BYTES))
    try:
        refusal = _Refusal.model_validate(orjson.loads(body))
    except (orjson.JSONDecodeError, ValidationError):
        return "", body.decode("utf-8", "replace")
    error = refusal.error or _Error(message=str(refusal.detail or ""))
    return error.code, error.message


def checked(model: type[_Model], data: Any) -> _Model:
    """Data of the upstream as a typed value. Errors: `OddAnswer` (which values were wrong stays out of the log)."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise odd_answer(f"{model.__name__}.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def retry_after_seconds(response: Response, now: datetime | None = None) -> int | None:
    """The `Retry-After` header in seconds, as a number or a date; None without a readable one."""
    value = response.headers.get("retry-after", "").strip()
    if value.isdigit():
        return min(int(value), 24 * 3600)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    seconds = (moment.astimezone(UTC) - (now or datetime.now(UTC))).total_seconds()
    return min(max(int(seconds), 0), 24 * 3600)
