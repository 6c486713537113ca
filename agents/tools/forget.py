"""`memory_forget`: delete a memory by id or by a query. It stays in the trash and can be restored."""

from __future__ import annotations

from typing import Final

from agents.tools.arguments import ForgetArguments
from agents.tools.caller import Caller
from agents.tools.recall import Recalled, find, listed
from agents.tools.results import Result, failed, result
from core.errors import NotFound
from engines.registry import get_engine
from memories.services import decisions, lookup
from memories.services.lookup import MemoryRef
from store.text.tokens import query_tokens

_POSSIBLE: Final = 0.05
"""Lower scores are noise: EverOS returns something for every query."""
_LIKELY: Final = 0.7
_CERTAIN: Final = 0.9
_COVERED: Final = 0.5
_AROUND_AN_ID: Final = " \t\r\n[]()\"'`"


def forget(caller: Caller, arguments: ForgetArguments) -> Result:
    """Delete a memory. Raises: `Conflict` for a message that is not flushed yet."""
    # Models copy an id together with the list's brackets.
    if memory_id := arguments.memory_id.strip(_AROUND_AN_ID).removeprefix("id:").strip():
        return _forget_id(caller, memory_id)
    if arguments.query.strip():
        return _forget_found(caller, arguments.query)
    return failed("missing_param", "Provide query or memoryId.")


def _forget_id(caller: Caller, memory_id: str) -> Result:
    if not _is_visible(caller, memory_id):
        return result(f"Memory {memory_id} not found.", action="not_found", id=memory_id)
    _delete(caller, memory_id)
    return result(f"Memory {memory_id} forgotten.", action="deleted", id=memory_id)


def _forget_found(caller: Caller, query: str) -> Result:
    found = [one for one in find(caller, query) if one.score >= _POSSIBLE]
    if not found:
        return result("No matching memories found.", found=0)
    likely = [one for one in found if one.score >= _LIKELY]
    if len(likely) == 1 and _is_certain_match(likely[0], query):
        _delete(caller, likely[0].id)
        text = f"Forgotten: [id: {likely[0].id}]\n{listed(likely)}"
        return result(text, action="deleted", rows=1, id=likely[0].id)
    candidates = likely or found
    return result(
        f"Found {len(candidates)} candidates. Call again with the memoryId of one of them:\n\n{listed(candidates)}",
        action="candidates",
        candidates=[
            {"id": one.id, "text": one.text, "category": one.category, "score": one.score} for one in candidates
        ],
    )


def _is_certain_match(one: Recalled, query: str) -> bool:
    """Return True if the query covers the memory: one word of a long memory is not enough."""
    says = set(query_tokens(one.text))
    covered = len(says & set(query_tokens(query))) / max(len(says), 1)
    return one.score > _CERTAIN and covered >= _COVERED


def _is_visible(caller: Caller, memory_id: str) -> bool:
    """Return True if the caller may see the memory and it is not deleted."""
    try:
        memory = lookup.get_memory(caller.owner.user_pk, _memory_ref(caller, memory_id), get_engine())
    except NotFound:
        return False
    return lookup.is_active(memory) and caller.may_see(origin=memory.origin, agent_id=memory.agent_id)


def _delete(caller: Caller, memory_id: str) -> None:
    decisions.delete(caller.owner.user_pk, _memory_ref(caller, memory_id), reason="memory_forget", actor=caller.actor)


def _memory_ref(caller: Caller, memory_id: str) -> MemoryRef:
    return MemoryRef(memory_id, app_id=caller.owner.app_id, project_id=caller.owner.project_id)
