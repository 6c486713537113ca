"""The page of the log of searches: filters, pages, words for those who may read memories, and the way to the lab."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.models import LoggedSearch, ReturnedMemory
from memories.services import decisions, search_log
from memories.services.lookup import MemoryRef
from operations.evaluation import Question
from store import browse
from tests.conftest import Person
from tests.console.people import remember
from tests.memories.calls import search

pytestmark = pytest.mark.django_db
URL = "/admin/memory/searches/"


@pytest.fixture(autouse=True)
def nothing_pending(settings: Any) -> None:
    settings.MEMORY_GATEWAY_LOG_QUERIES = True
    search_log._pending.clear()


def logged(person: Person, **fields: Any) -> LoggedSearch:
    values = {
        "at": timezone.now(), "interface": "rest", "scopes": "all_user_memory", "method": "hybrid", "top_k": 8,
        "has_filters": False, "hits": 2, "ms": 3.5, "query_chars": 9, "query": "green tea",
    }  # fmt: skip
    return LoggedSearch.objects.create(
        user_id=person.owner.user_pk, app_id="default", project_id="default", **{**values, **fields}
    )


def shown(client: Client, query: str = "") -> list[int]:
    return [row["search"].pk for row in client.get(f"{URL}{query}").context["rows"]]


def test_each_filter_leaves_the_searches_that_match(admin_client: Client, alice: Person, bob: Person) -> None:
    now = timezone.now().replace(hour=12) - timedelta(days=1)  # an hour earlier is the same day
    plain = logged(alice, at=now)
    old = logged(alice, at=now - timedelta(days=3), agent_id="coder", interface="mcp")
    none = logged(bob, at=now - timedelta(hours=1), hits=0)
    assert shown(admin_client) == [plain.pk, none.pk, old.pk]
    assert shown(admin_client, "?user=alice") == [plain.pk, old.pk]
    assert shown(admin_client, "?agent=coder") == shown(admin_client, "?interface=mcp") == [old.pk]
    assert shown(admin_client, "?hits=none") == [none.pk]
    assert shown(admin_client, f"?to={now - timedelta(days=1):%Y-%m-%d}") == [old.pk]
    assert shown(admin_client, f"?from={now - timedelta(days=1):%Y-%m-%d}") == [plain.pk, none.pk]
    unknown = admin_client.get(f"{URL}?user=nobody")
    assert (unknown.context["rows"], len(unknown.context["filters"].problems)) == ([], 1)


def test_pages_show_every_search_once(admin_client: Client, alice: Person) -> None:
    now = timezone.now()
    made = [logged(alice, at=now - timedelta(seconds=number // 3)).pk for number in range(120)]
    seen, address = [], URL
    while address:
        page = admin_client.get(address).context
        seen += [row["search"].pk for row in page["rows"]]
        address = page["following"]
    assert sorted(seen) == sorted(made)


def test_an_operator_who_may_not_read_memories_sees_no_words(client: Client, alice: Person) -> None:
    logged(alice)
    operator = User.objects.create_user("ann", is_staff=True)
    operator.user_permissions.add(Permission.objects.get(codename="view_loggedsearch"))
    client.force_login(operator)
    page = client.get(URL).content.decode()
    assert "9 characters" in page
    assert "green" not in page
    operator.user_permissions.add(Permission.objects.get(codename="view_memory"))
    assert "green tea" in client.get(URL).content.decode()


def test_explain_runs_the_same_search_in_the_lab(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "Green tea is best")
    found = search(alice, query="green tea", scope=["all_user_memory"], top_k=3, method="keyword", radius=0.1)
    search_log.write()
    (row,) = admin_client.get(URL).context["rows"]
    lab = admin_client.get(row["explain"])
    assert not lab.context["filters"].problems
    command = lab.context["filters"].command(alice.owner.user_pk)
    assert (command.query, command.top_k, command.method, command.radius) == ("green tea", 3, "keyword", 0.1)
    assert command.scopes == {"all_user_memory"}
    assert '"radius": 0.1' in lab.context["curl"]
    hits = [hit["found"].hit.memory_id for hit in lab.context["hits"]]
    assert hits == [result["id"] for result in found["results"]]


def test_a_search_by_tools_is_explained_as_that_agent(admin_client: Client, alice: Person) -> None:
    logged(alice, interface="mcp", agent_id="coder")
    (row,) = admin_client.get(URL).context["rows"]
    assert parse_qs(urlsplit(row["explain"]).query)["reader"] == ["coder"]
    assert admin_client.get(row["explain"]).context["filters"].command(alice.owner.user_pk).reader == "coder"


@pytest.mark.parametrize("fields", [{"query": ""}, {"query_chars": 3000}, {"has_filters": True}])
def test_a_search_with_unknown_parts_is_not_explained(
    admin_client: Client, alice: Person, fields: dict[str, Any]
) -> None:
    logged(alice, **fields)
    assert [row["explain"] for row in admin_client.get(URL).context["rows"]] == [""]


def test_the_page_is_audited_with_its_users(admin_client: Client, alice: Person) -> None:
    logged(alice)
    admin_client.get(f"{URL}?hits=&user=alice")
    event = AuditEvent.objects.get(action="search.list")
    assert (event.kind, event.user_id, event.subjects.get().user_id) == ("read", "alice", "alice")


ACTOR = Actor.operator("op")


def ask(person: Person, query: str) -> LoggedSearch:
    search(person, query=query, scope=["all_user_memory"])
    search_log.write()
    return LoggedSearch.objects.latest("pk")


def page_of(client: Client, logged: LoggedSearch) -> Any:
    return client.get(f"{URL}{logged.pk}/")


def test_a_search_is_shown_as_it_was_beside_the_same_search_now(admin_client: Client, alice: Person) -> None:
    kept, edited, deleted = (remember(alice.owner, f"Green tea {what}") for what in ("at four", "is bitter", "is over"))
    logged = ask(alice, "green tea")
    before = page_of(admin_client, logged)
    assert [(line.memory.row, line.change, line.place) for line in before.context["lines"]] == [
        (one["row"], "", one["rank"]) for one in before.context["now"]["hits"]
    ]
    pk = alice.owner.user_pk
    decisions.override(pk, MemoryRef(edited.memory_id), decisions.OverrideValues(text="Coffee is bitter"), actor=ACTOR)
    decisions.delete(pk, MemoryRef(deleted.memory_id), actor=ACTOR)
    added = remember(alice.owner, "Green tea and green cups")
    page = page_of(admin_client, logged)
    lines = {line.memory.row: line for line in page.context["lines"]}
    assert {row: str(line.change) for row, line in lines.items()} == {
        kept.row: "", edited.row: "Edited since", deleted.row: "In trash"
    }  # fmt: skip
    then, _, _now = page.content.decode().partition('id="h-now"')
    assert "Green tea at four" in then
    assert not [text for text in ("is bitter", "is over") if text in then]
    assert (lines[deleted.row].place, lines[kept.row].place) == (
        None,
        1 + [one["row"] for one in page.context["now"]["hits"]].index(kept.row),
    )
    assert {one["row"]: one["before"] for one in page.context["now"]["hits"]}[added.row] is None
    decisions.undo_override(pk, MemoryRef(edited.memory_id), actor=ACTOR)
    assert "Green tea is bitter" in page_of(admin_client, logged).content.decode().partition('id="h-now"')[0]


def test_what_is_gone_leaves_only_its_rank(admin_client: Client, alice: Person, bob: Person) -> None:
    logged_one, foreign = logged(alice), remember(bob.owner, "Bob drinks green tea")
    for rank, row in enumerate((10**9, None, foreign.row), 1):
        ReturnedMemory.objects.create(search=logged_one, rank=rank, row=row)
    page = page_of(admin_client, logged_one)
    assert [str(line.change) for line in page.context["lines"]] == [
        "Purged since", "Only the remote holds it", "Purged since"
    ]  # fmt: skip
    assert "Bob drinks" not in page.content.decode()
    assert foreign.memory_id not in page.content.decode().split()


def test_an_operator_who_may_not_read_memories_sees_ids_and_ranks_alone(client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "Green tea at four")
    logged = ask(alice, "green tea")
    operator = User.objects.create_user("ann", is_staff=True)
    operator.user_permissions.add(Permission.objects.get(codename="view_loggedsearch"))
    client.force_login(operator)
    page = page_of(client, logged).content.decode()
    assert memory.memory_id in page
    assert "reen tea" not in page
    assert client.post(f"{URL}{logged.pk}/question/", {"text": "tea"}).status_code == 403
    operator.user_permissions.set(Permission.objects.filter(codename="view_memory"))
    client.force_login(User.objects.get(pk=operator.pk))
    assert page_of(client, logged).status_code == 403
    assert "Used in" not in client.get(f"/admin/memory/m/{memory.row}/").content.decode()


def test_a_memory_lists_the_answers_that_used_it_and_whom_it_reached(
    admin_client: Client, alice: Person, bob: Person, django_assert_num_queries: Any
) -> None:
    memory = remember(alice.owner, "Green tea at four", session_id="chat:c1")
    for conversation in ("c1", "c1", "gone"):
        search(alice, query="tea", scope=["current_chat", "all_user_memory"], conversation_id=conversation)
    search_log.write()
    uses = admin_client.get(f"/admin/memory/m/{memory.row}/").context["uses"]
    assert [use.search_id for use in uses["latest"]] == list(
        LoggedSearch.objects.order_by("-pk").values_list("pk", flat=True)
    )
    assert (uses["total"], uses["callers"]) == (3, [("REST", "", 3)])
    assert uses["sessions"] == [("chat:c1", True, 2), ("chat:gone", False, 1)]
    answer = admin_client.post(f"/admin/memory/m/{memory.row}/delete/")
    assert (answer.status_code, browse.get(memory.row).state) == (302, "trashed")
    assert admin_client.get(f"/admin/memory/m/{memory.row}/").context["uses"]["total"] == 3


def test_the_most_frequent_searches_without_results_come_first(admin_client: Client, alice: Person) -> None:
    for query, hits in (("Where is it", 0), ("where  IS it", 0), ("what now", 0), ("green tea", 2), ("", 0)):
        last = logged(alice, query=query, hits=hits)
    frequent = admin_client.get(f"{URL}?hits=none").context["frequent"]
    assert [(words, count) for words, count, _pk in frequent] == [("where  IS it", 2), ("what now", 1)]
    assert admin_client.get(URL).context["frequent"] == ()
    assert last.hits == 0


def test_a_search_becomes_a_question_of_the_evaluation(admin_client: Client, alice: Person) -> None:
    kept, deleted = remember(alice.owner, "Green tea at four"), remember(alice.owner, "Green tea is over")
    logged = ask(alice, "green tea")
    decisions.delete(alice.owner.user_pk, MemoryRef(deleted.memory_id), actor=ACTOR)
    url = f"{URL}{logged.pk}/question/"
    sent = admin_client.post(url, {"expected": kept.row, "text": ""})
    assert sent["Content-Disposition"] == f'attachment; filename="question-{logged.pk}.jsonl"'
    made = Question.model_validate_json(sent.content)
    assert (made.user, made.query) == ("alice", "green tea")
    assert (made.expected, made.forbidden) == ((kept.memory_id,), (deleted.memory_id,))
    assert Question.model_validate_json(admin_client.post(url, {"text": "at four"}).content).texts == ("at four",)
    assert admin_client.post(url, {"expected": 10**9}).status_code == 422
    assert AuditEvent.objects.filter(action="search.question", user_id="alice").count() == 2
    nothing = logged_without_results(alice)
    assert admin_client.post(f"{URL}{nothing.pk}/question/", {}).status_code == 422


def logged_without_results(person: Person) -> LoggedSearch:
    return logged(person, hits=0)


def test_a_search_whose_words_are_not_stored_is_no_question(admin_client: Client, alice: Person) -> None:
    hidden = logged(alice, query="")
    page = page_of(admin_client, hidden)
    assert (page.context["is_askable"], page.context["now"]) == (False, {})
    assert admin_client.post(f"{URL}{hidden.pk}/question/", {"text": "tea"}).status_code == 422


def test_the_page_of_a_search_is_in_the_trail_of_its_user(admin_client: Client, alice: Person) -> None:
    page_of(admin_client, logged(alice))
    assert AuditEvent.objects.get(action="search.view").user_id == "alice"
    assert admin_client.get(f"{URL}999/").status_code == 404
