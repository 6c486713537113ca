"""`tools.invoke`: the agent tools over WebSocket."""

from __future__ import annotations

from typing import Any

from accounts.tokens import TokenPrincipal
from agents import tools
from agents.rpc.failures import Failure, invalid
from agents.rpc.memory_admin import owner_for
from agents.rpc.params import Params, text
from agents.tools.caller import caller_for
from core.errors import GatewayError


def invoke(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Call a tool. The result is in `output`, as in OpenClaw, and in `result`, as in `POST /tools/invoke`.

    Raises: `Failure`.
    """
    name, arguments = text(params, "tool") or text(params, "name"), params.get("args")
    if not name:
        raise invalid("tools.invoke: tool must be the name of a tool")
    if not isinstance(arguments, dict | None):
        raise invalid("tools.invoke: args must be an object")
    agent_id, session_key = text(params, "agentId") or None, text(params, "sessionKey") or None
    try:
        caller = caller_for(owner_for(principal), principal.actor, agent_id=agent_id, session_key=session_key)
        result = tools.invoke(caller, name, arguments or {})
    except GatewayError as error:
        code = "INVALID_REQUEST" if error.status < 500 else "UNAVAILABLE"
        raise Failure(code, error.detail, details={"code": error.code}) from None
    return {"ok": True, "toolName": name, "source": "plugin", "output": result, "result": result}
