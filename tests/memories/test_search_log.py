"""The log of searches: what it keeps of each interface, for how long, and that it is written off the request's path."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.audit import Actor
from agents import tools
from agents.mcp import catalog
from agents.tools.caller import caller_for
from memories.models import LoggedSearch, ReturnedMemory, SearchCount
from memories.services import decisions, search_log
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from operations import erase
from store.models import Memory
from store.types import Owner
from tests.conftest import Person
from tests.memories.calls import say, search

pytestmark = pytest.mark.django_db

ACTOR = Actor.command("tests")


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    search_log._pending.clear()
    yield
    search_log._pending.clear()


def log_one(owner: Owner, query: str = "tea", **fields: Any) -> LoggedSearch:
    command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), **fields)
    search_log.logged_search(owner, command, interface="rest")
    assert search_log.write() == 1
    return LoggedSearch.objects.latest("pk")


def test_a_search_over_rest_is_logged_with_its_parameters_and_number_of_hits(alice: Person) -> None:
    say(alice, "chat:c1", "Green tea is best")
    before = timezone.now()
    found = search(alice, query="tea", scope=["current_chat", "all_user_memory"], conversation_id="c1", top_k=5)
    assert search_log.write() == 1
    (logged,) = LoggedSearch.objects.all()
    assert (logged.user_id, logged.interface, logged.agent_id) == (alice.owner.user_pk, "rest", "")
    assert (logged.app_id, logged.project_id) == ("default", "default")
    assert (logged.scopes, logged.conversation_id) == ("current_chat all_user_memory", "c1")
    assert (logged.method, logged.top_k, logged.hits) == (found["meta"]["method"], 5, len(found["results"]))
    assert logged.hits > 0
    assert logged.ms > 0
    assert before <= logged.at <= timezone.now()
    assert (logged.query, logged.query_chars) == ("", 3)
    assert len(logged.request_id) == 32


def test_a_search_itself_writes_nothing(alice: Person) -> None:
    with CaptureQueriesContext(connection) as queries:
        search(alice, query="tea")
    assert not [one["sql"] for one in queries if "loggedsearch" in one["sql"] or "searchcount" in one["sql"]]
    assert not LoggedSearch.objects.exists()


def test_each_interface_of_the_tools_is_logged_with_its_agent(alice: Person) -> None:
    for interface, offered in (("tools", tools.TOOLS), ("mcp", catalog.TOOLS), ("rpc", tools.TOOLS)):
        caller = caller_for(alice.owner, ACTOR, interface=interface, agent_id="coder")  # type: ignore[arg-type]
        tools.invoke(caller, "memory_recall", {"query": "tea"}, offered)
    caller = caller_for(alice.owner, ACTOR, interface="mcp", agent_id="writer")
    tools.invoke(caller, "memory_search", {"query": "tea"}, catalog.TOOLS)
    search_log.write()
    logged = LoggedSearch.objects.order_by("pk").values_list("interface", "agent_id", "hits")
    assert list(logged) == [("tools", "coder", 0), ("mcp", "coder", 0), ("rpc", "coder", 0), ("mcp", "writer", 0)]


def test_words_are_kept_only_if_the_setting_says_so_and_without_secrets(alice: Person, settings: Any) -> None:
    assert log_one(alice.owner, "my words").query == ""
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    assert log_one(alice.owner, "my\x00 words").query == "my words"
    key = f"uk_{'a' * 43}"
    kept = log_one(alice.owner, f"is {key} valid")
    assert (key in kept.query, kept.query_chars) == (False, len(key) + 9)
    assert len(log_one(alice.owner, "x" * 8000).query) == search_log.MAX_QUERY_CHARS


def test_zero_days_turn_the_log_off(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS = 0
    search(alice, query="tea")
    assert search_log.write() == 0


def test_searches_older_than_the_setting_are_deleted(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS = 7
    old, new = log_one(alice.owner), log_one(alice.owner)
    now = timezone.now()
    LoggedSearch.objects.filter(pk=old.pk).update(at=now - timedelta(days=7, seconds=1))
    SearchCount.objects.create(hour=int(now.timestamp() / 3600) - 7 * 24 - 1, duration=99, searches=1, without_hits=0)
    search_log.delete_old(now)
    assert [one.pk for one in LoggedSearch.objects.all()] == [new.pk]
    assert {one.duration for one in SearchCount.objects.all()} & {99} == set()
    assert SearchCount.objects.exists()


def test_an_erasure_removes_the_users_searches_and_later_ones_are_not_written(alice: Person, bob: Person) -> None:
    log_one(alice.owner), log_one(bob.owner)
    waiting = SearchCommand(query="tea", scopes=frozenset({"all_user_memory"}))
    search_log.logged_search(alice.owner, waiting, interface="rest")
    search_log.logged_search(bob.owner, waiting, interface="rest")
    receipt = erase.erase(alice.owner.user_pk, actor=ACTOR)
    assert receipt["removed"]["logged_searches"] == 1
    assert search_log.write() == 1
    assert {one.user.user_id for one in LoggedSearch.objects.select_related("user")} == {"bob"}
    assert LoggedSearch.objects.count() == 2


def test_counts_by_hour_and_quantiles_agree_with_the_searches(alice: Person) -> None:
    say(alice, "chat:c1", "Green tea is best")
    for query in ("tea", "tea", "submarine"):
        log_one(alice.owner, query)
    now = timezone.now()
    hours = search_log.hours(now - timedelta(hours=2), now)
    assert (sum(searches for _at, searches, _none in hours), sum(none for *_rest, none in hours)) == (3, 1)
    assert hours[-1][0] <= now
    assert hours[-1][0].minute == 0
    median, slowest = search_log.quantiles(now - timedelta(hours=2), now, 0.5, 1)
    taken = sorted(LoggedSearch.objects.values_list("ms", flat=True))
    assert median == pytest.approx(taken[1], rel=0.15)
    assert slowest == pytest.approx(taken[2], rel=0.15)


def test_a_period_without_searches_has_no_quantiles() -> None:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    assert (search_log.hours(start, timezone.now()), search_log.quantiles(start, timezone.now(), 0.5)) == ([], [])


def test_more_searches_than_fit_are_left_out_and_one_batch_is_a_few_statements(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_log, "_MAX_PENDING", 20)
    for _ in range(25):
        search(alice, query="tea")
    with CaptureQueriesContext(connection) as queries:
        assert search_log.write() == 20
    assert len([one for one in queries if "INSERT INTO" in one["sql"] and "loggedsearch" in one["sql"]]) == 1
    assert len(queries) <= 8


def returned_by(logged: LoggedSearch) -> list[tuple[int, str, int]]:
    """Return rank, memory id and version of what a logged search returned."""
    ids = dict(Memory.objects.values_list("pk", "memory_id"))
    return [(one.rank, ids[one.row or 0], one.version) for one in logged.returned.order_by("rank")]


def test_what_a_search_returned_is_kept_with_ranks_and_versions_and_without_texts(alice: Person) -> None:
    say(alice, "chat:c1", "Green tea is best", "Black tea is bitter", "Coffee")
    found = [one["id"] for one in search(alice, query="tea", scope=["all_user_memory"])["results"]]
    search_log.write()
    first = LoggedSearch.objects.get()
    assert len(found) > 1
    assert returned_by(first) == [(rank, memory_id, 0) for rank, memory_id in enumerate(found, 1)]
    edited = MemoryRef(found[0])
    for text in ("White tea is best", "Yellow tea is best"):
        decisions.override(alice.owner.user_pk, edited, decisions.OverrideValues(text=text), actor=ACTOR)
    assert {one[1]: one[2] for one in returned_by(log_one(alice.owner))}[found[0]] == 2
    decisions.undo_override(alice.owner.user_pk, edited, actor=ACTOR)
    assert {one[1]: one[2] for one in returned_by(log_one(alice.owner))}[found[0]] == 0
    assert {one[1]: one[2] for one in returned_by(first)}[found[0]] == 0
    assert "tea" not in str(list(ReturnedMemory.objects.values()))


def test_results_are_not_kept_if_the_setting_says_so(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_RESULTS = False
    say(alice, "chat:c1", "Green tea is best")
    assert log_one(alice.owner).hits > 0
    assert not ReturnedMemory.objects.exists()


def test_what_was_returned_goes_with_its_search_and_its_user(alice: Person, bob: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS = 7
    for person in (alice, bob):
        say(person, "chat:c1", "Green tea is best")
        log_one(person.owner)
    receipt = erase.erase(alice.owner.user_pk, actor=ACTOR)
    assert receipt["removed"]["returned_memories"] == 1
    assert [one.search.user_id for one in ReturnedMemory.objects.select_related("search")] == [bob.owner.user_pk]
    search_log.delete_old(timezone.now() + timedelta(days=8))
    assert not ReturnedMemory.objects.exists()
