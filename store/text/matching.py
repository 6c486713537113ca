"""Match new memories to old ones, by the flush of their source messages or by their words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

from core.patterns import lazy_pattern
from store.text.normalize import UNSPACED, WORD, fold

MIN_MATCH: Final = 0.5
"""The fraction of a new memory's word sequences that the old text must contain to be the same memory."""
MIN_WHOLE: Final = 0.95
"""The fraction that counts as the whole text."""
MIN_OVERLAP: Final = 0.2
"""The fraction from which a new memory is hidden if an old one has no match."""
_SEQUENCE_WORDS = 3
_WORDS = lazy_pattern(f"[{UNSPACED}]|[{WORD}]+")


@dataclass(frozen=True)
class Text:
    """A memory to compare: its id, its text, and the flush that it is from (empty: unknown)."""

    memory_id: str
    text: str
    batch_id: str = ""

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_WORDS.findall(fold(self.text)))

    @cached_property
    def sequences(self) -> frozenset[tuple[str, ...]]:
        return _sequences(self.words, _SEQUENCE_WORDS)


@dataclass(frozen=True, slots=True)
class Match:
    """The new memories that match an old one or, if there are none, those that share some words with it."""

    memory_ids: tuple[str, ...]
    overlapping: tuple[str, ...] = ()


def match(old: Text, all_old: Sequence[Text], all_new: Sequence[Text]) -> Match:
    """Return the new memories that match an old one. `all_old` and `all_new` are those of the session.

    An old memory that is the only one of its flush, and is a summary instead of a copy, matches all new memories of
    that flush, except those that other old memories contain. In other cases the words decide.
    """
    source = [new for new in all_new if new.batch_id == old.batch_id] if old.batch_id else []
    # A copy: most of its word sequences are in new memories that it contains, as in an engine that stores messages.
    is_verbatim = bool(old.sequences) and len(_covered(old, all_new)) >= MIN_MATCH * len(old.sequences)
    is_only_summary = sum(other.batch_id == old.batch_id for other in all_old) == 1 and not is_verbatim
    # The remote listed it late, and it was recorded with the next flush: all that it contains is of an earlier flush.
    repeated = [new for new in all_new if new.sequences and _contained_fraction(new, old) >= MIN_WHOLE]
    is_late = bool(repeated) and not any(new.batch_id == old.batch_id for new in repeated)
    if source and is_only_summary and not is_late:
        others = [other for other in all_old if other is not old]
        return Match(tuple(new.memory_id for new in source if not _is_covered_by(new, others)))
    same = ([] if is_late else _matching(old, source)) or _matching(old, all_new)
    if is_late and is_only_summary:
        same += [new for new in source if new not in same and _overlaps(old, new)]
    if same:
        return Match(tuple(new.memory_id for new in same))
    overlapping = [new.memory_id for new in all_new if _overlaps(old, new)]
    return Match((), tuple(overlapping))


def sources_to_clear(old: Text, all_old: Sequence[Text], all_new: Sequence[Text]) -> set[str]:
    """Return the ids of source messages (`all_new`) to clear when an old memory is purged, in doubtful cases too many.

    These are the messages of its flush that share words with it; all of the flush if it is the flush's only memory or
    no words are shared. Messages that another old memory contains stay.
    """
    found = match(old, all_old, all_new)
    others = [other for other in all_old if other is not old]
    flushes = {other.batch_id for other in others}
    source = [new for new in all_new if (new.batch_id == old.batch_id if old.batch_id else new.batch_id not in flushes)]
    unshared = {new.memory_id: new for new in source if not _is_covered_by(new, others)}
    sharing = {name for name, new in unshared.items() if _overlaps(old, new)}
    names = {*found.memory_ids, *found.overlapping, *sharing}
    if old.batch_id not in flushes or not (sharing or found.memory_ids):
        names |= unshared.keys()
    return names


def _overlaps(one: Text, other: Text) -> bool:
    return max(_contained_fraction(one, other), _contained_fraction(other, one)) >= MIN_OVERLAP


def _is_covered_by(new: Text, all_old: Sequence[Text]) -> bool:
    return any(_contained_fraction(new, old) >= MIN_WHOLE for old in all_old)


def _matching(old: Text, all_new: Sequence[Text]) -> list[Text]:
    """Return the new texts that the old one contains, and those that it contains in part and that cover more of it.

    The second condition excludes texts of one pattern, which share words without being the same.
    """
    covered = _covered(old, all_new)
    found = []
    for new in all_new:
        fraction = _contained_fraction(new, old)
        if fraction >= MIN_WHOLE or (fraction >= MIN_MATCH and not new.sequences & old.sequences <= covered):
            found.append(new)
    return found


def _covered(old: Text, all_new: Sequence[Text]) -> frozenset[tuple[str, ...]]:
    """Return the word sequences of the old text that are in new texts that it contains completely."""
    whole = (new.sequences for new in all_new if _contained_fraction(new, old) >= MIN_WHOLE)
    return frozenset().union(*whole) & old.sequences


def _contained_fraction(part: Text, whole: Text) -> float:
    """Return the fraction of a text that is in another, 0 to 1; for a text shorter than a sequence, 0 or 1."""
    if part.sequences:
        return len(part.sequences & whole.sequences) / len(part.sequences)
    return float(bool(part.words) and part.words in _sequences(whole.words, len(part.words)))


def _sequences(words: Sequence[str], length: int) -> frozenset[tuple[str, ...]]:
    """Return all sequences of `length` consecutive words (characters in scripts without spaces)."""
    return frozenset(zip(*(islice(words, start, None) for start in range(length)), strict=False))
