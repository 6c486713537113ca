"""The methods `memory.admin.*`, except the dashboard, as specified by the plugin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection

from accounts.models import AuditEvent, MemoryUser
from memories.models import Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from store.models import Memory
from tests.agents.rpc.direct import ACTOR, NOON_MS, add, call, listed, of_operator, of_user, refusal, row, texts
from tests.conftest import Person
from tests.memories.calls import say, search
from tests.memories.calls import texts as found_texts
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db

ALL_MEMORIES = {"scope": ["all_user_memory"]}
NO_AGENT = "缺少 agentId：请先选择 Agent"
USER = ["user_memory_fact", "user_memory_preference", "user_memory_decision"]
SELF = ["self_improving_learnings", "self_improving_errors", "self_improving_feature_requests"]
FULL = [f"full_context_{kind}" for kind in ("user", "assistant", "system", "tool", "tool_result", "others")]


@pytest.fixture
def upstream(settings: Any) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def refused(status: int, message: str) -> dict[str, Any]:
    return {
        "error": {"code": f"http_{status}", "message": message},
        "payload": {"error": message, "status": status},
    }


# --- config and facets -----------------------------------------------------------------------------------------------


def test_config_has_the_specified_values(alice: Person) -> None:
    config = call(of_user(alice), "memory.admin.config")
    assert (config["enableFullContextMemory"], config["enableSelfImprovingMemory"]) == (True, True)
    assert config["tabCategories"] == {"user": USER, "self": SELF, "full": FULL}
    assert len(config["categoryLabelsZh"]) == 13
    assert config["categoryLabelsZh"]["full_context_assistant"] == "全文 · AI助手消息"
    assert config["memoryTypeFilterOptions"]["self"] == [
        {"category": "self_improving_learnings", "labelZh": "最佳实践"},
        {"category": "self_improving_errors", "labelZh": "错误经验"},
        {"category": "self_improving_feature_requests", "labelZh": "行为诉求"},
    ]
    assert set(config) == {
        "enableFullContextMemory",
        "enableSelfImprovingMemory",
        "categoryLabelsZh",
        "tabCategories",
        "memoryTypeFilterOptions",
    }


def test_a_disabled_kind_has_an_empty_tab(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY = False
    settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    config = call(of_user(alice), "memory.admin.config")
    assert (config["enableFullContextMemory"], config["enableSelfImprovingMemory"]) == (False, False)
    assert config["tabCategories"] == {"user": USER, "self": [], "full": []}
    assert config["memoryTypeFilterOptions"]["full"] == []
    assert len(config["categoryLabelsZh"]) == 13
    nothing = {"items": [], "total": 0, "page": 1, "pageSize": 100}
    for tab in ("self", "full"):
        assert (
            call(of_user(alice), "memory.admin.list", agentId="main", tab=tab, page=7, limit=3, category="x") == nothing
        )
        assert refusal(of_user(alice), "memory.admin.list", tab=tab) == refused(400, NO_AGENT)
    for category in (*SELF, *FULL):
        answer = refusal(of_user(alice), "memory.admin.add", agentId="main", text="x", category=category)
        assert answer == refused(400, "invalid or disabled category")


def test_facets_are_sorted_and_unique(alice: Person, bob: Person) -> None:
    for person, agent in ((alice, "main"), (bob, "main"), (bob, "Zoe"), (alice, "ada")):
        add(of_user(person), f"of {agent}", agent=agent)
    say(alice, "chat:你好", "a message of no agent")
    assert call(of_operator(), "memory.admin.facets", tab="self") == {
        "agents": ["(shared)", "Zoe", "ada", "main"],
        "sessions": ["chat:你好", "manual_insert"],
    }


def test_memories_without_an_agent_are_listed_as_shared(alice: Person, bob: Person) -> None:
    """The plugin's panel always requests an agent, and sends the agent of an item to delete it."""
    principal = of_user(alice)
    say(alice, "chat:c1", "Tea without sugar, please")
    added = add(principal, "for all of her agents", agent="(shared)")
    assert Memory.objects.get(memory_id=added).agent_id == ""
    add(of_user(bob), "an agent's own")
    assert call(principal, "memory.admin.facets")["agents"] == ["(shared)"]
    assert call(of_user(bob), "memory.admin.facets")["agents"] == ["main"]
    assert texts(principal) == []
    [item] = listed(principal, agentId="(shared)")
    assert (item["id"], item["agentId"]) == (added, "(shared)")
    assert texts(principal, agentId="(shared)", tab="full") == ["Tea without sugar, please"]
    assert delete(principal, ("main", added), ("", added)) == 0
    assert delete(principal, ("(shared)", added)) == 1
    assert texts(principal, agentId="(shared)") == []


# --- list ------------------------------------------------------------------------------------------------------------


def test_an_item_has_the_documents_fields(alice: Person) -> None:
    add(of_user(alice), "an earlier one of the same session", category=SELF[0])
    memory_id = add(of_user(alice), "喝茶不加糖")
    page = call(of_user(alice), "memory.admin.list", agentId="main", tab="user")
    [item] = page.pop("items")
    assert page == {"total": 1, "page": 1, "pageSize": 100}
    assert isinstance(item.pop("createdAt"), int)
    assert item == {
        "id": memory_id,
        "agentId": "main",
        "sessionId": "manual_insert",
        "text": "喝茶不加糖",
        "importance": 1.0,
        "category": "user_memory_fact",
        "isDeleted": 0,
        "seqInBatch": 0,
        "chunkIndex": 0,
    }


def test_a_memory_without_importance_has_the_default(alice: Person) -> None:
    row(alice, "unweighed", NOON_MS)
    assert listed(of_user(alice), tab="full")[0]["importance"] == 0.7


@pytest.mark.parametrize("agent", [None, "", "  ", 7, ["main"]])
def test_a_list_needs_an_agent(alice: Person, agent: Any) -> None:
    assert refusal(of_user(alice), "memory.admin.list", agentId=agent) == refused(400, NO_AGENT)


def test_a_tab_lists_its_categories_and_an_unknown_tab_those_of_the_user_tab(alice: Person) -> None:
    for category in (*USER, *SELF, *FULL):
        add(of_user(alice), category, category=category)
    assert set(texts(of_user(alice), tab="user")) == set(USER)
    assert set(texts(of_user(alice), tab="self")) == set(SELF)
    assert set(texts(of_user(alice), tab="full")) == set(FULL)
    for tab in ("nothing", None, 7):
        assert set(texts(of_user(alice), tab=tab)) == set(USER)


def test_filters_restrict_the_list(alice: Person) -> None:
    for hour, name in enumerate(("first", "second", "third")):
        row(alice, name, NOON_MS + hour * 3_600_000, session_id=f"chat:{name}", category=USER[hour])
    add(of_user(alice), "another agent's", agent="helper")
    assert texts(of_user(alice)) == ["third", "second", "first"]
    assert (
        texts(of_user(alice), sortDesc=False) == texts(of_user(alice), sortDesc="false") == ["first", "second", "third"]
    )
    assert texts(of_user(alice), sortDesc="x") == ["third", "second", "first"]
    assert texts(of_user(alice), sessionId="chat:second") == ["second"]
    assert texts(of_user(alice), category="user_memory_fact") == ["first"]
    assert texts(of_user(alice), timeFrom="2026-06-11T11:00:00Z") == ["third", "second"]
    assert texts(of_user(alice), timeTo="2026-06-11T11:00:00.000Z") == ["second", "first"]
    assert texts(of_user(alice), timeFrom=NOON_MS, timeTo=NOON_MS) == ["first"]
    assert texts(of_user(alice), timeFrom="2026-06-11T18:00:00+08:00", timeTo="2026-06-11T10:00:00") == ["first"]
    assert len(texts(of_user(alice), timeFrom="yesterday", timeTo={})) == 3


@pytest.mark.parametrize("value", [[], {}, [False]])
def test_a_sort_order_that_is_not_a_boolean_is_refused(alice: Person, value: object) -> None:
    answer = refusal(of_user(alice), "memory.admin.list", agentId="main", tab="user", sortDesc=value)
    assert answer["error"] == {"code": "INVALID_REQUEST", "message": "sortDesc must be true or false"}


@pytest.mark.parametrize(("tab", "category"), [("user", SELF[0]), ("self", USER[0]), ("full", "full_context_memory")])
def test_a_category_of_another_tab_is_refused(alice: Person, tab: str, category: str) -> None:
    answer = refusal(of_user(alice), "memory.admin.list", agentId="main", tab=tab, category=category)
    assert answer == refused(400, "category 与当前 Tab 不匹配")


def test_pages_are_numbered(alice: Person) -> None:
    for number in range(7):
        row(alice, str(number), NOON_MS + number, category=USER[0])
    pages = [call(of_user(alice), "memory.admin.list", agentId="main", page=page, limit=3) for page in (1, 2, 3, 4)]
    assert [[item["text"] for item in page["items"]] for page in pages] == [
        ["6", "5", "4"],
        ["3", "2", "1"],
        ["0"],
        [],
    ]
    assert [(page["total"], page["page"], page["pageSize"]) for page in pages] == [(7, n, 3) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("page_params", "page", "size"),
    [
        ({}, 1, 100),
        ({"page": 0, "limit": 0}, 1, 100),
        ({"page": -5, "limit": -5}, 1, 1),
        ({"page": "2", "limit": "7"}, 2, 7),
        ({"page": "x", "limit": None}, 1, 100),
        ({"page": 1e300, "limit": 501}, 10**9, 500),
        ({"page": float("inf"), "limit": []}, 1, 100),
    ],
)
def test_invalid_page_numbers_fall_back_to_defaults(
    alice: Person, page_params: dict[str, Any], page: int, size: int
) -> None:
    answer = call(of_user(alice), "memory.admin.list", agentId="main", **page_params)
    assert (answer["page"], answer["pageSize"]) == (page, size)


def test_a_page_takes_the_same_statements_for_any_number_of_memories(
    alice: Person, django_assert_num_queries: Any
) -> None:
    principal = of_user(alice)
    for number in range(12):
        row(alice, str(number), NOON_MS + number, batch_id=f"b{number // 3}")
        if number in {2, 11}:
            with django_assert_num_queries(6):
                listed(principal, tab="full", limit=5)


# --- turns -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def turns(alice: Person) -> Person:
    """Four turns of three memories, interleaved in two sessions, and two memories without a turn."""
    for number in range(12):
        turn = number % 2 + 2 * (number // 6)
        row(alice, f"{turn}{number}", NOON_MS + number, batch_id=f"batch-{turn}", seq=number)
    row(alice, "alone-old", NOON_MS - 5)
    row(alice, "alone-new", NOON_MS + 100)
    return alice


def pages_of(person: Person, size: int, **params: Any) -> Iterator[list[dict[str, Any]]]:
    total = call(of_user(person), "memory.admin.list", agentId="main", tab="full", limit=size, **params)["total"]
    for page in range(1, -(-total // size) + 1):
        yield listed(of_user(person), tab="full", limit=size, page=page, **params)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 14, 100])
@pytest.mark.parametrize("descending", [True, False])
def test_every_memory_is_on_one_page_and_turns_are_complete(turns: Person, size: int, descending: bool) -> None:
    pages = list(pages_of(turns, size, sortDesc=descending))
    texts_shown = [item["text"] for page in pages for item in page]
    assert len(texts_shown) == len(set(texts_shown)) == 14
    for page in pages:
        batches = [item.get("batchId", "") for item in page]
        assert batches == sorted(batches, key=batches.index)  # each batch is contiguous
        assert "" not in batches[: len(batches) - batches.count("")]  # memories without a turn are last
        for batch in set(batches) - {""}:
            inside = [item for item in page if item.get("batchId") == batch]
            assert len(inside) == 3
            assert inside == sorted(inside, key=lambda item: (item["createdAt"], item["seqInBatch"]))


def test_turns_are_ordered_by_time(turns: Person) -> None:
    newest_first = list(dict.fromkeys(item.get("batchId") for item in listed(of_user(turns), tab="full")))
    assert newest_first == ["batch-3", "batch-2", "batch-1", "batch-0", None]
    oldest_first = list(
        dict.fromkeys(item.get("batchId") for item in listed(of_user(turns), tab="full", sortDesc=False))
    )
    assert oldest_first == ["batch-0", "batch-1", "batch-2", "batch-3", None]


# --- add -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "agentId required"),
        ({"agentId": " ", "text": "x", "category": USER[0]}, "agentId required"),
        ({"agentId": "main", "category": "x"}, "text required"),
        ({"agentId": "main", "text": " \n", "category": USER[0]}, "text required"),
        ({"agentId": "main", "text": "x"}, "invalid or disabled category"),
        ({"agentId": "main", "text": "x", "category": "full_context_memory"}, "invalid or disabled category"),
    ],
)
def test_parameters_of_add_are_checked_in_the_specified_order(
    alice: Person, params: dict[str, Any], message: str
) -> None:
    assert refusal(of_user(alice), "memory.admin.add", **params) == refused(400, message)
    assert not Memory.objects.exists()


def test_an_invalid_agent_id_is_refused(alice: Person) -> None:
    answer = refusal(of_user(alice), "memory.admin.add", agentId="../x", text="x", category=USER[0])
    assert answer["payload"]["status"] == 400
    assert answer["payload"]["error"].startswith("agentId must be")


def test_add_returns_the_new_memory(alice: Person) -> None:
    answer = call(of_user(alice), "memory.admin.add", agentId=" main ", text="  tea  ", category=USER[0])
    memory = Memory.objects.get()
    assert answer == {"id": memory.memory_id, "createdAt": memory.created_at_ms, "chunkRows": 1}
    assert (memory.user_id, memory.agent_id, memory.text, memory.origin) == (alice.user_pk, "main", "tea", "panel")
    event = AuditEvent.objects.get(action="memory.add")
    assert (event.actor_kind, event.user_id) == ("token", "alice")


def test_a_long_text_is_cut_to_8000_utf_16_units(alice: Person) -> None:
    add(of_user(alice), "a" + "😀" * 5000)
    assert Memory.objects.get().text == "a" + "😀" * 3999


@pytest.mark.parametrize("engine", ["embedded", "upstream"])
def test_added_memories_are_found_in_english_and_chinese(
    alice: Person, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "upstream":
        request.getfixturevalue("upstream")
    add(of_user(alice), "The spare key lies under the flowerpot.")
    add(of_user(alice), "会议改到下周三上午十点。", category="self_improving_learnings")
    assert found_texts(search(alice, "where is the spare key?", **ALL_MEMORIES))[0].startswith("The spare key")
    assert found_texts(search(alice, "会议什么时候", **ALL_MEMORIES))[0].startswith("会议改到")


def test_memories_added_by_operators_belong_to_the_user_openclaw(alice: Person) -> None:
    for text in ("one", "two"):
        add(of_operator(), text)
    assert set(Memory.objects.values_list("user__user_id", flat=True)) == {"openclaw"}
    assert MemoryUser.objects.filter(user_id="openclaw").count() == 1
    assert texts(of_user(alice)) == []


# --- delete ----------------------------------------------------------------------------------------------------------


def delete(principal: Any, *pairs: tuple[str, str]) -> int:
    items = [{"agentId": agent, "id": memory_id} for agent, memory_id in pairs]
    return int(call(principal, "memory.admin.delete", items=items)["deleted"])


def test_a_deleted_memory_is_no_longer_returned_and_can_be_restored(alice: Person) -> None:
    principal = of_user(alice)
    kept_id, deleted_id = add(principal, "keep the tea"), add(principal, "forget the tea")
    assert delete(principal, ("main", deleted_id)) == 1
    assert [item["id"] for item in listed(principal)] == [kept_id]
    assert found_texts(search(alice, "tea", **ALL_MEMORIES)) == ["keep the tea"]
    assert delete(principal, ("main", deleted_id)) == 0
    assert Tombstone.objects.get().actor_kind == "token"
    decisions.restore(alice.user_pk, MemoryRef(deleted_id), actor=ACTOR)
    assert set(texts(principal)) == {"keep the tea", "forget the tea"}


def test_unknown_memories_and_those_of_other_agents_are_not_counted(alice: Person) -> None:
    principal = of_user(alice)
    first, second = add(principal, "first"), add(principal, "second", agent="helper")
    assert delete(principal, ("main", first), ("main", first), ("main", second), ("main", "no-uuid"), ("x", "y")) == 1
    assert texts(principal, agentId="helper") == ["second"]


@pytest.mark.parametrize("items", [None, [], {}, "x", [{}], [{"agentId": "main"}, {"id": "x"}, 7, None]])
def test_delete_without_items_is_refused(alice: Person, items: Any) -> None:
    assert refusal(of_user(alice), "memory.admin.delete", items=items) == refused(400, "items required")


def test_more_than_a_thousand_items_are_refused(alice: Person) -> None:
    items = [{"agentId": "main", "id": str(number)} for number in range(1001)]
    assert refusal(of_user(alice), "memory.admin.delete", items=items)["payload"]["status"] == 400


# --- isolation of users ----------------------------------------------------------------------------------------------


def test_the_token_of_a_user_reveals_nothing_of_others(alice: Person, bob: Person) -> None:
    secret = "the surprise party is on Friday"
    bobs = [add(of_user(bob), secret, agent="bobs-agent"), add(of_user(bob), secret)]
    row(bob, secret, NOON_MS, session_id="chat:bobs", batch_id="bobs-batch")
    token_of_alice = of_user(alice)
    add(token_of_alice, "mine")
    span = {"timeFrom": "2000-01-01", "timeTo": "2100-01-01"}
    answers = [
        call(token_of_alice, "health"),
        call(token_of_alice, "memory.admin.config"),
        call(token_of_alice, "memory.admin.facets"),
        *(
            call(token_of_alice, "memory.admin.list", agentId=agent, tab=tab, **span)
            for agent in AGENTS
            for tab in TABS
        ),
        *(
            call(token_of_alice, "memory.admin.list", agentId="main", sessionId=session, tab="full")
            for session in SESSIONS
        ),
        *(call(token_of_alice, "memory.admin.dashboard", agentId=agent, **span) for agent in AGENTS),
        call(
            token_of_alice, "tools.invoke", tool="memory_recall", args={"query": "surprise party"}, agentId="bobs-agent"
        ),
        call(token_of_alice, "tools.invoke", tool="memory_forget", args={"memoryId": bobs[0]}, agentId="bobs-agent"),
        call(token_of_alice, "tools.invoke", tool="memory_forget", args={"query": secret}),
    ]
    for answer in answers:
        assert not any(word in str(answer) for word in ("surprise", "bobs-batch", "chat:bobs")), answer
    assert call(token_of_alice, "memory.admin.facets")["agents"] == ["main"]
    assert call(token_of_alice, "memory.admin.dashboard", agentId="main", **span)["total"] == 1
    assert delete(token_of_alice, *((agent, memory_id) for agent in AGENTS for memory_id in bobs)) == 0
    assert len(texts(of_user(bob))) + len(texts(of_user(bob), agentId="bobs-agent")) == 2


AGENTS = ("main", "bobs-agent")
TABS = ("user", "self", "full")
SESSIONS = ("chat:bobs", "manual_insert")


def test_the_token_of_an_operator_sees_all_users_and_reads_are_audited(alice: Person, bob: Person) -> None:
    ids = {person.user_id: add(of_user(person), f"of {person.user_id}") for person in (alice, bob)}
    operator = of_operator()
    assert set(texts(operator)) == {"of alice", "of bob"}
    event = AuditEvent.objects.get(action="memory.list")
    assert (event.actor_kind, sorted(event.subjects.values_list("user_id", flat=True))) == ("token", ["alice", "bob"])
    assert delete(operator, ("main", ids["alice"])) == 1
    assert texts(operator) == ["of bob"]
    listed(of_user(bob))
    assert AuditEvent.objects.filter(action="memory.list").count() == 2  # reads by a user's token are not audited


@pytest.mark.parametrize("descending", [True, False])
def test_turns_of_two_users_with_the_same_id_are_separate(alice: Person, bob: Person, descending: bool) -> None:
    for number, person in enumerate((alice, bob, alice, bob)):
        row(person, f"{number} of {person.user_id}", NOON_MS + number, batch_id="one name", seq=number)
    list_params = {"tab": "full", "sortDesc": descending}
    assert texts(of_user(alice), **list_params) == ["0 of alice", "2 of alice"]
    assert texts(of_user(bob), **list_params) == ["1 of bob", "3 of bob"]
    texts_of_all = texts(of_operator(), **list_params)
    assert len(texts_of_all) == 4
    assert [said[-3:] for said in texts_of_all] == (
        ["bob", "bob", "ice", "ice"] if descending else ["ice", "ice", "bob", "bob"]
    )


def test_sessions_of_two_users_with_the_same_id_are_separate(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        row(person, f"of {person.user_id}", NOON_MS, session_id="chat:c1")
    assert texts(of_user(alice), tab="full", sessionId="chat:c1") == ["of alice"]
    assert len(texts(of_operator(), tab="full", sessionId="chat:c1")) == 2


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_database_error_has_the_shape_of_the_plugin(alice: Person) -> None:
    principal = of_user(alice)

    def broken(*_: Any) -> None:
        raise OperationalError("disk I/O error")

    with connection.execute_wrapper(broken):
        answer = refusal(principal, "memory.admin.facets")
    assert answer["payload"]["error"] == "Database unavailable"
    assert answer["payload"]["status"] == 503
    assert "disk" not in str(answer)
