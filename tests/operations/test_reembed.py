"""`manage.py reembed`, and the task that computes pending vectors."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.background.tasks import Round
from core.network.model_endpoint import ModelAddress
from engines import tasks
from engines.embedded.engine import EmbeddedEngine
from store.models import Embedding, EmbeddingSpace, PendingEmbedding, VectorPage
from store.types import Hit, Owner, SearchRequest
from store.vectors import reembed
from store.vectors.client import client, wanted_model
from tests.conftest import Person
from tests.server import running_server
from tests.store.conftest import remember
from tests.stub_embeddings import StubEmbeddings, running_embeddings


def use_model(settings: Any, stub: StubEmbeddings, name: str) -> None:
    settings.MEMORY_GATEWAY_MODELS = {"embedding": ModelAddress(stub.url, name)}


@pytest.fixture
def stub(settings: Any) -> Iterator[StubEmbeddings]:
    with running_embeddings() as running:
        use_model(settings, running, "old")
        yield running


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def run(**options: Any) -> str:
    out = io.StringIO()
    call_command("reembed", stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def search_vectors(engine: EmbeddedEngine, owner: Owner) -> list[Hit]:
    return list(engine.search(owner, [SearchRequest("car", "vector", radius=0.5)])[0].hits)


def add_memories(engine: EmbeddedEngine, person: Person) -> None:
    remember(engine, person.owner, *[f"tree {number}" for number in range(250)], "The automobile", "天气很好")
    tasks.embed.call(Round())
    assert not PendingEmbedding.objects.exists()


def end_pause() -> None:
    """End the pause of calls, after concurrent failed calls have ended, which would start it again."""
    time.sleep(0.5)
    client().endpoint.pause.end()


def test_the_plan_shows_the_cost_and_changes_nothing(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    add_memories(engine, alice)
    use_model(settings, stub, "new")
    calls = len(stub.bodies)
    planned = json.loads(run(plan=True, price=2.0, json=True))
    assert planned["current"] == "old (64)"
    assert (planned["memories"], planned["lacking"], planned["calls"]) == (252, 252, 26)
    assert planned["characters"] < 4 * planned["tokens"]
    assert planned["cost"] == pytest.approx(planned["tokens"] * 2 / 1_000_000)
    assert len(stub.bodies) == calls


def test_old_vectors_are_searched_until_the_switch(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    add_memories(engine, alice)
    use_model(settings, stub, "new")
    new_model = wanted_model()
    assert new_model is not None
    steps = reembed.run(new_model, client())
    assert next(steps) == 100
    assert engine.health(2).data["embeddings"]["status"] == "reembed_needed"
    assert [hit.text for hit in search_vectors(engine, alice.owner)] == ["The automobile"]
    assert stub.bodies[-1]["model"] == "old"
    remember(engine, alice.owner, "A vehicle", session="chat:meanwhile")
    assert {hit.text for hit in search_vectors(engine, alice.owner)} == {"The automobile", "A vehicle"}
    steps.close()

    calls = len(stub.texts)
    assert "153 memories" in run()
    assert len(stub.texts) - calls == 152, "vectors from before the stop are reused, and Chinese texts are not embedded"
    assert {hit.text for hit in search_vectors(engine, alice.owner)} == {"The automobile", "A vehicle"}
    assert stub.bodies[-1]["model"] == "new"
    [space] = EmbeddingSpace.objects.all()
    assert (space.model, space.is_active) == ("new", True)
    assert Embedding.objects.count() == 253
    assert VectorPage.objects.count() == 1
    assert engine.health(2).data["embeddings"]["status"] == "ok"


def test_a_failing_endpoint_stops_the_command_and_keeps_the_old_vectors(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings, settings: Any
) -> None:
    add_memories(engine, alice)
    use_model(settings, stub, "new")
    stub.failure = 500
    with pytest.raises(CommandError, match="status 500"):
        run()
    stub.failure = None
    end_pause()
    assert [hit.text for hit in search_vectors(engine, alice.owner)] == ["The automobile"]


def test_without_an_endpoint_the_error_names_the_setting(db: None) -> None:
    with pytest.raises(CommandError, match="MEMORY_GATEWAY_MODELS"):
        run()


def test_a_batch_that_another_process_has_is_left_to_it(
    engine: EmbeddedEngine, alice: Person, stub: StubEmbeddings
) -> None:
    stub.failure = 500
    remember(engine, alice.owner, "automobile", "lake")
    stub.failure = None
    end_pause()
    soon = timezone.now() + timedelta(seconds=30)
    PendingEmbedding.objects.update(lease_holder="elsewhere:1:x", leased_until=soon)
    assert tasks.embed.call(Round()) == 0
    PendingEmbedding.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert tasks.embed.call(Round()) == 2
    assert Embedding.objects.count() == 2


@pytest.mark.slow
def test_a_running_gateway_computes_vectors_in_the_background(tmp_path: Path) -> None:
    """Messages added during an outage of the endpoint are found by meaning soon after it ends."""
    with running_embeddings() as stub:
        stub.failure = 500
        settings = {"MEMORY_GATEWAY_MODELS": f"embedding={stub.url}#stub"}
        with running_server(tmp_path, **settings) as server:
            key = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=10).json()["user_key"]
            call = {"user_id": "alice", "user_key": key}
            message = {"sender_id": "alice", "role": "user", "timestamp": 1_780_000_000_000, "content": "automobile"}
            body = {**call, "session_id": "chat:c1", "messages": [message]}
            assert requests.post(f"{server.url}/memories/add", json=body, timeout=10).status_code == 200
            flush = {**call, "session_id": "chat:c1"}
            assert requests.post(f"{server.url}/memories/flush", json=flush, timeout=20).status_code == 200
            for _ in range(50):  # /health is cached for a second
                health = requests.get(f"{server.url}/health", timeout=10).json()["backend"]["data"]["embeddings"]
                if health["status"] == "failing":
                    break
                time.sleep(0.1)
            assert health["status"] == "failing"
            stub.failure = None
            search = {**call, "query": "car", "scope": ["all_user_memory"], "method": "vector"}
            for _ in range(100):
                answer = requests.post(f"{server.url}/memories/search", json=search, timeout=20)
                if answer.status_code == 200 and answer.json()["results"]:
                    break
                assert answer.status_code in {200, 503}
                time.sleep(0.2)
            [hit] = answer.json()["results"]
            assert (hit["text"], answer.json()["meta"]["method"]) == ("automobile", "vector")
