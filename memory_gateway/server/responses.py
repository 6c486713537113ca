"""Responses made on the ASGI side, outside Django, with the usual headers, error shape and log line."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.conf import settings

from core.errors import GatewayError
from core.request_context import request_id
from core.rest import PROBLEM_CONTENT_TYPE, problem, problem_headers
from memory_gateway import request_log
from memory_gateway.server.wsgi_bridge import Answer, Headers, Scope

_SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]


def json_answer(scope: Scope, data: dict[str, Any]) -> Answer:
    return _answer(scope, 200, b"application/json", data, [])


def problem_answer(scope: Scope, error: GatewayError) -> Answer:
    headers = [(name.lower().encode(), value.encode()) for name, value in problem_headers(error).items()]
    return _answer(scope, error.status, PROBLEM_CONTENT_TYPE.encode(), problem(error), headers)


def made_answer(scope: Scope, status: int, content_type: bytes, body: bytes, *, user_id: str) -> Answer:
    """Return a response to a user with a given body, which stays out of the log."""
    _log(scope, status, None, user_id)
    return Answer(status, _headers(scope, content_type), body)


def _answer(scope: Scope, status: int, content_type: bytes, data: dict[str, Any], headers: Headers) -> Answer:
    _log(scope, status, data)
    return Answer(status, [*_headers(scope, content_type), *headers], orjson.dumps(data))


def _headers(scope: Scope, content_type: bytes) -> Headers:
    return [
        (b"content-type", content_type),
        (b"x-request-id", request_id.get().encode()),
        *_SECURITY_HEADERS,
        *_transport_security(scope),
    ]


def _transport_security(scope: Scope) -> Headers:
    if scope.get("scheme") != "https" or not settings.SECURE_HSTS_SECONDS:
        return []
    return [(b"strict-transport-security", f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains".encode())]


def _log(scope: Scope, status: int, data: dict[str, Any] | None, user_id: str | None = None) -> None:
    duration_seconds = time.perf_counter() - scope.get("state", {}).get("began", time.perf_counter())
    request_log.write(
        request_log.Exchange(
            request_id=request_id.get(),
            started_at=datetime.now(UTC) - timedelta(seconds=duration_seconds),
            duration_ms=duration_seconds * 1000,
            method=scope["method"],
            scheme=scope.get("scheme", "http"),
            host=dict(scope["headers"]).get(b"host", b"").decode("latin1"),
            path=scope["path"],
            query_string=scope["query_string"].decode("latin1"),
            client=(scope.get("client") or ("", 0))[0],
            user_id=user_id,
            status=status,
            response_body=data if settings.MEMORY_GATEWAY_LOG_BODIES else None,
        )
    )
