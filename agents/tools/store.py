"""`memory_store`: store a memory, or update the one with the same text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from django.conf import settings

from accounts.authority import CHANGE
from accounts.scopes import SEARCH
from agents.tools.arguments import StoreArguments
from agents.tools.caller import Caller
from agents.tools.results import Result, failed, framed, not_kept, quoted, result
from agents.tools.time_arguments import end_of
from core import readable
from core.errors import InvalidInput
from core.times import isoformat
from memories.services.hygiene import own_text
from memories.services.manual import MAX_TEXT_CHARS, NewFact, Source, store_fact
from store.admission import NotKept
from store.categories import tab_of
from store.models import Memory

_PREVIEW_CHARS: Final = 100
_SIMILAR_CHARS: Final = 200
_ABOUT_SIMILAR: Final = (
    "Similar memories are stored already. If one of them is outdated or says the same, update or forget it by its id:"
)


def store(caller: Caller, arguments: StoreArguments) -> Result:
    """Store a memory. Raises: `InvalidInput` for a text that is too long, and the errors of `store_fact`."""
    if refused := refused_category(arguments.category):
        return refused
    redacted: Counter[str] = Counter()
    text = own_text(arguments.text, redacted).strip()
    if not text:
        return failed("missing_param", "Provide text: what to remember.")
    if len(text) > MAX_TEXT_CHARS:
        raise InvalidInput.of_field("text", f"must be at most {MAX_TEXT_CHARS} characters")
    labels: dict[str, Any] = {
        name: value for name in ("tags", "metadata", "external_id") if (value := getattr(arguments, name))
    }
    if arguments.expires_at is not None:
        labels["expires_at"] = end_of(caller, arguments.expires_at)
    fact = NewFact(text, arguments.category, arguments.importance, caller.agent_id, caller.storage_session_id)
    try:
        stored = store_fact(
            caller.owner,
            replace(fact, **labels, given={"category", "importance", *labels}),
            Source("tool", caller.actor, caller.application),
            before_change=lambda: caller.require(CHANGE),
        )
    except NotKept as error:
        return not_kept(error)
    redacted.update(stored.redacted)  # the text is masked already
    memory_id = stored.memory.memory_id
    if stored.action != "created":
        return _with_redacted(_stored("Updated", "updated", memory_id, text), redacted)
    similar = stored.similar if SEARCH in caller.scopes else ()
    return _with_redacted(_created(memory_id, text, similar), redacted)


def _with_redacted(answer: Result, redacted: Mapping[str, int]) -> Result:
    """Return the answer with the numbers of masked values, if there are any."""
    return answer | {"details": {**answer["details"], "redacted": dict(redacted)}} if redacted else answer


def _created(memory_id: str, text: str, near: Sequence[Memory]) -> Result:
    """Return the answer about a new memory, with older ones that it may replace."""
    answer = _stored("Stored", "created", memory_id, text)
    similar = [
        {
            "id": memory.memory_id,
            "text": memory.text[:_SIMILAR_CHARS],
            "created_at": isoformat(readable.moment(memory.created_at_ms)),
        }
        for memory in near
    ]
    stored = answer["content"][0]["text"]
    if similar:
        lines = [f"- {one['created_at']} {quoted(one['text'])} [id: {one['id']}]" for one in similar]
        stored = f"{stored}\n{_ABOUT_SIMILAR}\n\n{framed(lines)}"
    return result(stored, **answer["details"], similar=similar)


def refused_category(category: str) -> Result | None:
    """Return the error of a category that is switched off; None for any other."""
    tab = tab_of(category)
    if tab == "self" and not settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY:
        return failed("self_improving_memory_disabled", "Self-improving memories are switched off here.")
    if tab == "full" and not settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY:
        return failed("full_context_memory_disabled", "Full-context memories are switched off here.")
    return None


def _stored(word: str, action: str, memory_id: str, text: str) -> Result:
    preview = text if len(text) <= _PREVIEW_CHARS else f"{text[:_PREVIEW_CHARS]}…"
    return result(f'{word}: "{preview}" [id: {memory_id}]', action=action, id=memory_id)
