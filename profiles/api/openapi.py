"""OpenAPI schema extensions for these endpoints."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel

from profiles.merge import REMOVE

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="ETags of the document: 412 if it has none of them now."
)
KIND = OpenApiParameter("kind", str, OpenApiParameter.PATH, enum=["user", "work"])
_NAMED = ("type", "description", "additionalProperties")


class RequiredBody(AutoSchema):
    """A PATCH endpoint with a required body; the generator takes all of it as optional."""

    def _get_request_body(self, direction: str = "request") -> Any:
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body is not None and self.method == "PATCH":
            body["required"] = True
        return body


def patch_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a document's patch: any part of it, null for a default, and entries to remove.

    The schema has no references, because it is embedded in another schema.
    """
    schema = model.model_json_schema()
    return _object(schema, schema["$defs"])


def _object(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    fields = {
        name: field if name in required else _field(field, definitions) for name, field in schema["properties"].items()
    }
    if "name" in fields:
        fields[REMOVE] = {"type": "boolean"}
    return {**{key: schema[key] for key in _NAMED if key in schema}, "properties": fields, "required": required}


def _field(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the field's schema with null allowed and without its default."""
    known = {key: value for key, value in field.items() if key not in {"default", "title"}}
    if "$ref" in known:
        known = _object(definitions[known["$ref"].rpartition("/")[2]], definitions)
    if "$ref" in known.get("items", {}):
        known = {**known, "items": _object(definitions[known["items"]["$ref"].rpartition("/")[2]], definitions)}
    alternatives = known.get("anyOf", [known])
    return {"anyOf": [item for item in alternatives if item != {"type": "null"}] + [{"type": "null"}]}
