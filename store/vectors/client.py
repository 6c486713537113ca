"""Texts to vectors through an OpenAI-compatible embeddings endpoint."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from django.conf import settings

from core.http_client import Deadline
from core.model_endpoint import Endpoint, EndpointError

Vectors = npt.NDArray[np.float32]

MAX_INPUTS: Final = 10
"""DashScope takes no more in one call; others lose nothing by it."""
MAX_CHARS: Final = 6000
MAX_DIMENSIONS: Final = 4096
CALL_SECONDS: Final = 30.0
QUESTION_SECONDS: Final = 5.0
"""A search waits no longer for its question's vector; then it goes on by keyword."""
_CALLS_AT_ONCE: Final = 4
_QUESTIONS_KEPT: Final = 1000


class Model(NamedTuple):
    """What a vector depends on beside the text. `dimensions` 0: as many as the model gives.

    `sends_dimensions`: the number is asked for, which not every model understands.
    """

    name: str
    dimensions: int
    sends_dimensions: bool


class EmbeddingClient:
    """One per process and endpoint; threads share it."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.endpoint = Endpoint(base_url, api_key, "The embedding endpoint")
        self._executor = ThreadPoolExecutor(_CALLS_AT_ONCE, thread_name_prefix="embeddings")
        self._questions: OrderedDict[tuple[Model, str], Vectors] = OrderedDict()
        self._lock = Lock()

    def embed(self, model: Model, texts: Sequence[str], seconds: float = CALL_SECONDS) -> Vectors:
        """A row of length 1 for each text, in their order; no call takes longer. Errors: `EndpointError`."""
        batches = [texts[start : start + MAX_INPUTS] for start in range(0, len(texts), MAX_INPUTS)]
        if len(batches) == 1:
            return self._call(model, batches[0], seconds)
        found = list(self._executor.map(lambda batch: self._call(model, batch, seconds), batches))
        if len({vectors.shape[1] for vectors in found}) > 1:
            raise self.endpoint.fail("gives vectors of different lengths.")
        return np.concatenate(found)

    def question(self, model: Model, text: str) -> Vectors:
        """A question's vector, kept for the next time. Errors: `EndpointError` after `QUESTION_SECONDS` at most."""
        if (known := self.kept(model, text)) is not None:
            return known
        vector: Vectors = self._call(model, [text], QUESTION_SECONDS)[0]
        self.keep(model, text, vector)
        return vector

    def kept(self, model: Model, text: str) -> Vectors | None:
        """The vector of a question that was asked before, if it is not too long ago."""
        key = model, text
        with self._lock:
            if (known := self._questions.get(key)) is not None:
                self._questions.move_to_end(key)
            return known

    def keep(self, model: Model, text: str, vector: Vectors) -> None:
        """Notes a question's vector for the next time."""
        with self._lock:
            self._questions[model, text] = vector
            if len(self._questions) > _QUESTIONS_KEPT:
                self._questions.popitem(last=False)

    def _call(self, model: Model, texts: Sequence[str], seconds: float) -> Vectors:
        body: dict[str, Any] = {"model": model.name, "input": [text[:MAX_CHARS] for text in texts]}
        if model.sends_dimensions:
            body["dimensions"] = model.dimensions
        answer = self.endpoint.post("/embeddings", {**body, "encoding_format": "float"}, Deadline.after(seconds))
        vectors = self._read(answer, len(texts))
        if model.dimensions and vectors.shape[1] != model.dimensions:
            raise self.endpoint.fail(f"gives vectors of {vectors.shape[1]} dimensions instead of {model.dimensions}.")
        self.endpoint.pause.end()
        return vectors

    def _read(self, answer: Any, count: int) -> Vectors:
        """Errors: `EndpointError` for anything but `count` vectors of one length, finite and not zero."""
        try:
            rows = sorted((int(item["index"]), item["embedding"]) for item in answer["data"])
            vectors = np.array([row for _, row in rows], np.float32)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self.endpoint.fail("gave an answer without vectors.") from None
        if [index for index, _ in rows] != list(range(count)):
            raise self.endpoint.fail("gave another number of vectors than texts.")
        if vectors.ndim != 2 or not 1 <= vectors.shape[1] <= MAX_DIMENSIONS:
            raise self.endpoint.fail("gave something else than vectors.")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self.endpoint.fail("gave vectors without a direction.")
        unit: Vectors = vectors / lengths
        return unit


def wanted_model() -> Model | None:
    """The model that the settings name; None where they name no endpoint."""
    if not settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL:
        return None
    dimensions: int = settings.MEMORY_GATEWAY_EMBEDDING_DIMENSIONS
    return Model(settings.MEMORY_GATEWAY_EMBEDDING_MODEL, dimensions, bool(dimensions))


def client() -> EmbeddingClient:
    """The process's client of the endpoint that the settings name."""
    return _client(settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL, settings.MEMORY_GATEWAY_EMBEDDING_API_KEY)


@cache
def _client(base_url: str, api_key: str) -> EmbeddingClient:
    return EmbeddingClient(base_url, api_key)


__all__ = ["EmbeddingClient", "EndpointError", "Model", "Vectors", "client", "wanted_model"]
