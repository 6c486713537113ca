"""Memories that a language model names by id."""

from typing import Final

from agents.tools.caller import Caller
from core.errors import NotFound
from core.messages import Message as _
from engines.registry import get_engine
from memories.services import lookup
from memories.services.lookup import MemoryRef
from store.types import StoredMemory

_DELIMITERS: Final = " \t\r\n[]()\"'`"


def cleaned(memory_id: str) -> str:
    """Return the id without the brackets of a list, with which language models copy it."""
    return memory_id.strip(_DELIMITERS).removeprefix("id:").strip()


def ref_of(caller: Caller, memory_id: str) -> MemoryRef:
    return MemoryRef(memory_id, app_id=caller.owner.app_id, project_id=caller.owner.project_id)


def get_memory(caller: Caller, memory_id: str) -> StoredMemory:
    """Return the memory, a deleted one too. Raises: `NotFound`, also for a memory of another agent."""
    memory = lookup.get_memory(caller.owner.user_pk, ref_of(caller, memory_id), get_engine())
    if not caller.may_see(origin=memory.origin, agent_id=memory.agent_id):
        raise NotFound(_("There is no such memory."))
    return memory
