"""`memory_forget`: delete a memory by id or by a query. It stays in the trash and can be restored.

A query deletes what `POST /memories/forget` deletes for the same words, if that is one memory with its copies. Else the
memories with these words, and those that a search finds, are candidates.
"""

from collections.abc import Sequence
from typing import Final

from accounts import scopes
from accounts.authority import VIEW
from agents.tools import budget
from agents.tools.arguments import MAX_LIMIT, ForgetArguments
from agents.tools.caller import Caller, cleaned, get_memory, ref_of
from agents.tools.found import find, recalled_of
from agents.tools.results import Result, and_copies, failed, result
from core.errors import NotFound
from memories.services import decisions, lookup
from memories.services.excerpts import excerpt
from operations.filtered_deletion import PREVIEWED, Chosen
from store.text.tokens import query_tokens, required_tokens

_MIN_SCORE: Final = 0.05
"""Lower scores are noise: the remote returns something for every query."""
_LIKELY: Final = 0.7
_CERTAIN: Final = 0.9
_MIN_SHARE_OF_WORDS: Final = 0.5
"""The share of a memory's words that a query must hold to delete it without asking."""


def forget(caller: Caller, arguments: ForgetArguments) -> Result:
    """Delete a memory. Raises: `Conflict` for a message that is not flushed yet."""
    if memory_id := cleaned(arguments.memory_id):
        try:
            is_found = lookup.is_active(get_memory(caller, memory_id))
        except NotFound:
            is_found = False
        if not is_found:
            return result(f"Memory {memory_id} not found.", action="not_found", id=memory_id)
        copies = _delete(caller, memory_id)
        text = f"Memory {memory_id}{and_copies(copies)} forgotten."
        return result(text, action="deleted", id=memory_id, **_details(copies))
    if arguments.query.strip():
        return _forget_by_query(caller, arguments.query)
    return failed("missing_param", "Provide query or memoryId.")


def _forget_by_query(caller: Caller, query: str) -> Result:
    caller.require(VIEW)
    scopes.require(caller.scopes, scopes.SEARCH)
    found = [one for one in find(caller, query) if one.score >= _MIN_SCORE]
    chosen = Chosen(caller.owner, words=query, reader=caller.agent_id)
    with_words = chosen.newest(PREVIEWED) if required_tokens(query) else []
    if not (found or with_words):
        return result("No matching memories found.", found=0)
    likely = [one for one in found if one.score >= _LIKELY]
    if len(likely) == 1 and likely[0].score > _CERTAIN:
        [match] = likely
        words = set(query_tokens(match.text))
        is_same = len(with_words) == 1 and match.id in {one.memory_id for one in with_words[0]}
        if is_same and len(words & set(query_tokens(query))) >= _MIN_SHARE_OF_WORDS * max(len(words), 1):
            copies = _delete(caller, match.id)
            shown = budget.listed([match.entry()], query=query).text
            text = f"Forgotten: [id: {match.id}]{and_copies(copies)}\n{shown}"
            return result(text, action="deleted", rows=1 + len(copies), id=match.id, **_details(copies))
    known = {one.id for one in found} | {copy.memory_id for one in found for copy in one.item.copies}
    unfound = [recalled_of(one) for one, *_copies in with_words if one.memory_id not in known]
    candidates = [*(likely or found), *unfound][:MAX_LIMIT]
    listed = budget.listed([one.entry() for one in candidates], query=query)
    number = f"{len(candidates)} {'candidate' if len(candidates) == 1 else 'candidates'}"
    return result(
        f"Found {number}. Call again with the memoryId of one of them:\n\n{listed.text}",
        action="candidates",
        candidates=[
            {"id": one.id, "text": excerpt(one.text, query).text, "category": one.category, "score": one.score}
            for one in candidates
        ],
    )


def _delete(caller: Caller, memory_id: str) -> list[str]:
    """Delete a memory and its copies, which would be found in its place; return the ids of the copies."""
    return decisions.delete_copies(
        caller.owner.user_pk,
        ref_of(caller, memory_id),
        reason="memory_forget",
        reader=caller.agent_id,
        actor=caller.actor,
    ).copy_ids


def _details(copies: Sequence[str]) -> dict[str, list[str]]:
    return {"copies": list(copies)} if copies else {}
