"""Compute the vectors of texts with an OpenAI-compatible embeddings endpoint, or with a model in this process."""

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import parse_qsl

import numpy as np
import numpy.typing as npt
from django.conf import settings

from core.messages import MANAGE
from core.messages import Translatable as _
from core.network.http_client import Deadline
from core.network.model_endpoint import Endpoint, EndpointError, Pause
from store.vectors.local_model import Encoded, LocalModel, local_model

logger = logging.getLogger("memory_gateway.models")

Vectors = npt.NDArray[np.float32]

MAX_INPUTS: Final = 10
"""Texts per call. DashScope accepts no more; other services are as fast with this number."""
MAX_CHARS: Final = 6000
MAX_DIMENSIONS: Final = 4096
CALL_SECONDS: Final = 30.0
QUERY_SECONDS: Final = 5.0
"""The deadline for the vector of a query; after it a hybrid search uses keywords only."""
_MAX_CALLS: Final = 4
_CACHED_QUERIES: Final = 1000
_ENCODED_QUERIES: Final = 200
"""Fewer, because each has the vectors of its tokens too."""


OTHER_MODEL: Final = _("The vectors are of another model. Run %(manage)s reembed.", manage=MANAGE)


class Model(NamedTuple):
    """The model of an embedding space. `dimensions` 0: as many as the model returns.

    `name` includes the prefixes of queries and texts, as options after a `?` (`ModelAddress.identity`).
    """

    name: str
    dimensions: int
    sends_dimensions: bool

    @property
    def name_at_endpoint(self) -> str:
        return self.name.partition("?")[0]

    def prefix(self, of: Literal["query_prefix", "text_prefix"]) -> str:
        """Return what the model expects before each query or text."""
        return dict(parse_qsl(self.name.partition("?")[2])).get(of, "")


class Embedder(ABC):
    """Computation of the vectors of a model, shared by all threads of the process."""

    @property
    @abstractmethod
    def pause(self) -> Pause:
        """The backoff after a failure."""

    @abstractmethod
    def embed(self, model: Model, texts: Sequence[str], seconds: float = CALL_SECONDS) -> Vectors:
        """Return a vector of length 1 for each text, in order, within `seconds`. Raises: `EndpointError`."""

    @abstractmethod
    def embed_query(self, model: Model, text: str) -> Vectors:
        """Return the vector of a query, from the cache if possible, within `QUERY_SECONDS`. Raises: `EndpointError`."""

    def cached_query(self, model: Model, text: str) -> Vectors | None:
        """Return the cached vector of a query; None if there is none."""
        return None


class EmbeddingClient(Embedder):
    """A client of the endpoint, shared by all threads of the process."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self.endpoint = Endpoint(base_url, api_key, _("The embedding endpoint"))
        self._executor = ThreadPoolExecutor(_MAX_CALLS, thread_name_prefix="embeddings")
        self._query_vectors: OrderedDict[tuple[Model, str], Vectors] = OrderedDict()
        self._lock = Lock()

    @property
    def pause(self) -> Pause:
        return self.endpoint.pause

    def embed(self, model: Model, texts: Sequence[str], seconds: float = CALL_SECONDS) -> Vectors:
        texts = [model.prefix("text_prefix") + text[:MAX_CHARS] for text in texts]
        batches = [texts[start : start + MAX_INPUTS] for start in range(0, len(texts), MAX_INPUTS)]
        if len(batches) == 1:
            return self._call(model, batches[0], seconds)
        found = list(self._executor.map(lambda batch: self._call(model, batch, seconds), batches))
        if len({vectors.shape[1] for vectors in found}) > 1:
            raise self.endpoint.fail(_("%(endpoint)s returned vectors of several lengths."))
        return np.concatenate(found)

    def embed_query(self, model: Model, text: str) -> Vectors:
        if (known := self.cached_query(model, text)) is not None:
            return known
        vector: Vectors = self._call(model, [model.prefix("query_prefix") + text[:MAX_CHARS]], QUERY_SECONDS)[0]
        self.cache_query(model, text, vector)
        return vector

    def cached_query(self, model: Model, text: str) -> Vectors | None:
        key = model, text
        with self._lock:
            if (known := self._query_vectors.get(key)) is not None:
                self._query_vectors.move_to_end(key)
            return known

    def cache_query(self, model: Model, text: str, vector: Vectors) -> None:
        """Cache the vector of a query."""
        with self._lock:
            self._query_vectors[model, text] = vector
            if len(self._query_vectors) > _CACHED_QUERIES:
                self._query_vectors.popitem(last=False)

    def _call(self, model: Model, texts: Sequence[str], seconds: float) -> Vectors:
        body: dict[str, Any] = {"model": model.name_at_endpoint, "input": list(texts)}
        if model.sends_dimensions:
            body["dimensions"] = model.dimensions
        answer = self.endpoint.post("/embeddings", {**body, "encoding_format": "float"}, Deadline.after(seconds))
        vectors = self._read(answer, len(texts))
        if model.dimensions and vectors.shape[1] != model.dimensions:
            raise self.endpoint.fail(
                _("%(endpoint)s returned vectors of %(length)s dimensions instead of %(expected)s."),
                length=vectors.shape[1],
                expected=model.dimensions,
            )
        self.endpoint.succeed()
        return vectors

    def _read(self, answer: Any, count: int) -> Vectors:
        """Return the vectors of a response, scaled to length 1.

        Raises: `EndpointError` unless there are `count` vectors with equally many dimensions, finite and not zero.
        """
        try:
            rows = sorted((int(item["index"]), item["embedding"]) for item in answer["data"])
            with np.errstate(over="ignore"):  # numbers too large for float32 become infinite and are refused below
                vectors = np.array([row for _, row in rows], np.float32)
        except (TypeError, KeyError, ValueError, AttributeError):
            raise self.endpoint.fail(_("%(endpoint)s returned a response without vectors.")) from None
        if [index for index, _ in rows] != list(range(count)):
            raise self.endpoint.fail(_("%(endpoint)s returned a different number of vectors than texts."))
        if vectors.ndim != 2 or not 1 <= vectors.shape[1] <= MAX_DIMENSIONS:
            raise self.endpoint.fail(_("%(endpoint)s returned no valid vectors."))
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self.endpoint.fail(_("%(endpoint)s returned zero vectors."))
        unit: Vectors = vectors / lengths
        return unit


class LocalEmbedder(Embedder):
    """A model in this process (`store.vectors.local_model`)."""

    def __init__(self, model: LocalModel) -> None:
        self.model = model
        self._pause = Pause()
        self._encode_query = lru_cache(_ENCODED_QUERIES)(model.encode_query)

    @property
    def pause(self) -> Pause:
        return self._pause

    def embed(self, model: Model, texts: Sequence[str], seconds: float = CALL_SECONDS) -> Vectors:
        return np.stack([one.pooled for one in self.encode(model, texts)])

    def embed_query(self, model: Model, text: str) -> Vectors:
        self._require(model)
        return self.encode_query(text).pooled

    def encode(self, model: Model, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors of texts and of their tokens. Raises: `EndpointError`."""
        self._require(model)
        with self._failures():
            return self.model.encode([text[:MAX_CHARS] for text in texts])

    def encode_query(self, text: str) -> Encoded:
        """Return the vectors of a query and of its tokens, from the cache if possible. Raises: `EndpointError`."""
        with self._failures():
            return self._encode_query(text[:MAX_CHARS])

    def _require(self, model: Model) -> None:
        """Check that this is the model of a space. Raises: `EndpointError`."""
        if model.name != self.model.name:
            raise EndpointError(OTHER_MODEL)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise what fails in the block as an `EndpointError`, and begin a pause."""
        try:
            yield
        except Exception as error:  # onnxruntime's own kinds, such as those for a lack of memory
            logger.exception("The local embedding model failed.")
            failed = EndpointError(_("The local embedding model failed."))
            self._pause.begin(failed)
            raise failed from error
        if self._pause.error:
            self._pause.end()


def wanted_model() -> Model | None:
    """Return the configured model; None without one."""
    address = settings.MEMORY_GATEWAY_MODELS.get("embedding")
    if address is None:
        return None
    if address.folder:
        return Model(local_model(address.folder).name, 0, sends_dimensions=False)
    return Model(address.identity, address.dimensions, bool(address.dimensions))


def client() -> Embedder:
    """Return the embedder of the configured model."""
    address = settings.MEMORY_GATEWAY_MODELS["embedding"]
    return _local(address.folder) if address.folder else _client(address.base_url, address.api_key)


def token_client() -> LocalEmbedder | None:
    """Return the local model if hybrid searches compare the tokens of texts with it; None without one."""
    address = settings.MEMORY_GATEWAY_MODELS.get("embedding")
    if address is None or not address.folder:
        return None
    embedder = _local(address.folder)
    return embedder if embedder.model.settings.token_vectors else None


@cache
def _client(base_url: str, api_key: str) -> EmbeddingClient:
    return EmbeddingClient(base_url, api_key)


@cache
def _local(folder: str) -> LocalEmbedder:
    return LocalEmbedder(local_model(folder))


__all__ = [
    "Embedder",
    "EmbeddingClient",
    "EndpointError",
    "LocalEmbedder",
    "Model",
    "Vectors",
    "client",
    "token_client",
    "wanted_model",
]
