"""Error handlers of Django: problem documents for the API, plain pages for operators."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import is_valid_path

from core.errors import BadRequest, GatewayError, NotFound
from core.request_context import request_id
from core.rest import Forbidden, problem_http_response
from memory_gateway.middleware import is_api
from memory_gateway.server.wsgi_bridge import InternalError


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django passes it by name
    return _answer(request, BadRequest("The request is malformed, or names a host that this gateway does not serve."))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django passes it by name
    return _answer(request, Forbidden("This is not allowed."))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django passes it by name
    return _answer(request, NotFound(f"Nothing is here.{_slash_hint(request.path)}"))


def server_error(request: HttpRequest) -> HttpResponse:
    return _answer(request, InternalError(f"The gateway failed. Its log says more under {request_id.get()}."))


def _slash_hint(path: str) -> str:
    """Return a hint at the same path with or without a trailing slash, if that exists; else an empty string."""
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    return f" There is {other}, though." if other and is_valid_path(other) else ""


def _answer(request: HttpRequest, error: GatewayError) -> HttpResponse:
    if is_api(request.path):
        return problem_http_response(error)
    return render(request, "error.html", {"error": error}, status=error.status)
