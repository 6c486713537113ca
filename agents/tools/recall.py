"""`memory_recall`: search the caller's memories for a question."""

from typing import Final

from agents.tools import budget
from agents.tools.about_me import is_about_me
from agents.tools.arguments import RecallArguments
from agents.tools.caller import Caller
from agents.tools.context import make_context
from agents.tools.found import find
from agents.tools.results import Result, failed, result
from agents.tools.time_arguments import as_of_time, time_filter

_NOTHING: Final = "No relevant memories found."
_HEADING_TOKENS: Final = 20


def recall(caller: Caller, arguments: RecallArguments) -> Result:
    if not arguments.query.strip():
        return failed("missing_param", "Provide query: what to look for.")
    # Only the tool of MCP has these arguments.
    chosen = time_filter(getattr(arguments, "since", None), getattr(arguments, "until", None))
    at = as_of_time(caller, getattr(arguments, "as_of", None))
    if chosen is None and at is None and is_about_me(arguments.query):
        return _about_user(caller, arguments)
    found = find(caller, arguments.query, arguments.limit, chosen, as_of=at)
    if not found:
        return result(_NOTHING, count=0)
    listed = budget.listed([one.entry() for one in found], query=arguments.query, max_tokens=arguments.max_tokens)
    return result(
        f"{_heading(len(found))}{listed.text}{budget.left_out(len(found) - listed.shown)}",
        count=len(found),
        memories=[one.details() for one in found],
    )


def _about_user(caller: Caller, arguments: RecallArguments) -> Result:
    """Answer with the profile, the facts and the newest memories: such a question has no words to search for."""
    known = make_context(caller, max_tokens=arguments.max_tokens - _HEADING_TOKENS, max_memories=arguments.limit)
    if not known.text:
        return result(_NOTHING, count=0)
    count = len(known.memories)
    return result(f"{_heading(count)}{known.text}", count=count, memories=[one.details() for one in known.memories])


def _heading(count: int) -> str:
    return f"Found {count} {'memory' if count == 1 else 'memories'}:\n\n"
