"""Saved views: own and shared lists with filters, their counts in the menu, and what ends them."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent, SavedView
from console import saved_views
from memories.models import LoggedSearch
from operations import erase
from resources.models import Resource
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_operators import member
from tests.roles import create_roles

pytestmark = pytest.mark.django_db
PANEL = "/admin/memory/"


@pytest.fixture(autouse=True)
def no_counts() -> None:
    cache.clear()


def save(
    client: Client, name: str, query: str, *, page: str = "memories", shared: bool = False, status: int = 302
) -> None:
    values = {"name": name, "page": page, "query": query, **({"is_shared": "1"} if shared else {})}
    assert client.post(f"{PANEL}views/save/", values).status_code == status


def menu(client: Client, path: str = "queues/") -> dict[str, str]:
    """The views in the menu of a page, with their counts; empty for one that is not counted yet."""
    page = client.get(f"{PANEL}{path}").content.decode()
    part = page.partition('<ul id="mg-views"')[2].partition("</ul>")[0]
    found = re.findall(r'<span class="mg-cut">([^<]+)</span>\s*(?:<span class="mg-count">([^<]+)</span>)?', part)
    return {unescape(name): count for name, count in found}


def counted(client: Client) -> dict[str, str]:
    """The menu after the request that the page sends for the counts."""
    page = client.get(f"{PANEL}queues/").content.decode()
    address = re.search(r'<ul id="mg-views"\s+hx-get="([^"]+)"', page)
    assert address
    client.get(unescape(address[1]))
    return menu(client)


def test_a_list_offers_to_save_its_filters_and_names_the_view(admin_client: Client, alice: Person) -> None:
    assert "view-save" not in admin_client.get(f"{PANEL}list/").content.decode()
    page = admin_client.get(f"{PANEL}list/", {"q": "green tea", "tab": "user", "start": "50"}).content.decode()
    query = unescape(re.findall(r'name="query" value="([^"]+)"', page)[0])
    assert query == "tab=user&q=green+tea"  # without the place in the list
    save(admin_client, "Tea", query)
    assert "View “Tea”" in admin_client.get(f"{PANEL}list/", {"q": "green tea", "tab": "user"}).content.decode()
    assert f'href="{PANEL}list/?tab=user&amp;q=green+tea"' in admin_client.get(f"{PANEL}views/").content.decode()


@pytest.mark.parametrize(
    ("page", "query", "number"),
    [
        ("memories", "mark=edited", "0"),
        ("memories", "q=tea", "3"),
        ("memories", "q=tea&category=user_memory_decision", "0"),
        ("memories", "user=alice", "3"),
        ("memories", "user=nobody", "0"),
        ("resources", "state=failed", "1"),
        ("users", "state=empty", "1"),
        ("searches", "hits=none", "2"),
    ],
)
def test_the_menu_counts_a_view_as_its_list_does(
    admin_client: Client, alice: Person, bob: Person, page: str, query: str, number: str
) -> None:
    for index in range(3):
        remember(alice.owner, f"Tea number {index}")
    Resource.objects.create(user_id=bob.user_pk, session_id="s", status="failed", filename="f.pdf")
    for hits in (0, 0, 4):
        LoggedSearch.objects.create(
            user_id=alice.user_pk, app_id="default", project_id="default", at=timezone.now(), interface="rest",
            method="hybrid", scopes="resources", top_k=8, has_filters=False, hits=hits, ms=1, query_chars=3,
        )  # fmt: skip
    save(admin_client, "One", query, page=page)
    assert menu(admin_client) == {"One": ""}
    assert counted(admin_client) == {"One": number}


def test_many_rows_are_counted_up_to_a_bound(
    admin_client: Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_views, "MOST", 2)
    for index in range(3):
        Resource.objects.create(user_id=alice.user_pk, session_id=f"s{index}", status="failed", filename="f.pdf")
    save(admin_client, "Failed", "state=failed", page="resources")
    assert counted(admin_client) == {"Failed": "2+"}


def test_a_page_pays_one_statement_for_the_menu(admin_client: Client, alice: Person) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(f"{PANEL}views/")
        return len(queries)

    statements()
    before = statements()
    for number in range(20):
        save(admin_client, f"View {number}", f"importance_min=0.{number + 10}")
    statements()
    assert statements() == before


def test_shared_views_are_in_the_menu_of_all_and_own_ones_are_not(alice: Person) -> None:
    create_roles()
    editor, viewer = member("Editor", "eva"), member("Viewer", "vera")
    save(editor, "Edited", "mark=edited", shared=True)
    save(editor, "Mine", "mark=covered")
    save(viewer, "Not shared", "mark=covered", shared=True)  # viewers may not share
    assert set(menu(viewer)) == {"Edited", "Not shared"}
    assert set(menu(editor)) == {"Edited", "Mine"}
    view, own = SavedView.objects.get(name="Edited"), SavedView.objects.get(name="Mine")
    assert viewer.post(f"{PANEL}views/{view.pk}/delete/").status_code == 403
    assert viewer.post(f"{PANEL}views/{own.pk}/delete/").status_code == 404
    assert editor.post(f"{PANEL}views/{view.pk}/delete/").status_code == 302
    assert set(menu(viewer)) == {"Not shared"}


def test_a_view_of_a_list_that_an_operator_may_not_open_is_not_shown(admin_client: Client, alice: Person) -> None:
    save(admin_client, "Failed", "state=failed", page="resources", shared=True)
    reader = User.objects.create_user("rita", is_staff=True)
    client = Client()
    client.force_login(reader)
    assert "Failed" not in client.get(f"{PANEL}views/").content.decode()
    save(client, "Failed", "state=failed", page="resources", status=403)


def test_a_name_is_used_once_and_the_number_is_bounded(admin_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_OF_OPERATOR", 2)
    save(admin_client, "A", "mark=edited")
    save(admin_client, "A", "mark=covered")
    assert SavedView.objects.get().query == "mark=covered"
    save(admin_client, "B", "mark=edited")
    save(admin_client, "C", "mark=edited", status=409)
    save(admin_client, "A", "mark=expired")


@pytest.mark.parametrize("query", ["", "tab=all", "importance_min=x", "unknown=1"])
def test_a_list_without_valid_filters_is_not_saved(admin_client: Client, query: str) -> None:
    save(admin_client, "Nothing", query, status=422)
    assert not SavedView.objects.exists()


def test_an_erasure_deletes_the_views_of_the_user_alone(admin_client: Client, alice: Person, bob: Person) -> None:
    save(admin_client, "Of Alice", "user=alice&q=tea", shared=True)
    save(admin_client, "Of Bob", "user=bob")
    assert AuditEvent.objects.filter(action="view.save", user_id="alice").exists()
    admin_client.get(f"{PANEL}views/")
    shown = AuditEvent.objects.get(action="view.list")
    assert set(shown.subjects.values_list("user_id", flat=True)) == {"alice", "bob"}
    erase.erase(alice.user_pk, actor=Actor.operator("olga"))
    assert list(SavedView.objects.values_list("name", flat=True)) == ["Of Bob"]
