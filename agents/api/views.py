"""`POST /tools/invoke`, and the plugin's removed HTTP API, with OpenClaw's request and error shapes."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import authority, expiry, tokens
from accounts.api import limits
from accounts.api.authentication import UserKeyAuthentication, address_of, bearer, caller
from accounts.api.openapi import BearerScheme, request_body, success
from accounts.api.permissions import ANY
from accounts.audit import Actor
from accounts.models import Principal
from accounts.services import OAUTH_PREFIX
from agents import tools
from agents.api.schemas import ToolAnswer, ToolInvocation, ToolProblem
from agents.rpc.memory_admin import owner_for
from agents.rpc.methods import METHODS
from agents.tools.caller import caller_for, unrestricted
from core.errors import TooManyRequests, Unauthenticated
from core.rest import Forbidden, JsonRenderer, as_gateway_error, parse, problem_headers
from memories.services.lookup import owner_of

logger = logging.getLogger("memory_gateway.errors")
_NO_KEY = UUID(int=0)
_PANEL_METHODS = [name for name in METHODS if name.startswith("memory.admin.")]

# OpenClaw's status and error type by the gateway's status. OpenClaw has no 422.
_TYPES = {
    400: (400, "invalid_request"),
    401: (401, "unauthorized"),
    409: (400, "tool_error"),
    422: (400, "invalid_request"),
    429: (429, "rate_limited"),
}

_REFUSALS = {
    status: OpenApiResponse(
        ToolProblem, description, [OpenApiExample("Example", {"error": {"type": kind, "message": text}})]
    )
    for status, kind, description, text in (
        (
            400,
            "invalid_request",
            "The body or an argument is invalid (`invalid_request`), or the tool cannot do it (`tool_error`).",
            "text: must be text",
        ),
        (
            401,
            "unauthorized",
            "The API key or token is missing, unknown, expired or revoked.",
            "This token is unknown, expired or revoked.",
        ),
        (
            403,
            "forbidden",
            "The token lacks the token scope `operator.write`, or its operator the permission.",
            f"missing scope: {tokens.WRITE}",
        ),
        (404, "not_found", "There is no such tool or session.", "There is no such session."),
        (413, "too_large", "The body is too large.", "The body must nest at most 64 levels deep."),
        (
            415,
            "unsupported_type",
            "The body is not JSON.",
            "The body must be application/json, with this Content-Type.",
        ),
        (
            429,
            "rate_limited",
            "Too many requests. Wait as many seconds as the header `Retry-After` says.",
            "Too many requests.",
        ),
        (502, "upstream_refused", "The memory engine refused the request.", "The memory engine refused the request."),
        (
            503,
            "upstream_unavailable",
            "The database or the memory engine is unavailable. Repeat the request later.",
            "The memory engine is unavailable.",
        ),
        (507, "no_space", "The disk or the user's quota is full.", "The disk is full."),
    )
}


@dataclass(frozen=True, slots=True)
class Presented:
    """The actor behind a key or token, and what the actor may do now."""

    actor: Actor
    may: Callable[[str], bool]


class ToolAuthentication(BaseAuthentication):
    """Set `request.user` to the user whose memories are used, and `request.auth` to what was presented.

    Raises: `Unauthenticated`, `Forbidden` for a token without write scope or whose operator may not even read,
    `TooManyRequests`.
    """

    def authenticate(self, request: Request) -> tuple[Principal, Presented] | None:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        token = token.strip()
        # Tokens from settings have no common prefix: any bearer value that is no API key may be one.
        if scheme.lower() != "bearer" or not token or token.startswith(("uk_", OAUTH_PREFIX)):
            found = UserKeyAuthentication().authenticate(request)
            return None if found is None else (found[0], Presented(Actor.key(found[0]), unrestricted))
        try:
            holder = tokens.authenticate(token)
        except Unauthenticated:
            limits.count_failure(address_of(request))
            raise
        if not tokens.includes_scope(holder.scopes, tokens.WRITE):
            raise Forbidden(f"missing scope: {tokens.WRITE}")
        if not tokens.may(holder, authority.VIEW):
            raise Forbidden(f"missing permission: {authority.VIEW}")
        expiry.end_all_due()
        owner = owner_for(holder)
        principal = Principal(owner.user_pk, owner.user_id, holder.token_id or _NO_KEY)
        return principal, Presented(holder.actor, partial(tokens.may, holder))

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class ToolScheme(BearerScheme):  # type: ignore[no-untyped-call]
    target_class = ToolAuthentication
    name = "keyOrTokenAuth"
    description = "The user's API key, or an OpenClaw token with the token scope `operator.write`."


class InvokeView(APIView):
    authentication_classes = [ToolAuthentication]
    scopes = {"post": ANY}  # each tool has its own

    @extend_schema(
        operation_id="invoke_tool",
        summary="Call an agent tool",
        tags=["tools"],
        request=request_body(ToolInvocation),
        responses={200: success(ToolAnswer, "The result of the tool."), **_REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Call `memory_recall`, `memory_store` or `memory_forget`, as OpenClaw does. Errors have OpenClaw's shape."""
        body = parse(ToolInvocation, request.data)
        presented = cast("Presented", request.auth)
        called_by = caller_for(
            owner_of(caller(request)),
            presented.actor,
            interface="tools",
            agent_id=body.agent_id,
            session_key=body.session_key,
            may=presented.may,
            principal=caller(request),
        )
        answer = {"ok": True, "result": tools.invoke(called_by, body.tool, body.args or {})}
        if ignored := tools.warnings(body.tool, cast("dict[str, Any]", request.data)):
            answer["warnings"] = ignored
        return Response(answer)

    def get_exception_handler(self) -> Callable[[Exception, Mapping[str, Any]], Response | None]:
        return error_response


def error_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return a known error as OpenClaw's `{ok: false, error: {type, message}}`; None for others (500, logged)."""
    known = as_gateway_error(error)
    if known is None:
        return None
    if known.status >= 500:
        logger.warning("%s: %s", known.code, known.detail, extra={"cause": error})
    request: Request = context["request"]
    # An error may occur before DRF has negotiated the renderer.
    request.accepted_renderer = JsonRenderer()
    request.accepted_media_type = JsonRenderer.media_type
    status, kind = _TYPES.get(known.status, (known.status, known.code))
    answer = {"ok": False, "error": {"type": kind, "message": known.detail}}
    return Response(answer, status=status, headers=problem_headers(known))


@csrf_exempt
def removed_endpoint(request: HttpRequest, rest: str) -> HttpResponseBase:  # noqa: ARG001 - the same response for every path
    """Respond to `/plugins/memory/api/*`: 401 for a wrong token, 429 for too many of them, else 410."""
    try:
        is_authorized = not tokens.is_any_configured() or _has_token(request)
        if not is_authorized:
            limits.count_failure(address_of(request))
    except TooManyRequests as error:
        body = {"error": {"message": error.detail, "type": "rate_limited"}}
        return JsonResponse(body, status=429, headers={"Retry-After": str(error.retry_after_seconds)})
    if not is_authorized:
        return JsonResponse({"error": {"message": "Unauthorized", "type": "unauthorized"}}, status=401)
    sentence = (
        f"/plugins/memory/api is gone: use the Gateway WebSocket RPC methods {', '.join(_PANEL_METHODS)} instead."
    )
    return JsonResponse({"error": sentence, "methods": _PANEL_METHODS}, status=410)


def _has_token(request: HttpRequest) -> bool:
    """Return True if the query or the header has a valid token."""
    candidates = [request.GET.get("token")]
    with suppress(Unauthenticated):
        candidates.append(bearer(request))
    for token in filter(None, candidates):
        with suppress(Unauthenticated):
            tokens.authenticate(token)
            return True
    return False
