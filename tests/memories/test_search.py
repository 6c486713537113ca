"""`POST /memories/search` over the embedded engine."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.api.schemas.search import DEFAULT_TOP_K
from tests.conftest import Person
from tests.memories.calls import CONTRACT, NOON_MS, say, search, texts, upload

# --- response --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_an_uploaded_text_is_found_as_documented(alice: Person, storage: Any) -> None:
    resource = upload(alice)
    first = search(alice, scope=["resources"])["results"][0]
    assert set(first) == {
        "id",
        "memory_type",
        "session_id",
        "text",
        "score",
        "relevance",
        "sender_id",
        "sender_name",
        "role",
        "category",
        "timestamp_ms",
        "created_at",
        "superseded_by",
        "copies",
        "source_scope",
        "resource_id",
        "resource_uri",
        "attachments",
        "place",
        "passage",
        "raw",
    }
    assert "thirty days" in first["text"]
    assert (first["memory_type"], first["source_scope"]) == ("episode", "resources")
    assert (first["session_id"], first["resource_id"]) == (resource["session_id"], resource["resource_id"])
    assert first["resource_uri"] == resource["uri"] == f"resource://alice/{resource['resource_id']}"
    assert isinstance(first["score"], float)
    assert (first["raw"]["id"], first["raw"]["session_id"]) == (first["id"], first["session_id"])
    (attachment,) = first["attachments"]
    assert (attachment["type"], attachment["name"]) == ("text", "contract.txt")
    assert attachment["internal_uri"].startswith("file://")


def test_a_memory_of_a_chat_has_no_resource(alice: Person) -> None:
    say(alice, "chat:c1", "I prefer payment by card")
    (result,) = search(alice, conversation_id="c1")["results"]
    assert (result["source_scope"], result["resource_id"], result["resource_uri"]) == ("current_chat", None, None)
    assert result["attachments"] == []


def hint(person: Person, **fields: Any) -> str | None:
    answer: str | None = search(person, **fields)["meta"].get("hint")
    return answer


@pytest.mark.parametrize(
    "scope", [["current_chat"], ["current_chat", "resources"], ["current_chat", "all_user_memory"]]
)
def test_a_hint_says_that_the_current_chat_needs_a_conversation(alice: Person, scope: list[str]) -> None:
    assert "current_chat searches nothing without conversation_id" in (hint(alice, scope=scope) or "")
    assert hint(alice, scope=scope, conversation_id="c1") is None


def test_a_hint_names_the_parameter_that_finds_other_sessions(alice: Person, bob: Person) -> None:
    say(alice, "chat:c1", "I prefer payment by card")
    assert hint(alice, conversation_id="c1") is None
    assert "Add all_user_memory to scope" in (hint(alice) or "")
    assert "Add all_user_memory to scope" in (hint(alice, conversation_id="c2") or "")
    assert hint(alice, scope=["current_chat", "resources"], conversation_id="c1") is None  # on purpose
    assert hint(alice, scope=["all_user_memory"]) is None
    assert hint(alice, project_id="other") is None
    assert hint(bob) is None
    answer = alice.client.post(
        "/memories/search", {"query": "x"}, "application/json", headers={"Accept-Language": "zh"}
    )
    assert "all_user_memory" in answer.json()["meta"]["hint"]
    assert not answer.json()["meta"]["hint"].isascii()
    assert answer.headers["Content-Language"] == "zh-hans"
    alice.client.delete("/sessions/chat:c1")
    assert hint(alice) is None


def test_with_enough_results_there_is_neither_hint_nor_statement(alice: Person, django_assert_num_queries: Any) -> None:
    say(alice, "chat:c1", *(f"Payment {number} is due" for number in range(3)))
    say(alice, "chat:c2", "I prefer payment by card")
    assert hint(alice, conversation_id="c1") is None
    with CaptureQueriesContext(connection) as many:
        search(alice, conversation_id="c1")
    with django_assert_num_queries(len(many) + 1):
        assert len(search(alice, conversation_id="c2")["results"]) == 1


def test_meta_has_statistics_of_each_requested_scope(alice: Person) -> None:
    say(alice, "chat:c1", "I prefer payment by card")
    meta = search(alice, conversation_id="c1")["meta"]
    assert meta["method"] == "keyword"
    assert set(meta["scopes"]) == {"current_chat", "resources"}
    chat = meta["scopes"]["current_chat"]
    assert set(chat) == {"asked", "sessions", "found", "hidden", "replaced", "degraded", "exhausted", "ms"}
    assert (chat["asked"], chat["sessions"], chat["found"]) == (8, 1, 1)
    assert "No embedding model is configured" in chat["degraded"]
    assert meta["scopes"]["resources"] == {
        "asked": 0,
        "sessions": 0,
        "found": 0,
        "hidden": 0,
        "replaced": 0,
        "degraded": None,
        "exhausted": False,
        "ms": 0.0,
    }


def test_explain_adds_the_legs_of_each_result(alice: Person) -> None:
    say(alice, "chat:c1", "I prefer payment by card")
    (plain,) = search(alice, conversation_id="c1")["results"]
    (explained,) = search(alice, conversation_id="c1", explain=True)["results"]
    assert "explain" not in plain
    assert explained["explain"]["legs"]["keyword"]


def test_a_user_without_memories_gets_no_results(alice: Person) -> None:
    assert search(alice, scope=["current_chat", "resources", "all_user_memory"])["results"] == []


def test_messages_that_are_not_flushed_are_found(alice: Person) -> None:
    say(alice, "chat:c1", "I prefer payment by card", flush=False)
    assert [result["memory_type"] for result in search(alice, conversation_id="c1")["results"]] == [
        "unprocessed_message"
    ]


# --- scopes ----------------------------------------------------------------------------------------------------------


def test_the_default_scopes_are_current_chat_and_resources(alice: Person) -> None:
    say(alice, "chat:c1", "payment of the chat")
    say(alice, "manual_insert", "payment of elsewhere")
    assert texts(search(alice, conversation_id="c1")) == ["payment of the chat"]
    assert sorted(texts(search(alice, scope=["all_user_memory"]))) == ["payment of elsewhere", "payment of the chat"]


def test_a_repeated_scope_is_searched_once(alice: Person) -> None:
    say(alice, "chat:c1", "payment of the chat")
    assert len(search(alice, conversation_id="c1", scope=["current_chat", "current_chat"])["results"]) == 1


def test_current_chat_finds_only_memories_of_the_caller(alice: Person, bob: Person) -> None:
    say(alice, "chat:c1", "payment of alice")
    assert search(bob, conversation_id="c1", scope=["current_chat", "all_user_memory"])["results"] == []


def test_memories_of_another_project_are_not_found(alice: Person) -> None:
    say(alice, "chat:c1", "payment of the chat")
    assert search(alice, conversation_id="c1", project_id="other")["results"] == []


# --- request ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ""),
        ("query", None),
        ("query", 7),
        ("query", "x" * 8193),
        ("scope", []),
        ("scope", ["everything"]),
        ("scope", "resources"),
        ("scope", None),
        ("method", "magic"),
        ("method", None),
        ("top_k", 0),
        ("top_k", -2),
        ("top_k", 101),
        ("top_k", "8"),
        ("top_k", 8.5),
        ("top_k", True),
        ("radius", -0.1),
        ("radius", 1.1),
        ("radius", "0.5"),
        ("include_profile", "yes"),
        ("enable_llm_rerank", 1),
        ("conversation_id", ""),
        ("conversation_id", "a\nb"),
        ("conversation_id", "x" * 124),
        ("agent_id", "a/b"),
        ("app_id", ".."),
        ("project_id", "a b"),
        ("filters", []),
        ("filters", {"owner_id": "bob"}),
        ("explain", "true"),
        ("topk", 8),
    ],
)
def test_an_invalid_field_is_named(alice: Person, field: str, value: Any) -> None:
    problem = search(alice, **{"query": "payment", field: value}, status=422)
    assert problem["code"] == "invalid_input"
    assert any(error["field"].split(".")[0] == field for error in problem["errors"]), problem


def test_the_query_is_required(alice: Person) -> None:
    response = alice.client.post("/memories/search", {}, content_type="application/json")
    assert response.status_code == 422
    assert response.json()["errors"] == [{"field": "query", "message": "is required"}]


@pytest.mark.parametrize("top_k", [-1, 1, 100])
def test_the_limits_of_top_k_are_accepted(alice: Person, top_k: int) -> None:
    search(alice, top_k=top_k)


def test_top_k_limits_the_results(alice: Person) -> None:
    say(alice, "chat:c1", *(f"payment number {number}" for number in range(22)))
    assert len(search(alice, conversation_id="c1")["results"]) == 8
    assert len(search(alice, conversation_id="c1", top_k=3)["results"]) == 3
    assert len(search(alice, conversation_id="c1", top_k=-1)["results"]) == DEFAULT_TOP_K


@pytest.mark.parametrize("method", ["vector", "agentic"])
def test_a_method_without_its_model_is_refused_and_names_others(alice: Person, method: str) -> None:
    say(alice, "chat:c1", "payment")
    problem = search(alice, conversation_id="c1", method=method, status=422)
    assert f"{method} needs a model that is not configured; use keyword or hybrid" in problem["detail"]


def test_filters_restrict_the_results(alice: Person) -> None:
    say(alice, "chat:c1", "payment one")
    say(alice, "chat:c2", "payment two")
    everything = {"scope": ["all_user_memory"]}
    assert texts(search(alice, filters={"session_id": "chat:c2"}, **everything)) == ["payment two"]
    assert len(search(alice, filters={"timestamp": {"gte": NOON_MS}}, **everything)["results"]) == 2
    assert search(alice, filters={"timestamp": {"lt": NOON_MS}}, **everything)["results"] == []


def test_filters_cannot_widen_the_scope(alice: Person) -> None:
    say(alice, "chat:c1", "payment one")
    say(alice, "chat:c2", "payment two")
    either = {"OR": [{"session_id": "chat:c1"}, {"session_id": "chat:c2"}]}
    assert texts(search(alice, conversation_id="c1", filters=either)) == ["payment one"]


def test_the_documented_filter_is_applied_to_the_results(alice: Person) -> None:
    say(alice, "chat:c1", "payment one")
    assert texts(search(alice, conversation_id="c1", filters={"type": "Conversation"})) == ["payment one"]
    assert search(alice, conversation_id="c1", filters={"type": "Nonsense"})["results"] == []


# --- authentication --------------------------------------------------------------------------------------------------


def test_a_search_needs_a_key(client: Client, db: Any) -> None:
    response = client.post("/memories/search", {"query": "payment"}, content_type="application/json")
    assert response.status_code == 401


def test_the_key_may_be_in_the_body(client: Client, alice: Person) -> None:
    body = {"query": "payment", **alice.credentials}
    assert client.post("/memories/search", body, content_type="application/json").status_code == 200


def test_the_user_id_of_another_user_is_refused(client: Client, alice: Person, bob: Person) -> None:
    body = {"query": "payment", "user_id": "bob", "user_key": alice.user_key}
    assert client.post("/memories/search", body, content_type="application/json").status_code == 401


# --- statements ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_search_takes_six_statements_for_any_number_of_resources(alice: Person, storage: Any) -> None:
    say(alice, "chat:c1", "payment of the chat")
    upload(alice)
    everything = {"conversation_id": "c1", "scope": ["current_chat", "resources", "all_user_memory"]}
    search(alice, **everything)  # the first call in a minute also records the use of the key
    counts = [_statements(alice, everything)]
    for number in range(20):
        upload(alice, f"file{number}.txt", f"{CONTRACT} {number}")
    assert [*counts, _statements(alice, everything)] == [6, 6]


def _statements(person: Person, fields: dict[str, Any]) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert search(person, top_k=100, **fields)["results"]
    return len(queries)


@pytest.mark.django_db(transaction=True)
def test_the_engines_own_record_can_be_left_out(alice: Person) -> None:
    say(alice, "chat:c1", "The walnut rumour.")
    (whole,) = search(alice, query="walnut", scope=["all_user_memory"])["results"]
    (short,) = search(alice, query="walnut", scope=["all_user_memory"], raw=False)["results"]
    assert whole["raw"]
    assert short == whole | {"raw": {}}
