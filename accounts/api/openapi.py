"""OpenAPI schema of authentication, query parameters and error responses.

Not imported by `authentication`, which DRF loads while it reads its settings, before schemas can be defined.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel

from core.rest import PROBLEM_CONTENT_TYPE, Problem


def query_parameters(model: type[BaseModel]) -> list[OpenApiParameter]:
    """Return the fields of a query model, for `@extend_schema(parameters=…)`."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        OpenApiParameter(
            name=name,
            type=_parameter_schema(field),
            description=field.get("description", ""),
            required=name in required,
            deprecated=field.get("deprecated", False),
        )
        for name, field in schema["properties"].items()
    ]


def problems(*statuses: int) -> dict[tuple[int, str], type[Problem]]:
    """Return the error responses of an endpoint, for `@extend_schema(responses=…)`."""
    return {(status, PROBLEM_CONTENT_TYPE): Problem for status in statuses}


def _parameter_schema(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema without null: an optional query parameter is left out instead."""
    alternatives: list[dict[str, Any]] = [item for item in field.get("anyOf", []) if item != {"type": "null"}]
    known = {name: value for name, value in field.items() if name not in {"title", "description", "deprecated"}}
    if len(alternatives) != 1:
        return known
    return {name: value for name, value in known.items() if name not in {"anyOf", "default"}} | alternatives[0]


class UserKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.api.authentication.UserKeyAuthentication"
    name = "bearerAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A user's key: `Bearer uk_…`."}


class ProvisioningScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.api.authentication.ProvisioningAuthentication"
    name = "provisioningAuth"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "The provisioning token; not needed under the `local` profile unless one is set.",
        }
