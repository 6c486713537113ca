"""Responses outside Django, on the ASGI side, with the same headers, error format and log lines."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, parse_cookie
from django.utils import translation

from core.errors import GatewayError
from core.logs import request_id
from core.messages import Translatable as _
from core.rest import PROBLEM_CONTENT_TYPE, localized_problem, problem_headers
from memory_gateway import request_log
from memory_gateway.middleware import error_page, is_api
from memory_gateway.server.request_body import Scope
from memory_gateway.server.wsgi_bridge import Answer, Headers

_POLICY = b"content-security-policy"
_SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (_POLICY, b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]


class HeadTooLarge(GatewayError):
    status, code, title = 431, "head_too_large", _("Request head too large")


def json_answer(scope: Scope, data: dict[str, Any], status: int = 200) -> Answer:
    _log(scope, status, data)
    return Answer(status, _headers(scope, b"application/json"), orjson.dumps(data))


def problem_answer(scope: Scope, error: GatewayError) -> Answer:
    """Return a problem document, in the language that the request accepts."""
    data, headers = localized_problem(error, _request(scope))
    _log(scope, error.status, data)
    sent = [*_headers(scope, PROBLEM_CONTENT_TYPE.encode()), *_encoded(headers)]
    return Answer(error.status, sent, orjson.dumps(data))


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.lower().encode(), value.encode()) for name, value in headers.items()]


def _request(scope: Scope) -> HttpRequest:
    """Return the request as far as the language of its answer depends on it."""
    headers = {name: value.decode("latin1") for name, value in scope["headers"]}
    request = HttpRequest()
    request.path_info, request.COOKIES = scope["path"], parse_cookie(headers.get(b"cookie", ""))
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", "")
    return request


def refusal_answer(scope: Scope, error: GatewayError) -> Answer:
    """Return a problem document, or for the operators' pages a page in the language of the browser."""
    if is_api(scope["path"]):
        return problem_answer(scope, error)
    request = _request(scope)
    with translation.override(translation.get_language_from_request(request)):
        page = error_page(request, error)
    _log(scope, error.status, None)
    sent = [(name, value) for name, value in _headers(scope, b"text/html; charset=utf-8") if name != _POLICY]
    policy = b"default-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    return Answer(error.status, [*sent, *_encoded(problem_headers(error)), (_POLICY, policy)], page.content)


def _headers(scope: Scope, content_type: bytes) -> Headers:
    headers = [(b"content-type", content_type), (b"x-request-id", request_id.get().encode()), *_SECURITY_HEADERS]
    if scope.get("scheme") == "https" and settings.SECURE_HSTS_SECONDS:
        policy = f"max-age={settings.SECURE_HSTS_SECONDS}"
        policy += "; includeSubDomains" if settings.SECURE_HSTS_INCLUDE_SUBDOMAINS else ""
        policy += "; preload" if settings.SECURE_HSTS_PRELOAD else ""
        headers.append((b"strict-transport-security", policy.encode()))
    return headers


def _log(scope: Scope, status: int, data: dict[str, Any] | None) -> None:
    duration_seconds = time.perf_counter() - scope.get("state", {}).get("start", time.perf_counter())
    host = dict(scope["headers"]).get(b"host", b"").decode("latin1")
    request_log.write(
        request_id=request_id.get(),
        started_at=datetime.now(UTC) - timedelta(seconds=duration_seconds),
        duration_ms=duration_seconds * 1000,
        method=scope["method"],
        origin=f"{scope.get('scheme', 'http')}://{host}",
        path=scope.get("root_path", "") + scope["path"],
        query_string=scope["query_string"].decode("latin1"),
        client=(scope.get("client") or ("", 0))[0],
        user_id=None,
        status=status,
        response_body=data if settings.MEMORY_GATEWAY_LOG_BODIES else None,
    )
