"""One parser, one renderer, one shape of error for all endpoints."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from django.http import Http404
from pydantic import Field

from core import errors, rest


class Order(rest.Body):
    class Line(rest.Body):
        name: str
        count: int

    lines: list[Line]
    note: str = ""


def parse(data: bytes, **view: Any) -> Any:
    return rest.JsonParser().parse(io.BytesIO(data), parser_context={"view": SimpleNamespace(**view)})


def test_a_body_that_is_not_json_is_400() -> None:
    with pytest.raises(errors.BadRequest, match="not valid JSON"):
        parse(b"{")


def test_an_empty_body_is_an_empty_object() -> None:
    assert parse(b"") == {}


def test_a_body_above_the_limit_of_its_view_is_413() -> None:
    assert parse(b'{"a":1}', max_json_bytes=7) == {"a": 1}
    with pytest.raises(errors.TooLarge, match="at most 6 bytes"):
        parse(b'{"a":1}', max_json_bytes=6)


def test_a_body_that_nests_too_deep_is_refused_before_parsing() -> None:
    assert parse(b"[" * 64 + b"]" * 64) is not None
    with pytest.raises(errors.TooLarge, match="64 levels"):
        parse(b"[" * 65 + b"]" * 65)
    with pytest.raises(errors.TooLarge):
        parse(b'{"a":' * 500_000)


@pytest.mark.parametrize(
    ("data", "field"), [(b'{"a":"\\u0000"}', "a"), (b'{"a":[{"\\u0000":1}]}', "a.0"), (b'{"\\u0000":1}', "body")]
)
def test_nul_characters_are_refused_in_keys_and_values(data: bytes, field: str) -> None:
    with pytest.raises(errors.InvalidInput, match="NUL") as caught:
        parse(data)
    assert caught.value.errors[0].field == field


def test_repeated_fields_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="query: is given twice"):
        parse(b'{"query": "tea", "query": "coffee"}')


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        (b'{"a":"\\ud800"}', "a", "must not contain a lone surrogate"),
        (b'{"messages":[{"content":"a \\udc00 b"}]}', "messages.0.content", "must not contain a lone surrogate"),
        (b'{"filters":{"\\ud83d":1}}', "filters", "must not contain a lone surrogate"),
        (b'"\\ud800"', "body", "must not contain a lone surrogate"),
        (b'{"a":[1,{"n":1e999}]}', "a.1.n", "is too large a number"),
        (b'{"n":%s}' % (b"9" * 5000), "n", "is too large a number"),
        (b'{"n": Infinity}', "n", "is too large a number"),
        (b'{"n": [NaN]}', "n.0", "must be a number"),
    ],
)
def test_values_that_json_allows_and_no_database_stores_are_refused_by_field(
    data: bytes, field: str, message: str
) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        parse(data)
    (error,) = caught.value.errors
    assert error.field == field
    assert error.message.startswith(message)
    assert caught.value.detail == f"{field}: {error.message}"


@pytest.mark.parametrize("data", [b'{"a":"\\ud800"', b'"\xff"', b"{'a':1}"])
def test_what_is_no_json_is_refused_as_a_whole(data: bytes) -> None:
    with pytest.raises(errors.BadRequest, match="The body is not valid JSON") as caught:
        parse(data)
    assert caught.value.errors == ()


def test_every_invalid_field_is_named_without_its_value() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        rest.parse(Order, {"lines": [{"name": "a", "count": "3"}, {"count": 1}], "user_kay": "uk_secret"})
    assert [item.field for item in caught.value.errors] == ["lines.0.count", "lines.1.name", "user_kay"]
    assert caught.value.errors[1].message == "is required"
    assert caught.value.errors[2].message == "is not a field of this request"
    assert "uk_secret" not in json.dumps(rest.problem(caught.value))


@pytest.mark.parametrize("data", [[], "x", 3, None])
def test_a_body_that_is_not_an_object_is_400(data: Any) -> None:
    with pytest.raises(errors.BadRequest, match="JSON object"):
        rest.parse(Order, data)


def test_a_problem_has_the_same_members_for_every_error() -> None:
    for error in (errors.Conflict("Busy."), errors.NotFound.of_field("id", "is unknown")):
        assert set(rest.problem(error)) == {"type", "title", "status", "detail", "code", "errors"}


def test_a_problem_has_retry_after_and_www_authenticate_headers() -> None:
    assert rest.problem_headers(errors.TooManyRequests("Slow down.", retry_after_seconds=7)) == {"Retry-After": "7"}
    assert rest.problem_headers(errors.Unauthenticated("Who?")) == {"WWW-Authenticate": "Bearer"}


def test_django_exceptions_become_gateway_errors_and_others_do_not() -> None:
    found = rest.as_gateway_error(Http404("x"))
    assert found is not None
    assert (found.status, found.code) == (404, "not_found")
    assert rest.as_gateway_error(KeyError("x")) is None


class Shop(rest.Body):
    name: str = Field("", min_length=1, max_length=3)
    open: bool = False
    lines: list[int] = Field([], min_length=1)
    rate: float = Field(0, ge=0, le=1)
    size: Literal["s", "m"] = "s"
    order: Order | None = None


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", 5, "must be text"),
        ("name", "", "must not be empty"),
        ("name", "abcd", "must have at most 3 characters"),
        ("open", "yes", "must be true or false"),
        ("lines", {}, "must be a list"),
        ("lines", [], "must not be empty"),
        ("lines.0", ["1"], "must be a whole number"),
        ("rate", "x", "must be a number"),
        ("rate", 2, "must be less than or equal to 1"),
        ("size", "l", "must be 's' or 'm'"),
        ("order", [], "must be an object"),
    ],
)
def test_field_errors_name_the_valid_values(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        rest.parse(Shop, {field.partition(".")[0]: value})
    assert [(item.field, item.message) for item in caught.value.errors] == [(field, sentence)]
