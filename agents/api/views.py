"""`POST /tools/invoke` with OpenClaw's request and error shapes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast

from drf_spectacular.utils import extend_schema
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.authentication import caller
from accounts.audit import Actor
from agents import tools
from agents.api.authentication import ToolAuthentication
from agents.tools.caller import caller_for
from core.rest import JsonRenderer, as_gateway_error, parse, problem_headers
from memories.services.owned import owner_of

logger = logging.getLogger("memory_gateway.errors")

# OpenClaw's status and error type by ours; it has no 422.
_TYPES = {
    400: (400, "invalid_request"),
    401: (401, "unauthorized"),
    409: (400, "tool_error"),
    422: (400, "invalid_request"),
    429: (429, "rate_limited"),
}


class InvokeBody(BaseModel):
    """The body of a call. OpenClaw fields without a meaning here (`action`, `dryRun` …) are ignored."""

    model_config = ConfigDict(strict=True)

    tool: str = Field(validation_alias=AliasChoices("tool", "name"))
    args: dict[str, Any] | None = None
    agent_id: str | None = Field(None, alias="agentId")
    session_key: str | None = Field(None, alias="sessionKey")


class InvokeView(APIView):
    authentication_classes = [ToolAuthentication]

    @extend_schema(exclude=True)
    def post(self, request: Request) -> Response:
        body = parse(InvokeBody, request.data)
        actor = cast("Actor", request.auth)
        called_by = caller_for(owner_of(caller(request)), actor, agent_id=body.agent_id, session_key=body.session_key)
        return Response({"ok": True, "result": tools.invoke(called_by, body.tool, body.args or {})})

    def get_exception_handler(self) -> Callable[[Exception, Mapping[str, Any]], Response | None]:
        return refusal


def refusal(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Render a known error as OpenClaw's `{ok: false, error: {type, message}}`; None for others (500, logged)."""
    known = as_gateway_error(error)
    if known is None:
        return None
    if known.status >= 500:
        logger.warning("%s: %s", known.code, known.detail)
    request: Request = context["request"]
    # An error may occur before DRF has negotiated the renderer.
    request.accepted_renderer = JsonRenderer()
    request.accepted_media_type = JsonRenderer.media_type
    status, kind = _TYPES.get(known.status, (known.status, known.code))
    answer = {"ok": False, "error": {"type": kind, "message": known.detail}}
    return Response(answer, status=status, headers=problem_headers(known))
