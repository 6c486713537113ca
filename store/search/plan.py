"""Resolve the method that a request is answered with, and the vector of its query.

Requests by `agentic` arrive here only without an LLM endpoint: with one, `engines.embedded.agentic` sends `hybrid`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class SearchPlan:
    """`method` is the one used, `vector` the vector of the query if needed, `degraded` as in `SearchResult`."""

    method: Method
    vector: Vectors | None = None
    degraded: str | None = None


def space_for(requests: Sequence[SearchRequest]) -> Serving | None:
    """Return the embedding space of the requests, None if no request uses vectors or no endpoint is set.

    No statement if the vectors of all queries are cached: the reader of the memories' vectors then checks that the
    space still serves. The endpoint is asked only about a space that was looked up.
    """
    queries = [request.query for request in requests if request.method in _OF_VECTORS]
    if not queries or wanted_model() is None:
        return None
    space = spaces.last_serving()
    if space is not None and all(_has_vector(query, space) for query in queries):
        return space
    return spaces.serving()


def _has_vector(query: str, space: Serving) -> bool:
    if scripts.is_foreign(query) and not space.knows_other_scripts:
        return False
    return client().kept(spaces.model_of(space), query) is not None


def plan_for(request: SearchRequest, space: Serving | None) -> SearchPlan:
    """Raises: `InvalidInput` for a method without endpoint, `EngineUnavailable` if that of `vector` fails."""
    wanted = wanted_model()
    if request.method == "keyword":
        return SearchPlan("keyword")
    if request.method == "agentic" or (wanted is None and request.method == "vector"):
        raise InvalidInput.of_field(
            "method", f"{request.method} needs the setting {_NEEDS[request.method]}; use keyword or hybrid"
        )
    if wanted is None:
        return SearchPlan("keyword", degraded=DEGRADED)
    if scripts.is_foreign(request.query) and not (space and space.knows_other_scripts):
        return SearchPlan("keyword", degraded=UNKNOWN_SCRIPT)
    return _with_vector(request, spaces.model_of(space) if space else wanted)


def _with_vector(request: SearchRequest, model: Model) -> SearchPlan:
    if (kept := client().kept(model, request.query)) is not None:
        return SearchPlan(request.method, kept)
    try:
        with turns.searching.lent():
            return SearchPlan(request.method, client().question(model, request.query))
    except EndpointError as error:
        if request.method == "hybrid":
            return SearchPlan("keyword", degraded=f"{error.detail} Searched by keyword alone.")
        raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds or 5) from error
