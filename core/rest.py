"""What every REST endpoint shares: parsing by pydantic, rendering by orjson, one shape of error (RFC 9457)."""

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
    """Base of every request body: unknown fields are refused by name, text is never turned into numbers silently."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Reads integers as JSON schema does, where 8.0 is 8. It comes last: `Annotated[int, Field(ge=0), WHOLE]`."""


class Problem(BaseModel):
    """RFC 9457 problem details, with our code and the fields that were wrong."""

    class FieldProblem(BaseModel):
        field: str
        message: str

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem]


# A string that never ends runs to the end of the data, so that the scan stays linear for any bytes.
_JSON_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def json_depth_exceeds(data: bytes, limit: int) -> bool:
    """Whether JSON nests deeper than `limit`, counted outside strings and without building anything."""
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
    """`application/json` by orjson. Errors: 400 for what is no JSON, 413 for too much or too deep.

    A view with a larger cap sets `max_json_bytes`.
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
    """Errors: `InvalidInput` for what no database keeps, and for what would go without a word."""
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
    """Plain data into a typed body. Errors: `InvalidInput` naming every wrong field and the remedy."""
    if not isinstance(data, Mapping):
        raise errors.BadRequest("The body must be a JSON object.")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise invalid_input(error) from None


def parse_query(model: type[_Model], request: Request) -> _Model:
    """The same for the parameters of an address. Errors: also for one that is given twice with different values."""
    for name, values in request.query_params.lists():
        if len(set(values)) > 1:
            raise errors.InvalidInput.of_field(name, "is given twice with different values: send it once")
    return parse(model, request.query_params.dict())


def invalid_input(error: ValidationError) -> errors.InvalidInput:
    """Pydantic's findings as field errors; the rejected values themselves are not repeated."""
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
# Pydantic's own begin with what they speak of ("String should have …"); here the field's name stands before them.
_SUBJECT = re.compile(r"^[A-Z]\w+ should ")


def _sentence(item: Any) -> str:
    message = str(item["msg"]).removeprefix("Value error, ").partition(" after validation, not ")[0]
    return _SENTENCES.get(item["type"]) or _SUBJECT.sub("must ", message)


def problem(error: errors.GatewayError) -> dict[str, Any]:
    """The `application/problem+json` document of an error."""
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
    """The same document where DRF is not at work: middleware, unknown addresses, crashes."""
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


def _database_trouble(_: str) -> errors.GatewayError:
    """Locked, full, read-only or away: nothing was done, and its own words are for our log."""
    return DatabaseUnavailable(
        "The database is busy, full or away, and nothing was done: try again.", retry_after_seconds=1
    )


def _unread(media_type: str) -> errors.GatewayError:
    return errors.UnsupportedType(f"The body must be {media_type}, and its Content-Type must say so.")


# Django's and DRF's own exceptions in our words: the first class that fits decides.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], Callable[[str], errors.GatewayError]], ...] = (
    ((Http404, exceptions.NotFound), lambda _: errors.NotFound("Nothing is here.")),
    (
        (exceptions.NotAuthenticated, exceptions.AuthenticationFailed),
        lambda _: errors.Unauthenticated("Send a user key: Authorization: Bearer uk_…."),
    ),
    ((PermissionDenied, exceptions.PermissionDenied), lambda _: Forbidden("This is not allowed.")),
    ((exceptions.MethodNotAllowed,), _MethodNotAllowed),
    ((exceptions.NotAcceptable,), lambda _: _NotAcceptable("This endpoint answers application/json.")),
    ((exceptions.UnsupportedMediaType,), lambda _: _unread("application/json")),
    ((RequestDataTooBig,), lambda _: errors.TooLarge("The form fields are too large.")),
    ((OperationalError, InterfaceError), _database_trouble),
    ((UnreadablePostError,), lambda _: RequestTimeout("The body did not arrive whole.")),
    (
        (exceptions.ParseError, SuspiciousOperation, RawPostDataException),
        lambda said: errors.BadRequest(said or "The request is malformed."),
    ),
)


def as_gateway_error(error: Exception) -> errors.GatewayError | None:
    """The refusal that an exception means; None for what is a defect of ours."""
    if isinstance(error, errors.GatewayError):
        return error
    for classes, translate in _TRANSLATIONS:
        if isinstance(error, classes):
            return translate(str(error))
    return None


def problem_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: one shape for every refusal; an unknown exception stays one (500, logged)."""
    known = as_gateway_error(error)
    if known is None:
        return None
    if isinstance(error, exceptions.UnsupportedMediaType):
        known = _unread(context["view"].parser_classes[0].media_type)
    if known.status >= 500:
        logger.warning("%s: %s", known.code, known.detail, exc_info=None if known is error else error)
    request: Request = context["request"]
    # Both: a refusal may come before DRF has chosen them.
    request.accepted_renderer = JsonRenderer()
    request.accepted_media_type = JsonRenderer.media_type
    headers = problem_headers(known)
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return Response(problem(known), status=known.status, headers=headers, content_type=PROBLEM_CONTENT_TYPE)
