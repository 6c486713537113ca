"""Sign-in by OpenID Connect, and sign-out at the provider. These pages are open to everybody."""

from collections.abc import Callable
from functools import wraps

from django.contrib import auth
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts import oidc
from core.errors import GatewayError, NotFound
from core.logs import request_id

_SESSION_NAME = "oidc"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


def _page(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Show the errors of a view as pages. Without a provider there is no such page."""

    @require_GET
    @never_cache
    @wraps(view)
    def shown(request: HttpRequest) -> HttpResponse:
        try:
            if not oidc.is_on():
                raise NotFound(_("Single sign-on is not configured."))
            return view(request)
        except GatewayError as error:
            context = {"error": error, "request_id": request_id.get()}
            return render(request, "error.html", context, status=error.status)

    return shown


@_page
def start(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider."""
    address, secret = oidc.begin(_callback_address(request))
    request.session[_SESSION_NAME] = {**secret, "next": request.GET.get("next", "")}
    return redirect(address)


@_page
def callback(request: HttpRequest) -> HttpResponse:
    """Check the provider's answer, once, and sign the operator in."""
    secret = request.session.pop(_SESSION_NAME, {})
    answer = {name: value for name, value in request.GET.items() if isinstance(value, str)}
    operator = oidc.finish(secret, answer, _callback_address(request))
    auth.login(request, operator, backend=_BACKEND)
    target = secret["next"]
    is_here = url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return redirect(target if is_here else "console:dashboard")


@_page
def sign_out(request: HttpRequest) -> HttpResponse:
    """Send the browser to the provider's sign-out. The panel's own session has ended before."""
    home = request.build_absolute_uri(reverse("admin:login"))
    return redirect(oidc.sign_out_address(home) or home)


def _callback_address(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("console:sign-in-callback"))
