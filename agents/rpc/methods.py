"""The RPC methods with their scopes, and their dispatch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError

from accounts import tokens
from accounts.tokens import ADMIN, READ, WRITE, TokenPrincipal
from agents.rpc import memory_admin
from agents.rpc.dashboard import dashboard
from agents.rpc.failures import Failure, invalid, missing_scope, plugin_failure
from agents.rpc.frames import Request
from agents.rpc.handshake import Peer
from agents.rpc.params import Params
from agents.rpc.tools_invoke import invoke
from core.errors import GatewayError

logger = logging.getLogger("memory_gateway.rpc")
_SHOWN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Method:
    scope: str
    run: Callable[[TokenPrincipal, Params], dict[str, Any]]


def health(_principal: TokenPrincipal, _params: Params) -> dict[str, Any]:
    return {"ok": True, "ts": int(time.time() * 1000), "durationMs": 0}


METHODS = {
    "health": Method(READ, health),
    "memory.admin.config": Method(ADMIN, memory_admin.config),
    "memory.admin.facets": Method(ADMIN, memory_admin.facets),
    "memory.admin.dashboard": Method(ADMIN, dashboard),
    "memory.admin.list": Method(ADMIN, memory_admin.list_memories),
    "memory.admin.delete": Method(ADMIN, memory_admin.delete),
    "memory.admin.add": Method(ADMIN, memory_admin.add),
    "tools.invoke": Method(WRITE, invoke),
}


def call(peer: Peer, request: Request) -> dict[str, Any]:
    """Call a method. Raises: `Failure` for every error."""
    method = METHODS.get(request.method)
    if request.method == "connect":
        raise invalid("connect is only valid as the first request")
    scope = method.scope if method else ADMIN  # without the scope, unknown methods look like known ones
    if not tokens.implied(peer.scopes, scope):
        raise missing_scope(scope)
    if method is None:
        raise invalid(f"unknown method: {request.method[:_SHOWN_CHARS]}")
    try:
        return method.run(peer.principal, request.params)
    except Failure:
        raise
    except GatewayError as error:
        raise plugin_failure(_STATUS.get(error.status, error.status), error.detail) from None
    except DatabaseError:
        logger.exception("%s could not be answered", request.method)
        raise plugin_failure(503, "Database unavailable", "the database cannot be used just now") from None
    except Exception:
        logger.exception("%s failed", request.method)
        raise Failure("UNAVAILABLE", "Error: internal error") from None


_STATUS = {422: 400}
"""OpenClaw's panel has no 422."""
