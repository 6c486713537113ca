"""What the schema must be told about these endpoints."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema


class BodyOnDelete(AutoSchema):
    """A DELETE whose body says which memory is meant: OpenAPI 3.1 allows it, the generator leaves it out. And a PATCH
    whose body must say something, though no single field is required."""

    def _get_request_body(self, direction: str = "request") -> Any:
        if self.method == "DELETE":
            return self._body_as_of_post(direction)
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body is not None and self.method == "PATCH":
            body["required"] = True
        return body

    def _body_as_of_post(self, direction: str) -> Any:
        self.method = "POST"
        try:
            return super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = "DELETE"
