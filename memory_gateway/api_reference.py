"""The OpenAPI document as a page for people and agents to read: the same document always gives the same page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

_SHAPES = "x-large-shapes"
_SHAPE_PLACES, _SHAPE_ROWS = 3, 20
METHODS = ("get", "post", "put", "patch", "delete")
_MEANINGS = {
    "400": "the body cannot be read, or two places of the request disagree",
    "401": "no key, or a wrong, ended or somebody else's key",
    "404": "not there, or not yours",
    "409": "it conflicts with what is there",
    "412": "it was changed meanwhile: `If-Match` is stale",
    "413": "too large",
    "415": "a type that is not allowed, or bytes that contradict it",
    "422": "wrong input; `errors` names each field and the remedy",
    "429": "too many requests; `Retry-After` says when to try again",
    "502": "the memory service behind the gateway refused",
    "503": "the memory service behind the gateway is unavailable; `Retry-After` says when to try again",
    "507": "no space left",
}
_INTRODUCTION = """\
# {title}: the REST API

Written by `manage.py write_api_reference` from the gateway's OpenAPI document (version {version}): do not edit.

Send the user's key as the header `Authorization: Bearer uk_…`. Where no header can be sent, every endpoint that needs
a key takes `user_id` and `user_key` in its JSON body, form or query instead; they are left out below. In requests a
field is *required*, or has the default shown. Times in answers read `2026-06-10T10:00:00+00:00`; `[]` marks the items
of a list, `{{…}}` any key of an object.
"""
_ERRORS = """\
## Errors

Every refusal is `application/problem+json` with `type`, `title`, `status`, `detail` (a sentence with the remedy),
`code` and `errors` (a list of `field` and `message`).
"""


class Row(NamedTuple):
    """A field: its dotted name, its type in words, what holds without it, and what it means."""

    name: str
    type: str
    default: str
    meaning: str


def render(document: Schema) -> str:
    """The page in Markdown, ending with a line end. Large shapes that stand in several places are written out once."""
    document = {**document, _SHAPES: _large_shapes(document)}
    operations = list(_operations(document))
    statuses = {status for *_, operation in operations for status in operation["responses"] if status >= "400"}
    parts = [
        _INTRODUCTION.format(**document["info"]),
        _contents(operations),
        *(_section(document, *operation) for operation in operations),
        *(_shape(document, reference) for reference in document[_SHAPES]),
        _ERRORS,
        "\n".join(f"- **{status}**: {_meaning(status)}" for status in sorted(statuses)),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def _large_shapes(document: Schema) -> list[str]:
    """References to them."""
    text = json.dumps(document)
    schemas = document.get("components", {}).get("schemas", {})
    references = [f"#/components/schemas/{name}" for name, schema in schemas.items() if "properties" in schema]
    return [
        reference
        for reference in references
        if text.count(f'"{reference}"') >= _SHAPE_PLACES
        and len(_fields(document, {"$ref": reference}, "", ())) > _SHAPE_ROWS
    ]


def _shape(document: Schema, reference: str) -> str:
    schema = _resolved(document, {"$ref": reference})
    rows = [row._replace(name=f"`{row.name}`") for row in _fields(document, schema, "", ())]
    return f"\n## {_name(reference)}\n\n{_paragraph(schema.get('description', ''))}\n\n{_table('Field', rows)}\n"


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def _meaning(status: str) -> str:
    return _MEANINGS.get(status) or HTTPStatus(int(status)).phrase.lower()


def _contents(operations: list[tuple[str, str, Schema]]) -> str:
    return "\n".join(f"- `{method} {path}`: {operation['summary']}" for method, path, operation in operations)


def _section(document: Schema, method: str, path: str, operation: Schema) -> str:
    parts = [
        f"## {method} {path}",
        f"{_sentence(operation['summary'])} {_paragraph(operation.get('description', ''))}".strip(),
        f"Authentication: {_authentication(operation)}.",
        _parameters(document, operation.get("parameters", [])),
        *_request(document, operation.get("requestBody", {})),
        *_answers(document, operation["responses"]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _authentication(operation: Schema) -> str:
    schemes = {name for alternative in operation.get("security", []) for name in alternative}
    if "keyOrProvisioningAuth" in schemes:
        return "user key, or the provisioning token"
    if "provisioningAuth" in schemes:
        return "the provisioning token as `Authorization: Bearer …`, where the gateway demands one"
    return "the user's key" if schemes else "none"


def _parameters(document: Schema, parameters: list[Schema]) -> str:
    query_names = {item["name"] for item in parameters if item["in"] == "query"}
    shown = [item for item in parameters if not _is_credential(item["name"], query_names)]
    rows = [
        Row(f"`{item['name']}` ({item['in']})", *_field(document, item["schema"], item, item.get("required", False)))
        for item in shown
    ]
    return _table("Parameter", rows)


def _request(document: Schema, body: Schema) -> Iterator[str]:
    for media_type, content in body.get("content", {}).items():
        every_row = _fields(document, content["schema"], "", ())
        names = {row.name for row in every_row}
        rows = [row for row in every_row if not _is_credential(row.name, names)]
        yield f"Body, `{media_type}`:" if rows else f"Body, `{media_type}`: no field of its own."
        yield _table("Field", [row._replace(name=f"`{row.name}`") for row in rows])


def _is_credential(name: str, names: set[str]) -> bool:
    """`user_key`, and the `user_id` beside it: the introduction tells of both."""
    return name in {"user_id", "user_key"} and "user_key" in names


def _answers(document: Schema, responses: Schema) -> Iterator[str]:
    for status, response in sorted(responses.items()):
        if status < "400":
            yield from _answer(document, status, response)
    refusals = ", ".join(status for status in sorted(responses) if status >= "400")
    if refusals:
        yield f"Refusals: {refusals}."


def _answer(document: Schema, status: str, response: Schema) -> Iterator[str]:
    content = response.get("content", {})
    about = _paragraph(response.get("description", ""))
    yield " ".join(filter(None, [f"Answer {status}:", ", ".join(f"`{name}`." for name in content), about]))
    for item in content.values():
        if shapes := [name for name in map(_name, document[_SHAPES]) if name in _type(document, item["schema"])]:
            yield f"It is {_type(document, item['schema'])}: see {', '.join(shapes)} below."
        rows = _fields(document, item["schema"], "", ())
        yield _table("Field", [row._replace(name=f"`{row.name}`") for row in rows], with_default=False)


def _table(title: str, rows: list[Row], *, with_default: bool = True) -> str:
    if not rows:
        return ""
    head = Row(title, "Type", "Default", "Meaning")
    lines = [head, Row(*["---"] * 4), *rows]
    return "\n".join(_line(row if with_default else (row.name, row.type, row.meaning)) for row in lines)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _fields(document: Schema, schema: Schema, prefix: str, seen: tuple[str, ...]) -> list[Row]:
    """The fields of an object and of what is in it, whatever wraps it; a shape within itself is not opened again."""
    reference = schema.get("$ref", "")
    if reference in seen or reference in document.get(_SHAPES, ()):
        return []
    inside = (*seen, reference) if reference else seen
    schema = _resolved(document, schema)
    if _operators(document, schema):
        return []
    rows = []
    for name, field in schema.get("properties", {}).items():
        full_name = f"{prefix}{name}"
        rows.append(Row(full_name, *_field(document, field, field, name in schema.get("required", ()))))
        rows += _fields(document, field, f"{full_name}.", inside)
    for wrapped, mark in _wrapped(schema):
        rows += _fields(document, wrapped, f"{prefix.removesuffix('.')}{mark}", inside)
    return list(dict.fromkeys(rows))


def _wrapped(schema: Schema) -> Iterator[tuple[Schema, str]]:
    """What a list, a map or a choice holds, and how its fields are named."""
    if "items" in schema:
        yield schema["items"], "[]."
    if isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"], ".{…}."
    if "properties" not in schema:  # beside fields of its own a choice says only which of them are required
        yield from ((alternative, ".") for alternative in _alternatives(schema))


def _alternatives(schema: Schema) -> list[Schema]:
    """What the value may be; a type said once holds for each of them."""
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [{"type": schema["type"], **item} for item in alternatives] if "type" in schema else alternatives


def _field(document: Schema, schema: Schema, described: Schema, required: bool) -> tuple[str, str, str]:
    """Type, default and meaning. A parameter is described beside its schema, a field within it."""
    resolved = _resolved(document, schema)
    default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else "none"
    about = described.get("description") or resolved.get("description", "")
    return _type(document, schema), "*required*" if required else default, _paragraph(about)


def _type(document: Schema, schema: Schema) -> str:
    if schema.get("$ref", "") in document.get(_SHAPES, ()):
        return _name(schema["$ref"])
    schema = _resolved(document, schema)
    if alternatives := _alternatives(schema):
        operators = _operators(document, schema)
        rest = [item for item in alternatives if _resolved(document, item) is not operators]
        words = list(dict.fromkeys(_type(document, item) for item in rest))
        return " or ".join([*words, f"object of {_names(operators)}"] if operators else words)
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(document, schema.get('items', {}))}{_limits(schema, 'Items', ' items')}"
    return _plain_type(schema)


def _operators(document: Schema, schema: Schema) -> Schema | None:
    """The object of a field that takes either a plain value or bare operators on such values, as filters do: all that
    there is to say of it are the operators' names.
    """
    alternatives = [_resolved(document, item) for item in _alternatives(schema)]
    values = [item for item in alternatives if item.get("type") in {"string", "integer", "number"}]
    objects = [item for item in alternatives if item.get("properties")]
    if not values or len(objects) != 1 or any("description" in field for field in objects[0]["properties"].values()):
        return None
    return objects[0]


def _names(schema: Schema) -> str:
    return ", ".join(f"`{name}`" for name in schema["properties"])


def _plain_type(schema: Schema) -> str:
    types = schema.get("type", "any")
    name = types if isinstance(types, str) else " or ".join(types)
    form = f" ({schema['format']})" if "format" in schema else ""
    more = f", more than {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""
    numbers = {"minLimit": schema.get("minimum"), "maxLimit": schema.get("maximum")}
    return f"{name}{form}{more}{_limits(schema, 'Length', ' characters')}{_limits(numbers, 'Limit', '')}"


def _limits(schema: Schema, what: str, unit: str) -> str:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and most is not None:
        return f", {least} to {most}{unit}"
    if least is not None:
        return f", at least {least}{unit}"
    return f", at most {most}{unit}" if most is not None else ""


def _resolved(document: Schema, schema: Schema) -> Schema:
    """A reference's target, or the schema itself."""
    references = [item for item in (schema, *schema.get("allOf", ())) if "$ref" in item]
    if not references:
        return schema
    target = document["components"]["schemas"][references[0]["$ref"].rpartition("/")[2]]
    return _resolved(document, target)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _paragraph(text: str) -> str:
    return " ".join(text.split())
