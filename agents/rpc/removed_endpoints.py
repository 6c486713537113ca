"""`/plugins/memory/api/*`, the plugin's removed HTTP API: names its replacement to callers with a token."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from accounts import tokens
from accounts.api import limits
from accounts.api.authentication import address_of, bearer
from agents.rpc.methods import METHODS
from core.errors import TooManyRequests, Unauthenticated

_METHODS = [name for name in METHODS if name.startswith("memory.admin.")]


@csrf_exempt
def removed_endpoint(request: HttpRequest, rest: str) -> HttpResponseBase:  # noqa: ARG001 - the same answer everywhere
    """Answer in OpenClaw's shapes: 401 for a wrong token, 429 for too many of them, else 410."""
    try:
        is_authorized = not tokens.is_any_configured() or _has_token(request)
        if not is_authorized:
            limits.count_failure(address_of(request))
    except TooManyRequests as error:
        refusal = {"error": {"message": error.detail, "type": "rate_limited"}}
        return JsonResponse(refusal, status=429, headers={"Retry-After": str(error.retry_after_seconds)})
    if not is_authorized:
        return JsonResponse({"error": {"message": "Unauthorized", "type": "unauthorized"}}, status=401)
    sentence = f"/plugins/memory/api is gone: use the Gateway WebSocket RPC methods {', '.join(_METHODS)} instead."
    return JsonResponse({"error": sentence, "methods": _METHODS}, status=410)


def _has_token(request: HttpRequest) -> bool:
    """Return True if the query or the header has a valid token."""
    try:
        header = bearer(request)
    except Unauthenticated:
        header = None
    return any(_is_token(given) for given in (request.GET.get("token"), header) if given)


def _is_token(given: str) -> bool:
    try:
        tokens.authenticate(given)
    except Unauthenticated:
        return False
    return True
