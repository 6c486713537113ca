"""The door of every page: staff only, one permission each, in the viewer's time zone, refusals as pages."""

from __future__ import annotations

import functools
import zoneinfo
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render as render_template
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from console import navigation
from core.errors import GatewayError
from core.request_context import request_id

View = Callable[..., HttpResponseBase]
ZONE_COOKIE = "mg_zone"
VIEW, ADD, CHANGE, DELETE = (f"store.{verb}_memory" for verb in ("view", "add", "change", "delete"))


def page(permission: str) -> Callable[[View], View]:
    """A view of the panel: strangers are asked to sign in, operators without the permission get a page that names it.

    A `GatewayError` that the view lets through becomes a page with its status.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            with timezone.override(_zone(request)):
                if not request.user.has_perm(permission):
                    return render(
                        request,
                        "console/refused.html",
                        {"title": _("You may not do this"), "permission": permission},
                        status=403,
                    )
                try:
                    answer = view(request, *args, **kwargs)
                except GatewayError as error:
                    return error_page(request, error)
                return _form_only(request, answer) if answer.status_code == 405 else answer

        return admin.site.admin_view(guarded)

    return decorate


def render(
    request: HttpRequest, template: str, context: dict[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """A page with what every page of the panel has around it."""
    site = admin.site
    around = {
        "site_title": site.site_title,
        "site_header": site.site_header,
        "has_permission": True,
        "is_nav_sidebar_enabled": True,  # the block that our own navigation stands in
        "sections": navigation.sections(request),
        "here": request.get_full_path(),
    }
    return render_template(request, template, {**around, **(context or {})}, status=status)


def error_page(request: HttpRequest, error: GatewayError) -> HttpResponse:
    title = _("This is not here") if error.status == 404 and request.method == "GET" else _("That did not work")
    context = {
        "title": title,
        "error": error,
        "request_id": request_id.get(),
        "back": request.get_full_path() if request.method == "GET" else _where_the_form_was(request),
    }
    return render(request, "console/error.html", context, status=error.status)


def next_address(request: HttpRequest, otherwise: str) -> str:
    """Where the form says to go on, within this site."""
    wanted = request.POST.get("next", "")
    return wanted if url_has_allowed_host_and_scheme(wanted, allowed_hosts=None) else otherwise


def _where_the_form_was(request: HttpRequest) -> str:
    sent_from = request.headers.get("Referer", "")
    is_here = url_has_allowed_host_and_scheme(sent_from, allowed_hosts={request.get_host()})
    return next_address(request, sent_from if is_here else "")


def _form_only(request: HttpRequest, answer: HttpResponseBase) -> HttpResponse:
    """Who has to sign in again after a form was sent comes to its address without it."""
    shown = render(request, "console/form_only.html", {"title": _("Nothing was done")}, status=answer.status_code)
    shown["Allow"] = answer["Allow"]
    return shown


def _zone(request: HttpRequest) -> zoneinfo.ZoneInfo:
    """The zone that the browser named (`panel.js` keeps it in a cookie), else UTC."""
    try:
        return zoneinfo.ZoneInfo(unquote(request.COOKIES.get(ZONE_COOKIE, "")) or "UTC")
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return zoneinfo.ZoneInfo("UTC")
