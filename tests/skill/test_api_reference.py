"""The page that `manage.py write_api_reference` makes of an OpenAPI document."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import call_command

from memory_gateway.api_reference import render
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


def body_rows(schema: dict[str, Any], **schemas: Any) -> list[str]:
    """The rows that a request body of this shape gets."""
    text = page({"requestBody": {"content": {"application/json": {"schema": schema}}}}, **schemas)
    return [line for line in text.splitlines() if line.startswith("| `")]


def body_row(field: dict[str, Any], **schemas: Any) -> str:
    [row] = body_rows({"properties": {"f": field}}, **schemas)
    return row


def test_an_operation_is_listed_and_has_a_section() -> None:
    text = page({"description": "Slowly,\n  and well."})
    assert "- `POST /things`: Do it\n" in text
    assert "\n## POST /things\n\nDo it. Slowly, and well.\n" in text


def test_the_authentication_is_said() -> None:
    assert "Authentication: none." in page({})
    assert "Authentication: the user's key." in page({"security": [{"bearerAuth": []}]})
    assert "Authentication: the provisioning token" in page({"security": [{"provisioningAuth": []}, {}]})


def test_parameters_say_where_they_go_and_what_holds_without_them() -> None:
    text = page(
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}},
                {
                    "name": "limit",
                    "in": "query",
                    "description": "How many.",
                    "schema": {"type": "integer", "default": 8},
                },
                {"name": "Prefer", "in": "header", "schema": {"enum": ["a", "b"]}},
            ]
        }
    )
    assert "| `id` (path) | string (uuid) | *required* |  |\n" in text
    assert "| `limit` (query) | integer | `8` | How many. |\n" in text
    assert '| `Prefer` (header) | `"a"` or `"b"` | none |  |\n' in text


def test_a_large_shape_is_written_out_once_and_named_where_it_stands() -> None:
    large = {"properties": {f"field{number}": {"type": "string"} for number in range(21)}}
    reference = {"$ref": "#/components/schemas/Large"}
    body = {"properties": {"one": reference, "two": reference}}
    answer = {"200": {"description": "", "content": {"application/json": {"schema": reference}}}}
    text = page({"requestBody": {"content": {"application/json": {"schema": body}}}, "responses": answer}, Large=large)
    assert "| `one` | Large | none |" in text
    assert "It is Large: see Large below." in text
    assert text.count("field20") == 1
    assert text.index("\n## Large\n") < text.index("| `field20` | string | none |  |") < text.index("## Errors")


def test_credentials_are_told_of_once_and_not_in_every_table() -> None:
    credentials = {"user_id": {"type": "string"}, "user_key": {"type": "string"}}
    assert body_rows({"properties": {**credentials, "query": {"type": "string"}}}) == ["| `query` | string | none |  |"]
    parameters = [{"name": name, "in": "query", "schema": field} for name, field in credentials.items()]
    assert "user_key` (query)" not in page({"parameters": parameters})


def test_the_user_id_of_a_new_user_is_no_credential() -> None:
    assert body_rows({"properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}) == [
        "| `user_id` | string | *required* |  |"
    ]


def test_types_and_limits_are_said_in_words() -> None:
    nullable = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "default": None}
    assert body_row(nullable) == "| `f` | string (date-time) or null | `null` |  |"
    assert body_row({"type": "integer", "minimum": 0, "maximum": 9}) == "| `f` | integer, 0 to 9 | none |  |"
    assert body_row({"type": "number", "minimum": 0}) == "| `f` | number, at least 0 | none |  |"
    above = {"type": "integer", "exclusiveMinimum": 0, "maximum": 9}
    assert body_row(above) == "| `f` | integer, more than 0, at most 9 | none |  |"
    assert body_row({"type": "string", "maxLength": 9}) == "| `f` | string, at most 9 characters | none |  |"
    assert body_row({"const": "x"}) == '| `f` | `"x"` | none |  |'
    assert body_row({"type": ["string", "null"]}) == "| `f` | string or null | none |  |"
    assert body_row({}) == "| `f` | any | none |  |"
    either = {"type": "integer", "anyOf": [{"const": -1}, {"minimum": 1, "maximum": 9}]}
    assert body_row(either) == "| `f` | `-1` or integer, 1 to 9 | none |  |"
    several = {"type": "array", "items": {"enum": ["a"]}, "minItems": 1, "default": ["值"]}
    assert body_row(several) == '| `f` | list of `"a"`, at least 1 items | `["值"]` |  |'


def test_a_table_cell_cannot_be_broken_by_its_text() -> None:
    assert body_row({"type": "string", "description": "a | b\nc"}) == "| `f` | string | none | a \\| b c |"


def test_fields_are_named_by_the_way_to_them() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}}
    rows = body_rows(
        {
            "properties": {
                "one": {"$ref": "#/components/schemas/Inner"},
                "many": {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}},
                "map": {"type": "object", "additionalProperties": {"allOf": [{"$ref": "#/components/schemas/Inner"}]}},
                "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": inner}]},
            }
        },
        Inner=inner,
    )
    assert [row.split("|")[1].strip() for row in rows] == [
        "`one`",
        "`one.x`",
        "`many`",
        "`many[].x`",
        "`map`",
        "`map.{…}.x`",
        "`either`",
        "`either[].x`",
    ]


def test_what_stands_beside_a_reference_comes_first() -> None:
    field = {"allOf": [{"$ref": "#/components/schemas/Kind"}], "default": "a", "description": "Of this thing."}
    row = body_row(field, Kind={"enum": ["a"], "description": "Of any thing."})
    assert row == '| `f` | `"a"` | `"a"` | Of this thing. |'


def test_operators_on_a_plain_value_are_named_in_a_word() -> None:
    leaf = {"type": "string"}
    rows = body_rows(
        {"properties": {"f": {"anyOf": [leaf, {"$ref": "#/components/schemas/Operators"}]}}},
        Operators={"type": "object", "properties": {"eq": leaf, "in": {"type": "array", "items": leaf}}},
    )
    assert rows == ["| `f` | string or object of `eq`, `in` | none |  |"]


def test_a_choice_of_what_is_required_adds_no_fields() -> None:
    body = {"type": "object", "properties": {"f": {"type": "string"}}}
    assert len(body_rows({**body, "anyOf": [{**body, "required": ["f"]}, {"required": ["g"]}]})) == 1


def test_what_the_alternatives_of_a_choice_share_is_told_once() -> None:
    text = {"properties": {"type": {"const": "text"}, "name": {"type": "string"}}}
    file = {"properties": {"type": {"const": "file"}, "name": {"type": "string"}}}
    assert body_rows({"properties": {"item": {"oneOf": [text, file]}}})[1:] == [
        '| `item.type` | `"text"` | none |  |',
        "| `item.name` | string | none |  |",
        '| `item.type` | `"file"` | none |  |',
    ]


def test_a_shape_within_itself_is_opened_once() -> None:
    node = {"properties": {"child": {"$ref": "#/components/schemas/Node"}}}
    assert len(body_rows({"$ref": "#/components/schemas/Node"}, Node=node)) == 1


def test_answers_and_refusals_are_told_apart() -> None:
    fields = {"properties": {"id": {"type": "string", "default": "x"}}, "required": ["id"]}
    text = page(
        {
            "responses": {
                "404": {"content": {"application/problem+json": {"schema": fields}}},
                "200": {"content": {"application/json": {"schema": fields}}, "description": "Done."},
                "418": {"content": {}},
            }
        }
    )
    assert "Answer 200: `application/json`. Done.\n\n| Field | Type | Meaning |\n| --- | --- | --- |\n" in text
    assert "| `id` | string |  |\n" in text
    assert "Refusals: 404, 418.\n" in text
    assert text.endswith("- **404**: not there, or not yours\n- **418**: i'm a teapot\n")


def test_every_answer_is_told_in_the_order_of_its_status() -> None:
    text = page({"responses": {name: {"description": ""} for name in ("303", "202", "200")}})
    assert [line for line in text.splitlines() if line.startswith("Answer")] == [
        "Answer 200:",
        "Answer 202:",
        "Answer 303:",
    ]


def test_the_command_writes_the_page_of_the_gateway_as_it_is(tmp_path: Path) -> None:
    output, said = tmp_path / "api.md", StringIO()
    call_command("write_api_reference", output=output, stdout=said)
    assert output.read_text(encoding="utf-8") == render(schema())
    assert said.getvalue() == f"{output} is written.\n"


def test_every_endpoint_is_on_the_page() -> None:
    text = render(schema())
    assert all(f"\n## {method.upper()} {path}\n" in text for method, path in operations())
