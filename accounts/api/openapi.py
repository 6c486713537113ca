"""OpenAPI schema of authentication, parameters, bodies and responses.

`authentication` must not import this module: DRF loads it while it reads its settings, before schemas can be defined.
"""

import json
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiRequest, OpenApiResponse
from pydantic import BaseModel, TypeAdapter

from core import errors
from core.rest import PROBLEM_CONTENT_TYPE, Forbidden, Problem, RequestTimeout

_ERRORS: dict[int, tuple[type[errors.GatewayError], str]] = {
    400: (errors.BadRequest, "The request cannot be read: for example, the body is not valid JSON."),
    401: (errors.Unauthenticated, "The API key or token is missing, unknown, expired or revoked."),
    403: (Forbidden, "The request names another user than the one whose API key it has in its header."),
    404: (errors.NotFound, "The object does not exist, or it belongs to another user."),
    408: (RequestTimeout, "The body did not arrive completely in time."),
    409: (errors.Conflict, "The state of the object forbids the request. With `Retry-After`, it can be repeated then."),
    412: (errors.PreconditionFailed, "The ETag does not meet `If-Match` or `If-None-Match`; see `current`."),
    413: (errors.TooLarge, "The request or its file is too large."),
    415: (errors.UnsupportedType, "The media type is not accepted, or the file's content contradicts it."),
    416: (errors.RangeNotSatisfiable, "The range begins behind the end of the file. `Content-Range` gives its size."),
    422: (errors.InvalidInput, "A value is invalid. `errors` names each invalid field and the values it takes."),
    429: (errors.TooManyRequests, "Too many requests. Wait as many seconds as the header `Retry-After` says."),
    502: (errors.EngineRefused, "The memory engine refused the request, or its response cannot be used."),
    503: (errors.EngineUnavailable, "The database or the memory engine is unavailable. Repeat the request later."),
    507: (errors.NoSpace, "The disk or the user's quota is full."),
}

NOT_MODIFIED = OpenApiResponse(description="`If-None-Match` names the current ETag. The response has no body.")


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


def path_parameter(name: str, annotation: Any) -> OpenApiParameter:
    """Return a path parameter with the description and example of its type."""
    schema = TypeAdapter(annotation).json_schema()
    return OpenApiParameter(name, schema, OpenApiParameter.PATH, description=schema.pop("description"))


def request_body(model: type[BaseModel], **values: Any) -> OpenApiRequest:
    """Return a request body. Its example has `values` and, for all other fields, the examples of the fields."""
    return OpenApiRequest(model, examples=[OpenApiExample("Example", values)])


def success(model: Any, description: str, **values: Any) -> OpenApiResponse:
    """Return a successful response. Its example is built like that of `request_body`."""
    return OpenApiResponse(model, description, [OpenApiExample("Example", values)])


def problems(*statuses: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Return these error responses and those of every endpoint that authenticates."""
    return {
        (status, PROBLEM_CONTENT_TYPE): OpenApiResponse(Problem, _ERRORS[status][1], [_problem_example(status)])
        for status in sorted({400, 401, 403, 429, 503, *statuses})
    }


def _problem_example(status: int) -> OpenApiExample:
    error, description = _ERRORS[status]
    invalid = [{"field": "user_id", "message": "is required"}] if error is errors.InvalidInput else []
    value = {
        "type": f"urn:memory-gateway:problem:{error.code}",
        "title": str(error.title),
        "status": status,
        "detail": "user_id: is required" if invalid else description,
        "code": error.code,
        "errors": invalid,
    }
    return OpenApiExample("Example", value)


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Complete the examples of `request_body` and `success`, describe each problem document once, and name defaults.

    A postprocessing hook of drf-spectacular.
    """
    components = result["components"]
    components["responses"] = {}
    for operation in (operation for item in result["paths"].values() for operation in item.values()):
        responses = operation["responses"]
        for status in [status for status in responses if PROBLEM_CONTENT_TYPE in responses[status].get("content", {})]:
            components["responses"][status] = responses[status]
            responses[status] = {"$ref": f"#/components/responses/{status}"}
        for described in [operation.get("requestBody", {}), *responses.values()]:
            for content in described.get("content", {}).values():
                for example in content.get("examples", {}).values():
                    if isinstance(example["value"], dict):
                        found = _example(content["schema"], components["schemas"]) or {}
                        example["value"] = {**found, **example["value"]}
    components["responses"] = dict(sorted(components["responses"].items()))
    for schema in components["schemas"].values():
        _describe_defaults(schema)
    return result


def _describe_defaults(schema: dict[str, Any]) -> None:
    """Move the defaults of optional fields to their descriptions.

    Generators of clients make required fields of those with a `default`.
    """
    for field in schema.get("properties", {}).values():
        default = field.pop("default", None)
        if default not in (None, "", [], {}) and not isinstance(default, dict):
            known = f"{field['description']} " if "description" in field else ""
            field["description"] = f"{known}Default: `{json.dumps(default)}`."
        _describe_defaults(field)
    for part in (schema.get("items"), *schema.get("anyOf", ())):
        if isinstance(part, dict):
            _describe_defaults(part)


def _example(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    """Return an example built from the `examples` of a schema and of the schemas in it; None if they have none."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return _example(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema and "properties" not in schema:
        return next((found for item in schema["anyOf"] if (found := _example(item, components)) is not None), None)
    if "items" in schema:
        item = _example(schema["items"], components)
        return None if item is None else [item]
    fields = {name: _example(field, components) for name, field in schema.get("properties", {}).items()}
    if all(value is None for value in fields.values()):
        return None
    return {name: value for name, value in fields.items() if value is not None or name in schema.get("required", ())}


def _parameter_schema(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema without null: an optional query parameter is left out instead."""
    alternatives: list[dict[str, Any]] = [item for item in field.get("anyOf", []) if item != {"type": "null"}]
    known = {name: value for name, value in field.items() if name not in {"title", "description", "deprecated"}}
    if len(alternatives) != 1:
        return known
    return {name: value for name, value in known.items() if name not in {"anyOf", "default"}} | alternatives[0]


class RequiredBodies(AutoSchema):
    """A schema that describes the body of a DELETE, which drf-spectacular omits, and that of a PATCH as required."""

    def _get_request_body(self, direction: str = "request") -> Any:
        method = self.method
        self.method = "POST" if method == "DELETE" else method
        try:
            body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method
        if body is not None and method == "PATCH":
            body["required"] = True
        return body


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The base class of the descriptions of authentication by a bearer token."""

    description: str

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": self.description}


class UserKeyScheme(BearerScheme):  # type: ignore[no-untyped-call]
    target_class = "accounts.api.authentication.UserKeyAuthentication"
    name = "bearerAuth"
    description = "The user's API key: `Bearer uk_…`."


class ProvisioningScheme(BearerScheme):  # type: ignore[no-untyped-call]
    target_class = "accounts.api.authentication.ProvisioningAuthentication"
    name = "provisioningAuth"
    description = "The provisioning token, if the gateway requires one. Ask the operator."
