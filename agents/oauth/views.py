"""OAuth over HTTP: metadata, registration, tokens and revocation. `consent` has the page.

The addresses follow the host of the request, which the caller has checked.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from accounts import oauth
from accounts.api import limits
from accounts.api.authentication import address_of
from agents.oauth import provider
from agents.oauth.addresses import AUTHORIZE, MCP, REGISTER, RESOURCE_METADATA, REVOKE, TOKEN
from core.errors import TooManyRequests

ALL_TOOLS: Final = "?tools=all"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
FORM = "application/x-www-form-urlencoded"
View = Callable[..., HttpResponseBase]


def endpoint(view: View) -> View:
    """Decorate a view: 404 without `MEMORY_GATEWAY_OAUTH`, and rate limits as OAuth errors."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any) -> HttpResponseBase:
        if not settings.MEMORY_GATEWAY_OAUTH:
            raise Http404
        try:
            return view(request, *args)
        except TooManyRequests as error:
            headers = {"Retry-After": str(error.retry_after_seconds)}
            return _error("temporarily_unavailable", error.detail, status=429, headers=headers)

    return wrapped


def origin_of(scheme: str, host: str) -> str:
    """Return scheme and host without a default port."""
    return f"{scheme}://{host.lower().removesuffix(_DEFAULT_PORTS[scheme])}"


def challenge(request: HttpRequest) -> str:
    """Return the `WWW-Authenticate` of a 401 of `/mcp` (RFC 9728)."""
    if not settings.MEMORY_GATEWAY_OAUTH:
        return "Bearer"
    metadata = f'resource_metadata="{issuer_of(request)}{RESOURCE_METADATA}{MCP}"'
    problem = 'error="invalid_token", ' if "Authorization" in request.headers else ""
    return f'Bearer {problem}{metadata}, scope="{" ".join(oauth.SCOPES)}"'


def issuer_of(request: HttpRequest) -> str:
    """Return the identifier of the authorization server: the address of the gateway."""
    return origin_of(request.scheme or "http", request.get_host()) + get_script_prefix().rstrip("/")


@endpoint
@require_safe
def resource_metadata(request: HttpRequest) -> HttpResponse:
    """Return the metadata of the protected resource `/mcp` (RFC 9728)."""
    issuer = issuer_of(request)
    return _document(
        ProtectedResourceMetadata.model_validate(
            {
                "resource": issuer + MCP,
                "authorization_servers": [issuer],
                "scopes_supported": oauth.SCOPES,
                "resource_name": "Memory Gateway",
            }
        )
    )


@endpoint
@require_safe
def server_metadata(request: HttpRequest) -> HttpResponse:
    """Return the metadata of the authorization server (RFC 8414)."""
    issuer = issuer_of(request)
    return _document(
        OAuthMetadata.model_validate(
            {
                "issuer": issuer,
                "authorization_endpoint": issuer + AUTHORIZE,
                "token_endpoint": issuer + TOKEN,
                "registration_endpoint": issuer + REGISTER,
                "revocation_endpoint": issuer + REVOKE,
                "scopes_supported": oauth.SCOPES,
                "grant_types_supported": provider.GRANT_TYPES,
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "client_id_metadata_document_supported": True,
                "authorization_response_iss_parameter_supported": True,
                "ui_locales_supported": [code for code, _name in settings.LANGUAGES],
            }
        )
    )


@csrf_exempt
@endpoint
@require_POST
def register(request: HttpRequest) -> HttpResponse:
    """Register a client (RFC 7591)."""
    limits.count_registration(address_of(request))
    return _handled(provider.registration.handle, request)


@csrf_exempt
@endpoint
@require_POST
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code or refresh token. Failures count as wrong keys of the address."""
    if request.content_type != FORM:
        return _error("invalid_request", f"The body must be {FORM}.")
    own = issuer_of(request) + MCP
    if not all(is_resource(one, own) for one in request.POST.getlist("resource")):
        return _error("invalid_target", f"Tokens are for {own} only.")
    answer = _handled(provider.token.handle, request)
    if answer.status_code >= 400:
        limits.count_failure(address_of(request))
    return answer


@csrf_exempt
@endpoint
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """End the connection of a token (RFC 7009). `client_id` is optional, but must fit the token."""
    plaintext = request.POST.get("token")
    if not plaintext:
        return _error("invalid_request", "token: is required")
    limits.count_anonymous(address_of(request))
    oauth.revoke_by_token(plaintext, request.POST.get("client_id"))
    return HttpResponse()


def is_resource(requested: str, own: str) -> bool:
    """Return True if a client's `resource` (RFC 8707) is `/mcp`, with or without a final slash and `?tools=all`."""
    return requested.removesuffix(ALL_TOOLS).removesuffix("/") == own


def _handled(handle: Callable[[Request], Awaitable[Response]], request: HttpRequest) -> HttpResponse:
    """Return the response of a handler of the MCP SDK."""
    body, headers = request.body, [(b"content-type", (request.content_type or "").encode("latin-1"))]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    scope = {"type": "http", "method": "POST", "path": request.path_info, "query_string": b"", "headers": headers}
    answer = async_to_sync(handle)(Request(scope, receive))
    return HttpResponse(answer.body, status=answer.status_code, headers=dict(answer.headers))


def _document(metadata: BaseModel) -> HttpResponse:
    return HttpResponse(metadata.model_dump_json(exclude_none=True), content_type="application/json")


def _error(code: str, description: str, *, status: int = 400, headers: dict[str, str] | None = None) -> JsonResponse:
    return JsonResponse({"error": code, "error_description": description}, status=status, headers=headers)
