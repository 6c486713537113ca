"""`POST /memories/search`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.contract.caller import NOON_MS, Caller, Gateway, field_errors, require_shape
from tests.contract.differences import LLM_MADE_TYPES, METHOD_USED, STATUS_OF_METHOD

pytestmark = pytest.mark.usefixtures("writes")

CLAUSE = "付款期限为收到发票后 30 天内。"
EVERYWHERE = ["current_chat", "resources", "all_user_memory"]
RESULT = {
    "id": str,
    "memory_type": str,
    "session_id": str,
    "text": str,
    "score": float,
    "source_scope": str,
    "resource_id": (str, type(None)),
    "resource_uri": (str, type(None)),
    "attachments": [{"type": str, "name": str, "internal_uri": str}],
    "raw": {"id": str, "session_id": str, "episode": str},
}


def test_the_main_job_answers_as_documented(alice: Caller, gateway: Gateway, conversation: str) -> None:
    answer = alice.upload(CLAUSE.encode(), "contract.txt")
    search = alice.search(
        "合同里的付款条款是什么?",
        conversation_id=conversation,
        scope=["current_chat", "resources"],
        method="hybrid",
        top_k=8,
        include_profile=True,
        enable_llm_rerank=True,
        filters={"type": "Conversation"},
        app_id="default",
        project_id="default",
    )
    [found] = [item for item in search["results"] if item["memory_type"] == "episode"]
    require_shape(found, RESULT)
    assert "30 天内" in found["text"]
    assert found["session_id"] == answer["session_id"]
    assert found["source_scope"] == "resources"
    assert (found["resource_id"], found["resource_uri"]) == (answer["resource_id"], answer["uri"])
    [attachment] = found["attachments"]
    assert (attachment["type"], attachment["name"]) == ("text", "contract.txt")
    assert "30 天内" in gateway.server.stored_file(attachment["internal_uri"]).decode()
    assert (found["raw"]["id"], found["raw"]["session_id"]) == (found["id"], found["session_id"])
    assert "30 天内" in found["raw"]["episode"]


def test_scopes_are_searched_as_named(alice: Caller, conversation: str, chat: str) -> None:
    alice.remember(chat, "The garden of this chat is green.")
    alice.remember(f"{chat}-other", "The garden of another chat is red.")
    resource = alice.upload(b"The garden of the file is blue.", "garden.txt")
    sessions = {"current_chat": {chat}, "resources": {resource["session_id"]}}
    sessions["all_user_memory"] = {chat, f"{chat}-other", resource["session_id"]}
    for scope, expected in sessions.items():
        results = alice.found("garden", scope=[scope], conversation_id=conversation)
        assert {item["session_id"] for item in results} == expected
        assert {item["source_scope"] for item in results} == {scope}
    default = alice.found("garden", conversation_id=conversation)
    assert {item["session_id"]: item["source_scope"] for item in default} == {
        chat: "current_chat",
        resource["session_id"]: "resources",
    }
    together = alice.found("garden", scope=EVERYWHERE, conversation_id=conversation)
    assert len(together) == len({item["id"] for item in together}) == 3


def test_the_chat_needs_its_conversation(alice: Caller, chat: str) -> None:
    alice.remember(chat, "The garden is green.")
    assert alice.found("garden") == []
    assert alice.found("garden", conversation_id="c_nobody_wrote_to") == []


def test_apps_and_projects_are_apart(alice: Caller, chat: str) -> None:
    alice.remember(chat, "The garden is green.", project_id="p1")
    assert alice.found("garden", scope=["all_user_memory"]) == []
    assert len(alice.found("garden", scope=["all_user_memory"], project_id="p1")) == 1
    assert alice.found("garden", scope=["all_user_memory"], project_id="p1", app_id="a1") == []


@pytest.mark.parametrize("method", ["keyword", "hybrid", "vector", "agentic"])
def test_every_method_finds_or_says_what_it_lacks(
    alice: Caller, gateway: Gateway, conversation: str, chat: str, method: str
) -> None:
    alice.remember(chat, "The invoice is payable within thirty days.")
    status = STATUS_OF_METHOD[gateway.engine][method]
    answer = alice.search("invoice payable", conversation_id=conversation, method=method, status=status)
    if status != 200:
        assert field_errors(answer) == ["method"]
        return
    episodes = [item for item in answer["results"] if item["memory_type"] == "episode"]
    assert [item["session_id"] for item in episodes] == [chat]
    assert 0 <= episodes[0]["score"] <= 1
    assert answer["meta"]["method"] == METHOD_USED[gateway.engine][method]


def test_top_k_bounds_each_scope(alice: Caller, conversation: str, chat: str) -> None:
    for number in range(4):
        alice.remember(f"{chat}-{number}", f"Garden number {number} is green.")
    assert len(alice.found("garden", scope=["all_user_memory"], top_k=2)) == 2
    assert len(alice.found("garden", scope=["all_user_memory"], top_k=100)) == 4
    assert len(alice.found("garden", scope=["all_user_memory"], top_k=-1)) == 4


def test_the_best_result_comes_first(alice: Caller, chat: str) -> None:
    alice.remember(f"{chat}-1", "The garden gate is painted green.")
    alice.remember(f"{chat}-2", "A garden is a nice thing to have near a house by the sea.")
    results = alice.found("garden gate painted green", scope=["all_user_memory"])
    assert "gate" in results[0]["text"]
    scores = [item["score"] for item in results]
    assert scores == sorted(scores, reverse=True)


def test_filters_narrow_and_never_widen(alice: Caller, conversation: str, chat: str) -> None:
    alice.remember(chat, "The garden is green.")
    alice.remember(f"{chat}-other", "The other garden is red.")
    for filters, expected in (
        ({"type": "Conversation"}, {chat}),
        ({"timestamp": {"gte": NOON_MS - 1000}}, {chat}),
        ({"timestamp": {"lt": NOON_MS - 1000}}, set()),
        ({"AND": [{"type": "Conversation"}, {"timestamp": {"gte": 0}}]}, {chat}),
        ({"OR": [{"session_id": f"{chat}-other"}, {"session_id": chat}]}, {chat}),
        ({"session_id": f"{chat}-other"}, set()),
    ):
        results = alice.found("garden", conversation_id=conversation, filters=filters)
        assert {item["session_id"] for item in results} == expected, filters


def test_unprocessed_messages_are_found_beside_filters_too(alice: Caller, conversation: str, chat: str) -> None:
    alice.add(chat, "The garden is green.")
    filters = {"timestamp": {"gte": NOON_MS - 1000}}
    [found] = alice.found("garden", conversation_id=conversation, filters=filters)
    assert found["memory_type"] == "unprocessed_message"
    assert found["score"] is None or isinstance(found["score"], float)


def test_a_radius_is_taken(alice: Caller, conversation: str, chat: str) -> None:
    alice.remember(chat, "The garden is green.")
    assert alice.found("garden green", conversation_id=conversation, radius=0.0, method="hybrid")


def test_an_agent_has_separate_memories_per_user(alice: Caller, bob: Caller, gateway: Gateway, chat: str) -> None:
    for caller in (alice, bob):
        words = f"{caller.user_id} asks for a train to Rome"
        messages = [
            caller.message(words),
            {"sender_id": "main", "role": "assistant", "timestamp": NOON_MS + 1, "content": "I compare trains."},
            caller.message("Take the early one", NOON_MS + 2),
        ]
        caller.add(chat, messages=messages)
        caller.flush(chat)
    for caller, outsider in ((alice, bob), (bob, alice)):
        answer = caller.search("train to Rome", agent_id="main", scope=["all_user_memory"], method="keyword")
        assert outsider.user_id not in str(answer)


def test_llm_made_memories_come_where_the_engine_has_an_llm(alice: Caller, gateway: Gateway, chat: str) -> None:
    """EverOS makes a profile of a second session. Whether an exchange makes a case is its model's judgment."""
    alice.remember(f"{chat}-1", "I like to arrive in Rome before noon.")
    alice.remember(f"{chat}-2", "I always take the early train to Rome.")
    expected = LLM_MADE_TYPES[gateway.engine] & {"profile"}
    deadline = time.monotonic() + (60 if expected else 0)
    found = _types(alice)
    while not found >= expected and time.monotonic() < deadline:
        time.sleep(0.5)
        found = _types(alice)
    assert found == {"episode"} | expected


def _types(caller: Caller) -> set[str]:
    answer = caller.search("train to Rome", scope=["all_user_memory"], include_profile=True)
    return {item["memory_type"] for item in answer["results"]}


def test_meta_tells_of_each_scope(alice: Caller, conversation: str, chat: str) -> None:
    alice.remember(chat, "The garden is green.")
    answer = alice.search("garden", conversation_id=conversation, method="keyword", include_profile=False)
    assert set(answer) == {"results", "meta"}
    assert set(answer["meta"]["scopes"]) == {"current_chat", "resources"}
    assert answer["meta"]["scopes"]["current_chat"]["found"] == 1
    assert answer["meta"]["scopes"]["resources"]["asked"] == 0


def test_explain_says_why(alice: Caller, conversation: str, chat: str) -> None:
    alice.remember(chat, "The garden is green.")
    [found] = alice.found("garden", conversation_id=conversation, explain=True)
    assert set(found["explain"]) == {"legs", "override_id", "links"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", ""),
        ("query", None),
        ("scope", []),
        ("scope", ["everything"]),
        ("method", "magic"),
        ("top_k", 0),
        ("top_k", 101),
        ("top_k", -2),
        ("radius", 1.5),
        ("radius", -0.1),
        ("include_profile", "yes"),
        ("enable_llm_rerank", "yes"),
        ("filters", {"user_id": "somebody"}),
        ("filters", {"NOT": 5}),
        ("agent_id", "no spaces"),
        ("app_id", ""),
        ("project_id", ".."),
        ("unknown_field", 1),
    ],
)
def test_a_wrong_field_is_422_by_name(alice: Caller, field: str, value: Any) -> None:
    fields = field_errors(alice.post("/memories/search", status=422, **{"query": "garden", field: value}))
    assert fields
    assert all(name.partition(".")[0] == field for name in fields)


def test_a_body_that_is_no_json_is_400(gateway: Gateway, alice: Caller) -> None:
    headers = {"Authorization": f"Bearer {alice.user_key}", "Content-Type": "application/json"}
    gateway.ask("POST", "/memories/search", status=400, data=b"{", headers=headers)
