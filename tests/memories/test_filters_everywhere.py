"""Each filter gives the same memories in searches and lists, with an engine alone and with a remote attached."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from core.errors import InvalidInput
from store import filters
from store.models import Memory
from tests.conftest import Person

pytestmark = pytest.mark.django_db

DAY_MS = 86_400_000
NOON_MS = 1_780_300_800_000  # 2026-06-01T08:00:00Z

FACTS: dict[str, dict[str, Any]] = {
    "a": {
        "tags": ["red", "big"],
        "metadata": {"source": "crm", "n": 1, "place": {"city": "Oslo"}, "list": ["x", 2], "ok": True},
        "importance": 0.2,
        "created_at": "2026-06-01T08:00:00Z",
    },
    "b": {
        "tags": ["red"],
        "metadata": {"source": "mail", "n": 2.5, "ok": False, "none": None},
        "importance": 0.7,
        "category": "user_memory_preference",
        "created_at": "2026-06-03T08:00:00Z",
        "session_id": "chat:c1",
    },
    "c": {"metadata": {"n": "10"}, "importance": 1, "agent_id": "coder", "created_at": "2026-06-05T08:00:00Z"},
    "d": {},
}
ALL = "abcdmn"
"""Also two messages: `m` of the user, with a tag and metadata, `n` of the assistant."""

CASES: list[tuple[dict[str, Any], str]] = [
    ({"tags": "red"}, "abm"),
    ({"tags": ["big", "small"]}, "a"),
    ({"tags": {"any": ["big", "red"]}}, "abm"),
    ({"tags": {"all": ["big", "red"]}}, "a"),
    ({"tags": {"none": ["red"]}}, "cdn"),
    ({"tags": {"any": ["red"], "none": ["big"]}}, "bm"),
    ({"tags": "Red"}, ""),
    ({"metadata.source": "crm"}, "am"),
    ({"metadata.source": {"in": ["crm", "mail"]}}, "abm"),
    ({"metadata.source": {"exists": True}}, "abm"),
    ({"metadata.source": {"exists": False}}, "cdn"),
    ({"metadata.place": {"exists": True}}, "a"),
    ({"metadata.place.city": "Oslo"}, "a"),
    ({"metadata": {"source": "crm", "n": {"gte": 1}}}, "a"),
    ({"metadata.n": 1}, "a"),
    ({"metadata.n": 1.0}, "a"),
    ({"metadata.n": "1"}, ""),
    ({"metadata.n": {"gte": 1}}, "ab"),
    ({"metadata.n": {"gt": 1}}, "b"),
    ({"metadata.n": {"lt": 2.5, "gte": -5}}, "a"),
    ({"metadata.n": {"lte": "2"}}, "c"),
    ({"metadata.ok": True}, "a"),
    ({"metadata.none": None}, "b"),
    ({"metadata.list": "x"}, "a"),
    ({"metadata.list": {"in": [2, 3]}}, "a"),
    ({"metadata.nothing": {"exists": True}}, ""),
    ({"category": "user_memory_preference"}, "b"),
    ({"category": {"ne": "user_memory_preference"}, "importance": {"gte": 0}}, "acd"),
    ({"importance": 0.7}, "bd"),
    ({"importance": {"gte": 0.7}}, "bcd"),
    ({"importance": {"gt": 0.7}}, "c"),
    ({"importance": {"lt": 0.7}}, "a"),
    ({"NOT": {"importance": {"lt": 0.7}}}, "bcdmn"),
    ({"agent_id": "coder"}, "c"),
    ({"agent_id": {"in": ["", "coder"]}}, "abcdm"),
    ({"role": "user"}, "m"),
    ({"role": {"in": ["user", "assistant"]}}, "mn"),
    ({"NOT": {"role": "assistant"}}, "abcdm"),
    ({"created_at": {"gte": "2026-06-02T00:00:00Z", "lt": "2026-06-05T00:00:00Z"}}, "b"),
    ({"created_at": "2026-06-03"}, "b"),
    ({"timestamp": {"lt": NOON_MS + DAY_MS}}, "amn"),
    ({"session_id": "chat:c1"}, "b"),
    ({"session_id": {"gte": "chat:", "lt": "chat;"}}, "bmn"),
    ({"session_id": {"ne": "chat:c1"}}, "acdmn"),
    ({"parent_type": "session"}, ALL),
    ({"parent_type": {"ne": "session"}}, ""),
    ({"parent_id": {"in": ["chat:c1", "chat:c2"]}}, "bmn"),
    ({"sender_id": {"in": ["coder", "bot"]}}, "cn"),
    ({"type": "Conversation"}, ALL),
    ({"OR": [{"tags": "big"}, {"agent_id": "coder"}]}, "ac"),
    ({"AND": [{"tags": "red"}, {"NOT": {"metadata.source": "crm"}}]}, "b"),
    ({"NOT": [{"tags": "red"}, {"agent_id": "coder"}]}, "dn"),
    ({"NOT": {"AND": [{"tags": "red"}, {"metadata.source": "crm"}]}}, "bcdn"),
    ({"NOT": {"NOT": {"tags": "big"}}}, "a"),
    ({"NOT": {}}, ALL),
]


def post(person: Person, path: str, body: dict[str, Any]) -> Any:
    response = person.client.post(path, body, "application/json")
    assert response.status_code in {200, 201}, response.content
    return response.json()


def fill(person: Person) -> None:
    for name, fact in FACTS.items():
        post(person, "/memories", {"text": f"{name} walnut", **fact})
    messages = [
        {
            "sender_id": person.user_id,
            "role": "user",
            "timestamp": NOON_MS,
            "content": "m walnut",
            "tags": ["red"],
            "metadata": {"source": "crm"},
        },
        {"sender_id": "bot", "role": "assistant", "timestamp": NOON_MS + 1, "content": "n walnut"},
    ]
    post(person, "/memories/add", {"session_id": "chat:c2", "messages": messages})
    post(person, "/memories/flush", {"session_id": "chat:c2"})


def searched(person: Person, tree: dict[str, Any]) -> str:
    body = {"query": "walnut", "scope": ["all_user_memory"], "top_k": 50, "include_profile": False, "filters": tree}
    found = post(person, "/memories/search", body | {"min_relevance": 0})["results"]
    return "".join(sorted(one["text"][0] for one in found))


def listed(person: Person, tree: dict[str, Any]) -> str:
    response = person.client.get("/memories", {"limit": "50", "filters": json.dumps(tree)})
    assert response.status_code == 200, response.content
    return "".join(sorted(one["text"][0] for one in response.json()["memories"]))


@pytest.fixture
def filled(alice: Person, bob: Person) -> Person:
    fill(alice)
    post(bob, "/memories", {"text": "z walnut of bob", **FACTS["a"]})
    return alice


@pytest.mark.parametrize("interface", [searched, listed])
def test_each_filter_finds_the_same_in_every_interface(
    filled: Person, bob: Person, interface: Callable[[Person, dict[str, Any]], str]
) -> None:
    wrong = {str(tree): (found, wanted) for tree, wanted in CASES if (found := interface(filled, tree)) != wanted}
    assert wrong == {}
    assert interface(bob, {"tags": "red"}) == "z"
    assert interface(bob, {"NOT": {"tags": "blue"}}) == "z"


def test_filters_of_messages_are_kept_by_an_edit_and_a_rebuild(filled: Person) -> None:
    [found] = [one for one in filled.client.get("/memories?limit=50").json()["memories"] if one["text"] == "m walnut"]
    assert (found["tags"], found["metadata"]) == (["red"], {"source": "crm"})
    filled.client.patch(f"/memories/{found['id']}", {"override_text": "m walnut cake"}, "application/json")
    assert searched(filled, {"metadata.source": "crm"}) == "am"
    filled.client.delete(f"/memories/{found['id']}")
    assert searched(filled, {"metadata.source": "crm"}) == listed(filled, {"metadata.source": "crm"}) == "a"


def test_results_have_tags_and_metadata_at_the_top_level(filled: Person) -> None:
    body = {"query": "walnut", "scope": ["all_user_memory"], "filters": {"tags": "big"}}
    [found] = post(filled, "/memories/search", body)["results"]
    assert (found["tags"], found["metadata"]) == (FACTS["a"]["tags"], FACTS["a"]["metadata"])


@pytest.mark.parametrize("tree", [{"tags": "red"}, {"NOT": {"metadata.n": 1}}, {"tags": {"none": ["red"]}}])
def test_a_filter_finds_nothing_for_words_that_no_memory_has(filled: Person, tree: dict[str, Any]) -> None:
    body = {"query": "zeppelin", "scope": ["all_user_memory"], "filters": tree}
    assert post(filled, "/memories/search", body)["results"] == []


def test_a_selective_filter_fills_the_page(alice: Person) -> None:
    facts = [
        {
            "text": f"walnut {number} {'walnut ' * (number % 5)}",
            "metadata": {"n": number % 40},
            "external_id": str(number),
        }
        for number in range(400)
    ]
    post(alice, "/memories/bulk", {"memories": facts})
    assert Memory.objects.count() == 400
    body = {"query": "walnut", "scope": ["all_user_memory"], "filters": {"metadata.n": 39}, "top_k": 10, "fold": False}
    assert len(post(alice, "/memories/search", body)["results"]) == 10


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"tags": {"eq": "x"}}, "any, all, none"),
        ({"tags": {"any": "x"}}, "list"),
        ({"tags": {"any": []}}, "list"),
        ({"tags": 5}, "text"),
        ({"metadata": "x"}, "not a field"),
        ({"metadata.": "x"}, "not a field"),
        ({"metadata.k": {"like": "x"}}, "exists"),
        ({"metadata.k": {"exists": 1}}, "true or false"),
        ({"metadata.k": {"gte": True}}, "number or text"),
        ({"metadata.k": {"gte": None}}, "number or text"),
        ({"metadata.k": ["x"]}, "text"),
        ({"metadata.k": {"in": [{"a": 1}]}}, "text"),
        ({"importance": 2}, "between 0 and 1"),
        ({"importance": {"in": [1]}}, "eq, gt"),
        ({"role": 1}, "text"),
        ({"NOT": "x"}, "object"),
        ({"NOT": [1]}, "object"),
        ({"created_at": "someday"}, "ISO 8601"),
    ],
)
def test_a_wrong_filter_names_the_field_and_what_it_takes(alice: Person, tree: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        filters.parse(tree)
    assert message in refused.value.detail
    for response in (
        alice.client.get("/memories", {"filters": json.dumps(tree)}),
        alice.client.post("/memories/search", {"query": "x", "filters": tree}, "application/json"),
    ):
        assert response.status_code == 422
        assert response.json()["errors"][0]["field"].startswith("filters")


def test_filters_of_a_list_are_json(alice: Person) -> None:
    for text in ("{", "[]", "5"):
        response = alice.client.get("/memories", {"filters": text})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (422, "filters")
