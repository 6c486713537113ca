"""Search with an embedding endpoint: what it finds, what it costs, and what happens when the endpoint fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from core.errors import EngineUnavailable
from core.limits.concurrency import search_lock
from core.network.model_endpoint import ModelAddress, Pause
from engines.embedded.engine import EmbeddedEngine
from store import derived
from store.models import Embedding, EmbeddingSpace, Memory, PendingEmbedding, VectorPage, owned_by
from store.types import Owner, SearchRequest, SearchResult, Wording
from store.vectors import fill, spaces, vector_pages
from store.vectors.client import EmbeddingClient, Model, Vectors, client
from tests.conftest import Person, make_person
from tests.server import wait_until
from tests.store.conftest import NOON_MS, remember, search, text_message, texts
from tests.store.test_failures import Crash, Lock, failing_at_statement, lock, short_lock_timeout
from tests.stub_embeddings import FAILURES, StubEmbeddings, running_embeddings
from tests.stub_http import cases

__all__ = ["lock", "short_lock_timeout"]


def use_endpoint(settings: Any, stub: StubEmbeddings, dimensions: int = 0) -> None:
    settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress(stub.url, "stub", dimensions=dimensions)}


@pytest.fixture
def stub(settings: Any) -> Iterator[StubEmbeddings]:
    """An endpoint whose model knows only English."""
    with running_embeddings() as running:
        use_endpoint(settings, running)
        yield running


@pytest.fixture
def multilingual(settings: Any) -> Iterator[StubEmbeddings]:
    with running_embeddings(knows_chinese=True) as running:
        use_endpoint(settings, running)
        yield running


def search_result(engine: EmbeddedEngine, owner: Owner, query: str, **request: Any) -> SearchResult:
    [found] = engine.search(owner, [SearchRequest(query, **{"method": "hybrid", "top_k": 10} | request)])
    return found


def rows_in_pages(owner: Owner) -> dict[int, int]:
    """Return how often each row id appears in the owner's vector pages."""
    counts: dict[int, int] = {}
    for page in VectorPage.objects.filter(owned_by(owner)):
        rows = np.frombuffer(page.rows, vector_pages.ROWS)
        assert 0 < len(rows) <= 256
        assert len(page.codes) == len(rows) * page.space.dimensions
        for pk in rows["pk"].tolist():
            counts[pk] = counts.get(pk, 0) + 1
    return counts


def assert_all_embedded(owner: Owner) -> None:
    """Assert that every indexed memory has one vector in the pages and nothing is pending."""
    pks = Memory.objects.filter(owned_by(owner), is_indexed=True).values_list("pk", flat=True)
    assert rows_in_pages(owner) == dict.fromkeys(pks, 1)
    assert not PendingEmbedding.objects.exists()


def test_queries_and_texts_are_sent_with_the_prefixes_of_the_model(
    settings: Any, engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    prefixes = {"query_prefix": "query: ", "text_prefix": "passage: "}
    settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress(stub.url, "stub", **prefixes)}
    remember(engine, alice.owner, "We cook soup.")
    search_result(engine, alice.owner, "dinner")
    sent = [text for texts in stub.asked for text in texts]
    assert "passage: We cook soup." in sent
    assert sent[-1] == "query: dinner"
    assert {body["model"] for body in stub.bodies} == {"stub"}
    use_endpoint(settings, stub)
    assert engine.health(1.0).data["embeddings"]["status"] == "reembed_needed"
    search_result(engine, alice.owner, "supper")  # in the space that is there
    assert stub.asked[-1] == ["query: supper"]


def test_a_memory_is_found_by_meaning_without_a_shared_word(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The shoemaker is old", "A quiet lake", "Nothing else matters")
    found = search_result(engine, alice.owner, "cobbler")
    assert (found.method, found.degraded) == ("hybrid", None)
    assert found.hits[0].text == "The shoemaker is old"
    assert "keyword" not in found.hits[0].legs
    assert found.hits[0].legs["vector"]["rank"] == 1
    assert texts(search(engine, alice.owner, "cobbler")) == []


def test_hybrid_hits_carry_both_legs(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "The automobile is red", "car keys", "Nothing else matters")
    first = search_result(engine, alice.owner, "car").hits[0]
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
    hits = search_result(engine, alice.owner, "vehicle", method="vector").hits
    assert {hit.text for hit in hits[:2]} == {"car", "automobile"}
    assert [round(hit.score or 0, 2) for hit in hits[:2]] == [1.0, 1.0]
    query_vector = stub.vector("vehicle")
    for hit in hits:
        vector = stub.vector(hit.text)
        exact = vector @ query_vector / np.linalg.norm(vector) / np.linalg.norm(query_vector)
        assert hit.score == pytest.approx(exact, abs=0.001)
    assert texts(list(search_result(engine, alice.owner, "vehicle", method="vector", radius=0.9).hits)) == texts(
        list(hits[:2])
    )


def test_the_radius_does_not_drop_keyword_matches(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "the red car stands beside many other tall things", "automobile", "lake")
    found = search_result(engine, alice.owner, "car", radius=0.95).hits
    assert {hit.text for hit in found} == {"the red car stands beside many other tall things", "automobile"}


def test_a_call_embeds_ten_texts_at_most(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, *[f"text number {number}" for number in range(37)])
    assert max(map(len, stub.asked)) == 10
    assert len(stub.texts) == 37
    assert_all_embedded(alice.owner)


def test_equal_texts_are_embedded_once(
    engine: EmbeddedEngine, alice: Person, bob: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "same words", "same words", "others")
    remember(engine, bob.owner, "same words")
    assert sorted(stub.texts) == ["others", "same words"]
    assert_all_embedded(bob.owner)
    search_result(engine, alice.owner, "a question")
    search_result(engine, alice.owner, "a question")
    assert stub.texts.count("a question") == 1


def test_dimensions_are_sent_only_if_configured(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    remember(engine, alice.owner, "one")
    assert "dimensions" not in stub.bodies[-1]
    EmbeddingSpace.objects.all().delete()
    use_endpoint(settings, stub, dimensions=64)
    remember(engine, alice.owner, "two", session="chat:c2")
    assert stub.bodies[-1]["dimensions"] == 64
    assert stub.bodies[-1]["model"] == "stub"


def test_a_model_of_english_never_ranks_chinese(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好", "The automobile is red")
    assert stub.texts == ["The automobile is red"]
    found = search_result(engine, alice.owner, "汽车")
    assert texts(list(found.hits)) == ["我买了一辆汽车"]
    assert found.method == "keyword"
    assert "script" in (found.degraded or "")
    assert search_result(engine, alice.owner, "汽车", method="vector").method == "keyword"
    assert stub.texts == ["The automobile is red"]
    assert all("vector" not in hit.legs or hit.text.isascii() for hit in search_result(engine, alice.owner, "red").hits)
    assert not PendingEmbedding.objects.exists()


def test_a_model_that_knows_chinese_ranks_it(
    engine: EmbeddedEngine, alice: Person, multilingual: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好")
    found = search_result(engine, alice.owner, "轿车", method="vector")
    assert (found.method, found.hits[0].text) == ("vector", "我买了一辆汽车")


def test_another_user_and_another_project_find_nothing(
    engine: EmbeddedEngine, alice: Person, charlie: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The automobile is red")
    for owner in (charlie.owner, Owner(alice.user_pk, "alice", "default", "other")):
        for method in ("hybrid", "vector"):
            assert search_result(engine, owner, "car", method=method).hits == ()


def test_only_the_requested_sessions_and_times_are_searched(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile a", session="chat:a")
    remember(engine, alice.owner, "automobile b", session="chat:b")
    for method in ("hybrid", "vector"):
        found = search_result(engine, alice.owner, "car", method=method, session_ids=("chat:b",))
        assert texts(list(found.hits)) == ["automobile b"]
        late = {"timestamp": {"lt": NOON_MS}}
        assert search_result(engine, alice.owner, "car", method=method, filters=late).hits == ()


def test_a_deleted_memory_leaves_no_vector(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "automobile one", "automobile two", session="chat:a")
    remember(engine, alice.owner, "automobile three", session="chat:b")
    engine.delete(alice.owner, "chat:a")
    assert texts(list(search_result(engine, alice.owner, "car").hits)) == ["automobile three"]
    assert Embedding.objects.count() == 1
    assert_all_embedded(alice.owner)


def test_an_overridden_memory_is_found_by_its_new_meaning(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "The automobile is red", "A quiet lake")
    memory = Memory.objects.get(text="The automobile is red")
    engine.replace(alice.owner, {memory.memory_id: Wording("The physician is in", "", None)})
    assert texts(list(search_result(engine, alice.owner, "car", method="vector", radius=0.3).hits)) == []
    assert fill.fill(5) == 1
    assert texts(list(search_result(engine, alice.owner, "doctor", method="vector", radius=0.3).hits)) == [
        "The physician is in"
    ]
    assert_all_embedded(alice.owner)


def test_memories_older_than_the_endpoint_get_vectors(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_MODELS = {}
    remember(engine, alice.owner, "automobile")
    assert not PendingEmbedding.objects.exists()
    use_endpoint(settings, stub)
    assert fill.fill(5) == 1
    assert_all_embedded(alice.owner)


def fill_all() -> None:
    """Embed all pending memories. A failed call that ends late may start another pause, so each round ends it."""
    until = time.monotonic() + 60
    while PendingEmbedding.objects.exists() and time.monotonic() < until:
        client().endpoint.pause.end()
        fill.fill(5)


@pytest.mark.slow
@pytest.mark.parametrize("failure", cases([*FAILURES, 400, "refused"]))
def test_a_failing_endpoint_loses_nothing(
    engine: EmbeddedEngine, alice: Person, settings: Any, failure: int | str
) -> None:
    with running_embeddings() as stub:
        use_endpoint(settings, stub, dimensions=64)
        stub.failure = failure
        if failure == "refused":
            refusing = ModelAddress("http://127.0.0.1:9/v1", "stub", dimensions=64)
            settings.MEMORY_GATEWAY_MODELS = {"embedding": refusing}
        remember(engine, alice.owner, "The automobile is red", "A quiet lake")
        assert PendingEmbedding.objects.count() == 2
        found = search_result(engine, alice.owner, "automobile")
        assert (found.method, texts(list(found.hits))) == ("keyword", ["The automobile is red"])
        assert "Searched by keyword only." in (found.degraded or "")
        with pytest.raises(EngineUnavailable) as refused:
            search_result(engine, alice.owner, "car", method="vector")
        assert (refused.value.retry_after_seconds or 0) > 0
        state = engine.health(2).data
        assert (state["status"], state["embeddings"]["status"], state["embeddings"]["pending"]) == (
            "degraded",
            "failing",
            2,
        )
        assert state["embeddings"]["error"].startswith("The embedding endpoint")

        use_endpoint(settings, stub, dimensions=64)
        stub.failure = None
        fill_all()
        assert_all_embedded(alice.owner)
        assert search_result(engine, alice.owner, "car").hits[0].text == "The automobile is red"
        assert engine.health(2).data["embeddings"] == {"status": "ok", "model": "stub", "dimensions": 64, "pending": 0}
        assert stub.paths <= {"/v1/embeddings"}


@pytest.mark.parametrize("failure", [500, 400])
def test_calls_to_a_failing_endpoint_are_paused(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, failure: int
) -> None:
    stub.failure = failure
    remember(engine, alice.owner, "one")
    time.sleep(0.2)  # concurrent calls of the same batch may still be running
    calls = len(stub.bodies)
    for number in range(5):
        search_result(engine, alice.owner, f"question {number}")
        fill.fill(5)
    assert len(stub.bodies) == calls


def test_an_outage_is_logged_once(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, caplog: pytest.LogCaptureFixture
) -> None:
    stub.failure = 500
    for number in range(5):
        remember(engine, alice.owner, "one", "two", session=f"chat:{number}")
        client().endpoint.pause._until = 0.0
    assert [record.getMessage() for record in caplog.records] == [
        "The embedding endpoint returned status 500. Calls are paused and retried with backoff."
    ]
    stub.failure = None

    def recovered() -> bool:
        client().endpoint.pause._until = 0.0  # a call of the outage may still end, and begin another pause
        fill.fill(5)
        return "The embedding endpoint is available again." in caplog.messages

    wait_until(recovered)


def test_an_old_failure_of_this_process_is_not_reported(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have computed the vectors since."""
    now = time.monotonic()
    monkeypatch.setattr(client().endpoint, "pause", Pause(clock=lambda: now))
    remember(engine, alice.owner, "one")
    stub.failure = 500
    search_result(engine, alice.owner, "question")
    assert engine.health(2).data["embeddings"]["status"] == "failing"
    now += 120
    assert engine.health(2).data["embeddings"]["status"] == "ok"


def test_two_processes_that_probe_a_model_concurrently_agree(alice: Person, stub: StubEmbeddings) -> None:
    """The slower one must not change the dimensions after the other stored vectors."""
    first = spaces.get_or_create(Model("stub", 0, False))
    second = EmbeddingSpace.objects.get(pk=first.pk)
    spaces.probe(first, client(), 5)
    stub.failure = "short"
    spaces.probe(second, client(), 5)
    assert (first.dimensions, second.dimensions) == (64, 64)
    assert EmbeddingSpace.objects.get().dimensions == 64


def test_a_rejected_text_does_not_block_the_others(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    stub.refused = "poison"
    remember(engine, alice.owner, *[f"automobile {number}" for number in range(12)], "poison automobile")
    assert not PendingEmbedding.objects.exists()
    assert len(rows_in_pages(alice.owner)) == 12
    assert "poison automobile" in texts(list(search_result(engine, alice.owner, "poison").hits))


def test_a_new_query_costs_one_statement_more_than_a_cached_one(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, django_assert_num_queries: Any
) -> None:
    remember(engine, alice.owner, "automobile", "lake")
    for method, statements in (("keyword", 2), ("hybrid", 3), ("vector", 3)):
        with django_assert_num_queries(statements):
            assert len(search_result(engine, alice.owner, f"car lake {method[:3]}", method=method).hits) >= 1
        with django_assert_num_queries(2):
            assert len(search_result(engine, alice.owner, f"car lake {method[:3]}", method=method).hits) >= 1
    with django_assert_num_queries(3):
        found = engine.search(alice.owner, [SearchRequest(query, "vector", 1) for query in ("car", "lake")])
    assert [texts(list(one.hits)) for one in found] == [["automobile"], ["lake"]]


def test_a_vector_search_does_not_read_the_keyword_index(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile", "lake")
    with CaptureQueriesContext(connection) as queries:
        assert search_result(engine, alice.owner, "car", method="vector").hits
    assert not any("store_keyword" in query["sql"] for query in queries)


@pytest.mark.slow
@pytest.mark.database
def test_vector_pages_find_almost_all_that_an_exact_scan_finds(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    words = [f"word{number}" for number in range(60)]
    rng = np.random.default_rng(7)
    turn_texts = [" ".join(rng.choice(words, 8)) for _ in range(700)]
    for start in range(0, 700, 100):
        remember(engine, alice.owner, *turn_texts[start : start + 100], session=f"chat:{start}")
    while fill.fill(5):
        pass
    assert VectorPage.objects.count() == 3
    unit = np.stack([stub.vector(text) for text in turn_texts])
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    correct = 0
    for _ in range(30):
        query = " ".join(rng.choice(words, 3))
        exact = {turn_texts[index] for index in np.argsort(-(unit @ stub.vector(query)))[:10]}
        correct += len(exact & set(texts(list(search_result(engine, alice.owner, query, method="vector").hits))))
    assert correct >= 0.99 * 300


def test_vectors_clearly_farther_than_the_last_hit_are_not_rescored(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile", "physician", *(f"car and word{number}" for number in range(20)))
    with CaptureQueriesContext(connection) as queries:
        assert texts(list(search_result(engine, alice.owner, "vehicle", method="vector", top_k=1).hits)) == [
            "automobile"
        ]
    [exact] = [query["sql"] for query in queries if "store_embedding e" in query["sql"]]
    assert exact.partition("m.id IN ")[2].count(",") == 0


class FixedEmbeddings(EmbeddingClient):
    """A client that returns given vectors without a network."""

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__("http://127.0.0.1:9", "")
        self._of = vectors

    def embed(self, model: Model, texts: Sequence[str], seconds: float = 0) -> Vectors:
        return np.array([self._of[text] for text in texts], np.float32)


def test_the_exact_vector_decides_whether_a_memory_is_near(
    engine: EmbeddedEngine, alice: Person, settings: Any
) -> None:
    remember(engine, alice.owner, "hardly near", "hardly away", "away")
    settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress("http://127.0.0.1:9", "given")}
    space = EmbeddingSpace.objects.create(model="given", dimensions=2, is_active=True, knows_other_scripts=False)
    embeddings = FixedEmbeddings({"hardly near": [0.003, 1.0], "hardly away": [-0.003, 1.0], "away": [-0.1, 0.995]})
    fill.write(space, list(Memory.objects.select_related("user")), embeddings, 0)
    client().cache_query(spaces.model_of(space), "question", np.array([1.0, 0.0], np.float32))
    [hit] = search_result(engine, alice.owner, "question", method="vector").hits
    assert (hit.text, hit.score) == ("hardly near", pytest.approx(0.003, abs=1e-5))


def test_of_many_equal_memories_the_latest_are_found_and_few_are_rescored(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, *["the same words"] * 40)
    with CaptureQueriesContext(connection) as queries:
        found = search_result(engine, alice.owner, "the same words", method="vector", top_k=5).hits
    assert [hit.created_at_ms for hit in found] == [NOON_MS + 60_000 * number for number in range(39, 34, -1)]
    statement = queries[-1]["sql"]
    assert "e.vector" in statement
    assert len(statement.partition("m.id IN (")[2].split(",")) == vector_pages.RESCORED


def test_unprocessed_messages_do_not_count_toward_top_k(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "a car and many other tall things", "a lake", session="chat:a")
    engine.add(alice.owner, "chat:b", [text_message("automobile"), text_message("car", at=NOON_MS + 1)])
    fill.fill(5)
    hits = search_result(engine, alice.owner, "vehicle", method="vector", top_k=1).hits
    assert texts(list(hits)) == ["car", "a car and many other tall things"]
    assert [hit.memory_type for hit in hits] == ["unprocessed_message", "episode"]


def test_a_search_releases_its_lock_only_to_embed_a_new_query(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "automobile")
    with search_lock.held():
        acquired_at = [search_lock._acquired_at]
        for _ in range(2):
            assert search_result(engine, alice.owner, "car", method="vector").hits
            acquired_at.append(search_lock._acquired_at)
    assert acquired_at[0] < acquired_at[1] == acquired_at[2]


@pytest.mark.parametrize("method", ["hybrid", "vector"])
def test_a_cached_query_is_searched_in_the_space_that_another_process_activated(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, method: str
) -> None:
    remember(engine, alice.owner, "shoemaker", "physician")
    assert search_result(engine, alice.owner, "cobbler", method=method).hits[0].text == "shoemaker"
    old = EmbeddingSpace.objects.get()
    # As another process does it, without a signal in this one. The new model takes cobblers for physicians.
    new = EmbeddingSpace.objects.create(model="other", dimensions=old.dimensions, knows_other_scripts=False)
    memory = Memory.objects.get(text="physician")
    vector = stub.vector("shoemaker") / np.linalg.norm(stub.vector("shoemaker"))
    Embedding.objects.create(memory=memory, space=new, digest=b"", vector=vector.astype(vector_pages.HALF).tobytes())
    vector_pages.add(alice.owner, new.pk, [memory.pk], vector[None].astype(np.float32))
    EmbeddingSpace.objects.filter(pk=old.pk).update(is_active=False)
    EmbeddingSpace.objects.filter(pk=new.pk).update(is_active=True)
    assert texts(list(search_result(engine, alice.owner, "cobbler", method=method).hits)) == ["physician"]
    assert stub.bodies[-1]["model"] == "other"
    new.delete()
    assert search_result(engine, alice.owner, "cobbler", method=method).hits == ()
    EmbeddingSpace.objects.filter(pk=old.pk).update(is_active=True)
    assert search_result(engine, alice.owner, "cobbler", method=method).hits[0].text == "shoemaker"


def test_a_cached_query_is_not_searched_in_a_space_that_does_not_know_its_script(
    engine: EmbeddedEngine, alice: Person, multilingual: StubEmbeddings
) -> None:
    remember(engine, alice.owner, "我买了一辆汽车", "今天天气很好")
    assert search_result(engine, alice.owner, "轿车", method="vector").method == "vector"
    EmbeddingSpace.objects.update(knows_other_scripts=False)
    assert search_result(engine, alice.owner, "轿车", method="vector").method == "keyword"
    EmbeddingSpace.objects.update(knows_other_scripts=True)
    assert search_result(engine, alice.owner, "轿车", method="vector").method == "vector"


CALLS: dict[str, Callable[[EmbeddedEngine, Person], Any]] = {
    "fill": lambda _engine, _person: fill.fill(5),
    "delete": lambda engine, person: engine.delete(person.owner, "chat:b"),
    "add": lambda engine, person: engine.add(person.owner, "chat:c", [text_message("new automobile")]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_crash_between_any_two_statements_loses_no_vector(
    engine: EmbeddedEngine, stub: StubEmbeddings, transactional_db: None, name: str
) -> None:
    person = make_person("alice")
    remember(engine, person.owner, "automobile", "lake", session="chat:a")
    remember(engine, person.owner, "vehicle", "tree", session="chat:b")
    engine.add(person.owner, "chat:open", [text_message("one"), text_message("two", at=NOON_MS + 1)])
    for statements in range(1, 60):
        try:
            with failing_at_statement(statements, Crash):
                CALLS[name](engine, person)
            break
        except Crash:
            connection.close()
            pks = Memory.objects.values_list("pk", flat=True)
            pending = set(PendingEmbedding.objects.values_list("pk", flat=True))
            assert set(rows_in_pages(person.owner)) | pending == set(pks)
            assert set(rows_in_pages(person.owner)) & pending == set()
    else:
        pytest.fail("the call never ended")
    assert statements > 3
    fill.fill(5)
    assert_all_embedded(person.owner)


def test_a_locked_database_leaves_vectors_pending(
    engine: EmbeddedEngine, stub: StubEmbeddings, short_lock_timeout: None, lock: Lock
) -> None:
    person = make_person("alice")
    remember(engine, person.owner, "automobile")
    engine.add(person.owner, "chat:open", [text_message("vehicle")])
    with lock(), pytest.raises(OperationalError):
        fill.fill(5)
    assert PendingEmbedding.objects.count() == 1
    assert fill.fill(5) == 1
    assert_all_embedded(person.owner)


def test_rebuilding_the_index_keeps_the_vectors(engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings) -> None:
    remember(engine, alice.owner, "The automobile is red", "A quiet lake", "car keys")
    before = search_result(engine, alice.owner, "car").hits
    calls = len(stub.bodies)
    derived.empty_keywords()
    list(derived.fill())
    assert search_result(engine, alice.owner, "car").hits == before
    assert_all_embedded(alice.owner)
    assert len(stub.bodies) == calls
