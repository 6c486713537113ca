"""Searches while EverOS is slow, away or broken: the gateway answers alone, in time, and says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from memories.services.scoped_hits import SearchCommand
from memories.services.search import find_hidden_hits
from store import writes
from store.models import Memory, Session
from store.vectors import fill
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, say
from tests.store.test_vectors import stub as embeddings
from tests.stub_embeddings import StubEmbeddings
from tests.stub_upstream import Fault, StubUpstream

__all__ = ["embeddings"]

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 0.5
SLACK_SECONDS = 0.3
FAULTS = {
    "500": Fault(status=500, body={"error": {"code": "INTERNAL_ERROR"}}),
    "401": Fault(status=401, body={}),
    "422": Fault(status=422, body={"error": {"code": "INVALID_INPUT"}}),
    "503": Fault(status=503, body={}),
    "html": Fault(body=b"<html>", content_type="text/html"),
    "hang after accept": Fault(hang_seconds=4),
    "dripping": Fault(drip_seconds=0.05),
    "half an answer": Fault(truncate=True),
    "reset": Fault(reset=True),
}
METHODS = ("keyword", "hybrid", "vector", "agentic")


@pytest.fixture
def everos(alice: Person, bob: Person, settings: Any, storage: Path) -> Iterator[StubUpstream]:
    """An attached EverOS that has memories of two chats of Alice's, and one of Bob's."""
    settings.MEMORY_GATEWAY_BACKEND_SEARCH_SECONDS = SECONDS
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        say(alice, "chat:c1", "The bicycle is crimson")
        say(alice, "chat:c2", "The bicycle is old")
        say(bob, "chat:b", "The bicycle of Bob")
        search(alice)  # loads what the first search of a process loads
        yield stub


def search(person: Person, query: str = "bicycle", **fields: Any) -> dict[str, Any]:
    body = {"query": query, "scope": ["all_user_memory"], **fields}
    response = person.client.post("/memories/search", body, content_type="application/json")
    assert response.status_code == 200, response.content
    return dict(response.json())


def found(answer: dict[str, Any]) -> set[str]:
    return {hit["text"] for hit in answer["results"]}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_every_method_is_answered_in_time(everos: StubUpstream, alice: Person, fault: Fault) -> None:
    everos.fault("search", fault, times=1000)
    is_slow = fault.hang_seconds or fault.drip_seconds
    for method in METHODS[:3] if is_slow else METHODS:  # `agentic` may take 30 seconds
        started = time.monotonic()
        answer = search(alice, method=method, top_k=5)
        assert time.monotonic() - started < SECONDS + SLACK_SECONDS
        assert found(answer) == {"alice said: The bicycle is crimson", "alice said: The bicycle is old"}
        assert answer["meta"]["method"] == "keyword"
        assert "searched without it" in answer["meta"]["scopes"]["all_user_memory"]["degraded"]


def test_once_the_breaker_opened_everos_is_not_asked(everos: StubUpstream, alice: Person) -> None:
    everos.fault("search", Fault(hang_seconds=4), times=1000)
    for _ in range(5):
        search(alice)
    asked, started = len(everos.calls("search")), time.monotonic()
    for _ in range(3):
        assert len(search(alice)["results"]) == 2
    assert time.monotonic() - started < SECONDS
    assert len(everos.calls("search")) == asked


def test_everos_is_asked_once_per_search(everos: StubUpstream, alice: Person) -> None:
    everos.fault("search", Fault(status=500, body={}), times=1)
    before = len(everos.calls("search"))
    search(alice)
    assert len(everos.calls("search")) == before + 1
    assert search(alice)["meta"]["scopes"]["all_user_memory"]["degraded"] is None


def test_requests_for_more_hits_share_the_deadline(everos: StubUpstream, alice: Person) -> None:
    """EverOS answers the first request and hangs at the second, which replaces a deleted hit."""
    call(alice, "delete", f"/memories/{id_of('alice said: The bicycle is old')}")
    everos.latency_seconds = 0.3
    everos.fault("search", Fault())
    everos.fault("search", Fault(hang_seconds=4), times=1000)
    started = time.monotonic()
    answer = search(alice, top_k=2)
    assert time.monotonic() - started < SECONDS + SLACK_SECONDS
    assert found(answer) == {"alice said: The bicycle is crimson"}


def test_a_repetition_by_keyword_has_the_rest_of_the_deadline(everos: StubUpstream, alice: Person) -> None:
    """EverOS takes more than half of the time to say that it has no embedding model."""
    lacks_model = {"error": {"code": "PROVIDER_NOT_CONFIGURED"}}
    everos.fault("search", Fault(status=422, body=lacks_model, hang_seconds=0.6 * SECONDS))
    degraded = search(alice)["meta"]["scopes"]["all_user_memory"]["degraded"]
    assert "no embedding model" in degraded
    assert "without it" not in degraded


def test_vectors_of_our_own_are_used(
    everos: StubUpstream, alice: Person, embeddings: StubEmbeddings, settings: Any
) -> None:
    say(alice, "chat:c3", "The shoemaker is kind")
    fill.fill(10.0)
    everos.fault("search", Fault(status=500, body={}), times=1000)
    for method, used in (("vector", "vector"), ("hybrid", "hybrid"), ("agentic", "hybrid"), ("keyword", "keyword")):
        answer = search(alice, "cobbler", method=method, min_relevance=0)
        assert answer["meta"]["method"] == used
        assert ("alice said: The shoemaker is kind" in found(answer)) == (used != "keyword")
    embeddings.failure = 500
    answer = search(alice, "shoemaker bicycle", method="vector")
    assert (answer["meta"]["method"], len(answer["results"])) == ("keyword", 3)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"scope": ["current_chat"], "conversation_id": "c1"}, {"crimson"}),
        ({"filters": {"session_id": "chat:c2"}}, {"old"}),
        ({"filters": {"sender_id": "alice"}}, {"crimson", "old"}),
        ({"filters": {"timestamp": {"gt": NOON_MS + 1000}}}, set()),
        ({"filters": {"type": "Conversation"}}, {"crimson", "old"}),
        ({"agent_id": "main"}, set()),
    ],
)
def test_scopes_filters_and_agents_hold(
    everos: StubUpstream, alice: Person, fields: dict[str, Any], expected: set[str]
) -> None:
    everos.fault("search", Fault(status=500, body={}), times=1000)
    answer = search(alice, **fields)
    assert {text.rpartition(" ")[2] for text in found(answer)} == expected


def test_other_users_memories_are_not_found(everos: StubUpstream, alice: Person, bob: Person) -> None:
    everos.fault("search", Fault(status=500, body={}), times=1000)
    assert found(search(bob)) == {"bob said: The bicycle of Bob"}


def test_decisions_hold(everos: StubUpstream, alice: Person) -> None:
    call(alice, "delete", f"/memories/{id_of('alice said: The bicycle is old')}")
    edited = id_of("alice said: The bicycle is crimson")
    call(alice, "patch", f"/memories/{edited}", override_text="The bicycle is blue")
    everos.fault("search", Fault(status=500, body={}), times=1000)
    answer = search(alice, "bicycle old crimson")
    assert [(hit["id"], hit["text"]) for hit in answer["results"]] == [(edited, "The bicycle is blue")]
    hidden = find_hidden_hits(alice.owner, SearchCommand(query="bicycle", scopes=frozenset({"all_user_memory"})))
    assert {one.hit.text for one in hidden} == {"alice said: The bicycle is old", "The bicycle is old"}


def test_a_memory_that_the_gateway_hid_is_not_found(everos: StubUpstream, alice: Person) -> None:
    """No decision of the user names it, and EverOS still returns it."""
    hidden = Memory.objects.filter(text__endswith="old")
    hidden.update(state="trashed", state_since=timezone.now())
    assert found(search(alice)) == {"alice said: The bicycle is crimson"}


def test_a_hit_without_a_row_is_shown_if_its_session_is_the_callers(
    everos: StubUpstream, alice: Person, bob: Person
) -> None:
    everos.store.episodes += [
        {**one, "id": f"{one['id']}_new", "episode": "alice said: The bicycle is new"}
        for one in everos.store.episodes
        if one["session_id"] == "chat:c1"
    ]
    everos.store.episodes.append({**everos.store.episodes[-1], "id": "alice_ep_x", "session_id": "chat:foreign"})
    hits = search(alice)["results"]
    assert [hit["session_id"] for hit in hits if hit["text"].endswith("new")] == ["chat:c1"]


def test_local_memories_are_placed_among_ten_of_everos(everos: StubUpstream, alice: Person) -> None:
    session = Session.objects.get(session_id="chat:c1")
    for origin, text in (("panel", "a tandem bicycle of steel with bells"), ("tool", "steel")):
        memory = Memory(
            memory_id=origin, session=session, memory_type="episode", origin=origin, text=text, created_at_ms=NOON_MS
        )  # fmt: skip
        with transaction.atomic():
            writes.insert(alice.owner, [memory])
    [first] = [one for one in everos.store.episodes if one["session_id"] == "chat:c1"]
    for best in (0.95, 0.03):  # the scale of calibrated methods, and that of fused ranks
        scores = [best - best * place / 20 for place in range(10)]
        episodes = [{**first, "id": f"alice_ep_{place}", "score": score} for place, score in enumerate(scores)]
        everos.fault("search", Fault(body={"request_id": "x", "data": {"episodes": episodes}}))
        hits = search(alice, "tandem bicycle steel bells", top_k=20)["results"]
        assert [hit["id"] for hit in hits] == ["panel", *(one["id"] for one in episodes), "tool"]
        assert [hit["score"] for hit in hits[1:-1]] == scores
        assert hits[0]["score"] == (1 + best) / 2
        assert hits[-1]["score"] == best / 4
