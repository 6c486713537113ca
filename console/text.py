"""Memory text as pages show it: in parts, compared, and flagged. Data all along; templates escape every piece."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from store.types import StoredMemory

FOLD_CHARS: Final = 200
SENT_CHARS: Final = 2000
TEASER_CHARS: Final = 400
_MAX_DIFF_TOKENS: Final = 3000
_BLOCK = re.compile(r"<(relevant-memories|knowledge-context)>(.*?)</\1>", re.DOTALL)
_TOKEN = re.compile(r"[\u3400-\u9fff]|\w+|\s+|[^\w\s]")

# What often stands where somebody tries to give orders to the agent that will read the memory. A hint, often wrong.
_INSTRUCTION = re.compile(
    r"\b(ignore|disregard|forget)\b.{0,30}\b(instructions?|rules|prompts?)\b"
    r"|\b(always|never) (answer|respond|reply|reveal|say)\b"
    r"|\byou (must|are now|shall)\b|\bsystem prompt\b|\bact as\b|\bfrom now on\b"
    r"|(忽略|无视|忘记).{0,12}(指令|说明|规则|提示)|你(必须|现在是)|从现在(起|开始)|系统提示词",
    re.IGNORECASE,
)


class Part(NamedTuple):
    """A piece of a text: plain, or what an agent had recalled (`kind` `relevant-memories` or `knowledge-context`)."""

    kind: str
    text: str


class Change(NamedTuple):
    """A piece of a comparison; `kind` is same, del or ins."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory as a list shows it. `is_cut`: only the beginning was sent."""

    memory: StoredMemory
    parts: tuple[Part, ...]
    chars: int
    is_folded: bool
    is_cut: bool
    is_instruction: bool
    is_edited: bool
    filename: str = ""
    score: float | None = None


def shown(memory: StoredMemory, *, is_edited: bool = False, filename: str = "", score: float | None = None) -> Shown:
    whole = memory.text
    is_cut = len(whole) > SENT_CHARS
    return Shown(
        memory=memory,
        parts=tuple(parts(whole[:TEASER_CHARS] + "…" if is_cut else whole)),
        chars=len(whole),
        is_folded=len(whole) > FOLD_CHARS,
        is_cut=is_cut,
        is_instruction=_INSTRUCTION.search(whole) is not None,
        is_edited=is_edited,
        filename=filename,
        score=score,
    )


def parts(text: str) -> Iterator[Part]:
    """The text with the blocks that agents put into it set apart; a tag that is never closed stays text."""
    end = 0
    for block in _BLOCK.finditer(text):
        yield from _plain(text[end : block.start()])
        yield Part(block[1], block[2].strip())
        end = block.end()
    yield from _plain(text[end:])


def _plain(text: str) -> Iterator[Part]:
    if text.strip():
        yield Part("", text.strip())


def compare(old: str, new: str) -> tuple[list[Change], list[Change]]:
    """What went and what came, word by word (Chinese: character by character), as the old and the new line whole.

    Very long texts are compared as one piece.
    """
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(before) > _MAX_DIFF_TOKENS or len(after) > _MAX_DIFF_TOKENS:
        return [Change("del", old)], [Change("ins", new)]
    gone: list[Change] = []
    came: list[Change] = []
    for verb, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        is_same = verb == "equal"
        _append(gone, "same" if is_same else "del", before[i1:i2])
        _append(came, "same" if is_same else "ins", after[j1:j2])
    return gone, came


def _append(changes: list[Change], kind: str, tokens: list[str]) -> None:
    if tokens:
        changes.append(Change(kind, "".join(tokens)))
