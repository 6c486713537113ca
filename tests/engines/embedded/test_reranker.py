"""Searches by `hybrid` and `agentic` with a reranker endpoint, and their fallback when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
import pytest

from core.network.model_endpoint import ModelAddress
from engines.embedded import health, reranker
from engines.embedded.engine import EmbeddedEngine
from store.types import SearchRequest, SearchResult
from tests.conftest import Person
from tests.server import free_port
from tests.store.conftest import remember
from tests.stub_http import answering_posts
from tests.stub_llm import StubLlm

WORDS = ("A lake is cold", "We saw a lake", "A lake is deep, said Anna")


class StubReranker:
    """`relevance` gives the score of a text; `answer` replaces the whole answer if set."""

    def __init__(self) -> None:
        self.relevance: Callable[[str], float] = lambda text: 0.9 if "deep" in text else 0.1
        self.answer: tuple[int | str, bytes] | None = None
        self.bodies: list[dict[str, Any]] = []
        self.port = free_port()

    def respond(self, path: str, headers: Mapping[str, str], body: Any) -> tuple[int | str, Any]:
        assert path == "/v1/rerank"
        assert headers["Authorization"] == "Bearer sk-secret"
        self.bodies.append(body)
        return self.answer or (200, json_of(map(self.relevance, body["documents"])))


def json_of(scores: Any) -> bytes:
    return orjson.dumps(
        {"results": [{"index": index, "relevance_score": score} for index, score in reversed([*enumerate(scores)])]}
    )


@pytest.fixture
def stub(settings: Any) -> Iterator[StubReranker]:
    running = StubReranker()
    with answering_posts(running.port, running.respond, lambda: running.answer is not None):
        address = ModelAddress(f"http://127.0.0.1:{running.port}/v1", "rerank-1", "sk-secret")
        settings.MEMORY_GATEWAY_MODELS = settings.MEMORY_GATEWAY_MODELS | {"rerank": address}
        yield running


def search(engine: EmbeddedEngine, person: Person, **request: Any) -> SearchResult:
    options: dict[str, Any] = {"method": "hybrid", "top_k": 3, "enable_llm_rerank": True}
    [found] = engine.search(person.owner, [SearchRequest("lake", **options | request)])
    return found


def texts_of(result: SearchResult) -> list[str]:
    return [hit.text for hit in result.hits]


def test_hybrid_is_sorted_by_the_reranker(engine: EmbeddedEngine, alice: Person, stub: StubReranker) -> None:
    remember(engine, alice.owner, *WORDS)
    found = search(engine, alice, top_k=2)
    assert texts_of(found)[0] == WORDS[2]
    assert len(found.hits) == 2
    assert found.method == "keyword"  # no embedding endpoint
    assert found.hits[0].legs["rerank"] == {"score": 0.9}
    assert "queries" not in found.hits[0].legs
    [body] = stub.bodies
    assert (body["model"], body["query"], body["top_n"]) == ("rerank-1", "lake", 3)
    assert set(body["documents"]) == set(WORDS)


@pytest.mark.parametrize("request_", [{"enable_llm_rerank": False}, {"method": "keyword"}])
def test_other_searches_do_not_call_it(
    engine: EmbeddedEngine, alice: Person, stub: StubReranker, request_: dict[str, Any]
) -> None:
    remember(engine, alice.owner, *WORDS)
    assert search(engine, alice, **request_).hits
    assert not stub.bodies


def test_agentic_is_rated_by_it_instead_of_the_language_model(
    engine: EmbeddedEngine, alice: Person, stub: StubReranker, llm: StubLlm
) -> None:
    remember(engine, alice.owner, *WORDS)
    found = search(engine, alice, method="agentic")
    assert (found.method, texts_of(found)[0]) == ("agentic", WORDS[2])
    assert len(llm.tasks("rewrite")) == 1
    assert not llm.tasks("judge")


def test_log_odds_become_probabilities(alice: Person, stub: StubReranker) -> None:
    stub.relevance = lambda text: {"a": -800.0, "b": 0.0, "c": 3.0}[text]
    scores = reranker.client().rate("q", ["a", "b", "c"])
    assert scores[1] == 0.5
    assert 0 < scores[0] < 0.01 < scores[1] < scores[2] < 1


BAD_ANSWERS: dict[str, tuple[int | str, bytes]] = {
    "error": (500, b"{}"),
    "no results": (200, b"{}"),
    "unknown index": (200, b'{"results": [{"index": 7, "relevance_score": 0.5}]}'),
    "no number": (200, b'{"results": [{"index": 0, "relevance_score": "much"}]}'),
    "list": (200, b"[]"),
    "reset": ("reset before", b""),
    "html": ("html", b""),
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_without_its_ratings_the_search_keeps_its_order_and_says_so(
    engine: EmbeddedEngine, alice: Person, stub: StubReranker, answer: tuple[int | str, bytes]
) -> None:
    remember(engine, alice.owner, *WORDS)
    plain = texts_of(search(engine, alice, enable_llm_rerank=False))
    stub.answer = answer
    found = search(engine, alice)
    assert texts_of(found) == plain
    assert "The reranker endpoint" in str(found.degraded)
    assert "keep the order of the search" in str(found.degraded)
    state = health.check(2.0).data["rerank"]
    assert state["status"] == "failing"
    assert "sk-secret" not in str(state)


def test_health_names_the_model(alice: Person, stub: StubReranker) -> None:
    assert health.check(2.0).data["rerank"] == {"status": "ok", "model": "rerank-1"}
