"""The OpenAPI schema as tests read it."""

from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

METHODS = ("get", "post", "put", "patch", "delete", "options", "head")


@cache
def schema() -> dict[str, Any]:
    """The whole document."""
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return document


def operations() -> set[tuple[str, str]]:
    """Every (method, path) of the schema, such as ("get", "/resources/{resource_id}")."""
    return {(method, path) for path, item in schema()["paths"].items() for method in METHODS if method in item}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """The part of the document itself, or what it refers to."""
    if "$ref" not in part:
        return part
    found = schema()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return found
