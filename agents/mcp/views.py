"""MCP at `/mcp`: streamable HTTP without sessions, authenticated by API keys and OAuth tokens.

The SDK receives a message only after it is authenticated, complete and valid JSON.
"""

import codecs
import logging
from typing import Final

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from rest_framework.exceptions import NotAcceptable

from accounts.api import limits
from accounts.api.authentication import address_of, bearer
from accounts.audit import Actor
from accounts.oauth import Access
from accounts.services import OAUTH_PREFIX
from agents.mcp import exchange
from agents.mcp.server import current, is_list_complete
from agents.oauth.addresses import MCP
from agents.oauth.views import challenge, issuer_of
from agents.rpc.origins import is_origin_allowed, is_secure
from agents.tools.caller import Caller, caller_for
from core.errors import BadRequest, GatewayError, InvalidInput, TooLarge, Unauthenticated
from core.rest import Forbidden, MethodNotAllowed, as_gateway_error, problem, problem_headers
from core.storable import MAX_JSON_DEPTH, depth_exceeds
from memories.services.lookup import owner_of

logger = logging.getLogger("memory_gateway.errors")
MAX_BODY_BYTES: Final = 4 * 2**20
_JSON: Final = "application/json"


@csrf_exempt
def endpoint(request: HttpRequest) -> HttpResponse:
    """Answer one message. A refusal is a JSON-RPC error too, whose message the official clients show."""
    try:
        return _answer(request)
    except Exception as error:
        known = as_gateway_error(error)
        if known is None:
            raise
        if known.status >= 500:
            logger.warning("%s: %s", known.code, known.detail, exc_info=error, extra={"cause": error})
        return _refusal(request, known)


def _answer(request: HttpRequest) -> HttpResponse:
    _check_origin(request)
    if request.method != "POST":
        raise MethodNotAllowed("Send MCP messages as POST: there are no sessions and no streams here.")
    caller = _caller(request)
    if request.content_type != _JSON:
        raise BadRequest("The body must be application/json, with this Content-Type.")
    if not request.accepts(_JSON):
        raise NotAcceptable
    body, headers = _body(request), {name.lower(): value for name, value in request.headers.items()}
    token, shown = current.set(caller), is_list_complete.set(_wants_all_tools(request))
    try:
        status, data = exchange.answer(body, headers)
    finally:
        current.reset(token)
        is_list_complete.reset(shown)
    return HttpResponse(data, status=status, content_type=_JSON)


def _wants_all_tools(request: HttpRequest) -> bool:
    """Return True for `/mcp?tools=all`. Raises: `InvalidInput` for another value."""
    wanted = request.GET.get("tools")
    if wanted not in {None, "all"}:
        raise InvalidInput.of_field("tools", "must be all, or be left out for the six most used")
    return wanted == "all"


def _check_origin(request: HttpRequest) -> None:
    """Check the scheme and the header `Origin`. Raises: `Forbidden`."""
    scheme, host, peer = request.scheme or "http", request.get_host(), address_of(request)
    if not is_secure(scheme):
        raise Forbidden("This endpoint accepts API keys over HTTPS only. Use an https:// address.")
    origin = request.headers.get("Origin")
    if origin is not None and not is_origin_allowed(origin, host=host, scheme=scheme, peer=peer):
        raise Forbidden("Requests from this origin are not allowed.")


def _caller(request: HttpRequest) -> Caller:
    """Return the caller by API key or OAuth token. Raises: `Unauthenticated`, `TooManyRequests`, `InvalidInput`."""
    try:
        access = _access(request)
    except Unauthenticated:
        limits.count_anonymous(address_of(request))
        raise
    request.user = access.principal  # type: ignore[assignment]  # for the request log, as Django REST framework sets it
    agent_id = request.headers.get("X-Agent-Id")
    owner = owner_of(access.principal)
    return caller_for(owner, access.actor, interface="mcp", agent_id=agent_id, principal=access.principal)


def _access(request: HttpRequest) -> Access:
    token = bearer(request)
    if not token:
        raise Unauthenticated(
            "This endpoint needs an API key or an OAuth token. Send the header Authorization: Bearer …."
        )
    if token.startswith(OAUTH_PREFIX) and settings.MEMORY_GATEWAY_OAUTH:
        return limits.authenticate_token(address_of(request), token, issuer_of(request) + MCP)
    principal = limits.authenticate(address_of(request), token)
    return Access(principal, Actor.key(principal))


def _body(request: HttpRequest) -> bytes:
    """Return the body. Raises: `TooLarge`."""
    body: bytes = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(f"The body must be at most {MAX_BODY_BYTES} bytes.")
    if depth_exceeds(body, MAX_JSON_DEPTH):
        raise TooLarge(f"The body must nest at most {MAX_JSON_DEPTH} levels deep.")
    return body.removeprefix(codecs.BOM_UTF8)


def _refusal(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """Return an error as JSON-RPC, in English, with the problem document as its data."""
    code = INTERNAL_ERROR if error.status >= 500 else INVALID_REQUEST
    content = {"code": code, "message": error.detail, "data": problem(error)}
    headers = problem_headers(error)
    if error.status == 405:
        headers["Allow"] = "POST"
    if error.status == 401:
        headers["WWW-Authenticate"] = challenge(request)
    data = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": content})
    return HttpResponse(data, status=error.status, content_type=_JSON, headers=headers)
