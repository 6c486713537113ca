"""Tool results in OpenClaw's shape, and the frame that marks recalled memories as data for the language model.

`memories.services.hygiene` removes framed memories from texts to store; otherwise they would be stored again.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from core.localization import localized
from memories.services.hygiene import RECALL_TAGS, RECALL_WARNING
from store.admission import NotKept

Result = dict[str, Any]
"""`content` for the model, `details` for programs."""
_OPEN = f"<{RECALL_TAGS[0]}>"
_CLOSE = f"</{RECALL_TAGS[0]}>"
_QUOTED = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "＜": "&lt;", "＞": "&gt;"}
    | {chr(code): " " for code in range(0x20) if not chr(code).isspace()}  # each takes six bytes of JSON
)
_CLOSING_LOOK_ALIKE = re.compile(
    "[\u00ab\u02c2\u1438\u2039\u227a\u2329\u276c\u276e\u2770\u27e8\u3008\u300a\ufe64]"
    "(?=[\\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]{0,20}[/\u2044\u2215\u29f8\uff0f])"
)
"""A sign that looks like "<" before one that looks like "/"; alone it is a quotation mark or a bracket."""


def result(text: str, /, **details: Any) -> Result:
    return {"content": [{"type": "text", "text": text}], "details": details}


def and_copies(copies: Sequence[str]) -> str:
    """Return the words after a memory that say how many copies were changed with it; empty for none."""
    return f" and {len(copies)} {'copy' if len(copies) == 1 else 'copies'}" if copies else ""


def failed(error: str, text: str) -> Result:
    """Return an error result; `error` is a code such as "missing_param"."""
    return result(text, error=error)


def not_kept(error: NotKept) -> Result:
    """Return the result of a call whose text the person's controls refuse."""
    return result(localized(error.detail), action="refused", id=None, stored=0, **error.members)


def with_notes(notes: Sequence[str], answer: Result) -> Result:
    """Return an answer whose text begins with the notes, if there are any."""
    if not notes:
        return answer
    [content] = answer["content"]
    return {**answer, "content": [{**content, "text": "\n".join([*notes, "", content["text"]])}]}


def framed(lines: Iterable[str]) -> str:
    """Return the lines in a block that marks them as memories. Stored text must be passed through `quoted`."""
    return "\n".join([_OPEN, RECALL_WARNING, *lines, _CLOSE])


def without_frame(text: str) -> str:
    """Return the text outside the frame, for clients that receive the data separately."""
    before, frame, _ = text.partition(_OPEN)
    return f"{before.strip()} {RECALL_WARNING}".strip() if frame else text


def quoted(text: str) -> str:
    """Return stored text that can neither end the frame nor look like another entry."""
    text = text.translate(_QUOTED)
    if not text.isascii():
        text = _CLOSING_LOOK_ALIKE.sub("&lt;", text)
    return "\n   ".join(text.splitlines())
