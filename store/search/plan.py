"""Resolve the method that a request is answered with, and the vector of its query.

Requests by `agentic` arrive here only without an LLM endpoint; with one, `engines.embedded.rated_search` sends
`hybrid`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.errors import EngineUnavailable, InvalidInput
from core.limits.concurrency import search_lock
from core.messages import Translatable as _
from store.types import Method, SearchRequest
from store.vectors import spaces
from store.vectors.client import (
    OTHER_MODEL,
    EndpointError,
    LocalEmbedder,
    Model,
    Vectors,
    client,
    token_client,
    wanted_model,
)
from store.vectors.local_model import Encoded
from store.vectors.spaces import Serving
from store.vectors.token_vectors import is_unknown_language

DEGRADED: Final = _("No embedding model is configured: searched by keyword only.")
UNKNOWN_SCRIPT: Final = _("The embedding model does not support the script of the query: searched by keyword only.")
_OF_VECTORS: Final = frozenset({"vector", "hybrid"})


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """`method` is the one used, `vector` the vector of the query if needed, `degraded` as in `SearchResult`.

    `tokens`: `hybrid` compares the tokens of the query with those of memories, in the space of `model`.
    """

    method: Method
    vector: Vectors | None = None
    degraded: str | None = None
    tokens: Encoded | None = None
    model: str = ""


def space_for(requests: Sequence[SearchRequest]) -> Serving | None:
    """Return the embedding space of the requests, None if no request uses vectors or no endpoint is set.

    No SQL statement if the vectors of all queries are cached: then the snapshot checks that the space is still active.
    The endpoint is called only for a space that was just read.
    """
    of_vectors = _OF_VECTORS if token_client() is None else {"vector"}
    queries = [request.query for request in requests if request.method in of_vectors]
    if not queries or wanted_model() is None:
        return None
    space = spaces.last_serving()
    if space is not None and all(_has_vector(query, space) for query in queries):
        return space
    return spaces.serving()


def _has_vector(query: str, space: Serving) -> bool:
    if spaces.is_foreign(query) and not space.knows_other_scripts:
        return False
    return client().cached_query(spaces.model_of(space), query) is not None


def plan_for(request: SearchRequest, space: Serving | None) -> SearchPlan:
    """Return the plan of a search.

    Raises: `InvalidInput` for a method without endpoint, `EngineUnavailable` if the endpoint of `vector` fails.
    """
    wanted = wanted_model()
    if request.method == "keyword":
        return SearchPlan("keyword")
    if request.method == "agentic" or (wanted is None and request.method == "vector"):
        raise InvalidInput.of_field(
            "method",
            _("%(method)s needs a model that is not configured; use keyword or hybrid", method=request.method),
        )
    if wanted is None:
        return SearchPlan("keyword", degraded=DEGRADED)
    if request.method == "hybrid" and (embedder := token_client()) is not None:
        return _with_tokens(request, embedder)
    if spaces.is_foreign(request.query) and not (space and space.knows_other_scripts):
        return SearchPlan("keyword", degraded=UNKNOWN_SCRIPT)
    return _with_vector(request, spaces.model_of(space) if space else wanted)


def _with_vector(request: SearchRequest, model: Model) -> SearchPlan:
    if (vector := client().cached_query(model, request.query)) is not None:
        return SearchPlan(request.method, vector)
    try:
        with search_lock.released():
            return SearchPlan(request.method, client().embed_query(model, request.query))
    except EndpointError as error:
        if request.method == "hybrid":
            return SearchPlan("keyword", degraded=_("%(said)s Searched by keyword only.", said=error.detail))
        raise EngineUnavailable(error.detail, retry_after_seconds=error.retry_after_seconds or 5) from error


def _with_tokens(request: SearchRequest, embedder: LocalEmbedder) -> SearchPlan:
    name, space = embedder.model.name, spaces.last_serving()
    if space is None or space.model != name:
        space = spaces.serving()
    if space is not None and space.model != name:
        return SearchPlan("keyword", degraded=OTHER_MODEL)
    knows_all = space is not None and space.knows_other_scripts
    if spaces.is_foreign(request.query) and not knows_all:
        return SearchPlan("keyword", degraded=UNKNOWN_SCRIPT)
    try:
        with search_lock.released():
            encoded = embedder.encode_query(request.query)
    except EndpointError as error:
        return SearchPlan("keyword", degraded=_("%(said)s Searched by keyword only.", said=error.detail))
    if not knows_all and is_unknown_language(request.query, encoded):
        return SearchPlan("hybrid")
    return SearchPlan("hybrid", tokens=encoded, model=name)
