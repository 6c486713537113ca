"""Sign-in of a person by OpenID Connect, if the operator chose a claim for it. It ends at the button of a new link.

The session needs a form of our own page: browsers send a strict cookie to no page that another site led to.
"""

from collections.abc import Callable
from functools import wraps
from typing import Final

from django.core import signing
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from accounts import oidc, portal_links
from accounts.api import limits
from accounts.api.authentication import address_of
from core.errors import GatewayError, NotFound
from portal.access import cookie_name, error_page, open_address, with_headers

_SALT: Final = "portal.sign-in"
_MAX_SECONDS: Final = 600
"""The time within which the provider sends the browser back."""


def _page(view: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Decorate a page that is open to everybody. Without a claim there is no such page."""

    @require_GET
    @wraps(view)
    def shown(request: HttpRequest) -> HttpResponseBase:
        try:
            limits.count_anonymous(address_of(request))
            if not oidc.is_on_for_users():
                raise NotFound(_("There is nothing at this address. Check the path."))
            return with_headers(view(request))
        except GatewayError as error:
            return with_headers(error_page(request, error))

    return shown


@_page
def start(request: HttpRequest) -> HttpResponseBase:
    """Send the browser to the provider. What `callback` needs is in a cookie: nothing is stored before the sign-in."""
    address, secret = oidc.begin(_callback_address(request))
    response = redirect(address)
    response.set_cookie(
        _cookie_name(request),
        signing.dumps(secret, salt=_SALT, compress=True),
        max_age=_MAX_SECONDS,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return response


@_page
def callback(request: HttpRequest) -> HttpResponseBase:
    """Check the provider's answer, once, and send the person to a new link."""
    try:
        secret = signing.loads(request.COOKIES.get(_cookie_name(request), ""), salt=_SALT, max_age=_MAX_SECONDS)
    except signing.BadSignature:
        secret = {}
    answer = {name: value for name, value in request.GET.items() if isinstance(value, str)}
    user = oidc.user_of(secret, answer, _callback_address(request))
    response = redirect(open_address(portal_links.create(user.pk, actor=oidc.ACTOR).plaintext))
    response.delete_cookie(_cookie_name(request), samesite="Lax")
    return response


def _cookie_name(request: HttpRequest) -> str:
    return f"{cookie_name(request)}_sign_in"


def _callback_address(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("portal:sign-in-callback"))
