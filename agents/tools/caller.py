"""The caller of a tool, and the memories that it names by id."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from accounts.audit import Actor
from accounts.bound_keys import agent_of
from accounts.models import Principal
from accounts.scopes import UNLIMITED
from core.errors import InvalidInput, NotFound
from core.ids import check_name, check_new_session_id
from core.messages import Translatable as _
from core.rest import Forbidden
from memories.services import lookup
from memories.services.lookup import MemoryRef
from memories.services.search_log import Interface
from store.models import MANUAL_ORIGINS
from store.types import Owner, StoredMemory

DEFAULT_AGENT = "main"
MAIN_SESSION = "main"
_DELIMITERS: Final = " \t\r\n[]()\"'`"


def unrestricted(_permission: str) -> bool:
    """Return True: users may do everything with their own memories."""
    return True


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool: the owner of the memories, and the agent ("" for none, which sees all agents' memories).

    `session_id` is the requested session of stored memories, empty for the default. `scopes` are those of
    the API key or of the application's grant. `may` tells whether a permission is granted now: users have all
    for their own memories, an operator's token has those of its operator. `application` is that whose external ids are
    meant, empty for the user's own keys.
    """

    owner: Owner
    agent_id: str
    actor: Actor
    session_id: str = ""
    scopes: frozenset[str] = UNLIMITED
    interface: Interface = "tools"
    may: Callable[[str], bool] = unrestricted
    application: str = ""

    def require(self, permission: str) -> None:
        """Raise `Forbidden` without the permission."""
        if not self.may(permission):
            raise Forbidden(_("The token's operator lacks the permission %(permission)s.", permission=permission))

    @property
    def storage_session_id(self) -> str:
        """Return the session of stored memories, by default OpenClaw's main session of the agent."""
        return self.session_id or f"agent:{self.agent_id or DEFAULT_AGENT}:{MAIN_SESSION}"

    def may_see(self, *, origin: str, agent_id: str) -> bool:
        """Return True unless the memory was written for another agent; messages and files are for all agents."""
        is_private = origin in MANUAL_ORIGINS and agent_id != ""
        return not is_private or self.agent_id in {"", agent_id}


def caller_for(
    owner: Owner,
    actor: Actor,
    *,
    interface: Interface,
    agent_id: str | None = None,
    session_key: str | None = None,
    may: Callable[[str], bool] = unrestricted,
    principal: Principal | None = None,
) -> Caller:
    """Return the caller by OpenClaw's agent id, or by a session key that names the agent (`agent:<id>:…`).

    Without either it is the agent to which the key of `principal` is bound, or the default one. Raises: `InvalidInput`,
    `Forbidden` for another agent than that of the key.
    """
    session_id = "" if session_key in {None, MAIN_SESSION} else str(session_key)
    parts = session_id.split(":")
    if not agent_id and len(parts) > 2 and parts[0] == "agent":
        agent_id = parts[1]
    if principal is not None:
        agent_id = agent_of(principal, agent_id)
    agent_id = agent_id or DEFAULT_AGENT
    scopes, application = (UNLIMITED, "") if principal is None else (principal.scopes, principal.agent_id)
    try:
        check_name(agent_id)
    except ValueError as error:
        raise InvalidInput.of_field("agentId", str(error)) from None
    try:
        checked = check_new_session_id(session_id) if session_id else ""
        return Caller(owner, agent_id, actor, checked, scopes, interface, may, application)
    except ValueError as error:
        raise InvalidInput.of_field("sessionKey", str(error)) from None


def cleaned(memory_id: str) -> str:
    """Return the id without the brackets of a list, with which language models copy it."""
    return memory_id.strip(_DELIMITERS).removeprefix("id:").strip()


def ref_of(caller: Caller, memory_id: str) -> MemoryRef:
    return MemoryRef(memory_id, app_id=caller.owner.app_id, project_id=caller.owner.project_id)


def get_memory(caller: Caller, memory_id: str) -> StoredMemory:
    """Return the memory, a deleted one too. Raises: `NotFound`, also for a memory of another agent."""
    memory = lookup.get_memory(caller.owner.user_pk, ref_of(caller, memory_id))
    if not caller.may_see(origin=memory.origin, agent_id=memory.agent_id):
        raise NotFound(_("There is no such memory."))
    return memory
