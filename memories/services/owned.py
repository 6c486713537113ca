"""What a caller may name: their own sessions, and nothing that names somebody else."""

from __future__ import annotations

from accounts.principal import Principal
from core.errors import NotFound
from core.ids import check_session_id, parse_session_id
from store.types import Owner


def owner_of(principal: Principal, app_id: str = "default", project_id: str = "default") -> Owner:
    return Owner(principal.user_pk, principal.user_id, app_id, project_id)


def is_session_id(text: str) -> bool:
    """Whether any session could have that id."""
    try:
        check_session_id(text)
    except ValueError:
        return False
    return True


def require_own_session(owner: Owner, session_id: str) -> None:
    """Sessions whose id names another user do not exist for the caller. Errors: `NotFound`."""
    named = parse_session_id(session_id).user_id
    if named not in {None, owner.user_id} or not is_session_id(session_id):
        raise NotFound("There is no such session.")
