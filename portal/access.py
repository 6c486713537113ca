"""The sessions of users on their own pages: opening a link, the cookie, the check of forms, and headers of all pages.

These sessions are not Django's: an operator's session and a user's do not know each other. The pages send no referrer,
so browsers send `Origin: null` with forms, which Django's CSRF check refuses. Forms have a token of the session here,
and browsers tell in `Sec-Fetch-Site` from where a form was sent. The pages run no script.
"""

import functools
import hmac
import zoneinfo
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.shortcuts import render as render_template
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts import expiry, oidc, portal_links, zones
from accounts.api import limits
from accounts.api.authentication import address_of
from accounts.audit import Actor
from accounts.models import PortalLink
from core.errors import BadRequest, GatewayError, Unauthenticated
from core.localization import localized
from core.logs import request_id
from core.rest import Forbidden, problem_headers
from store.types import Owner

View = Callable[..., HttpResponseBase]
COOKIE: Final = "memory_gateway_portal"
FORM_TOKEN: Final = "csrfmiddlewaretoken"  # noqa: S105 -- the name of a field
NAVIGATION: Final = (
    ("known", gettext_lazy("Memories")),
    ("profile", gettext_lazy("My profile")),
    ("files", gettext_lazy("My files")),
    ("conversations", gettext_lazy("Conversations")),
    ("remembering", gettext_lazy("Remembering")),
    ("connections", gettext_lazy("Connected applications")),
    ("looks", gettext_lazy("Who looked")),
    ("trash", gettext_lazy("Trash")),
    ("everything", gettext_lazy("All my data")),
)


class Visit(HttpRequest):
    """A request with a session: `link` opened it, `form_token` is the token of its forms."""

    link: PortalLink
    form_token: str


def owner_in(visit: Visit, app_id: str = "default", project_id: str = "default") -> Owner:
    """Return the person as an owner in a scope."""
    return Owner(visit.link.user.pk, visit.link.user.user_id, app_id, project_id)


def actor_of(visit: Visit) -> Actor:
    return Actor.person(visit.link)


def open_address(plaintext: str) -> str:
    """Return the path of a link."""
    return reverse("portal:open", args=[plaintext])


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def open_link(request: HttpRequest, plaintext: str) -> HttpResponseBase:
    """Show a button, whose POST uses the link up and begins the session. GET changes nothing, however often."""
    try:
        limits.count_anonymous(address_of(request))
        link = _found(request, plaintext)
        if request.method != "POST":
            return with_headers(render(request, "open.html", {"link": link}), link.frame_origin)
        _require_own_form(request)
        issued = portal_links.open_session(plaintext)
    except GatewayError as error:
        return with_headers(error_page(request, error))
    response = redirect("portal:known")
    _set_cookie(request, response, issued)
    return with_headers(response, issued.link.frame_origin)


def _found(request: HttpRequest, plaintext: str) -> PortalLink:
    """Return an unopened link. Raises: `Unauthenticated`, `TooManyRequests` for an address that guesses links."""
    try:
        return portal_links.find(plaintext)
    except Unauthenticated:
        limits.count_failure(address_of(request))
        raise


def page(*methods: str) -> Callable[[View], View]:
    """Decorate a page of the person. It accepts only GET unless `methods` are given.

    Without a session, and for a form without its token, nothing is done and a page says so. A `GatewayError` of the
    view becomes a page with its status.
    """

    def decorate(view: View) -> View:
        allowed = require_http_methods(methods or ("GET",))(view)

        @csrf_exempt
        @functools.wraps(view)
        def guarded(request: Visit, *args: Any, **kwargs: Any) -> HttpResponseBase:
            session = request.COOKIES.get(cookie_name(request), "")
            link = portal_links.authenticate(session)
            if link is None:
                return with_headers(error_page(request, _ended()))
            request.link, request.form_token = link, salted_hmac("portal.form", session, algorithm="sha256").hexdigest()
            timezone.activate(_zone_of(link))
            try:
                if request.method == "POST":
                    _require_own_form(request)
                    if not hmac.compare_digest(request.POST.get(FORM_TOKEN, ""), request.form_token):
                        raise _stale_form()
                due = link.user.next_expiry_at
                if due is not None and due <= timezone.now():
                    expiry.end_due(link.user.pk)
                response = allowed(request, *args, **kwargs)
            except GatewayError as error:
                response = error_page(request, error)
            finally:
                timezone.deactivate()
            return with_headers(response, link.frame_origin)

        return guarded

    return decorate


def _ended() -> Unauthenticated:
    return Unauthenticated(_("You are not signed in any longer. Open your memories in the application again."))


def _stale_form() -> BadRequest:
    return BadRequest(_("Nothing was changed, because the form is not of this session. Open the page again."))


@page("POST")
def leave(request: Visit) -> HttpResponseBase:
    """End the session."""
    portal_links.end(request.link)
    response = render(request, "left.html", {"navigation": ()})
    response.delete_cookie(cookie_name(request))
    return response


def render(
    request: HttpRequest, template: str, context: dict[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Render a page. Those of a session have the navigation and the token of forms."""
    link: PortalLink | None = getattr(request, "link", None)
    common: dict[str, Any] = {"csrf_token": getattr(request, "form_token", ""), "visit": link}
    if link is not None:
        section = request.resolver_match.url_name if request.resolver_match else ""
        common |= {
            "navigation": [(reverse(f"portal:{name}"), label, name == section) for name, label in NAVIGATION],
            "here": request.get_full_path(),
        }
    return render_template(request, f"portal/{template}", {**common, **(context or {})}, status=status)


def error_page(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """Return an error as a page of the person."""
    is_closed = isinstance(error, Unauthenticated)
    context = {
        "error": error,
        "title": _("Closed") if is_closed else localized(error.title),
        "request_id": request_id.get(),
        "may_sign_in": (is_closed or isinstance(error, oidc.SignInFailed)) and oidc.is_on_for_users(),
    }
    response = render(request, "error.html", context, status=error.status)
    for name, value in problem_headers(error).items():
        response[name] = value
    return response


def cookie_name(request: HttpRequest) -> str:
    return f"__Host-{COOKIE}" if request.is_secure() else COOKIE


def _set_cookie(request: HttpRequest, response: HttpResponse, issued: portal_links.IssuedLink) -> None:
    """Set the cookie of a session. In a frame of another origin only a partitioned one is sent, and only by HTTPS."""
    name, is_secure = cookie_name(request), request.is_secure()
    is_framed = bool(issued.link.frame_origin) and is_secure
    seconds = int(portal_links.SESSION_LIFETIME.total_seconds())
    response.set_cookie(name, issued.plaintext, max_age=seconds, secure=is_secure, httponly=True, samesite="Strict")
    if is_framed:
        response.cookies[name]["samesite"] = "None; Partitioned"  # http.cookies knows the attribute from 3.14 on


def _require_own_form(request: HttpRequest) -> None:
    """Refuse a form that another site sent. Raises: `Forbidden`."""
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden(_("Another site sent this form. Nothing was changed."))


def _zone_of(link: PortalLink) -> zoneinfo.ZoneInfo:
    """Return the time zone of the person's profile, else that of the gateway."""
    try:
        return zoneinfo.ZoneInfo(zones.written_zone(link.user.pk) or settings.TIME_ZONE)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return zoneinfo.ZoneInfo(settings.TIME_ZONE)


def with_headers(response: HttpResponseBase, frame_origin: str = "") -> HttpResponseBase:
    """Let no cache keep a page, and only pages of the origin frame it, as long as the setting names that origin."""
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    if "Content-Security-Policy" in response.headers:  # the file of an upload, which is no page
        return response
    is_framed = frame_origin in settings.MEMORY_GATEWAY_PORTAL_ORIGINS
    response["Content-Security-Policy"] = _POLICY.format(frame_origin if is_framed else "'none'")
    if is_framed:
        response.xframe_options_exempt = True  # type: ignore[attr-defined]  # the header has no list of origins
    return response


_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {}"
)
