"""The page of the log of searches: filters, pages, words for those who may read memories, and the way to the lab."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from accounts.models import AuditEvent
from memories.models import LoggedSearch
from memories.services import search_log
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
    command = lab.context["filters"].command()
    assert (command.query, command.top_k, command.method, command.radius) == ("green tea", 3, "keyword", 0.1)
    assert command.scopes == {"all_user_memory"}
    assert '"radius": 0.1' in lab.context["curl"]
    hits = [hit["found"].hit.memory_id for hit in lab.context["hits"]]
    assert hits == [result["id"] for result in found["results"]]


def test_a_search_by_tools_is_explained_as_that_agent(admin_client: Client, alice: Person) -> None:
    logged(alice, interface="mcp", agent_id="coder")
    (row,) = admin_client.get(URL).context["rows"]
    assert parse_qs(urlsplit(row["explain"]).query)["reader"] == ["coder"]
    assert admin_client.get(row["explain"]).context["filters"].command().reader == "coder"


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
