"""Common parts of all REST endpoints: parsing by pydantic, rendering by orjson, RFC 9457 errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.http.request import RawPostDataException, UnreadablePostError
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from core import errors
from core.json_data import place_of_nul, repeated_name

logger = logging.getLogger("memory_gateway.errors")

PROBLEM_CONTENT_TYPE = "application/problem+json"
MAX_JSON_BYTES = 2 * 2**20
MAX_JSON_DEPTH = 64
_Model = TypeVar("_Model", bound=BaseModel)


class Body(BaseModel):
    """Base class of request bodies. It refuses unknown fields by name and does not convert text to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Accepts integers as JSON Schema does, where 8.0 is 8. Put it last: `Annotated[int, Field(ge=0), WHOLE]`."""


class Problem(BaseModel):
    """RFC 9457 problem details with the gateway's error code and the invalid fields."""

    class FieldProblem(BaseModel):
        field: str
        message: str

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem]


# An unterminated string runs to the end of the data, so that the scan stays linear for any bytes.
_JSON_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def json_depth_exceeds(data: bytes, limit: int) -> bool:
    """Return True if JSON nests deeper than `limit`, counted outside strings and without parsing."""
    depth = 0
    for match in _JSON_STRUCTURE.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif first in b"]}":
            depth -= 1
    return False


class JsonParser(BaseParser):
    """A parser of `application/json` by orjson. A view with a larger limit sets `max_json_bytes`.

    Raises: 400 for invalid JSON, 413 if it is too large or too deep.
    """

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        context = parser_context or {}
        limit = getattr(context.get("view"), "max_json_bytes", MAX_JSON_BYTES)
        data = stream.read(limit + 1) or b"{}"
        if len(data) > limit:
            raise errors.TooLarge(f"The body must be at most {limit} bytes of JSON.")
        if json_depth_exceeds(data, MAX_JSON_DEPTH):
            raise errors.TooLarge(f"The body must nest at most {MAX_JSON_DEPTH} levels deep.")
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise errors.BadRequest(f"The body is not valid JSON: {error}.") from None
        _require_sound(data, value)
        if "request" in context:
            context["request"]._request.parsed_json = value  # noqa: SLF001 - for the request log, which cannot read it again
        return value


def _require_sound(data: bytes, value: Any) -> None:
    """Check for data that no database can store and for repeated fields, which would be lost silently.

    Raises: `InvalidInput`.
    """
    if b"\\u0000" in data and (place := place_of_nul(value)) is not None:
        raise errors.InvalidInput.of_field(".".join(place) or "body", "must not hold NUL characters (\\u0000)")
    if (name := repeated_name(data)) is not None:
        raise errors.InvalidInput.of_field(name, "is given twice: send it once")


class JsonRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


def parse(model: type[_Model], data: Any) -> _Model:
    """Return plain data as a typed body.

    Raises: `InvalidInput` with every wrong field and its remedy.
    """
    if not isinstance(data, Mapping):
        raise errors.BadRequest("The body must be a JSON object.")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid_input(error) from None


def parse_query(model: type[_Model], request: Request) -> _Model:
    """Return query parameters as a typed object.

    Raises: `InvalidInput`, also for a parameter sent twice with different values.
    """
    for name, values in request.query_params.lists():
        if len(set(values)) > 1:
            raise errors.InvalidInput.of_field(name, "is given twice with different values: send it once")
    return parse(model, request.query_params.dict())


def invalid_input(error: ValidationError) -> errors.InvalidInput:
    """Return pydantic's findings as field errors, without the rejected values."""
    found = [
        errors.FieldError(".".join(str(part) for part in item["loc"]) or "body", _sentence(item))
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return errors.InvalidInput("; ".join(f"{item.field}: {item.message}" for item in found[:5]), errors=found[:50])


_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this request",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "timezone_aware": "must name its time zone, such as 2027-01-31T12:00:00+00:00",
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(
        ("datetime_parsing", "datetime_from_date_parsing"), "must be a time such as 2027-01-31T12:00:00+00:00"
    ),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
}
# Pydantic's messages begin with a subject ("String should have …"); here the field's name precedes them.
_SUBJECT = re.compile(r"^[A-Z]\w+ should ")


def _sentence(item: Any) -> str:
    message = str(item["msg"]).removeprefix("Value error, ").partition(" after validation, not ")[0]
    return _SENTENCES.get(item["type"]) or _SUBJECT.sub("must ", message)


def problem(error: errors.GatewayError) -> dict[str, Any]:
    """Return the `application/problem+json` document of an error."""
    return {
        "type": f"urn:memory-gateway:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "errors": [{"field": item.field, "message": item.message} for item in error.errors],
    }


def problem_headers(error: errors.GatewayError) -> dict[str, str]:
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def problem_http_response(error: errors.GatewayError) -> HttpResponse:
    """Return an error response outside DRF: for middleware, unknown addresses and crashes."""
    return HttpResponse(
        orjson.dumps(problem(error)),
        status=error.status,
        content_type=PROBLEM_CONTENT_TYPE,
        headers=problem_headers(error),
    )


class _MethodNotAllowed(errors.GatewayError):
    status, code, title = 405, "method_not_allowed", "Method not allowed"


class _NotAcceptable(errors.GatewayError):
    status, code, title = 406, "not_acceptable", "Not acceptable"


class Forbidden(errors.GatewayError):
    status, code, title = 403, "forbidden", "Forbidden"


class DatabaseUnavailable(errors.GatewayError):
    status, code, title = 503, "database_unavailable", "The database is unavailable"


class RequestTimeout(errors.GatewayError):
    status, code, title = 408, "request_timeout", "Request timeout"


def _database_unavailable(_: str) -> errors.GatewayError:
    """Return the error for a locked, full, read-only or unreachable database.

    The database's own message goes to the log.
    """
    return DatabaseUnavailable(
        "The database is busy, full or away, and nothing was done: try again.", retry_after_seconds=1
    )


def _unsupported_media_type(media_type: str) -> errors.GatewayError:
    return errors.UnsupportedType(f"The body must be {media_type}, and its Content-Type must say so.")


# Translations of Django's and DRF's exceptions; the first matching class applies.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], Callable[[str], errors.GatewayError]], ...] = (
    ((Http404, exceptions.NotFound), lambda _: errors.NotFound("Nothing is here.")),
    (
        (exceptions.NotAuthenticated, exceptions.AuthenticationFailed),
        lambda _: errors.Unauthenticated("Send a user key: Authorization: Bearer uk_…."),
    ),
    ((PermissionDenied, exceptions.PermissionDenied), lambda _: Forbidden("This is not allowed.")),
    ((exceptions.MethodNotAllowed,), _MethodNotAllowed),
    ((exceptions.NotAcceptable,), lambda _: _NotAcceptable("This endpoint answers application/json.")),
    ((exceptions.UnsupportedMediaType,), lambda _: _unsupported_media_type("application/json")),
    ((RequestDataTooBig,), lambda _: errors.TooLarge("The form fields are too large.")),
    ((OperationalError, InterfaceError), _database_unavailable),
    ((UnreadablePostError,), lambda _: RequestTimeout("The body did not arrive whole.")),
    (
        (exceptions.ParseError, SuspiciousOperation, RawPostDataException),
        lambda message: errors.BadRequest(message or "The request is malformed."),
    ),
)


def as_gateway_error(error: Exception) -> errors.GatewayError | None:
    """Return the error equivalent to an exception; None if the exception is a defect of the gateway."""
    if isinstance(error, errors.GatewayError):
        return error
    for classes, translate in _TRANSLATIONS:
        if isinstance(error, classes):
            return translate(str(error))
    return None


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Handle exceptions for DRF: every error gets one shape; unknown exceptions propagate (500, logged)."""
    known = as_gateway_error(error)
    if known is None:
        return None
    if isinstance(error, exceptions.UnsupportedMediaType):
        known = _unsupported_media_type(context["view"].parser_classes[0].media_type)
    if known.status >= 500:
        logger.warning("%s: %s", known.code, known.detail, exc_info=None if known is error else error)
    request: Request = context["request"]
    # Set both: an error may occur before DRF has chosen them.
    request.accepted_renderer = JsonRenderer()
    request.accepted_media_type = JsonRenderer.media_type
    headers = problem_headers(known)
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return Response(problem(known), status=known.status, headers=headers, content_type=PROBLEM_CONTENT_TYPE)
