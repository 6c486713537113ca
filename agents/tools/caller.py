from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q

from accounts.audit import Actor
from core.errors import InvalidInput
from core.ids import check_name, check_session_id
from store.models import WRITTEN_DOWN
from store.types import Owner

DEFAULT_AGENT = "main"
MAIN_SESSION = "main"


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the memories, and the agent that calls ("" for none, which sees all agents' memories).

    `session_id` is the session of stored memories.
    """

    owner: Owner
    agent_id: str
    actor: Actor
    session_id: str = ""

    @property
    def storage_session_id(self) -> str:
        """Return the session of stored memories, by default OpenClaw's main session of the agent."""
        return self.session_id or f"agent:{self.agent_id or DEFAULT_AGENT}:{MAIN_SESSION}"

    @property
    def reader(self) -> str | None:
        """Return the agent for whom a search filters memories."""
        return self.agent_id or None

    def may_see(self, *, origin: str, agent_id: str) -> bool:
        """Return True unless the memory was written for another agent; messages and files are for all agents."""
        is_private = origin in WRITTEN_DOWN and agent_id != ""
        return not is_private or self.agent_id in {"", agent_id}

    def own(self) -> Q:
        """Return the condition for memories written for this agent."""
        return Q(origin__in=WRITTEN_DOWN, agent_id=self.agent_id)


def caller_for(owner: Owner, actor: Actor, *, agent_id: str | None = None, session_key: str | None = None) -> Caller:
    """Return the caller from OpenClaw's agent id, or a session key that names one (`agent:<id>:…`), or neither.

    Raises: `InvalidInput`.
    """
    session_id = "" if session_key in {None, MAIN_SESSION} else str(session_key)
    agent_id = agent_id or _agent_of(session_id) or DEFAULT_AGENT
    try:
        check_name(agent_id)
    except ValueError as error:
        raise InvalidInput.of_field("agentId", str(error)) from None
    try:
        return Caller(owner, agent_id, actor, check_session_id(session_id) if session_id else "")
    except ValueError as error:
        raise InvalidInput.of_field("sessionKey", str(error)) from None


def _agent_of(session_key: str) -> str:
    parts = session_key.split(":")
    return parts[1] if len(parts) > 2 and parts[0] == "agent" else ""
