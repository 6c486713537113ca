"""Read responses of EverOS: limited in size, JSON only, in one of its envelopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from core.http_client import Response
from engines.everos.client.failures import invalid_response

MAX_ANSWER_BYTES = 16 * 2**20
_MAX_ERROR_BYTES = 64 * 1024
_Model = TypeVar("_Model", bound=BaseModel)


class _Error(BaseModel):
    code: str = ""
    message: str = ""


class _Envelope(BaseModel):
    request_id: str = ""
    data: Any = None


class _Refusal(BaseModel):
    """Both error shapes: `{"error": {...}}` of EverOS, `{"detail": …}` of FastAPI."""

    error: _Error | None = None
    detail: Any = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """A successful answer; `data` is not validated yet."""

    request_id: str
    data: Any


def read_json(response: Response) -> Any:
    """Return the JSON body. Raises: `InvalidResponse` for anything else."""
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise invalid_response(f"{response.status} as {content_type[:80] or 'nothing'}")
    try:
        return orjson.loads(response.body(MAX_ANSWER_BYTES))
    except orjson.JSONDecodeError as error:
        raise invalid_response(f"no JSON: {error}") from None


def read_envelope(response: Response) -> Envelope:
    """Return `{"request_id": …, "data": …}`. Raises: `InvalidResponse`."""
    envelope = checked(_Envelope, read_json(response))
    return Envelope(envelope.request_id[:128], envelope.data)


def read_refusal(response: Response) -> tuple[str, str]:
    """Return the code and text of an error, empty if it has none, as the answers of proxies."""
    body = response.body(_MAX_ERROR_BYTES)
    try:
        refusal = _Refusal.model_validate(orjson.loads(body))
    except (orjson.JSONDecodeError, ValidationError):
        return "", body.decode("utf-8", "replace")
    error = refusal.error or _Error(message=str(refusal.detail or ""))
    return error.code, error.message


def checked(model: type[_Model], data: Any) -> _Model:
    """Return EverOS's data as a typed value. Values stay out of the log.

    Raises: `InvalidResponse`.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise invalid_response(f"{model.__name__}.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
