"""OpenClaw's path of the panel, `/plugins/memory` and below, with the headers of OpenClaw's document."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.views.shell import plugin

HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store, no-cache, must-revalidate",
    "Pragma": "no-cache",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


def memory_page(request: HttpRequest, rest: str = "") -> HttpResponseBase:  # noqa: ARG001 - any address below is this page
    """Return the dashboard for operators; for others the sign-in form, which leads back here."""
    response = plugin(request)
    for name, value in HEADERS.items():
        response[name] = value
    return response
