"""API documentation, the panel at OpenClaw's path, and Django's error handlers."""

import sys
from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Any, Final

from csp.constants import SELF
from csp.decorators import csp_update
from django.conf import settings
from django.contrib import admin
from django.db import Error as DatabaseFailure
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import get_script_prefix, is_valid_path
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_safe
from django.views.generic import TemplateView, View

from console.views.dashboard import dashboard
from core.errors import BadRequest, NotFound
from core.logs import request_id
from core.messages import Translatable as _
from core.rest import Forbidden, as_gateway_error
from memory_gateway.middleware import error_answer, is_api
from memory_gateway.server.wsgi_bridge import InternalError

OPENCLAW_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store, no-cache, must-revalidate",
    "Pragma": "no-cache",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


SECURITY_TXT_VALID: Final = timedelta(days=180)


class HomeView(View):
    """Redirect browsers to the panel, and other clients to the API documentation."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        is_browser = request.get_preferred_type(["application/json", "text/html"]) == "text/html"
        response = redirect("console:dashboard" if is_browser else "docs")
        patch_vary_headers(response, ["Accept"])
        return response


class DocsView(TemplateView):
    """Swagger UI from the gateway's own static files. It draws icons from `data:` addresses."""

    template_name = "docs.html"

    @method_decorator(csp_update({"img-src": [SELF, "data:"]}))
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)


def openclaw_panel(request: HttpRequest, rest: str = "") -> HttpResponseBase:  # noqa: ARG001 - all subpaths show this page
    """Return the dashboard for operators, and the sign-in form for others. Sign-in redirects to this page."""
    if admin.site.has_permission(request):
        response = dashboard(request)
    else:
        response = admin.site.login(request, {"next": request.path})
    for name, value in OPENCLAW_HEADERS.items():
        response[name] = value
    return response


@require_safe
def security_txt(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django passes it
    """Name whom to tell of a vulnerability (RFC 9116). Each answer is valid for the same time."""
    if not settings.MEMORY_GATEWAY_SECURITY_CONTACT:
        raise Http404
    expires = (timezone.now() + SECURITY_TXT_VALID).astimezone(UTC)
    lines = [f"Contact: {address}" for address in settings.MEMORY_GATEWAY_SECURITY_CONTACT]
    return _text([*lines, f"Expires: {expires:%Y-%m-%dT%H:%M:%SZ}"])


@require_safe
def robots_txt(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django passes it
    """Ask crawlers to read nothing."""
    return _text(["User-agent: *", "Disallow: /"])


def _text(lines: Sequence[str]) -> HttpResponse:
    return HttpResponse("\n".join([*lines, ""]), content_type="text/plain; charset=utf-8")


def no_page_of_row(request: HttpRequest, path: str) -> HttpResponseBase:  # noqa: ARG001 - the pattern names it
    """Answer 404 where Django's admin would redirect to a row's page on the site: no row has one."""
    raise Http404


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django names it
    return error_answer(
        request, BadRequest(_("The request is malformed, or names a host that this gateway does not serve."))
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django names it
    return error_answer(request, Forbidden(_("You do not have permission for this. Ask the operator.")))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - Django names it
    path = request.path_info
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    # Every address below /admin/ is valid: the Django admin answers it with 404.
    if other and not path.startswith("/admin/") and is_valid_path(other):
        return error_answer(
            request,
            NotFound(_("There is nothing at this address. Use %(path)s.", path=f"{get_script_prefix()[:-1]}{other}")),
        )
    return error_answer(request, NotFound(_("There is nothing at this address. Check the path.")))


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer the exception that Django handles: a failure of the database in middleware says when to try again."""
    error = sys.exc_info()[1]
    known = as_gateway_error(error) if isinstance(error, DatabaseFailure) else None
    return error_answer(
        request,
        known
        or InternalError(
            _("The gateway failed. See its log for the request ID %(request_id)s.", request_id=request_id.get())
        ),
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django passes it
    if is_api(request.path_info):  # only views that read and have no form check the CSRF token there
        return HttpResponseNotAllowed(["GET", "HEAD"])
    return render(request, "403_csrf.html", {"request_id": request_id.get()}, status=403)
