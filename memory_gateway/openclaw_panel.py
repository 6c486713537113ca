"""`/plugins/memory` and below: the panel where OpenClaw's plugin has it, with the headers of its document."""

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
    """The dashboard for operators, for strangers the form to sign in, which brings them back here."""
    response = plugin(request)
    for name, value in HEADERS.items():
        response[name] = value
    return response
