"""The page on which a user connects an application, or an operator connects it to a user."""

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from csp.constants import SELF
from csp.decorators import csp_update
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.encoding import iri_to_uri
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from mcp.server.auth.handlers.authorize import AuthorizationRequest
from mcp.server.auth.provider import construct_redirect_uri
from pydantic import AnyUrl, ConfigDict, Field, TypeAdapter, ValidationError

from accounts import authority, oauth
from accounts.admin_base import actor_of
from accounts.api import limits
from accounts.api.authentication import address_of
from accounts.audit import Actor
from accounts.client_documents import is_address
from accounts.forms import CredentialForm
from accounts.models import OAuthClient, destination_of
from accounts.scopes import READ, WRITE, of_oauth, require
from accounts.services import active_users
from accounts.tenants import is_unlimited
from agents.oauth.addresses import MCP
from agents.oauth.views import endpoint, is_resource, issuer_of
from core.errors import GatewayError, InvalidInput, existing
from core.localization import localized
from core.messages import Translatable as _

MAX_STATE_CHARS = 4000
# As the SDK's registration handler parses them: `http://localhost:1` gets no slash.
_URI = TypeAdapter(AnyUrl, config=ConfigDict(url_preserve_empty_path=True))


class Request(AuthorizationRequest):
    """The parameters of an authorization request. PKCE by S256 is required."""

    code_challenge: str = Field(pattern=r"^[A-Za-z0-9_-]{43}$")
    code_challenge_method: Literal["S256"]
    state: str | None = Field(None, max_length=MAX_STATE_CHARS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A valid request: the client, its redirect address, and what the user may approve."""

    client: OAuthClient
    redirect_uri: str
    state: str | None
    code_challenge: str
    scopes: tuple[str, ...]
    issuer: str

    @property
    def host(self) -> str:
        return destination_of(self.redirect_uri)

    def address(self, **answer: str) -> str:
        """Return the redirect address with an answer, the client's state, and the issuer (RFC 9207)."""
        return construct_redirect_uri(self.redirect_uri, **answer, state=self.state, iss=self.issuer)


class Refused(Exception):
    """A request that cannot be approved. `address`, if the client is known, tells it so.

    The page links to it: any client may register an address, so a redirect without a click would be open.
    """

    def __init__(self, sentence: str, address: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.address = sentence, address


class ConsentForm(CredentialForm):
    """The user's API key; an operator may name the user instead."""

    key = forms.CharField(
        max_length=200,
        required=False,
        label=gettext_lazy("Your API key"),
        help_text=gettext_lazy("From the operator of this gateway (uk_…). The application does not receive it."),
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    user_id = forms.CharField(
        max_length=64,
        required=False,
        label=gettext_lazy("Or user ID"),
        help_text=gettext_lazy("Operators who may create API keys can connect a user without the key."),
    )
    may_write = forms.BooleanField(required=False, initial=True)

    def __init__(self, *args: Any, is_operator: bool, is_write_wanted: bool) -> None:
        super().__init__(*args)
        if not is_operator:
            del self.fields["user_id"]
        if not is_write_wanted:
            del self.fields["may_write"]

    def clean(self) -> dict[str, Any]:
        if not self.errors and bool(self.cleaned_data["key"]) == bool(self.cleaned_data.get("user_id")):
            both = gettext_lazy("Enter either an API key or a user ID.")
            raise forms.ValidationError(both if "user_id" in self.fields else gettext_lazy("Enter your API key."))
        return self.cleaned_data


@endpoint
@never_cache
@require_http_methods(["GET", "POST"])
def authorize(request: HttpRequest) -> HttpResponse:
    """Show the application and what it wants. On POST, redirect with a code, or with the user's refusal."""
    limits.count_anonymous(address_of(request))
    try:
        wanted = _read(request)
    except Refused as refused:
        return _page(request, "refused", {"sentence": localized(refused.sentence), "address": refused.address}, 400)
    operator = request.user if admin.site.has_permission(request) and is_unlimited(request) else None
    form = ConsentForm(
        request.POST or None,
        is_operator=operator is not None and operator.has_perm(authority.CONNECT),
        is_write_wanted=WRITE in wanted.scopes,
    )
    if request.POST.get("answer") == "deny":
        return _redirect(wanted.address(error="access_denied"))
    status = 200
    if form.is_valid():
        try:
            code = _approve(request, wanted, form.cleaned_data)
        except GatewayError as error:
            form.add_error(None, localized(error.detail))
            status = error.status
        else:
            return _redirect(wanted.address(code=code))
    elif form.is_bound:
        status = 422
    context = {"wanted": wanted, "form": form, "is_write_wanted": "may_write" in form.fields}
    # Browsers apply form-action to the redirect too. CSP has no syntax for IPv6 addresses and hosts of applications.
    parts = urlsplit(wanted.redirect_uri)
    is_scheme_only = "[" in parts.netloc or oauth.is_of_application(parts.scheme)
    target = f"{parts.scheme}:" if is_scheme_only else f"{parts.scheme}://{parts.netloc}"
    with_target = csp_update({"form-action": [SELF, target]})
    return with_target(lambda request: _page(request, "consent", context, status))(request)  # type: ignore[return-value]


def _redirect(address: str) -> HttpResponse:
    """Return a redirect to a registered address. Django's own redirects know no schemes of applications."""
    return HttpResponse(status=303, headers={"Location": iri_to_uri(address)})


def _read(request: HttpRequest) -> Wanted:
    """Return the valid request. Raises: `Refused`."""
    params = request.GET
    client = _client(request, params.get("client_id", ""))
    if client is None:
        raise Refused(
            _(
                "The application is not registered here, or its registration has expired. Remove the connection in the "
                "application, then connect again."
            )
        )
    try:
        redirect_uri = str(_URI.validate_python(params.get("redirect_uri", "")))
    except ValidationError:
        redirect_uri = ""
    if not oauth.is_registered(client, redirect_uri):
        raise Refused(_("The application wants to send you to an address that it has not registered."))
    asked = params.get("scope", "").split()
    may_write = not asked or WRITE in asked  # which includes reading
    scopes = oauth.SCOPES if may_write else tuple(scope for scope in (READ,) if scope in asked)
    state = params.get("state", "")[:MAX_STATE_CHARS] or None
    wanted = Wanted(client, redirect_uri, state, params.get("code_challenge", ""), scopes, issuer_of(request))
    try:
        Request.model_validate(params.dict())
    except ValidationError as error:
        names = {str(problem["loc"][0]) for problem in error.errors()}
        code = "unsupported_response_type" if "response_type" in params and "response_type" in names else ""
        raise _refused(wanted, code or "invalid_request", ", ".join(sorted(names))) from None
    if repeated := [name for name, values in params.lists() if len(values) > 1 and name != "resource"]:
        raise _refused(wanted, "invalid_request", ", ".join(repeated))
    if not scopes:
        raise _refused(wanted, "invalid_scope", "scope")
    if not all(is_resource(one, wanted.issuer + MCP) for one in params.getlist("resource")):
        raise _refused(wanted, "invalid_target", "resource")
    return wanted


def _client(request: HttpRequest, client_id: str) -> OAuthClient | None:
    """Return the client, whose document may be read for it. Raises: `Refused`, `TooManyRequests`."""
    if not is_address(client_id):
        return oauth.find_client(client_id)
    try:
        return oauth.describe(client_id, before_read=lambda: limits.count_registration(address_of(request)))
    except InvalidInput as error:
        wrong = error.errors[0]
        raise Refused(
            _("The application's %(name)s %(reason)s. Tell its developer.", name=wrong.field, reason=wrong.message)
        ) from None


def _refused(wanted: Wanted, code: str, names: str) -> Refused:
    sentence = _("The application's request is invalid (%(names)s). Update the application.", names=names)
    return Refused(sentence, wanted.address(error=code, error_description=f"invalid: {names}"))


def _approve(request: HttpRequest, wanted: Wanted, data: dict[str, Any]) -> str:
    """Connect the application and return the code.

    Raises: `Unauthenticated`, `TooManyRequests`, `NotFound`, `MissingScope` for a key that may do less.
    """
    scopes = tuple(scope for scope in wanted.scopes if scope != WRITE or data["may_write"])
    resource = wanted.issuer + MCP
    approval = oauth.Approval(wanted.client.pk, wanted.redirect_uri, wanted.code_challenge, resource, scopes)
    if data.get("user_id"):
        user = existing(active_users().filter(user_id=data["user_id"]), _("There is no such user."))
        operator = User.objects.get_by_natural_key(request.user.get_username())
        return oauth.approve(approval, user_pk=user.pk, operator=operator, actor=actor_of(request))
    caller = limits.authenticate(address_of(request), data["key"])
    for scope in sorted(of_oauth(scopes)):
        require(caller.scopes, scope)
    return oauth.approve(approval, user_pk=caller.user_pk, key_id=caller.key_id, actor=Actor.key(caller))


def _page(request: HttpRequest, name: str, context: dict[str, Any], status: int) -> HttpResponse:
    frame = {"site_title": admin.site.site_title, "site_header": admin.site.site_header}
    return render(request, f"oauth/{name}.html", {**frame, **context}, status=status)
