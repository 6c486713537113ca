"""The page that `manage.py write_api_reference` makes of an OpenAPI document."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from memory_gateway.management.commands.write_api_reference import render
from tests.openapi import operations, schema


def page(operation: dict[str, Any], **schemas: Any) -> str:
    """The page of a document with one operation, POST /things."""
    described = {"summary": "Do it", "responses": {"200": {"description": ""}}, **operation}
    return render(
        {
            "info": {"title": "T", "version": "9"},
            "paths": {"/things": {"post": described}},
            "components": {"schemas": schemas},
        }
    )


def rows(schema: dict[str, Any]) -> list[str]:
    """The rows of a schema's fields."""
    return [line for line in page({}, Thing=schema).splitlines() if line.startswith("| `")]


def row(field: dict[str, Any]) -> str:
    [only] = rows({"properties": {"f": field}})
    return only


def test_an_operation_is_listed_and_has_a_section() -> None:
    text = page({"description": "Slowly,\n  and well.", "security": [{"bearerAuth": []}]})
    assert "- `POST /things`: Do it\n" in text
    assert "\n## POST /things\n\n**Do it** Slowly, and well.\n\nAuthentication: user key.\n\nAnswer 200:" in text


@pytest.mark.parametrize(
    ("security", "words"),
    [
        ([], "Authentication: none."),
        ([{"bearerAuth": []}], "Authentication: user key."),
        ([{"provisioningAuth": []}, {}], "Authentication: the provisioning token"),
        ([{"keyOrProvisioningAuth": []}], "Authentication: user key, or the provisioning token."),
        ([{"keyOrTokenAuth": []}], "Authentication: user key, or an OpenClaw token with the token scope"),
    ],
)
def test_authentication_is_named(security: list[Any], words: str) -> None:
    assert words in page({"security": security})


def test_parameters_have_place_type_and_default() -> None:
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}},
        {"name": "limit", "in": "query", "description": "How many.", "schema": {"type": "integer", "default": 8}},
    ]
    text = page({"parameters": parameters})
    assert "| `id` (path) | string, (uuid) | *required* |  |\n| `limit` (query) | integer | `8` | How many. |\n" in text


def test_bodies_and_answers_name_their_schema() -> None:
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}}
    problems = {status: {"$ref": f"#/components/responses/{status}"} for status in ("404", "418")}
    answers = {**problems, "202": {**content, "description": "Soon."}, "200": {"description": "Done."}}
    text = page({"requestBody": content, "responses": answers}, Thing={"properties": {"f": {"type": "string"}}})
    assert (
        "\nBody: `application/json`, Thing.\n\nAnswer 200: Done.\n\nAnswer 202: `application/json`, Thing. Soon.\n"
        in text
    )
    assert "\nErrors: 404, 418.\n" in text
    assert "\n### Thing\n\n| Field |" in text


def test_credentials_are_left_out_where_both_are_taken() -> None:
    credentials = {"user_id": {"type": "string"}, "user_key": {"type": "string"}}
    assert rows({"properties": {**credentials, "query": {"type": "string"}}}) == ["| `query` | string | none |  |"]
    assert rows({"properties": {"user_id": {"type": "string"}}}) == ["| `user_id` | string | none |  |"]
    parameters = [{"name": name, "in": "query", "schema": field} for name, field in credentials.items()]
    assert "user_key` (query)" not in page({"parameters": parameters})


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}]}, "string, at most 9 characters or null"),
        ({"type": "integer", "minimum": 0, "maximum": 9}, "integer, at least 0, at most 9"),
        ({"type": "integer", "exclusiveMinimum": 0}, "integer, more than 0"),
        ({"type": "integer", "anyOf": [{"const": -1}, {"minimum": 1}]}, "`-1` or integer, at least 1"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}, 'list of `"a"` or `"b"`, at least 1 items'),
        ({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Thing"}}, "object of Thing"),
        ({"allOf": [{"$ref": "#/components/schemas/Thing"}]}, "Thing"),
        ({"type": ["string", "null"]}, "string or null"),
        ({}, "any"),
    ],
)
def test_types_and_limits_are_named(field: dict[str, Any], words: str) -> None:
    assert row(field) == f"| `f` | {words} | none |  |"


def test_a_description_cannot_break_its_table() -> None:
    assert row({"default": ["值"], "description": "a | b\nc"}) == '| `f` | any | `["值"]` | a \\| b c |'


def test_objects_without_a_name_show_their_fields() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    found = rows({"properties": {"f": inner, "g": {"anyOf": [{"type": "array", "items": inner}, {"type": "null"}]}}})
    assert [line.split("|")[1].strip() for line in found] == ["`f`", "`f.x`", "`g`", "`g[].x`"]
    assert found[1] == "| `f.x` | string | *required* |  |"


def test_the_command_writes_the_page_of_the_gateway_as_it_is(tmp_path: Path) -> None:
    output, said = tmp_path / "api.md", StringIO()
    call_command("write_api_reference", output=output, stdout=said)
    assert output.read_text(encoding="utf-8") == render(schema())
    assert said.getvalue() == f"Wrote {output}.\n"


def test_every_endpoint_schema_and_error_is_on_the_page() -> None:
    text = render(schema())
    assert all(f"\n## {method.upper()} {path}\n" in text for method, path in operations())
    assert all(f"\n### {name}\n" in text for name in schema()["components"]["schemas"])
    statuses = set(re.findall(r"\b[45]\d\d\b", " ".join(re.findall(r"^Errors: (.*)", text, re.MULTILINE))))
    assert {status for status in statuses if f"\n- **{status}**: " not in text} == set()
