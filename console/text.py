"""Memory texts for pages: cut, divided into pieces, compared and flagged. Templates escape every piece."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

from store.text.instructions import is_instruction
from store.text.normalize import UNSPACED, fold
from store.text.terms import Wanted, wanted
from store.text.tokens import tokenize
from store.types import StoredMemory

FOLD_CHARS: Final = 200
EXCERPT_CHARS: Final = 240
MAX_SENT_CHARS: Final = 2000
TEASER_CHARS: Final = 400
_MAX_DIFF_TOKENS: Final = 3000
_TAG = re.compile(r"</?(?:relevant-memories|knowledge-context)>")
_BLOCK = re.compile(r"<(relevant-memories|knowledge-context)>(.*?)</\1>", re.DOTALL)
# What the tokenizer takes apart: characters without spaces between, words with joints, signs.
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_PART = re.compile(rf"[^\W_{UNSPACED}]+")
_RUN = re.compile(rf"{_UNSPACED.pattern}|{_PART.pattern}(?:[-._@'’&,:]{_PART.pattern})*(?:\+\+|#)?|[^\w\s]+|_+")
_TOKEN = re.compile(r"[\u3400-\u9fff]|\w+|\s+|[^\w\s]")


class Piece(NamedTuple):
    """A piece of a text.

    `kind` is empty for plain text, `relevant-memories` or `knowledge-context` for memories that an agent recalled;
    same, del or ins in a comparison; same or mark where words of a search are marked.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory as a list shows it. `is_cut`: only a piece is sent; `words` are the tokens to mark.

    `context` is what names a passage's document and has words of the search, if neither text nor file name has any;
    `newer` is the memory that replaces it.
    """

    memory: StoredMemory
    parts: tuple[Piece, ...]
    chars: int
    is_folded: bool
    is_cut: bool
    is_instruction: bool
    is_edited: bool
    filename: str = ""
    words: Collection[str] = ()
    context: str = ""
    newer: StoredMemory | None = None


def memory_item(
    memory: StoredMemory,
    *,
    is_edited: bool = False,
    filename: str = "",
    words: Collection[str] = (),
    newer: StoredMemory | None = None,
) -> MemoryItem:
    """Return what a list shows of a memory: with words of a search, the place of the text that has most of them."""
    whole = memory.text
    excerpt = _excerpt(whole, words)
    is_cut = bool(excerpt) or len(whole) > MAX_SENT_CHARS
    shown = [Piece("", excerpt)] if excerpt else parts(f"{whole[:TEASER_CHARS]}…" if is_cut else whole)
    return MemoryItem(
        memory=memory,
        parts=tuple(shown),
        chars=len(whole),
        is_folded=is_cut or len(whole) > FOLD_CHARS,
        is_cut=is_cut,
        is_instruction=is_instruction(whole),
        is_edited=is_edited,
        filename=filename,
        words=words,
        context=_context(memory, filename, words),
        newer=newer,
    )


def _context(memory: StoredMemory, filename: str, words: Collection[str]) -> str:
    """Return the heading, title or description of a passage by which words of a search find it; else nothing."""
    if not words or any(any(_marks(text, words)) for text in (memory.text, filename)):
        return ""
    names = (str(memory.payload.get(name) or "") for name in ("heading", "title", "filename", "description"))
    return next((name for name in names if any(_marks(name, words))), "")


def _excerpt(whole: str, words: Collection[str]) -> str:
    """Return the place of a text that has most words of a search; nothing if all of them are at its beginning.

    A text with memories that an agent recalled is cut too, so that words in these are shown.
    """
    places = list(_marks(whole, words))
    is_at_beginning = not places or places[-1][1] <= FOLD_CHARS
    if is_at_beginning and len(whole) <= MAX_SENT_CHARS and not (places and _BLOCK.search(whole)):
        return ""
    if not places:
        return ""
    best = max(range(len(places)), key=lambda number: (_held(whole, places, number), -number))
    first = max(0, places[best][0] - EXCERPT_CHARS // 5)
    if first:  # not within a word
        first = max(
            first, whole.rfind(" ", first, places[best][0]) if " " not in whole[first - 1 : first + 1] else first
        )
    end = max(first + EXCERPT_CHARS, places[best][1])
    cut = _TAG.sub(" ", whole[first:end]).strip()
    return f"{'…' if first else ''}{cut}{'…' if end < len(whole) else ''}"


def _held(whole: str, places: list[tuple[int, int]], number: int) -> int:
    """Return how many different words an excerpt holds that begins at a place."""
    end = places[number][0] + EXCERPT_CHARS * 4 // 5
    return len({fold(whole[start:stop]) for start, stop in places[number : number + 50] if stop <= end})


def mark(whole: str, words: Collection[str]) -> list[Piece]:
    """Return the text in pieces, marked where it holds one of these terms (`store.text.terms`)."""
    pieces, end = [], 0
    for start, stop in _marks(whole, words):
        if start > end:
            pieces.append(Piece("same", whole[end:start]))
        pieces.append(Piece("mark", whole[start:stop]))
        end = stop
    return [*pieces, Piece("same", whole[end:])] if end < len(whole) else pieces


def _marks(whole: str, words: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of words, in order and without overlap."""
    if not words:
        return
    asked, end = wanted(tuple(words)), 0
    numbers = [match.span() for match in asked.numbers.finditer(whole)] if asked.numbers else []
    for start, stop in sorted([*numbers, *_words(whole, asked)]):
        if start >= end:
            yield start, stop
            end = stop


def _words(whole: str, asked: Wanted) -> Iterator[tuple[int, int]]:
    for run in _RUN.finditer(whole):
        if not asked.is_in(_tokens(run[0])):
            continue
        parts = [] if fold(run[0]) in asked.tokens else list(_places(run[0], asked))
        for start, stop in parts or [(0, len(run[0]))]:
            yield run.start() + start, run.start() + stop


def _places(run: str, asked: Wanted) -> Iterator[tuple[int, int]]:
    """Yield the places of words in a run without spaces: characters and pairs of some scripts, else parts of a word."""
    if _UNSPACED.match(run):
        words = asked.tokens
        held = {place for place in range(len(run)) if run[place] in words}
        held |= {place + step for place in range(len(run)) if run[place : place + 2] in words for step in (0, 1)}
        spans = [(place, place + 1) for place in sorted(held)]
        while spans:
            start, stop = spans.pop(0)
            while spans and spans[0][0] == stop:
                stop = spans.pop(0)[1]
            yield start, stop
    else:
        for part in _PART.finditer(run):
            if asked.is_in(_tokens(part[0])):
                yield part.span()


@lru_cache(maxsize=65_536)
def _tokens(run: str) -> frozenset[str]:
    return frozenset(tokenize(run))


def parts(text: str) -> Iterator[Piece]:
    """Yield the text in pieces: plain text, and blocks of memories that agents recalled. Unclosed tags stay text."""
    end = 0
    for block in [*_BLOCK.finditer(text), None]:
        if plain := text[end : block.start() if block else None].strip():
            yield Piece("", plain)
        if block:
            yield Piece(block[1], block[2].strip())
            end = block.end()


def compare(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    """Return the old and the new text in pieces that mark their differences.

    Texts are compared by words, Chinese by characters. Very long texts are one piece.
    """
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(before) > _MAX_DIFF_TOKENS or len(after) > _MAX_DIFF_TOKENS:
        return [Piece("del", old)], [Piece("ins", new)]
    old_pieces: list[Piece] = []
    new_pieces: list[Piece] = []
    for verb, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        is_same = verb == "equal"
        if i1 < i2:
            old_pieces.append(Piece("same" if is_same else "del", "".join(before[i1:i2])))
        if j1 < j2:
            new_pieces.append(Piece("same" if is_same else "ins", "".join(after[j1:j2])))
    return old_pieces, new_pieces


def language_of(text: str) -> str:
    """Return the probable language of a text, for screen readers and fonts; empty if unknown."""
    beginning = text[:400]
    if any("\u4e00" <= char <= "\u9fff" for char in beginning):
        return "" if any("\u3040" <= char <= "\u30ff" for char in beginning) else "zh"
    return "en" if all(char < "\u0370" or not char.isalpha() for char in beginning) else ""
