"""Sign-in by OpenID Connect, and sign-out at the provider. These pages are open to everybody."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts import oidc, sessions
from accounts.api import limits
from accounts.api.authentication import address_of
from core.errors import GatewayError, NotFound
from core.logs import request_id
from core.rest import problem_headers

_SALT = "console.sign-in"
_MAX_SECONDS = 600
"""The time within which the provider sends the browser back."""
_MAX_TARGET_CHARS = 1500
"""Browsers keep cookies of at most 4 kB."""
_BACKEND = "django.contrib.auth.backends.ModelBackend"


def open_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorate a page that is open to everybody: count the request and show the errors of the view as pages."""

    @never_cache
    @wraps(view)
    def shown(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            limits.count_anonymous(address_of(request))
            return view(request, *args, **kwargs)
        except GatewayError as error:
            context = {"error": error, "request_id": request_id.get()}
            page = render(request, "error.html", context, status=error.status)
            for name, value in problem_headers(error).items():
                page[name] = value
            return page

    return shown


def _page(view: Callable[[HttpRequest], HttpResponse]) -> Callable[..., HttpResponseBase]:
    """Decorate a page of the single sign-on. Without a provider there is no such page."""

    @require_GET
    @open_page
    @wraps(view)
    def shown(request: HttpRequest) -> HttpResponse:
        if not oidc.is_on():
            raise NotFound(_("Single sign-on is not configured."))
        return view(request)

    return shown


@_page
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider. What `callback` needs is in a cookie: nothing is stored before the sign-in."""
    address, secret = oidc.begin(_callback_address(request))
    target = request.GET.get("next", "")[:_MAX_TARGET_CHARS]
    response = redirect(address)
    response.set_cookie(
        settings.SIGN_IN_COOKIE_NAME,
        signing.dumps({**secret, "next": target}, salt=_SALT, compress=True),
        max_age=_MAX_SECONDS,
        path=settings.SESSION_COOKIE_PATH,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


@_page
def callback(request: HttpRequest) -> HttpResponse:
    """Check the provider's answer, once, and sign the operator in."""
    try:
        cookie = request.COOKIES.get(settings.SIGN_IN_COOKIE_NAME, "")
        secret = signing.loads(cookie, salt=_SALT, max_age=_MAX_SECONDS)
    except signing.BadSignature:
        secret = {}
    answer = {name: value for name, value in request.GET.items() if isinstance(value, str)}
    operator = oidc.finish(secret, answer, _callback_address(request))
    auth.login(request, operator, backend=_BACKEND)
    sessions.begin(request, at_provider=True)
    target = secret["next"]
    is_here = url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    response = redirect(target if is_here else "console:dashboard")
    response.delete_cookie(settings.SIGN_IN_COOKIE_NAME, path=settings.SESSION_COOKIE_PATH, samesite="Lax")
    return response


@_page
def sign_out(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider's sign-out. The panel's own session has ended before."""
    home = request.build_absolute_uri(reverse("admin:login"))
    return redirect(oidc.sign_out_address(home) or home)


def _callback_address(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("console:sign-in-callback"))
