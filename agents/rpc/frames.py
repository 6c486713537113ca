"""OpenClaw's frames: one JSON object per text message.

No value is null and no key is added: the command-line client of protocol 3 drops frames with `"error": null` or unknown
keys.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agents.rpc.connection_limits import MAX_MESSAGE_BYTES
from agents.rpc.failures import Failure, invalid
from core.storable import MAX_JSON_DEPTH, NotStorable, check_json, depth_exceeds, has_surrogates, parse_integer

MAX_ID_CHARS = 256
UNKNOWN_ID = "invalid"


class NotJson(Exception):
    """A message that is not JSON."""


@dataclass(frozen=True, slots=True)
class Request:
    id: str
    method: str
    params: Mapping[str, Any]


class BadFrame(Exception):
    """JSON that is not a request. `id` is that of the error response, `UNKNOWN_ID` if the frame has none."""

    def __init__(self, frame_id: str, reason: str) -> None:
        super().__init__(reason)
        self.id = frame_id
        self.failure = invalid(f"invalid request frame: {reason}")


def read(message: bytes) -> Request:
    """Parse a request. Raises: `NotJson`, `BadFrame`."""
    if depth_exceeds(message, MAX_JSON_DEPTH):
        raise BadFrame(UNKNOWN_ID, f"nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        frame = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise _unreadable(message) from None
    if not isinstance(frame, dict):
        raise BadFrame(UNKNOWN_ID, "must be an object")
    frame_id = frame.get("id")
    if not isinstance(frame_id, str) or not 0 < len(frame_id) <= MAX_ID_CHARS:
        raise BadFrame(UNKNOWN_ID, f"id must be a string of 1 to {MAX_ID_CHARS} characters")
    if frame.get("type") != "req":
        raise BadFrame(frame_id, "type must be req")
    method, params = frame.get("method"), frame.get("params", {})
    if not isinstance(method, str) or not method:
        raise BadFrame(frame_id, "method must be a string that is not empty")
    if params is not None and not isinstance(params, dict):
        raise BadFrame(frame_id, "params must be an object")
    if b"\\u0000" in message and (reason := _unstorable(frame)):
        raise BadFrame(frame_id, reason)
    return Request(frame_id, method, params or {})


def _unreadable(message: bytes) -> NotJson | BadFrame:
    """Return the error for a message that orjson rejects.

    Texts that JavaScript has cut may end in a lone surrogate. They get an error response, for which the sender waits.
    """
    try:
        frame = json.loads(message.decode(), parse_int=parse_integer, parse_constant=_reject_constant)
    except ValueError:
        return NotJson()
    frame_id = frame.get("id") if isinstance(frame, dict) else None
    if not isinstance(frame_id, str) or not 0 < len(frame_id) <= MAX_ID_CHARS or has_surrogates(frame_id):
        frame_id = UNKNOWN_ID
    reason = _unstorable(frame)
    return BadFrame(frame_id, reason) if reason else NotJson()


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _unstorable(frame: object) -> str:
    """Return what the frame contains that cannot be stored, with its field; "" if there is nothing."""
    try:
        check_json(frame)
    except NotStorable as error:
        return f"{error.field('body')}: {error.message}"
    return ""


def succeeded(request_id: str, payload: Mapping[str, Any]) -> bytes:
    """Return a response frame, or an error if it exceeds the client's size limit."""
    frame = orjson.dumps({"type": "res", "id": request_id, "ok": True, "payload": payload})
    if len(frame) > MAX_MESSAGE_BYTES:
        return failed(request_id, invalid(f"the answer exceeds {MAX_MESSAGE_BYTES} bytes: ask for less at once"))
    return frame


def failed(request_id: str, failure: Failure) -> bytes:
    frame: dict[str, Any] = {"type": "res", "id": request_id, "ok": False, "error": failure.error}
    if failure.payload is not None:
        frame["payload"] = failure.payload
    return orjson.dumps(frame)


def event(name: str, payload: Mapping[str, Any], seq: int | None = None) -> bytes:
    frame: dict[str, Any] = {"type": "event", "event": name, "payload": payload}
    if seq is not None:
        frame["seq"] = seq
    return orjson.dumps(frame)
