"""How a question is really answered: by its method where that can be had, else by keyword, saying why.

What is left of `agentic` here lacks the LLM's endpoint: with one, `engines.embedded.agentic` has made it `hybrid`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core import turns
from core.errors import EngineUnavailable, InvalidInput
from store.types import Method, SearchRequest
from store.vectors import scripts, spaces
from store.vectors.client import EndpointError, Model, Vectors, client, wanted_model
from store.vectors.spaces import Serving

DEGRADED: Final = "No embedding endpoint is set (MEMORY_GATEWAY_EMBEDDING_BASE_URL): searched by keyword alone."
UNKNOWN_SCRIPT: Final = "The embedding model does not know the question's script: searched by keyword alone."
_OF_VECTORS: Final = frozenset({"vector", "hybrid"})
_NEEDS: Final[Mapping[Method, str]] = {
    "vector": "MEMORY_GATEWAY_EMBEDDING_BASE_URL",
    "agentic": "MEMORY_GATEWAY_LLM_BASE_URL",
}


@dataclass(frozen=True, slots=True)
class Way:
    """`method` is what is done, `vector` the question's own where it needs one; `degraded` as in `SearchResult`."""

    method: Method
    vector: Vectors | None = None
    degraded: str | None = None


def space_for(requests: list[SearchRequest]) -> Serving | None:
    """The vectors that the requests are answered from, where an endpoint is set and one asks for it.

    No statement where all questions have their vectors already: it is then for whoever reads the memories' vectors to
    see whether the space is still in use. The endpoint is asked about one that was looked up alone.
    """
    asked = [request.query for request in requests if request.method in _OF_VECTORS]
    if not asked or wanted_model() is None:
        return None
    space = spaces.last_serving()
    if space is not None and all(_has_vector(query, space) for query in asked):
        return space
    return spaces.serving()


def _has_vector(query: str, space: Serving) -> bool:
    if scripts.is_foreign(query) and not space.knows_other_scripts:
        return False
    return client().kept(spaces.model_of(space), query) is not None


def way_of(request: SearchRequest, space: Serving | None) -> Way:
    """Errors: `InvalidInput` for a method whose endpoint is not set, `EngineUnavailable` where `vector` cannot be."""
    wanted = wanted_model()
    if request.method == "keyword":
        return Way("keyword")
    if request.method == "agentic" or (wanted is None and request.method == "vector"):
        raise InvalidInput.of_field(
            "method", f"{request.method} needs the setting {_NEEDS[request.method]}; use keyword or hybrid"
        )
    if wanted is None:
        return Way("keyword", degraded=DEGRADED)
    if scripts.is_foreign(request.query) and not (space and space.knows_other_scripts):
        return Way("keyword", degraded=UNKNOWN_SCRIPT)
    return _with_vector(request, spaces.model_of(space) if space else wanted)


def _with_vector(request: SearchRequest, model: Model) -> Way:
    if (kept := client().kept(model, request.query)) is not None:
        return Way(request.method, kept)
    try:
        with turns.searching.lent():
            return Way(request.method, client().question(model, request.query))
    except EndpointError as error:
        if request.method == "hybrid":
            return Way("keyword", degraded=f"{error.detail} Searched by keyword alone.")
        raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds or 5) from error
