"""What a caller may name: their own sessions, and nothing that names somebody else."""

from __future__ import annotations

from accounts.principal import Principal
from engine.port import Owner
from memory_gateway.core.errors import NotFound
from memory_gateway.core.ids import parse_session_id


def owner_of(principal: Principal, app_id: str = "default", project_id: str = "default") -> Owner:
    return Owner(principal.user_pk, principal.user_id, app_id, project_id)


def require_own_session(owner: Owner, session_id: str) -> None:
    """Sessions whose id names another user do not exist for the caller. Errors: `NotFound`."""
    named = parse_session_id(session_id).user_id
    if named is not None and named != owner.user_id:
        raise NotFound("There is no such session.")
