"""Common parts of all REST endpoints: parsing by pydantic, rendering by orjson, RFC 9457 errors."""

import codecs
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException, UnreadablePostError
from django.utils import translation
from django.utils.translation import gettext_noop
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from core import errors
from core.localization import language_headers, language_of, localized
from core.messages import Translatable
from core.messages import Translatable as _
from core.persistence import database_errors
from core.storable import MAX_JSON_DEPTH, NotStorable, check_json, depth_exceeds, parse_json

logger = logging.getLogger("memory_gateway.errors")

PROBLEM_CONTENT_TYPE = "application/problem+json"
MAX_JSON_BYTES = 2 * 2**20
_Model = TypeVar("_Model", bound=BaseModel)


class Body(BaseModel):
    """Base class of request bodies. It refuses unknown fields by name and does not convert text to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _integer_if_integral(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_integer_if_integral)
"""Accepts integers as JSON Schema does, where 8.0 is 8. Put it last: `Annotated[int, Field(ge=0), WHOLE]`."""


class Problem(BaseModel):
    """An error as RFC 9457 problem details, with an error code and the invalid fields."""

    class FieldProblem(BaseModel):
        """An invalid field of a request."""

        field: str = Field(description="The field's name. Dots separate nested names: `messages.0.content`.")
        message: str = Field(description="Which values are valid, in the language of `Accept-Language`.")

    type: str = Field(description="A URI of the error: `urn:memory-gateway:problem:` followed by `code`.")
    title: str = Field(description="The error in a few words, in the language of `Accept-Language`.")
    status: int = Field(description="The HTTP status code.")
    detail: str = Field(description="What happened and what to do, in the language of `Accept-Language`.")
    code: str = Field(description="The error for programs, such as `invalid_input`, in any language the same.")
    errors: list[FieldProblem] = Field(description="The invalid fields; empty for errors that concern no field.")
    current: Any = Field(None, description="Only with 412: what a GET returns now; null for a file.")
    created: dict[str, str] | None = Field(
        None, description="Only with `already_done`: the ids of what the first request created."
    )
    count: int | None = Field(None, description="Only with `count_changed`: the number of memories that match now.")


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
            raise errors.TooLarge(_("The body must be at most %(limit)s bytes of JSON.", limit=limit))
        data = data.removeprefix(codecs.BOM_UTF8)  # which PowerShell sends, and RFC 8259 lets a parser ignore
        if depth_exceeds(data, MAX_JSON_DEPTH):
            raise errors.TooLarge(_("The body must nest at most %(number)s levels deep.", number=MAX_JSON_DEPTH))
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise _json_error(data, str(error)) from None
        _check_storable(data, value)
        if "request" in context:
            context["request"]._request.parsed_json = value  # noqa: SLF001 - for the request log, which cannot read it again
        return value


def _json_error(data: bytes, reason: str) -> errors.BadRequest:
    """Return the error for JSON that orjson refuses. It names the field of a value that Python's parser accepts."""
    try:
        check_json(parse_json(data))
    except NotStorable as error:
        return errors.BadRequest.of_field(error.field("body"), error.message)
    except ValueError:
        pass
    return errors.BadRequest(_("The body is not valid JSON: %(error)s.", error=reason))


def _check_storable(data: bytes, value: Any) -> None:
    """Refuse NUL characters, which PostgreSQL cannot store, and repeated fields, which the parser would drop.

    Raises: `InvalidInput`.
    """
    if b"\\u0000" in data:
        try:
            check_json(value)
        except NotStorable as error:
            raise errors.InvalidInput.of_field(error.field("body"), error.message) from None
    if (name := repeated_key(data)) is not None:
        raise errors.InvalidInput.of_field(name, _("is given twice: send it once"))


def repeated_key(data: bytes) -> str | None:
    """Return a key that an object of the JSON document repeats: a parser would silently keep the last value."""
    repeated: list[str] = []

    def find(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            repeated.append(Counter(name for name, _ in pairs).most_common(1)[0][0])

    json.loads(data, object_pairs_hook=find, parse_int=str, parse_float=str)
    return repeated[0] if repeated else None


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
        raise errors.BadRequest(_("The body must be a JSON object."))
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
            raise errors.InvalidInput.of_field(name, _("is given twice with different values: send it once"))
    return parse(model, request.query_params.dict())


def invalid_input(error: ValidationError) -> errors.InvalidInput:
    """Return pydantic's findings as field errors, without the rejected values."""
    found = [
        errors.FieldError(".".join(str(part) for part in item["loc"]) or "body", _message(item))
        for item in error.errors(include_url=False, include_input=False)
    ]
    return errors.InvalidInput.of_fields(found)


_MESSAGES = {
    "missing": _("is required"),
    "extra_forbidden": _("is not a field of this request"),
    "string_type": _("must be text"),
    "list_type": _("must be a list"),
    "dict_type": _("must be an object"),
    "model_type": _("must be an object"),
    "timezone_aware": _("must include its time zone, such as 2027-01-31T12:00:00+00:00"),
    **dict.fromkeys(("bool_type", "bool_parsing"), _("must be true or false")),
    **dict.fromkeys(
        ("datetime_parsing", "datetime_from_date_parsing"), _("must be a time such as 2027-01-31T12:00:00+00:00")
    ),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), _("must be a whole number")),
    **dict.fromkeys(("float_type", "float_parsing"), _("must be a number")),
}
# Templates with the parameters that pydantic provides.
_TEMPLATES = {
    "string_too_short": gettext_noop("must have at least %(min_length)s characters"),
    "string_too_long": gettext_noop("must have at most %(max_length)s characters"),
    "too_short": gettext_noop("must have at least %(min_length)s items"),
    "too_long": gettext_noop("must have at most %(max_length)s items"),
    "greater_than_equal": gettext_noop("must be greater than or equal to %(ge)s"),
    "less_than_equal": gettext_noop("must be less than or equal to %(le)s"),
    "literal_error": gettext_noop("must be %(expected)s"),
}
# Pydantic's messages begin with a subject ("String should have …"); here the field's name precedes them.
_SUBJECT = re.compile(r"^[A-Z]\w+ should ")


def _message(item: Any) -> str:
    if item["type"] == "value_error":
        message: str = item["ctx"]["error"].args[0]
        return message
    if item["type"] in {"string_too_short", "too_short"} and item["ctx"]["min_length"] == 1:
        return _("must not be empty")
    if template := _TEMPLATES.get(item["type"]):
        return Translatable(
            template,
            **{name: f"{value:g}" if isinstance(value, float) else value for name, value in item["ctx"].items()},
        )
    return _MESSAGES.get(item["type"]) or _SUBJECT.sub("must ", item["msg"])


def problem(error: errors.GatewayError) -> dict[str, Any]:
    """Return the `application/problem+json` document of an error in the active language."""
    return {
        "type": f"urn:memory-gateway:problem:{error.code}",
        "title": localized(error.title),
        "status": error.status,
        "detail": localized(error.detail),
        "code": error.code,
        "errors": [{"field": item.field, "message": localized(item.message)} for item in error.errors],
        **error.members,
    }


def problem_headers(error: errors.GatewayError) -> dict[str, str]:
    headers = {**error.headers}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(error.retry_after_seconds)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def localized_problem(error: errors.GatewayError, request: HttpRequest) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the document and headers of an error in the language that the request accepts."""
    language = language_of(request)
    with translation.override(language):
        return problem(error), {**problem_headers(error), **language_headers(language)}


def problem_http_response(error: errors.GatewayError, request: HttpRequest) -> HttpResponse:
    """Return an error response outside DRF: for middleware, unknown addresses and crashes."""
    document, headers = localized_problem(error, request)
    return HttpResponse(orjson.dumps(document), status=error.status, content_type=PROBLEM_CONTENT_TYPE, headers=headers)


class MethodNotAllowed(errors.GatewayError):
    status, code, title = 405, "method_not_allowed", _("Method not allowed")


class _NotAcceptable(errors.GatewayError):
    status, code, title = 406, "not_acceptable", _("Not acceptable")


class Forbidden(errors.GatewayError):
    status, code, title = 403, "forbidden", _("Forbidden")


class DatabaseUnavailable(errors.GatewayError):
    status, code, title = 503, "database_unavailable", _("The database is unavailable")


class RequestTimeout(errors.GatewayError):
    status, code, title = 408, "request_timeout", _("Request timeout")


def _unsupported_media_type(media_type: str) -> errors.GatewayError:
    return errors.UnsupportedType(_("The body must be %(media_type)s, with this Content-Type.", media_type=media_type))


# Translations of Django's and DRF's exceptions; the first matching class applies.
_TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], Callable[[str], errors.GatewayError]], ...] = (
    (
        (Http404, exceptions.NotFound),
        lambda _detail: errors.NotFound(_("There is nothing at this address. Check the path.")),
    ),
    (
        (exceptions.NotAuthenticated, exceptions.AuthenticationFailed),
        lambda _detail: errors.Unauthenticated(
            _("The request has no API key. Send the header Authorization: Bearer uk_….")
        ),
    ),
    (
        (PermissionDenied, exceptions.PermissionDenied),
        lambda _detail: Forbidden(_("You do not have permission for this. Ask the operator.")),
    ),
    ((exceptions.MethodNotAllowed,), MethodNotAllowed),
    (
        (exceptions.NotAcceptable,),
        lambda _detail: _NotAcceptable(_("This endpoint returns application/json. Change the Accept header.")),
    ),
    ((exceptions.UnsupportedMediaType,), lambda _detail: _unsupported_media_type("application/json")),
    ((RequestDataTooBig,), lambda _detail: errors.TooLarge(_("The form fields are too large. Send less text."))),
    (
        (OperationalError, InterfaceError),  # the database's own message goes to the log
        lambda _detail: DatabaseUnavailable(
            _("The database is busy or unreachable, and nothing was changed. Repeat the request."),
            retry_after_seconds=1,
        ),
    ),
    (
        (UnreadablePostError,),
        lambda _detail: RequestTimeout(_("The body did not arrive completely. Send the request again.")),
    ),
    (
        (exceptions.ParseError, SuspiciousOperation, RawPostDataException),
        lambda message: errors.BadRequest(message or "The request is malformed."),
    ),
)


def as_gateway_error(error: Exception) -> errors.GatewayError | None:
    """Return the error equivalent to an exception; None if the exception is a defect of the gateway."""
    if isinstance(error, errors.GatewayError):
        return error
    if isinstance(error, DatabaseError) and (refusal := database_errors.explain(error)):
        return refusal
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
        extra = {"cause": error}
        logger.warning("%s: %s", known.code, known.detail, exc_info=None if known is error else error, extra=extra)
    request: Request = context["request"]
    # Set both: an error may occur before DRF has chosen them.
    request.accepted_renderer = JsonRenderer()
    request.accepted_media_type = JsonRenderer.media_type
    document, headers = localized_problem(known, request._request)  # noqa: SLF001 - `Request` has no public way to it
    if isinstance(error, exceptions.MethodNotAllowed):
        headers["Allow"] = ", ".join(context["view"].allowed_methods)
    return Response(document, status=known.status, headers=headers, content_type=PROBLEM_CONTENT_TYPE)
