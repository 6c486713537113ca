"""Search with an embedding endpoint: what it finds, what it costs, and what happens when the endpoint fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from core import turns
from core.errors import EngineUnavailable
from engines.embedded.engine import EmbeddedEngine
from store.index import rebuild
from store.models import Embedding, EmbeddingSpace, IndexVersion, Memory, OwedEmbedding, VectorPage, owned_by
from store.types import Owner, SearchRequest, SearchResult, Wording
from store.vectors import fill, pages, spaces
from store.vectors.client import EmbeddingClient, Model, Vectors, client
from tests.conftest import Person, make_person
from tests.store.conftest import NOON_MS, ask, remember, said, texts
from tests.store.test_trouble import Crash, Lock, broken_after, impatient, lock
from tests.stub_embeddings import StubEmbeddings, running_embeddings

__all__ = ["impatient", "lock"]


def use(settings: Any, stub: StubEmbeddings, dimensions: int = 0) -> None:
    settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL = stub.url
    settings.MEMORY_GATEWAY_EMBEDDING_MODEL = "stub"
    settings.MEMORY_GATEWAY_EMBEDDING_DIMENSIONS = dimensions


@pytest.fixture
def stub(settings: Any) -> Iterator[StubEmbeddings]:
    """An endpoint that knows English alone."""
    with running_embeddings() as running:
        use(settings, running)
        yield running


@pytest.fixture
def multilingual(settings: Any) -> Iterator[StubEmbeddings]:
    with running_embeddings(knows_chinese=True) as running:
        use(settings, running)
        yield running


def result(engine: EmbeddedEngine, owner: Owner, query: str, **request: Any) -> SearchResult:
    [found] = engine.search(owner, [SearchRequest(query, **{"method": "hybrid", "top_k": 10} | request)])
    return found


def paged(owner: Owner) -> dict[int, int]:
    """Row id → how often the owner's pages hold it."""
    held: dict[int, int] = {}
    for page in VectorPage.objects.filter(owned_by(owner)):
        rows = np.frombuffer(page.rows, pages.ROWS)
        assert 0 < len(rows) <= 256
        assert len(page.codes) == len(rows) * page.space.dimensions
        for pk in rows["pk"].tolist():
            held[pk] = held.get(pk, 0) + 1
    return held


def assert_all_told(owner: Owner) -> None:
    """Every indexed memory has one vector in the pages and nothing is owed."""
    pks = Memory.objects.filter(owned_by(owner), is_indexed=True).values_list("pk", flat=True)
    assert paged(owner) == dict.fromkeys(pks, 1)
    assert not OwedEmbedding.objects.exists()


def test_a_meaning_is_found_without_its_word(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "The automobile is red", "A quiet lake", "Nothing else matters")
    found = result(engine, alice.owner, "car")
    assert (found.method, found.degraded) == ("hybrid", None)
    assert found.hits[0].text == "The automobile is red"
    assert "keyword" not in found.hits[0].legs
    assert found.hits[0].legs["vector"]["rank"] == 1
    assert texts(ask(engine, alice.owner, "car")) == []


def test_hybrid_says_what_each_leg_gave(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "The automobile is red", "car keys", "Nothing else matters")
    first = result(engine, alice.owner, "car").hits[0]
    assert first.text == "car keys"
    assert first.legs["keyword"]["matched"] == ["car"]
    assert first.legs["keyword"]["rank"] == 1
    assert 0 < first.legs["vector"]["score"] <= 1
    assert first.score == first.raw["score"]
    assert 0 < (first.score or 0) <= 1


def test_vector_scores_are_cosines_and_the_radius_cuts_them(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "car", "automobile", "red car", "lake")
    hits = result(engine, alice.owner, "vehicle", method="vector").hits
    assert {hit.text for hit in hits[:2]} == {"car", "automobile"}
    assert [round(hit.score or 0, 2) for hit in hits[:2]] == [1.0, 1.0]
    question = stub.vector("vehicle")
    for hit in hits:
        vector = stub.vector(hit.text)
        exact = vector @ question / np.linalg.norm(vector) / np.linalg.norm(question)
        assert hit.score == pytest.approx(exact, abs=0.001)
    assert texts(list(result(engine, alice.owner, "vehicle", method="vector", radius=0.9).hits)) == texts(
        list(hits[:2])
    )


def test_the_radius_leaves_what_keywords_found(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "the red car stands beside many other tall things", "automobile", "lake")
    found = result(engine, alice.owner, "car", radius=0.95).hits
    assert {hit.text for hit in found} == {"the red car stands beside many other tall things", "automobile"}


def test_a_call_holds_ten_texts_at_most(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, *[f"text number {number}" for number in range(37)])
    assert max(map(len, stub.asked)) == 10
    assert len(stub.texts) == 37
    assert_all_told(alice.owner)


def test_the_same_text_is_asked_for_once(
    engine: EmbeddedEngine, alice: Person, bob: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "same words", "same words", "others")
    remember(engine, bob.owner, "same words")
    assert sorted(stub.texts) == ["others", "same words"]
    assert_all_told(bob.owner)
    result(engine, alice.owner, "a question")
    result(engine, alice.owner, "a question")
    assert stub.texts.count("a question") == 1


def test_the_number_of_dimensions_is_asked_for_where_it_is_set(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    remember(engine, alice.owner, "one")
    assert "dimensions" not in stub.bodies[-1]
    EmbeddingSpace.objects.all().delete()
    use(settings, stub, dimensions=64)
    remember(engine, alice.owner, "two", session="chat:c2")
    assert stub.bodies[-1]["dimensions"] == 64
    assert stub.bodies[-1]["model"] == "stub"


def test_a_model_of_english_never_ranks_chinese(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好", "The automobile is red")
    assert stub.texts == ["The automobile is red"]
    found = result(engine, alice.owner, "汽车")
    assert texts(list(found.hits)) == ["我买了一辆汽车"]
    assert found.method == "keyword"
    assert "script" in (found.degraded or "")
    assert result(engine, alice.owner, "汽车", method="vector").method == "keyword"
    assert stub.texts == ["The automobile is red"]
    assert all("vector" not in hit.legs or hit.text.isascii() for hit in result(engine, alice.owner, "red").hits)
    assert not OwedEmbedding.objects.exists()


def test_a_model_that_knows_chinese_ranks_it(
    engine: EmbeddedEngine, alice: Person, multilingual: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好")
    found = result(engine, alice.owner, "轿车", method="vector")
    assert (found.method, found.hits[0].text) == ("vector", "我买了一辆汽车")


def test_a_stranger_and_another_project_find_nothing(
    engine: EmbeddedEngine, alice: Person, charlie: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The automobile is red")
    for owner in (charlie.owner, Owner(alice.user_pk, "alice", "default", "other")):
        for method in ("hybrid", "vector"):
            assert result(engine, owner, "car", method=method).hits == ()


def test_only_the_part_asked_for_answers(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "automobile a", session="chat:a")
    remember(engine, alice.owner, "automobile b", session="chat:b")
    for method in ("hybrid", "vector"):
        found = result(engine, alice.owner, "car", method=method, session_ids=("chat:b",))
        assert texts(list(found.hits)) == ["automobile b"]
        late = {"timestamp": {"lt": NOON_MS}}
        assert result(engine, alice.owner, "car", method=method, filters=late).hits == ()


def test_a_deleted_memory_leaves_no_vector(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "automobile one", "automobile two", session="chat:a")
    remember(engine, alice.owner, "automobile three", session="chat:b")
    engine.delete(alice.owner, "chat:a")
    assert texts(list(result(engine, alice.owner, "car").hits)) == ["automobile three"]
    assert Embedding.objects.count() == 1
    assert_all_told(alice.owner)


def test_a_corrected_memory_is_found_by_its_new_meaning(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The automobile is red", "A quiet lake")
    memory = Memory.objects.get(text="The automobile is red")
    engine.replace(alice.owner, {memory.memory_id: Wording("The physician is in", "", None)})
    assert texts(list(result(engine, alice.owner, "car", method="vector", radius=0.3).hits)) == []
    assert fill.fill(5) == 1
    assert texts(list(result(engine, alice.owner, "doctor", method="vector", radius=0.3).hits)) == [
        "The physician is in"
    ]
    assert_all_told(alice.owner)


def test_memories_from_before_the_endpoint_get_their_vectors(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL = ""
    remember(engine, alice.owner, "automobile")
    assert not OwedEmbedding.objects.exists()
    use(settings, stub)
    assert fill.fill(5) == 1
    assert_all_told(alice.owner)


def fill_up() -> None:
    """An answer of a call that failed may still be under way, and begin another pause."""
    until = time.monotonic() + 60
    while OwedEmbedding.objects.exists() and time.monotonic() < until:
        client().endpoint.pause.end()
        fill.fill(5)


FAILURES: list[int | str] = [500, 429, 401, 400, "text", "short", "count", "slow"]


@pytest.mark.parametrize("failure", [*FAILURES, "refused"])
def test_a_failing_endpoint_loses_nothing(
    engine: EmbeddedEngine, alice: Person, settings: Any, failure: int | str
) -> None:
    with running_embeddings() as stub:
        use(settings, stub, dimensions=64)
        stub.failure = failure
        url = stub.url
        if failure == "refused":
            settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL = "http://127.0.0.1:9/v1"
        remember(engine, alice.owner, "The automobile is red", "A quiet lake")
        assert OwedEmbedding.objects.count() == 2
        found = result(engine, alice.owner, "automobile")
        assert (found.method, texts(list(found.hits))) == ("keyword", ["The automobile is red"])
        assert "Searched by keyword alone." in (found.degraded or "")
        with pytest.raises(EngineUnavailable) as refused:
            result(engine, alice.owner, "car", method="vector")
        assert (refused.value.retry_after_seconds or 0) > 0
        state = engine.health(2).data
        assert (state["status"], state["embeddings"]["status"], state["embeddings"]["owed"]) == (
            "degraded",
            "failing",
            2,
        )
        assert state["embeddings"]["error"].startswith("The embedding endpoint")

        settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL = url
        stub.failure = None
        fill_up()
        assert_all_told(alice.owner)
        assert result(engine, alice.owner, "car").hits[0].text == "The automobile is red"
        assert engine.health(2).data["embeddings"] == {"status": "ok", "model": "stub", "dimensions": 64, "owed": 0}


def test_an_endpoint_that_failed_is_left_alone_for_a_while(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    stub.failure = 500
    remember(engine, alice.owner, "one")
    time.sleep(0.2)  # calls that went out beside the one that failed
    calls = len(stub.bodies)
    for number in range(5):
        result(engine, alice.owner, f"question {number}")
    assert len(stub.bodies) == calls


def test_a_text_that_is_refused_stops_no_other(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    stub.refused = "poison"
    remember(engine, alice.owner, *[f"automobile {number}" for number in range(12)], "poison automobile")
    assert not OwedEmbedding.objects.exists()
    assert len(paged(alice.owner)) == 12
    assert "poison automobile" in texts(list(result(engine, alice.owner, "poison").hits))


def test_vectors_of_a_new_question_cost_one_statement_more_and_those_of_a_known_one_none(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, django_assert_num_queries: Any
) -> None:
    remember(engine, alice.owner, "automobile", "lake")
    for method, statements in (("keyword", 2), ("hybrid", 3), ("vector", 3)):
        with django_assert_num_queries(statements):
            assert len(result(engine, alice.owner, f"car lake {method}", method=method).hits) >= 1
        with django_assert_num_queries(2):
            assert len(result(engine, alice.owner, f"car lake {method}", method=method).hits) >= 1
    with django_assert_num_queries(3):
        found = engine.search(alice.owner, [SearchRequest(query, "vector", 1) for query in ("car", "lake")])
    assert [texts(list(one.hits)) for one in found] == [["automobile"], ["lake"]]


def test_a_question_by_vector_looks_up_no_words(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "automobile", "lake")
    with CaptureQueriesContext(connection) as queries:
        assert result(engine, alice.owner, "car", method="vector").hits
    assert not any("engine_keyword" in query["sql"] for query in queries)


def test_pages_find_what_comparing_every_vector_finds(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    words = [f"word{number}" for number in range(60)]
    random = np.random.default_rng(7)
    said_texts = [" ".join(random.choice(words, 8)) for _ in range(700)]
    for start in range(0, 700, 100):
        remember(engine, alice.owner, *said_texts[start : start + 100], session=f"chat:{start}")
    while fill.fill(5):
        pass
    assert VectorPage.objects.count() == 3
    unit = np.stack([stub.vector(text) for text in said_texts])
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    found = 0
    for _ in range(30):
        query = " ".join(random.choice(words, 3))
        exact = {said_texts[place] for place in np.argsort(-(unit @ stub.vector(query)))[:10]}
        found += len(exact & set(texts(list(result(engine, alice.owner, query, method="vector").hits))))
    assert found >= 0.99 * 300


def test_what_is_clearly_farther_than_the_last_hit_is_not_compared_again(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile", "physician", *(f"car and word{number}" for number in range(20)))
    with CaptureQueriesContext(connection) as queries:
        assert texts(list(result(engine, alice.owner, "vehicle", method="vector", top_k=1).hits)) == ["automobile"]
    [exact] = [query["sql"] for query in queries if "store_embedding e" in query["sql"]]
    assert exact.partition("m.id IN ")[2].count(",") == 0


class Given(EmbeddingClient):
    """Vectors that a test names, without a network."""

    def __init__(self, of: dict[str, list[float]]) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self._of = of

    def embed(self, model: Model, texts: Sequence[str], seconds: float = 0) -> Vectors:
        return np.array([self._of[text] for text in texts], np.float32)


def test_the_exact_vector_says_what_is_near_at_all(engine: EmbeddedEngine, alice: Person, settings: Any) -> None:
    remember(engine, alice.owner, "hardly near", "hardly away", "away")
    settings.MEMORY_GATEWAY_EMBEDDING_BASE_URL = "http://127.0.0.1:9"
    settings.MEMORY_GATEWAY_EMBEDDING_MODEL = "given"
    space = EmbeddingSpace.objects.create(model="given", dimensions=2, is_active=True, knows_other_scripts=False)
    given = Given({"hardly near": [0.003, 1.0], "hardly away": [-0.003, 1.0], "away": [-0.1, 0.995]})
    fill.write(space, list(Memory.objects.select_related("user")), given, 0)
    client().keep(spaces.model_of(space), "question", np.array([1.0, 0.0], np.float32))
    [hit] = result(engine, alice.owner, "question", method="vector").hits
    assert (hit.text, hit.score) == ("hardly near", pytest.approx(0.003, abs=1e-5))


def test_of_many_alike_the_latest_come_and_few_are_compared_again(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, *["the same words"] * 40)
    with CaptureQueriesContext(connection) as queries:
        found = result(engine, alice.owner, "the same words", method="vector", top_k=5).hits
    assert [hit.created_at_ms for hit in found] == [NOON_MS + 60_000 * number for number in range(39, 34, -1)]
    of_rows = queries[-1]["sql"]
    assert "e.vector" in of_rows
    assert len(of_rows.partition("m.id IN (")[2].split(",")) == pages.RESCORED


def test_unprocessed_messages_take_no_place_of_memories_that_are_farther(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "a car and many other tall things", "a lake", session="chat:a")
    engine.add(alice.owner, "chat:b", [said("automobile"), said("car", at=NOON_MS + 1)])
    fill.fill(5)
    hits = result(engine, alice.owner, "vehicle", method="vector", top_k=1).hits
    assert texts(list(hits)) == ["car", "a car and many other tall things"]
    assert [hit.memory_type for hit in hits] == ["unprocessed_message", "episode"]


def test_a_search_gives_its_turn_away_for_a_new_question_alone(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile")
    with turns.searching.taken():
        taken = [turns.searching._acquired_at]
        for _ in range(2):
            assert result(engine, alice.owner, "car", method="vector").hits
            taken.append(turns.searching._acquired_at)
    assert taken[0] < taken[1] == taken[2]


@pytest.mark.parametrize("method", ["hybrid", "vector"])
def test_a_known_question_is_answered_from_the_vectors_that_another_process_put_in_use(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, method: str
) -> None:
    remember(engine, alice.owner, "automobile", "physician")
    assert result(engine, alice.owner, "car", method=method).hits[0].text == "automobile"
    old = EmbeddingSpace.objects.get()
    # As another process does it: nothing in this one hears of it. The new model takes cars for physicians.
    new = EmbeddingSpace.objects.create(model="other", dimensions=old.dimensions, knows_other_scripts=False)
    memory = Memory.objects.get(text="physician")
    vector = stub.vector("vehicle") / np.linalg.norm(stub.vector("vehicle"))
    Embedding.objects.create(memory=memory, space=new, digest=b"", vector=vector.astype(pages.HALF).tobytes())
    pages.add(alice.owner, new.pk, [memory.pk], vector[None].astype(np.float32))
    EmbeddingSpace.objects.filter(pk=old.pk).update(is_active=False)
    EmbeddingSpace.objects.filter(pk=new.pk).update(is_active=True)
    assert texts(list(result(engine, alice.owner, "car", method=method).hits)) == ["physician"]
    assert stub.bodies[-1]["model"] == "other"
    new.delete()
    assert result(engine, alice.owner, "car", method=method).hits == ()
    EmbeddingSpace.objects.filter(pk=old.pk).update(is_active=True)
    assert result(engine, alice.owner, "car", method=method).hits[0].text == "automobile"


def test_a_known_question_is_not_answered_from_vectors_of_a_script_that_they_do_not_know(
    engine: EmbeddedEngine, alice: Person, multilingual: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好")
    assert result(engine, alice.owner, "轿车", method="vector").method == "vector"
    EmbeddingSpace.objects.update(knows_other_scripts=False)
    assert result(engine, alice.owner, "轿车", method="vector").method == "keyword"
    EmbeddingSpace.objects.update(knows_other_scripts=True)
    assert result(engine, alice.owner, "轿车", method="vector").method == "vector"


CALLS: dict[str, Callable[[EmbeddedEngine, Person], Any]] = {
    "fill": lambda _engine, _person: fill.fill(5),
    "delete": lambda engine, person: engine.delete(person.owner, "chat:b"),
    "add": lambda engine, person: engine.add(person.owner, "chat:c", [said("new automobile")]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_crash_between_any_two_statements_loses_no_vector(
    engine: EmbeddedEngine, stub: StubEmbeddings, transactional_db: None, name: str
) -> None:
    person = make_person("alice")
    remember(engine, person.owner, "automobile", "lake", session="chat:a")
    remember(engine, person.owner, "vehicle", "tree", session="chat:b")
    engine.add(person.owner, "chat:open", [said("one"), said("two", at=NOON_MS + 1)])
    for statements in range(1, 60):
        try:
            with broken_after(statements, Crash):
                CALLS[name](engine, person)
            break
        except Crash:
            connection.close()
            pks = Memory.objects.values_list("pk", flat=True)
            owed = set(OwedEmbedding.objects.values_list("pk", flat=True))
            assert set(paged(person.owner)) | owed == set(pks)
            assert set(paged(person.owner)) & owed == set()
    else:
        pytest.fail("the call never ended")
    assert statements > 3
    fill.fill(5)
    assert_all_told(person.owner)


def test_a_locked_database_leaves_vectors_owed(
    engine: EmbeddedEngine, stub: StubEmbeddings, impatient: None, lock: Lock
) -> None:
    person = make_person("alice")
    remember(engine, person.owner, "automobile")
    engine.add(person.owner, "chat:open", [said("vehicle")])
    with lock(), pytest.raises(OperationalError):
        fill.fill(5)
    assert OwedEmbedding.objects.count() == 1
    assert fill.fill(5) == 1
    assert_all_told(person.owner)


def test_an_index_built_anew_keeps_the_vectors(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:

    remember(engine, alice.owner, "The automobile is red", "A quiet lake", "car keys")
    before = result(engine, alice.owner, "car").hits
    asked = len(stub.bodies)
    rebuild.empty()
    list(rebuild.fill())
    assert result(engine, alice.owner, "car").hits == before
    assert_all_told(alice.owner)
    assert len(stub.bodies) == asked
    assert IndexVersion.objects.count() == 1
