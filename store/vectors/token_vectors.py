"""The vectors of the tokens of memories, for `store.search.late_interaction`: reduced to few dimensions, a byte each.

They are computed and stored with the vector of a memory (`store.vectors.fill`), if a model in this process makes both.
The reduction is fitted once for an embedding space, on the sentences of `sample_texts.txt`, and stored with it.
"""

import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from core.persistence.sql import rows, slots
from store.models import EmbeddingSpace, TokenVectors
from store.text.tokens import STOP_WORDS
from store.types import Owner
from store.vectors.layout import CODES, MAX_TOKENS, REDUCED_DIMENSIONS, TOKEN_LAYOUT
from store.vectors.local_model import Encoded, Vectors

_SCALE: Final = 127
MOST_SPLIT_WORDS: Final = 0.25
"""The most words that are split in a known language: 0.13 in 99 % of 1,400 English messages, over 0.25 in 95 % of
sentences in ten other languages."""
_SAMPLES: Final = Path(__file__).with_name("sample_texts.txt")
_OF_SPACE: Final = 0
_READ: Final = f"""
    SELECT t.memory_id, t.vectors FROM store_embeddingspace s JOIN store_tokenvectors t ON t.space_id = s.id
    WHERE s.is_active AND s.model = %s AND t.layout = {TOKEN_LAYOUT} AND t.memory_id IN ({{slots}})
    UNION ALL SELECT {_OF_SPACE}, s.reduction FROM store_embeddingspace s WHERE s.is_active AND s.model = %s
"""


class Read(NamedTuple):
    """The reduced vectors of the tokens of some memories (n x dimensions each), by row id, and the reduction."""

    reduction: Vectors
    by_memory: dict[int, bytes]


def samples() -> list[str]:
    """Return the sentences that a reduction is fitted on."""
    return _SAMPLES.read_text(encoding="utf-8").splitlines()


def fit(encoded: Sequence[Encoded]) -> bytes:
    """Return the matrix (dimensions x reduced) onto the main components of the tokens of texts, as `.npy`."""
    tokens = np.concatenate([one.tokens for one in encoded])
    _values, components = np.linalg.eigh(tokens.T @ tokens)
    file = io.BytesIO()
    np.save(file, components[:, ::-1][:, :REDUCED_DIMENSIONS].astype(np.float32), allow_pickle=False)
    return file.getvalue()


def reduction_of(space: EmbeddingSpace) -> Vectors | None:
    return None if space.reduction is None else _loaded(bytes(space.reduction))


def reduced(tokens: Vectors, reduction: Vectors) -> Vectors:
    """Return vectors in fewer dimensions, of length 1."""
    found: Vectors = tokens @ reduction
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    return found


def codes(text: str, encoded: Encoded, reduction: Vectors, *, knows_all: bool) -> bytes:
    """Return what is stored of a text: nothing for one in a language that the model does not know."""
    if not knows_all and is_unknown_language(text, encoded):
        return b""
    own = [place for place, (_start, end) in enumerate(encoded.spans) if end]
    if len(own) > MAX_TOKENS:  # more of a long passage is known by its content words
        own = [place for place in own if _is_content(text[slice(*encoded.spans[place])])][:MAX_TOKENS]
    return np.rint(reduced(encoded.tokens[own], reduction) * _SCALE).astype(CODES).tobytes()


def _is_content(word: str) -> bool:
    return word.isalnum() and word.lower() not in STOP_WORDS


def is_unknown_language(text: str, encoded: Encoded) -> bool:
    """Return True if the model's tokenizer splits more of a text's words than in a known language, where names are."""
    pieces = Counter(span for span in encoded.spans if text[slice(*span)][:1].isalpha())
    split = sum(count > 1 for count in pieces.values())
    return split > 1 and split > MOST_SPLIT_WORDS * len(pieces)


def read(model: str, memories: Collection[int]) -> Read | None:
    """Return what is stored of memories (by row id) in the active space, None if it is not one of this model.

    One SQL statement.
    """
    if not memories:
        return None
    found = {
        pk: data and bytes(data) for pk, data in rows(_READ.format(slots=slots(memories)), [model, *memories, model])
    }
    reduction = found.pop(_OF_SPACE, None)
    return Read(_loaded(reduction), found) if reduction else None


def similarities(query: Vectors, weights: Vectors, vectors: Sequence[bytes]) -> Vectors:
    """Return for each memory the weighted mean, over the query's tokens, of the cosine with the memory's nearest.

    `query` is reduced (tokens x dimensions), `weights` sum to 1; no memory may be empty.
    """
    stored = np.frombuffer(b"".join(vectors), CODES).reshape(-1, query.shape[1]).astype(np.float32)
    ends = np.cumsum([len(one) // query.shape[1] for one in vectors])
    nearest = np.maximum.reduceat(stored @ query.T, np.concatenate([[0], ends[:-1]]), axis=0)
    found: Vectors = nearest @ (weights / np.float32(_SCALE))
    return found


def empty(owner: Owner) -> int:
    """Delete an owner's; return the number of memories that had some."""
    of_owner = TokenVectors.objects.filter(
        memory__user=owner.user_pk, memory__app_id=owner.app_id, memory__project_id=owner.project_id
    )
    return of_owner.delete()[0]


def differences(_owners: Sequence[Owner]) -> Iterator[str]:
    """Compare all with the vectors that they were stored with; yield the differences."""
    alone = TokenVectors.objects.exclude(memory__is_indexed=True).count()
    if alone:
        yield f"{alone:,} vectors of tokens are of memories that no index holds"


@lru_cache(8)
def _loaded(data: bytes) -> Vectors:
    found: Vectors = np.load(io.BytesIO(data), allow_pickle=False)
    return found
