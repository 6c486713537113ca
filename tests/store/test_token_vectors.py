"""Hybrid search with a model in the process: the tokens of memories, what is stored of them, and languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engines.embedded.engine import EmbeddedEngine
from store import derived
from store.models import Embedding, EmbeddingSpace, Memory, PendingEmbedding, TokenVectors
from store.search import late_interaction
from store.types import Owner, SearchRequest, SearchResult, Wording
from store.vectors import client, fill, layout, token_vectors
from store.vectors.local_model import LocalModel, local_model
from tests import local_models
from tests.conftest import Person
from tests.store.conftest import remember, search, texts

TOLD = (
    "The children baked a cake for the meeting.",
    "The meeting was quiet.",
    "After the meeting it rained in the garden all day.",
    "We repaired the dinghy in the harbor before the meeting.",
)


@pytest.fixture
def model(settings: Any, tmp_path: Path) -> Iterator[LocalModel]:
    folder = local_models.make_folder(tmp_path / "minilm")
    local_models.use(settings, folder)
    yield local_model(str(folder))
    local_model.cache_clear()
    client._local.cache_clear()


def hybrid(engine: EmbeddedEngine, owner: Owner, query: str, **request: Any) -> SearchResult:
    [found] = engine.search(
        owner, [SearchRequest(query, **{"method": "hybrid", "top_k": 10, "min_relevance": 0} | request)]
    )
    return found


def order(engine: EmbeddedEngine, owner: Owner, query: str, method: str) -> list[str]:
    return texts(search(engine, owner, query, method=method, min_relevance=0))


def test_a_word_is_near_another_of_its_meaning(engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    remember(engine, alice.owner, *TOLD)
    assert order(engine, alice.owner, "the yacht and the meeting", "keyword")[0] != TOLD[3]
    found = hybrid(engine, alice.owner, "the yacht and the meeting")
    assert (found.hits[0].text, found.method, found.degraded) == (TOLD[3], "hybrid", None)
    assert 0 < found.hits[0].legs["tokens"]["score"] <= 1
    assert found.hits[0].legs["tokens"]["rank"] == 1


def test_a_search_reads_tokens_in_one_statement_more(engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    remember(engine, alice.owner, *TOLD)
    hybrid(engine, alice.owner, "the yacht and the meeting")
    with CaptureQueriesContext(
        connection,
    ) as by_keyword:
        search(engine, alice.owner, "the yacht and the meeting", min_relevance=0)
    with CaptureQueriesContext(connection) as by_tokens:
        hybrid(engine, alice.owner, "the yacht and the meeting")
    assert len(by_tokens) == len(by_keyword) + 1


def test_what_is_stored_is_near_what_the_model_says(engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    remember(engine, alice.owner, TOLD[3])
    [row], [space] = TokenVectors.objects.all(), EmbeddingSpace.objects.all()
    reduction = token_vectors.reduction_of(space)
    assert reduction is not None
    assert reduction.shape == (384, layout.REDUCED_DIMENSIONS)
    codes = np.frombuffer(bytes(row.vectors), layout.CODES).reshape(-1, layout.REDUCED_DIMENSIONS) / 127
    encoded = model.encode([TOLD[3]])[0]
    own = encoded.tokens[1:-1]  # without the model's own tokens
    assert len(codes) == len(own)
    assert np.abs(codes @ codes.T - own @ own.T).mean() < 0.1


def test_a_memory_keeps_at_most_128_tokens(engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    remember(engine, alice.owner, "and one more word " * 200, "and so on to the " * 50 + "harbor")
    long, of_stop_words = TokenVectors.objects.order_by("memory_id")
    assert len(long.vectors) == 128 * layout.REDUCED_DIMENSIONS
    assert len(of_stop_words.vectors) < 60 * layout.REDUCED_DIMENSIONS


def test_equal_texts_are_encoded_once(
    engine: EmbeddedEngine, alice: Person, bob: Person, model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(engine, alice.owner, TOLD[3])
    monkeypatch.delattr(LocalModel, "encode")
    remember(engine, bob.owner, TOLD[3])
    assert len({bytes(row.vectors) for row in TokenVectors.objects.all()}) == 1
    assert TokenVectors.objects.count() == 2


@pytest.mark.parametrize(
    ("told", "query"),
    [
        (["我在上海租了一套公寓。", "上海今天下雨了。"], "上海的公寓"),
        (
            ["Die Hausverwaltung schickte die Nebenkostenabrechnung.", "Die Kinder spielten gestern im Stadtpark."],
            "Wann schickte die Hausverwaltung die Nebenkostenabrechnung?",
        ),
    ],
)
def test_a_language_that_the_model_does_not_know_is_ranked_by_keyword(
    engine: EmbeddedEngine, alice: Person, model: LocalModel, told: list[str], query: str
) -> None:
    remember(engine, alice.owner, *told)
    assert all(not row.vectors for row in TokenVectors.objects.all())
    by_keyword = search(engine, alice.owner, query, min_relevance=0)
    found = hybrid(engine, alice.owner, query)
    assert [(hit.text, hit.score) for hit in found.hits] == [(hit.text, hit.score) for hit in by_keyword]
    assert all(set(hit.legs) == {"keyword"} for hit in found.hits)


def test_an_english_question_in_a_german_store_is_ranked_by_keyword(
    engine: EmbeddedEngine, alice: Person, model: LocalModel
) -> None:
    remember(engine, alice.owner, "Hausverwaltung Meeting Nebenkostenabrechnung.", "Stadtparkbesuch Meeting gestern.")
    found = hybrid(engine, alice.owner, "What was the meeting?")
    assert len(found.hits) == 2
    assert all(set(hit.legs) == {"keyword"} for hit in found.hits)


def test_a_memory_without_vectors_yet_counts_as_an_average_one(
    engine: EmbeddedEngine, alice: Person, model: LocalModel
) -> None:
    remember(engine, alice.owner, *TOLD)
    TokenVectors.objects.filter(memory__text=TOLD[2]).delete()
    ranked = texts(list(hybrid(engine, alice.owner, "the yacht and the meeting").hits))
    assert ranked[0] == TOLD[3]
    assert TOLD[2] in ranked


def test_an_edited_memory_gets_new_tokens_and_a_deleted_one_loses_them(
    engine: EmbeddedEngine, alice: Person, model: LocalModel
) -> None:
    remember(engine, alice.owner, TOLD[3], TOLD[2])
    first, second = Memory.objects.order_by("pk")
    before = bytes(TokenVectors.objects.get(memory=first).vectors)
    engine.replace(alice.owner, {first.memory_id: Wording("I sold the boat.", "", None)})
    assert not TokenVectors.objects.filter(memory=first).exists()
    assert fill.fill(5.0) == 1
    assert bytes(TokenVectors.objects.get(memory=first).vectors) != before
    second.refresh_from_db()
    engine.delete(alice.owner, "chat:c1")
    assert not TokenVectors.objects.exists()


def test_another_model_asks_for_new_vectors_and_searches_by_keyword_until_then(
    engine: EmbeddedEngine, alice: Person, model: LocalModel
) -> None:
    remember(engine, alice.owner, *TOLD)
    (model.folder / "memory_gateway.json").write_text('{"text_prefix": "passage: "}')
    local_model.cache_clear()
    client._local.cache_clear()
    found = hybrid(engine, alice.owner, "the yacht and the meeting")
    assert found.method == "keyword"
    assert "reembed" in str(found.degraded)
    remember(engine, alice.owner, "A new one.", session="chat:c2")
    assert PendingEmbedding.objects.count() == 1
    call_command("reembed", verbosity=0)
    assert hybrid(engine, alice.owner, "the yacht and the meeting").hits[0].text == TOLD[3]
    assert TokenVectors.objects.count() == Embedding.objects.count() == len(TOLD) + 1


def test_tokens_of_another_layout_are_not_read_and_made_again(
    engine: EmbeddedEngine, alice: Person, model: LocalModel
) -> None:
    remember(engine, alice.owner, *TOLD)
    before = {row.memory_id: bytes(row.vectors) for row in TokenVectors.objects.all()}
    TokenVectors.objects.update(layout=1, vectors=b"\x01")
    assert all(set(hit.legs) == {"keyword"} for hit in hybrid(engine, alice.owner, "the yacht and the meeting").hits)
    assert derived.BY_NAME["tokens"].outdated() == [alice.owner]
    call_command("rebuild", verbosity=0)
    assert PendingEmbedding.objects.count() == len(TOLD)
    fill.fill(5.0)
    assert {row.memory_id: bytes(row.vectors) for row in TokenVectors.objects.all()} == before
    assert not derived.BY_NAME["tokens"].outdated()
    assert not list(derived.BY_NAME["tokens"].differences([alice.owner]))


def test_a_model_can_do_without_tokens(settings: Any, engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    (model.folder / "memory_gateway.json").write_text('{"token_vectors": false}')
    local_model.cache_clear()
    client._local.cache_clear()
    remember(engine, alice.owner, *TOLD)
    found = hybrid(engine, alice.owner, "the yacht and the meeting")
    assert found.method == "hybrid"
    assert any("vector" in hit.legs for hit in found.hits)
    assert not TokenVectors.objects.exists()


def test_rare_words_weigh_more_than_stop_words(engine: EmbeddedEngine, alice: Person, model: LocalModel) -> None:
    encoded = model.encode_query("the Krzysztof")
    weights = late_interaction._weights("the Krzysztof", encoded, {"krzysztof": 2.0})
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == weights[-1] == 0.0
    assert weights[2:-1].sum() == pytest.approx(10 * weights[1])
