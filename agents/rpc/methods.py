"""The RPC methods with their scopes and permissions, and their dispatch."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import DatabaseError

from accounts import expiry, tokens
from accounts.authority import ADD, DELETE, VIEW
from accounts.tokens import ADMIN, READ, WRITE, TokenPrincipal
from agents import tools
from agents.rpc import memory_admin
from agents.rpc.dashboard import dashboard
from agents.rpc.failures import Failure, invalid, plugin_failure
from agents.rpc.frames import Request
from agents.rpc.handshake import Peer
from agents.rpc.params import Params, text
from agents.tools.caller import caller_for
from core.errors import GatewayError
from core.persistence import database_errors
from core.rest import Forbidden

logger = logging.getLogger("memory_gateway.rpc")
_SHOWN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Method:
    """A method. A token needs the scope, and its operator the permission at the time of the call."""

    scope: str
    permission: str
    run: Callable[[TokenPrincipal, Params], dict[str, Any]]


def health(_principal: TokenPrincipal, _params: Params) -> dict[str, Any]:
    return {"ok": True, "ts": int(time.time() * 1000), "durationMs": 0}


def invoke_tool(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Call an agent tool. Its result is in `output`, as in OpenClaw, and in `result`, as in `POST /tools/invoke`."""
    name, arguments = text(params, "tool") or text(params, "name"), params.get("args")
    if not name:
        raise invalid("tools.invoke: tool must be the name of a tool")
    if not isinstance(arguments, dict | None):
        raise invalid("tools.invoke: args must be an object")
    agent_id, session_key = text(params, "agentId") or None, text(params, "sessionKey") or None
    try:
        owner = memory_admin.owner_for(principal)
        caller = caller_for(
            owner,
            principal.actor,
            interface="rpc",
            agent_id=agent_id,
            session_key=session_key,
            may=partial(tokens.may, principal),
        )
        result = tools.invoke(caller, name, arguments or {})
    except Forbidden as error:
        raise Failure("FORBIDDEN", error.detail, details={"code": "MISSING_PERMISSION"}) from None
    except GatewayError as error:
        code = "INVALID_REQUEST" if error.status < 500 else "UNAVAILABLE"
        raise Failure(code, error.detail, details={"code": error.code}) from None
    answer = {"ok": True, "toolName": name, "source": "plugin", "output": result, "result": result}
    ignored = tools.warnings(name, params)
    return {**answer, "warnings": ignored} if ignored else answer


METHODS = {
    "health": Method(READ, VIEW, health),
    "memory.admin.config": Method(ADMIN, VIEW, memory_admin.config),
    "memory.admin.facets": Method(ADMIN, VIEW, memory_admin.facets),
    "memory.admin.dashboard": Method(ADMIN, VIEW, dashboard),
    "memory.admin.list": Method(ADMIN, VIEW, memory_admin.list_memories),
    "memory.admin.delete": Method(ADMIN, DELETE, memory_admin.delete),
    "memory.admin.add": Method(ADMIN, ADD, memory_admin.add),
    "tools.invoke": Method(WRITE, VIEW, invoke_tool),  # each tool needs its own permission too
}


def call(peer: Peer, request: Request) -> dict[str, Any]:
    """Call a method. Raises: `Failure` for every error."""
    method = METHODS.get(request.method)
    if request.method == "connect":
        raise invalid("connect is only valid as the first request")
    scope = method.scope if method else ADMIN  # to clients without it, unknown methods look like known ones
    if not tokens.includes_scope(peer.scopes, scope):
        details = {"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope]}
        raise Failure("FORBIDDEN", f"missing scope: {scope}", details=details)
    if method is None:
        raise invalid(f"unknown method: {request.method[:_SHOWN_CHARS]}")
    try:
        _require(peer.principal, method.permission)
        expiry.end_all_due()
        return method.run(peer.principal, request.params)
    except Failure:
        raise
    except GatewayError as error:
        status = 400 if error.status == 422 else error.status  # OpenClaw's panel has no 422
        raise plugin_failure(status, error.detail) from None
    except DatabaseError as error:
        logger.exception("%s failed with a database error", request.method)
        if refusal := database_errors.explain(error):
            raise plugin_failure(refusal.status, refusal.detail) from None
        raise plugin_failure(503, "Database unavailable", "the database is busy or unreachable") from None
    except Exception:
        logger.exception("%s failed", request.method)
        raise Failure("UNAVAILABLE", "Error: internal error") from None


def _require(principal: TokenPrincipal, permission: str) -> None:
    """Raise `Failure` if the token's operator does not have the permission now."""
    if not tokens.may(principal, permission):
        details = {"code": "MISSING_PERMISSION", "missingPermission": permission}
        raise Failure("FORBIDDEN", f"missing permission: {permission}", details=details)
