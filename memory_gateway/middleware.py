"""Middleware around every request: request id, request log and common response headers.

Sessions, languages and messages apply to pages only; API requests skip them.
"""

import logging
import re
import time
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import orjson
from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.contrib.sessions.exceptions import SessionInterrupted
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db import Error as DatabaseFailure
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.middleware import locale
from django.middleware.gzip import GZipMiddleware
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin
from rest_framework.response import Response

from accounts import expiry
from accounts import sessions as sessions_of_operators
from accounts.api.preconditions import checked_preconditions
from accounts.audit import Source, source
from accounts.models import Principal
from accounts.tenants import is_unlimited, limited_to, of_request
from core import monitoring
from core.errors import BadRequest, GatewayError
from core.logs import are_bodies_private, choose_request_id, request_id
from core.messages import Translatable as _
from core.persistence import database_errors, replica
from core.persistence.sql import fail_fast_writes
from core.rest import (
    PROBLEM_CONTENT_TYPE,
    JsonRenderer,
    MethodNotAllowed,
    RequestTimeout,
    as_gateway_error,
    problem_headers,
    problem_http_response,
)
from memory_gateway import request_log

logger = logging.getLogger("memory_gateway.errors")

# RFC 9745. Keys in the URL or body are deprecated since 2026-01-01T00:00:00Z.
DEPRECATION = "@1767225600"


# The content security policy of responses that are not pages. `server.responses` sends the same outside Django.
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
_RENEWAL_SECONDS = 0.5
_DATA_TYPES = ("application/json", PROBLEM_CONTENT_TYPE)
# Smaller answers, such as those of most searches, take longer to compress than to send.
_COMPRESSED_BYTES = 32 * 1024
ZONE_COOKIE = "mg_zone"
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
_PRECONDITIONS = {
    "HTTP_IF_MATCH": "If-Match",
    "HTTP_IF_NONE_MATCH": "If-None-Match",
    "HTTP_IF_UNMODIFIED_SINCE": "If-Unmodified-Since",
}
_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


# The operators' pages and OAuth's consent page. OpenClaw opens the panel below `/plugins/memory`, except the API of its
# former plugin.
_is_operators_page = re.compile(r"/admin/|/oauth/authorize$|/plugins/memory(?!/api/)(/|$)").match
# The pages of users have sessions of another kind.
_is_portal = re.compile(r"/portal(/|$)").match


def is_api(path: str) -> bool:
    """Return True for all paths but pages and static files."""
    return not (_is_operators_page(path) or _is_portal(path) or path.startswith(settings.STATIC_URL))


def error_page(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """Return an error as a page, in the reader's language."""
    template = "portal/error.html" if _is_portal(request.path_info) else "error.html"
    page = render(request, template, {"error": error, "request_id": request_id.get()}, status=error.status)
    for name, value in problem_headers(error).items():
        page[name] = value
    return page


def error_answer(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """Return an error as a problem document, or as a page for operators."""
    return problem_http_response(error, request) if is_api(request.path_info) else error_page(request, error)


class _PagesOnly(MiddlewareMixin):
    """Base class for middleware that skips API requests.

    With a stale session cookie Django would save a session for each API request. The middleware for users and messages
    needs a session, so it is skipped too.
    """

    def __call__(self, request: HttpRequest) -> Any:
        path = request.path_info
        is_page = _is_operators_page(path) or path.startswith("/api/") or path == "/metrics"
        return super().__call__(request) if is_page else self.get_response(request)


class SessionMiddleware(_PagesOnly, sessions.SessionMiddleware):
    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Return the response even if the database cannot be written. The session then expires as if unused.

        Renewing a session does not wait long for another writer. While the database is away, a change of the session is
        refused: a sign-in would seem to have worked.
        """
        try:
            renews = not request.session.modified and not request.session.is_empty()
            with fail_fast_writes(_RENEWAL_SECONDS) if renews else nullcontext():
                return super().process_response(request, response)
        except (DatabaseError, SessionInterrupted) as error:
            # Django raises `SessionInterrupted` for any failed update, as if the session had been deleted.
            cause = error if isinstance(error, DatabaseError) else error.__context__ and error.__context__.__context__
            known = as_gateway_error(cause) if isinstance(cause, DatabaseError) else None
            if cause is None or known is None:
                raise
            logger.warning("The session could not be saved: %s", cause, extra={"cause": cause})
            is_lost = request.session.modified and response.status_code < 500 and not database_errors.explain(cause)
            return error_answer(request, known) if is_lost else response


class LocaleMiddleware(_PagesOnly, locale.LocaleMiddleware):
    def __call__(self, request: HttpRequest) -> Any:
        is_portal = _is_portal(request.path_info)
        return locale.LocaleMiddleware.__call__(self, request) if is_portal else super().__call__(request)

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        """Reset the language: it must not leak into the thread's next request."""
        result = super().process_response(request, response)
        translation.deactivate()
        return result


class TimeZoneMiddleware(_PagesOnly):
    """Show times in the browser's time zone, which `panel.js` stores in a cookie."""

    def process_request(self, request: HttpRequest) -> None:
        try:
            zone = zoneinfo.ZoneInfo(unquote(request.COOKIES.get(ZONE_COOKIE, "")) or settings.TIME_ZONE)
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            zone = zoneinfo.ZoneInfo(settings.TIME_ZONE)
        timezone.activate(zone)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Reset the time zone: it must not leak into the thread's next request."""
        timezone.deactivate()
        return response


class AuthenticationMiddleware(_PagesOnly, auth.AuthenticationMiddleware):
    pass


class SessionEndMiddleware(_PagesOnly):
    """End sessions that have lasted too long, or whose operators have lost their role at the identity provider."""

    def process_request(self, request: HttpRequest) -> None:
        sessions_of_operators.end_if_due(request)

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        sessions_of_operators.begin_if_new(request)
        return response


class ExpiryMiddleware(_PagesOnly):
    """End what has expired of all users before a page of an operator shows it."""

    def process_request(self, request: HttpRequest) -> None:
        if request.user.is_authenticated:
            expiry.end_all_due()


class TenantMiddleware(_PagesOnly):
    """Close the Django admin, which shows all users, to operators who are limited to tenants.

    Pages of one key or profile, which the panel links, are open with the data of their tenants.
    """

    _OPEN = frozenset({"login", "logout", "password_change", "password_change_done", "jsi18n"})
    _LIMITED = re.compile(r"accounts_userkey_(add|rotate|revoke)|profiles_profilememory_(edit|status|versions?)")

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> HttpResponse | None:
        match = request.resolver_match
        is_admin = match is not None and match.app_name == "admin" and match.url_name not in self._OPEN
        if not is_admin or not request.user.is_authenticated or is_unlimited(request):
            return None
        if match is None or not self._LIMITED.fullmatch(match.url_name or ""):
            raise PermissionDenied
        with limited_to(of_request(request)):
            return view(request, *args, **kwargs)


class MessageMiddleware(_PagesOnly, messages.MessageMiddleware):
    pass


class ReplicaMiddleware(MiddlewareMixin):
    """Remember what a caller has seen of the primary, so that later reads on a replica are as new."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if replica.is_configured() and not replica.is_read(request.resolver_match, request.method or ""):
            for caller in _callers(request):
                replica.note_write(caller)
        return response


def _callers(request: HttpRequest) -> Iterator[str]:
    """Yield the callers whom a request is of. Nothing is read for it."""
    user = getattr(request, "user", None)
    if type(user) is Principal:
        yield replica.user_of(user.user_pk)
    elif (link := getattr(request, "link", None)) is not None:
        yield replica.user_of(link.user_id)
    elif user is not None and request.method not in _SAFE_METHODS and user.is_authenticated:
        yield replica.operator_of(user.pk)


class PolicyMiddleware(CSPMiddleware):
    """Content security policy: `CONTENT_SECURITY_POLICY` for pages, a stricter policy for data."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.get("Content-Type") in _DATA_TYPES:
            response.headers.setdefault(HEADER, DATA_POLICY)
            return response
        return super().process_response(request, response)


class MethodMiddleware(MiddlewareMixin):
    """Answer a method that a view outside DRF refuses with a problem document, as DRF's views do."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not isinstance(response, HttpResponseNotAllowed) or not is_api(request.path_info):
            return response
        allowed = response["Allow"]
        error = MethodNotAllowed(
            _("This address does not take %(method)s. Use %(allowed)s.", method=request.method, allowed=allowed)
        )
        answer = error_answer(request, error)
        answer["Allow"] = allowed
        return answer


class PreconditionMiddleware(MiddlewareMixin):
    """Refuse the preconditions of a change that does not check them. Ignored, they would let it overwrite another.

    `/tools/invoke` keeps OpenClaw's contract, which has no preconditions.
    """

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        given = [name for key, name in _PRECONDITIONS.items() if key in request.META]
        if not given or request.method in _SAFE_METHODS or request.path_info == "/tools/invoke":
            return None
        checked = checked_preconditions(view, request.method or "")
        refused = [] if checked is None else [name for name in given if name not in checked]
        if not refused:
            return None
        error = BadRequest.of_field(refused[0], _("is not supported by this request: send it without"))
        return problem_http_response(error, request)


class CompressionMiddleware(GZipMiddleware):
    """Compress large answers of the API.

    Pages are not compressed: they contain secrets next to text of other people, which reveals the secrets (BREACH). API
    requests send their key in a header, which a page of another origin cannot make a browser add. Answers with an
    `ETag` are not compressed either, because Django would make the tag weak, and `If-Match` accepts strong tags only.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_large = isinstance(response, HttpResponse) and len(response.content) >= _COMPRESSED_BYTES
        if not is_large or not is_api(request.path_info) or response.has_header("ETag"):
            return response
        return super().process_response(request, response)


class RequestLog:
    """Request log and metrics. The first middleware, so that it gets the responses of all others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started_at, start = datetime.now(UTC), time.perf_counter()
        # Under the ASGI router the id is already set.
        token = request_id.set(request_id.get() or choose_request_id(request.headers.get("X-Request-Id", "")))
        address, client = request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_USER_AGENT", "")
        private = are_bodies_private.set(False)
        sources = source.set(Source.of(address, client, request.get_full_path()))
        try:
            response = self._get_response(request)
            response["X-Request-Id"] = request_id.get()
            seconds, found, method = time.perf_counter() - start, request.resolver_match, request.method or ""
            # Counted under the route pattern, because the number of different paths is unbounded.
            route = f"/{found.route}" if found else "none"
            method_label = method if method in _METHODS else "other"
            monitoring.count_request(method_label, route, response.status_code, seconds)
            monitoring.annotate(
                f"{method_label} {route}", {"http.route": route, "http.response.status_code": response.status_code}
            )
            if is_api(request.path_info):
                response.headers.setdefault("Cache-Control", "no-store")
                if getattr(request, "key_in_url_or_body", False):
                    response["Deprecation"] = DEPRECATION
                show_bodies = settings.MEMORY_GATEWAY_LOG_BODIES and not are_bodies_private.get()
                user = getattr(request, "user", None)
                request_log.write(
                    request_id=request_id.get(),
                    started_at=started_at,
                    duration_ms=seconds * 1000,
                    method=method,
                    origin=f"{request.scheme}://{request.META.get('HTTP_HOST') or request.META.get('SERVER_NAME', '')}",
                    path=request.path,
                    query_string=request.META.get("QUERY_STRING", ""),
                    client=request.META.get("REMOTE_ADDR", ""),
                    # By type: isinstance() would load the operator behind Django's lazy object from the database.
                    user_id=user.user_id if type(user) is Principal else None,
                    status=response.status_code,
                    request_body=_request_body(request) if show_bodies else None,
                    response_body=_response_body(response) if show_bodies else None,
                )
            elif _is_portal(request.path_info):
                response.headers.setdefault("Cache-Control", "no-store")
            elif request.path_info.startswith(("/admin/", "/oauth/")):
                # With "no-referrer" browsers send `Origin: null` with every form, which the CSRF check must refuse.
                response["Referrer-Policy"] = "same-origin"
            return response
        finally:
            source.reset(sources)
            are_bodies_private.reset(private)
            request_id.reset(token)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return a specific error response for an incomplete body or a database failure, instead of a 500."""
        if isinstance(exception, UnreadablePostError):
            return problem_http_response(
                RequestTimeout(_("The body did not arrive completely. Send the request again.")), request
            )
        if isinstance(exception, DatabaseFailure) and (known := as_gateway_error(exception)):
            logger.warning("%s: %s", known.code, known.detail, exc_info=exception)
            return error_answer(request, known)
        return None


def _request_body(request: HttpRequest) -> Any:
    """Return parsed JSON, or type and size of other bodies. Does not read the stream."""
    parsed = getattr(request, "parsed_json", None)
    if parsed is not None:
        return parsed
    size = int(request.META.get("CONTENT_LENGTH") or 0)
    return _type_and_size(request.META.get("CONTENT_TYPE", ""), size) if size else None


def _response_body(response: HttpResponseBase) -> Any:
    """Return the data of a JSON response, or type and size of others (None for the size of a stream)."""
    content_type = response.get("Content-Type", "")
    if isinstance(response, Response) and isinstance(response.accepted_renderer, JsonRenderer):
        return response.data
    if isinstance(response, HttpResponse):
        is_problem = content_type == PROBLEM_CONTENT_TYPE
        return orjson.loads(response.content) if is_problem else _type_and_size(content_type, len(response.content))
    size = response.get("Content-Length")
    return _type_and_size(content_type, int(size) if size else None)


def _type_and_size(content_type: str, size_bytes: int | None) -> dict[str, Any]:
    return {"content_type": content_type, "size_bytes": size_bytes}
