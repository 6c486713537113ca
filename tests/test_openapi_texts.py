"""Every part of the OpenAPI document is described, and every body and response has an example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.openapi import operations, resolved, schema


def fields(part: dict[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All fields of a schema and of the unnamed schemas in it. An alternative may name a field to require it."""
    for name, field in part.get("properties", {}).items():
        yield f"{place}.{name}", field
        yield from fields(field, f"{place}.{name}")
    for inner in [*part.get("oneOf", ()), *part.get("allOf", ()), part.get("items"), part.get("additionalProperties")]:
        yield from fields(inner, f"{place}[]") if isinstance(inner, dict) else ()
    for inner in part.get("anyOf", ()):
        yield from () if "required" in inner and "description" not in inner else fields(inner, place)


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in schema()["components"]["schemas"].items():
        yield name, part
        yield from fields(part, name)
    for method, path in operations():
        operation, place = schema()["paths"][path][method], f"{method.upper()} {path}"
        yield place, operation
        yield from ((f"{place} {parameter['name']}", parameter) for parameter in operation.get("parameters", ()))
        yield from ((f"{place} {status}", resolved(found)) for status, found in operation["responses"].items())


def exemplified() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what needs an example: each required parameter, body and response."""
    for method, path in operations():
        operation, place = schema()["paths"][path][method], f"{method.upper()} {path}"
        for parameter in operation.get("parameters", ()):
            if parameter.get("required"):
                yield f"{place} {parameter['name']}", parameter["schema"]
        for part in [operation.get("requestBody", {}), *map(resolved, operation["responses"].values())]:
            yield from ((f"{place} {media_type}", content) for media_type, content in part.get("content", {}).items())


def test_every_operation_parameter_field_and_response_has_a_description() -> None:
    assert [place for place, part in described() if not part.get("description", "").strip()] == []


def test_every_required_parameter_body_and_response_has_an_example() -> None:
    assert [place for place, part in exemplified() if not part.get("examples")] == []


def test_no_text_for_callers_names_a_setting() -> None:
    assert [place for place, part in described() if "MEMORY_GATEWAY_" in part.get("description", "")] == []


@pytest.mark.parametrize(
    "part",
    [
        {"properties": {"a": {"properties": {"b": {}}}}},
        {"items": {"properties": {"a": {}}}},
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}}}]},
        {"additionalProperties": {"properties": {"a": {}}}},
    ],
)
def test_the_walk_finds_fields_at_any_depth(part: dict[str, Any]) -> None:
    assert [place for place, field in fields(part, "") if "description" not in field]
