"""Middleware around every request: request id, request log and common response headers.

Sessions, languages and messages apply to pages only; API requests skip them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.middleware import locale
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from rest_framework.response import Response

from accounts.principal import Principal
from core.metrics import count_request
from core.request_context import choose_request_id, request_id
from core.rest import PROBLEM_CONTENT_TYPE, JsonRenderer, RequestTimeout, problem_http_response
from memory_gateway import request_log

# RFC 9745. Keys belong in the Authorization header since the first release: 2026-01-01T00:00:00Z.
DEPRECATION = "@1767225600"


# The policy of a response that is not a page: nothing may run or load. `responses` sends the same outside Django.
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
_DATA_TYPES = ("application/json", PROBLEM_CONTENT_TYPE)
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


# OpenClaw's plugin serves the panel here; all paths below are that page, except its former API.
_PANEL, _PANEL_API = "/plugins/memory", "/plugins/memory/api/"


def is_api(path: str) -> bool:
    """Return True for all paths but the operators' pages and static files."""
    return not (_is_operators(path) or path.startswith(settings.STATIC_URL))


def _is_operators(path: str) -> bool:
    is_panel = path == _PANEL or (path.startswith(f"{_PANEL}/") and not path.startswith(_PANEL_API))
    return is_panel or path.startswith("/admin/")


class _PagesOnly(MiddlewareMixin):
    """Base class for middleware that skips API requests.

    With a stale session cookie Django would save a session for each API request. The middleware for users and messages
    needs a session, so it is skipped too.
    """

    def __call__(self, request: HttpRequest) -> Any:
        return super().__call__(request) if _is_page(request.path) else self.get_response(request)


def _is_page(path: str) -> bool:
    return _is_operators(path) or path.startswith("/api/") or path == "/metrics"


class SessionMiddleware(_PagesOnly, sessions.SessionMiddleware):
    pass


class LocaleMiddleware(_PagesOnly, locale.LocaleMiddleware):
    def process_response(self, request: HttpRequest, response: Any) -> Any:
        """Reset the language: it must not leak into the thread's next request."""
        answered = super().process_response(request, response)
        translation.deactivate()
        return answered


class AuthenticationMiddleware(_PagesOnly, auth.AuthenticationMiddleware):
    pass


class MessageMiddleware(_PagesOnly, messages.MessageMiddleware):
    pass


class PolicyMiddleware(CSPMiddleware):
    """Content security policy: `CONTENT_SECURITY_POLICY` for pages, a stricter policy for data."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.get("Content-Type") in _DATA_TYPES:
            response.headers.setdefault(HEADER, DATA_POLICY)
            return response
        return super().process_response(request, response)


class RequestLog:
    """Request log and metrics. It comes first, so that it sees the responses of all other middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started_at, began = datetime.now(UTC), time.perf_counter()
        # Under the ASGI router the id is already set.
        token = request_id.set(request_id.get() or choose_request_id(request.headers.get("X-Request-Id", "")))
        try:
            response = self._get_response(request)
            response["X-Request-Id"] = request_id.get()
            _count(request, response, time.perf_counter() - began)
            if is_api(request.path):
                _finish_api_answer(request, response)
                request_log.write(_exchange(request, response, started_at, (time.perf_counter() - began) * 1000))
            elif request.path.startswith("/admin/"):
                # With "no-referrer" browsers send `Origin: null` with every form, which the CSRF check must refuse.
                response["Referrer-Policy"] = "same-origin"
            return response
        finally:
            request_id.reset(token)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return a client error for a body that broke off, instead of a 500 with a traceback."""
        if isinstance(exception, UnreadablePostError):
            return problem_http_response(RequestTimeout("The body did not arrive whole."))
        return None


def _count(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Count a request under its route pattern, because the number of different paths is unbounded."""
    found = request.resolver_match
    method = request.method if request.method in _METHODS else "other"
    count_request(method or "", f"/{found.route}" if found else "none", response.status_code, seconds)


def _finish_api_answer(request: HttpRequest, response: HttpResponseBase) -> None:
    if not response.has_header("Cache-Control"):
        response["Cache-Control"] = "no-store"
    if getattr(request, "key_in_url_or_body", False):
        response["Deprecation"] = DEPRECATION


def _exchange(
    request: HttpRequest, response: HttpResponseBase, started_at: datetime, duration_ms: float
) -> request_log.Exchange:
    show_bodies = settings.MEMORY_GATEWAY_LOG_BODIES
    return request_log.Exchange(
        request_id=request_id.get(),
        started_at=started_at,
        duration_ms=duration_ms,
        method=request.method or "",
        scheme=request.scheme or "http",
        host=request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", ""),
        path=request.path,
        query_string=request.META.get("QUERY_STRING", ""),
        client=request.META.get("REMOTE_ADDR", ""),
        user_id=_user_id(request),
        status=response.status_code,
        request_body=_request_body(request) if show_bodies else None,
        response_body=_response_body(response) if show_bodies else None,
        request_size=int(request.META.get("CONTENT_LENGTH") or 0),
        response_size=len(response.content) if isinstance(response, HttpResponse) else None,
    )


def _user_id(request: HttpRequest) -> str | None:
    user = getattr(request, "user", None)
    # By type: isinstance() would load the operator behind Django's lazy object from the database.
    return user.user_id if type(user) is Principal else None


def _request_body(request: HttpRequest) -> Any:
    """Return the parsed JSON, or type and size of another body. Reads nothing from the stream."""
    parsed = getattr(request, "parsed_json", None)
    if parsed is not None:
        return parsed
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    return _sized(request.META.get("CONTENT_TYPE", ""), size) if size else None


def _response_body(response: HttpResponseBase) -> Any:
    """Return the data of a JSON response, or type and size of another (size None for a stream)."""
    content_type = response.get("Content-Type", "")
    if isinstance(response, Response) and isinstance(response.accepted_renderer, JsonRenderer):
        return response.data
    if isinstance(response, HttpResponse):
        is_problem = content_type == PROBLEM_CONTENT_TYPE
        return orjson.loads(response.content) if is_problem else _sized(content_type, len(response.content))
    size = response.get("Content-Length")
    return _sized(content_type, int(size) if size else None)


def _sized(content_type: str, size_bytes: int | None) -> dict[str, Any]:
    return {"content_type": content_type, "size_bytes": size_bytes}
