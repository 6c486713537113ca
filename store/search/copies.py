"""Find the copies of a memory: others of the same text, sender and role, which a search shows as one."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from store.index import keyword
from store.models import IN_LIVE_SESSION, MANUAL_ORIGINS, Memory, State, owned_by
from store.search import snapshot
from store.search.candidates import DAY_TOKENS, MAX_TERMS
from store.table import stored, visible
from store.text.tokens import read
from store.text.wording import normalized
from store.types import StoredMemory

_ROWS_AT_ONCE: Final = 500


def find_copies(memory: StoredMemory, *, reader: str = "") -> list[StoredMemory]:
    """Return the other memories with the text of this one after normalization, oldest row first.

    They are live, or superseded, because `as_of` shows these. They have its owner, sender and role, and are passages or
    wait for a flush as it does. `reader` is one of the user's agents: manual memories for other agents are left out.
    One SQL statement, two if there may be copies.
    """
    if not (memory.text and memory.sender_id):
        return []
    words = read(memory.text).words
    rows = Memory.objects.filter(owned_by(memory.owner), IN_LIVE_SESSION, sender_id=memory.sender_id)
    rows = rows.filter(state__in=(State.LIVE, State.SUPERSEDED))
    others, key = visible(rows).exclude(pk=memory.row).order_by("pk"), _key(memory)
    candidates = _candidates(memory, words) if words else None
    if candidates is not None:
        parts = [candidates[start : start + _ROWS_AT_ONCE] for start in range(0, len(candidates), _ROWS_AT_ONCE)]
        found = [row for part in parts for row in others.filter(pk__in=part)]
    else:
        found = list(others if words else others.filter(text=memory.text))
    return [one for one in map(stored, found) if _is_copy(one, key, reader)]


def grouped(memories: Iterable[StoredMemory]) -> list[list[StoredMemory]]:
    """Return the memories in lists of copies, all in the given order."""
    found: dict[tuple[object, ...], list[StoredMemory]] = {}
    for memory in memories:
        is_known = bool(memory.text and memory.sender_id)
        key = (memory.owner, memory.sender_id, *_key(memory)) if is_known else (memory.row,)
        found.setdefault(key, []).append(memory)
    return list(found.values())


def _candidates(memory: StoredMemory, words: Sequence[str]) -> list[int] | None:
    """Return the row ids of memories with all words and about as many; None if the index lacks entries.

    The words of a text depend on neither case, width, spaces nor final punctuation. A passage has the words of its
    file besides.
    """
    terms = list(dict.fromkeys(words))[:MAX_TERMS]
    seen = snapshot.read(
        memory.owner, terms, keyword.prefix_of(memory.owner), with_hidden=True, left_out=(), read_from=None
    )
    if seen.lacks_entries:
        return None
    lengths = seen.facts["length"]
    matched = np.bincount(seen.postings.documents, minlength=len(seen.facts))
    is_alike = (matched == len(terms)) & (lengths >= len(words)) & (seen.facts["pk"] != memory.row)
    if memory.chunk_index is None:
        is_alike &= lengths <= len(words) + DAY_TOKENS
    found: list[int] = seen.facts["pk"][is_alike].tolist()
    return found


def _is_copy(one: StoredMemory, key: tuple[object, ...], reader: str) -> bool:
    is_of_another_agent = one.origin in MANUAL_ORIGINS and bool(reader) and one.agent_id not in {"", reader}
    return not is_of_another_agent and _key(one) == key


def _key(memory: StoredMemory) -> tuple[object, ...]:
    """Return what copies have in common, as `memories.services.folding` folds results."""
    return (
        normalized(memory.text),
        memory.payload.get("role") or "",
        memory.chunk_index is None,
        memory.memory_type == "unprocessed_message",
    )
