"""Markdown page of the REST API, generated from its OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.template.loader import render_to_string
from drf_spectacular.generators import SchemaGenerator

Schema = Mapping[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
_LIMITS = {
    "format": "({})",
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}


def render(document: Schema) -> str:
    operations = [
        _operation(method, path, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]
    schemas = [
        {
            "name": name,
            "description": _line(schema.get("description", "")),
            "type": _type(schema),
            "rows": _without_credentials(list(_fields(schema, ""))),
        }
        for name, schema in document["components"]["schemas"].items()
    ]
    errors = document["components"].get("responses", {})
    context = {**document["info"], "operations": operations, "schemas": schemas, "errors": errors}
    page = render_to_string("api_reference.md", context)
    return re.sub(r" *\n(?: *\n)+", "\n\n", page).rstrip("\n") + "\n"


def _operation(method: str, path: str, operation: Schema) -> Schema:
    parameters = [
        {**_row(item["name"], item["schema"], item, item.get("required", False)), "place": f" ({item['in']})"}
        for item in operation.get("parameters", ())
    ]
    return {
        "name": f"{method.upper()} {path}",
        "summary": operation["summary"],
        "description": _line(operation.get("description", "")),
        "authentication": _authentication(operation),
        "parameters": _without_credentials(parameters),
        "bodies": _contents(operation.get("requestBody", {})),
        "answers": [
            (status, _line(answer.get("description", "")), _contents(answer))
            for status, answer in sorted(operation["responses"].items())
            if "$ref" not in answer
        ],
        "errors": [status for status, answer in sorted(operation["responses"].items()) if "$ref" in answer],
    }


def _contents(described: Schema) -> list[tuple[str, str]]:
    return [(media_type, _type(content["schema"])) for media_type, content in described.get("content", {}).items()]


def _authentication(operation: Schema) -> str:
    schemes = {name for alternative in operation.get("security", []) for name in alternative}
    if "keyOrProvisioningAuth" in schemes:
        return "user key, or the provisioning token"
    if "provisioningAuth" in schemes:
        return "the provisioning token as `Authorization: Bearer …`, if the gateway requires one"
    if "keyOrTokenAuth" in schemes:
        return "user key, or an OpenClaw token with the token scope `operator.write`"
    return "user key" if schemes else "none"


def _fields(schema: Schema, prefix: str) -> Iterator[Schema]:
    """Yield the fields of an object and of its unnamed objects. Named schemas have their own tables."""
    for name, field in schema.get("properties", {}).items():
        yield _row(f"{prefix}{name}", field, field, name in schema.get("required", ()))
        for inner, mark in _unnamed_objects(field):
            yield from _fields(inner, f"{prefix}{name}{mark}.")


def _unnamed_objects(schema: Schema) -> Iterator[tuple[Schema, str]]:
    if "properties" in schema:
        yield schema, ""
    for alternative in schema.get("anyOf", ()):
        yield from _unnamed_objects(alternative)
    if "items" in schema:
        yield from ((inner, f"[]{mark}") for inner, mark in _unnamed_objects(schema["items"]))


def _row(name: str, schema: Schema, described: Schema, required: bool) -> Schema:
    description, _, of_body = _line(described.get("description", "")).partition("Default: ")
    default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`" if "default" in schema else "none"
    return {
        "name": name,
        "type": _type(schema),
        "default": "*required*" if required else of_body.removesuffix(".") or default,
        "description": description.strip().replace("|", "\\|"),
    }


def _without_credentials(rows: Sequence[Schema]) -> list[Schema]:
    """Return the rows without `user_key` and its `user_id`, which the introduction describes."""
    hidden = {"user_id", "user_key"} if any(row["name"] == "user_key" for row in rows) else set()
    return [row for row in rows if row["name"] not in hidden]


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if alternatives := [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]:
        shared = {"type": schema["type"]} if "type" in schema else {}
        return " or ".join(dict.fromkeys(_type({**shared, **item}) for item in alternatives))
    if "enum" in schema or "const" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
    types = schema.get("type", "any")
    name = types if isinstance(types, str) else " or ".join(types)
    if name == "array":
        name = f"list of {_type(schema.get('items', {}))}"
    elif isinstance(schema.get("additionalProperties"), Mapping):
        name = f"object of {_type(schema['additionalProperties'])}"
    limits = [text.format(schema[key]) for key, text in _LIMITS.items() if key in schema]
    return ", ".join([name, *limits])


def _line(text: str) -> str:
    return " ".join(text.split())


REFERENCE = Path("skill/memory-gateway-agent/references/api.md")


class Command(BaseCommand):
    help = f"Generate the REST API reference ({REFERENCE}) from the OpenAPI document."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--output", type=Path, default=settings.BASE_DIR / REFERENCE, help="file to write (default: %(default)s)"
        )

    def handle(self, *args: Any, output: Path, **options: Any) -> None:
        output.write_text(current_reference(), encoding="utf-8")
        self.stdout.write(f"Wrote {output}.")


def current_reference() -> str:
    """Return the page generated from the current code."""
    return render(SchemaGenerator().get_schema(request=None, public=True))  # type: ignore[no-untyped-call]
