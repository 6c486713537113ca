"""Rate texts for a query by a reranker: an endpoint with `/rerank`, as Jina, Cohere, vLLM and others offer it."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

from django.conf import settings

from core.messages import Translatable as _
from core.network.http_client import Deadline
from core.network.model_endpoint import Endpoint, ModelAddress

SECONDS: Final = 5.0
"""The deadline of a call; after it a search keeps its own order."""


class Reranker:
    """A client of one endpoint and model. Thread-safe."""

    def __init__(self, address: ModelAddress) -> None:
        self.model = address.model
        self.endpoint = Endpoint(address.base_url, address.api_key, _("The reranker endpoint"))

    def rate(self, query: str, texts: Sequence[str]) -> dict[int, float]:
        """Return the relevance of texts by their position, 0 to 1; texts that the answer omits are absent.

        Some models return log odds instead: if any score is outside 0 to 1, all are converted. Raises: `EndpointError`.
        """
        body = {"model": self.model, "query": query, "documents": list(texts), "top_n": len(texts)}
        answer = self.endpoint.post("/rerank", body, Deadline.after(SECONDS))
        try:
            scores = {int(item["index"]): float(item["relevance_score"]) for item in answer["results"]}
        except (TypeError, KeyError, ValueError, OverflowError):
            scores = {}
        if not scores or not all(map(math.isfinite, scores.values())) or not scores.keys() <= set(range(len(texts))):
            raise self.endpoint.fail(_("%(endpoint)s returned no valid scores."))
        self.endpoint.succeed()
        if any(not 0 <= score <= 1 for score in scores.values()):
            return {index: _probability(score) for index, score in scores.items()}
        return scores


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(log_odds, 50.0), -50.0)))


def is_set() -> bool:
    """Return True if a reranker is configured."""
    return "rerank" in settings.MEMORY_GATEWAY_MODELS


def client() -> Reranker:
    """Return the client of the configured model."""
    return _client(settings.MEMORY_GATEWAY_MODELS["rerank"])


@cache
def _client(address: ModelAddress) -> Reranker:
    return Reranker(address)
