"""Which new memories say what an old one said: by the messages that it was made of, else by their words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from store.text.normalize import UNSPACED, WORD, fold

MATCH: Final = 0.5
"""Of a new memory's word sequences so many must stand in the old text to be the same told anew."""
WHOLE: Final = 0.95
"""So many are as good as all."""
OVERLAP: Final = 0.2
"""So many are enough to be held back where nothing matches."""
_SEQUENCE = 3
_WORDS = re.compile(f"[{UNSPACED}]|[{WORD}]+")


@dataclass(frozen=True, slots=True)
class Text:
    """A memory to be compared: its id, its words, and the flush that it came of (empty: not known)."""

    memory_id: str
    text: str
    batch_id: str = ""
    words: tuple[str, ...] = field(init=False)
    sequences: frozenset[tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        words = tuple(_WORDS.findall(fold(self.text)))
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "sequences", _sequences(words, _SEQUENCE))


@dataclass(frozen=True, slots=True)
class Match:
    """The new memories of an old one, or where there are none those that share some of its words."""

    memory_ids: tuple[str, ...]
    overlapping: tuple[str, ...] = ()


def match(old: Text, olds: Sequence[Text], news: Sequence[Text]) -> Match:
    """`olds` and `news` are all of the session.

    An old memory that alone came of its messages, in words of its own, is all of them, but for what another says. Where
    it repeats them, or one flush made several, the words decide.
    """
    source = [new for new in news if new.batch_id == old.batch_id] if old.batch_id else []
    has_own_words = sum(other.batch_id == old.batch_id for other in olds) == 1 and not _repeats(old, news)
    is_late = _is_late(old, news)
    if source and has_own_words and not is_late:
        others = [other for other in olds if other is not old]
        return Match(tuple(new.memory_id for new in source if not _is_told_by(new, others)))
    same = ([] if is_late else _same(old, source)) or _same(old, news)
    if is_late and has_own_words:
        same += [new for new in source if new not in same and _overlaps(old, new)]
    if same:
        return Match(tuple(new.memory_id for new in same))
    overlapping = [new.memory_id for new in news if _overlaps(old, new)]
    return Match((), tuple(overlapping))


def to_forget(old: Text, olds: Sequence[Text], news: Sequence[Text]) -> set[str]:
    """The new ones that may not be told again where an old one is purged: rather one too many.

    Of its own flush all that shares words with it, and all where it alone came of that or where words show nothing; but
    not what another memory says whole. `olds` and `news` are all of the session.
    """
    found = match(old, olds, news)
    others = [other for other in olds if other is not old]
    flushes = {other.batch_id for other in others}
    source = [new for new in news if (new.batch_id == old.batch_id if old.batch_id else new.batch_id not in flushes)]
    own = {new.memory_id: new for new in source if not _is_told_by(new, others)}
    sharing = {name for name, new in own.items() if _overlaps(old, new)}
    names = {*found.memory_ids, *found.overlapping, *sharing}
    if old.batch_id not in flushes or not (sharing or found.memory_ids):
        names |= own.keys()
    return names


def _is_late(old: Text, news: Sequence[Text]) -> bool:
    """Whether an old memory came late and was noted with the flush that followed: it says word for word what an earlier
    one was told, and nothing of this."""
    told = [new for new in news if new.sequences and _share(new, old) >= WHOLE]
    return bool(told) and not any(new.batch_id == old.batch_id for new in told)


def _overlaps(one: Text, other: Text) -> bool:
    return max(_share(one, other), _share(other, one)) >= OVERLAP


def _repeats(old: Text, news: Sequence[Text]) -> bool:
    """Whether an old text consists of new ones, as that of an engine that tells word for word."""
    return bool(old.sequences) and len(_covered(old, news)) >= MATCH * len(old.sequences)


def _is_told_by(new: Text, olds: Sequence[Text]) -> bool:
    return any(_share(new, old) >= WHOLE for old in olds)


def _same(old: Text, news: Sequence[Text]) -> list[Text]:
    """Those that stand in the old text whole; of those that stand there in part such as add to them, since texts of one
    pattern resemble each other without being the same."""
    covered = _covered(old, news)
    shares = [(new, _share(new, old)) for new in news]
    return [
        new
        for new, share in shares
        if share >= WHOLE or (share >= MATCH and not new.sequences & old.sequences <= covered)
    ]


def _covered(old: Text, news: Sequence[Text]) -> frozenset[tuple[str, ...]]:
    """The old text's sequences that stand in new ones which it holds whole."""
    whole = (new.sequences for new in news if _share(new, old) >= WHOLE)
    return frozenset().union(*whole) & old.sequences


def _share(part: Text, whole: Text) -> float:
    """How much of one stands in the other, 0 to 1; what is shorter than a sequence stands there whole or not at all."""
    if part.sequences:
        return len(part.sequences & whole.sequences) / len(part.sequences)
    return float(bool(part.words) and part.words in _sequences(whole.words, len(part.words)))


def _sequences(words: Sequence[str], length: int) -> frozenset[tuple[str, ...]]:
    """All runs of so many words (characters, in scripts without spaces)."""
    return frozenset(zip(*(islice(words, start, None) for start in range(length)), strict=False))
