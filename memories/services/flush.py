"""Turning what was said into memories."""

from __future__ import annotations

from accounts.principal import Principal
from engines.port import Engine, FlushResult
from engines.registry import get_engine
from memories.services.owned import owner_of, require_own_session


def flush(
    principal: Principal, session_id: str, *, app_id: str, project_id: str, engine: Engine | None = None
) -> FlushResult:
    """Makes memories of a session's messages; a session without any gives `no_extraction`.

    Errors: `NotFound` for a session that names somebody else, and the engine's own.
    """
    owner = owner_of(principal, app_id, project_id)
    require_own_session(owner, session_id)
    return (engine or get_engine()).flush(owner, session_id)
