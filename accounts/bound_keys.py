"""The application and the agent of a request: those to which the API key is bound, if it is."""

from accounts.models import Principal
from core.messages import Translatable as _
from core.rest import Forbidden


def app_of(principal: Principal, app_id: str | None) -> str | None:
    """Return the application of a request: that to which the key is bound, if it is. Raises: `Forbidden`."""
    if principal.app_id and app_id not in {None, "default", principal.app_id}:
        raise Forbidden(_("The API key is bound to the application %(app_id)s.", app_id=principal.app_id))
    return principal.app_id or app_id


def agent_of(principal: Principal, agent_id: str | None) -> str | None:
    """Return the agent of a request: that to which the key is bound, if it is. Raises: `Forbidden`."""
    if principal.agent_id and agent_id not in {None, "", principal.agent_id}:
        raise Forbidden(_("The API key is bound to the agent %(agent_id)s.", agent_id=principal.agent_id))
    return principal.agent_id or agent_id
