"""Bound what a tool shows to a language model: whole short memories, the best part of long ones, within a budget."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from agents.tools.results import framed, quoted
from core.token_estimates import cut, estimated_tokens
from memories.services.excerpts import MAX_CHARS, excerpt

MAX_TOKENS: Final = 1500
"""The default length of an answer, in estimated tokens."""
SMALLEST_MAX_TOKENS: Final = 300
LARGEST_MAX_TOKENS: Final = 20_000
_SHARES: Final = 3
"""A long memory takes at most this part of a budget for several."""
_FIRST: Final = 10
"""The number of memories, the first ones, that long ones leave room for."""
_SHORTEST_TEXT: Final = 40
_REST: Final = 60
"""The tokens kept for the words around the memories."""


class Entry(NamedTuple):
    """A memory to show: with the words before and after its text. `before` and `after` are already quoted."""

    text: str
    before: str = ""
    after: str = ""


class Listed(NamedTuple):
    """The framed lines of the first `shown` entries."""

    text: str
    shown: int


def listed(entries: Sequence[Entry], *, query: str = "", max_tokens: int = MAX_TOKENS) -> Listed:
    """Return numbered lines within the budget, in the order of the entries, and how many entries they show.

    A long text is cut to the part that fits the query best; the last line to what the budget leaves.
    """
    left = max_tokens - estimated_tokens(framed([])) - _REST
    share = min(left // min(max(len(entries), 1), _SHARES), _largest_text(entries[:_FIRST], left))
    lines: list[str] = []
    for number, entry in enumerate(entries, start=1):
        room = min(share, left - _frame_tokens(number, entry))
        if room < min(estimated_tokens(entry.text[: 3 * _SHORTEST_TEXT]), _SHORTEST_TEXT):
            break
        text = _shown(entry.text, query, room)
        lines.append(" ".join(filter(None, [f"{number}.", entry.before, text, entry.after])))
        left -= estimated_tokens(lines[-1]) + 1
    return Listed(framed(lines), len(lines))


def _largest_text(entries: Sequence[Entry], left: int) -> int:
    """Return the most tokens of one text with which all entries fit: short ones leave their rest to long ones."""
    framing = sum(_frame_tokens(number, entry) + 1 for number, entry in enumerate(entries, start=1))
    left -= framing
    sizes = sorted(estimated_tokens(quoted(entry.text[:MAX_CHARS])) for entry in entries)
    for place, size in enumerate(sizes):
        if size > (most := left // (len(sizes) - place)):
            return max(most, _SHORTEST_TEXT)
        left -= size
    return max(sizes, default=0)


def left_out(count: int) -> str:
    """Return the sentence about memories that did not fit, empty for none."""
    if not count:
        return ""
    return f"\n{count} more did not fit. Ask more precisely, or raise max_tokens."


def _shown(text: str, query: str, max_tokens: int) -> str:
    """Return a text as a line shows it: whole, or a part with its place."""
    part = excerpt(text, query)
    if (tokens := estimated_tokens(quoted(part.text))) > max_tokens:
        part = excerpt(text, query, len(part.text) * max_tokens // tokens)
    shown = cut(quoted(part.text), max_tokens)  # quoting lengthens some texts
    if shown == quoted(text):
        return shown
    before, after = "… " if part.start else "", "" if shown.endswith("…") or part.end == len(text) else " …"
    return f"{before}{shown}{after} [characters {part.start + 1}-{part.end} of {len(text)}]"


def _frame_tokens(number: int, entry: Entry) -> int:
    """Return the tokens of a line besides its text."""
    return estimated_tokens(f"{number}. {entry.before} … … {entry.after} [characters {2 * len(entry.text)} of 1000000]")
