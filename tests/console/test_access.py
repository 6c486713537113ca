"""Who may open and do what, and the trace that reading leaves."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core import signing
from django.test import Client
from django.urls import reverse

from accounts.audit import Actor
from accounts.models import AuditEvent
from console.urls import urlpatterns
from operations import bulk
from store import browse
from tests.conftest import Person
from tests.console.people import remember, undo_address

ROW = 1
VIEW, ADD, CHANGE, DELETE = "view_memory", "add_memory", "change_memory", "delete_memory"
# What each page asks for. A new page without a line here fails.
PAGES = {
    "dashboard": ("get", VIEW),
    "find": ("get", VIEW),
    "language": ("post", ""),
    "memories": ("get", VIEW),
    "memory": ("get", VIEW),
    "memory-text": ("get", VIEW),
    "memory-raw": ("get", VIEW),
    "memory-edit": ("get", CHANGE),
    "memory-revert": ("post", CHANGE),
    "memory-delete": ("post", DELETE),
    "memory-restore": ("post", DELETE),
    "lab": ("get", VIEW),
    "add": ("get", ADD),
    "bulk": ("post", VIEW),
    "undo": ("post", VIEW),
    "job-undo": ("post", VIEW),
}
ACTS = {name for name, (method, _permission) in PAGES.items() if method == "post"}


def address(name: str, row: int = ROW) -> str:
    if name == "job-undo":
        return reverse(f"console:{name}", args=["00000000-0000-4000-8000-000000000000"])
    return reverse(f"console:{name}", args=[row] if name.startswith("memory") else [])


def operator(*permissions: str) -> Client:
    user = User.objects.create_user(f"op-{'-'.join(permissions) or 'none'}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions, content_type__app_label="store"))
    client = Client()
    client.force_login(user)
    return client


def test_the_table_names_every_page() -> None:
    named = {pattern.name for pattern in urlpatterns}
    assert set(PAGES) <= named
    assert {name for name in named if name.startswith(("memory", "add", "lab", "dash"))} <= set(PAGES)


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, (_method, needed) in PAGES.items() if needed])
def test_each_page_needs_its_permission(name: str) -> None:
    method, needed = PAGES[name]
    others = {VIEW, ADD, CHANGE, DELETE} - {needed}
    refused = getattr(operator(*others), method)(address(name))
    assert refused.status_code == 403
    assert f"store.{needed}" in refused.content.decode()
    assert getattr(operator(needed), method)(address(name)).status_code != 403


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(ACTS))
def test_reading_an_address_changes_nothing(admin_client: Client, name: str) -> None:
    assert admin_client.get(address(name)).status_code == 405


@pytest.mark.django_db
def test_an_act_needs_the_token_of_its_form(alice: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("op"))
    memory = remember(alice.owner)
    assert client.post(address("memory-delete", memory.row)).status_code == 403
    assert browse.get(memory.row).hidden_at is None


@pytest.mark.django_db
def test_a_bulk_act_needs_its_own_permission(alice: Person) -> None:
    memory = remember(alice.owner)
    answer = operator(VIEW).post(address("bulk"), {"do": "delete", "id": memory.row})
    assert answer.status_code == 403
    assert browse.get(memory.row).hidden_at is None


@pytest.mark.django_db
@pytest.mark.parametrize(("do", "needed", "other"), [("delete", DELETE, CHANGE), ("categorise", CHANGE, DELETE)])
def test_undoing_needs_the_permission_of_the_deed(alice: Person, do: str, needed: str, other: str) -> None:
    memory = remember(alice.owner)
    doer, stranger = operator(VIEW, needed), operator(VIEW, other)
    params = {"category": "user_memory_decision"} if do == "categorise" else {}
    done = bulk.start(do, bulk.of_rows([memory.row]), params, actor=Actor.operator("somebody"))
    pages = [reverse(f"console:{name}", args=[done.pk]) for name in ("job", "job-undo")]
    offered = [pages[1] in client.get(pages[0]).content.decode() for client in (doer, stranger)]
    assert offered == [True, False]
    refused = stranger.post(pages[1])
    assert (refused.status_code, f"store.{needed}" in refused.content.decode()) == (403, True)
    assert browse.get(memory.row) != memory
    assert doer.post(pages[1]).status_code == 302
    assert browse.get(memory.row) == memory


@pytest.mark.django_db
@pytest.mark.parametrize(("do", "needed", "other"), [("delete", DELETE, CHANGE), ("categorise", CHANGE, DELETE)])
def test_undoing_without_a_job_needs_the_same_permission(alice: Person, do: str, needed: str, other: str) -> None:
    memory = remember(alice.owner)
    doer, stranger = operator(VIEW, needed), operator(VIEW, other)
    doer.post(address("bulk"), {"do": do, "id": memory.row, "category": "user_memory_decision"})
    undo = undo_address(doer)
    refused = stranger.post(undo)
    assert (refused.status_code, f"store.{needed}" in refused.content.decode()) == (403, True)
    assert browse.get(memory.row) != memory
    assert doer.post(undo).status_code == 302
    assert browse.get(memory.row) == memory


@pytest.mark.django_db
def test_an_undo_that_the_panel_did_not_offer_is_refused(admin_client: Client) -> None:
    for forged in ("", "?changes=forged", f"?changes={signing.dumps(['delete', []], salt='other')}"):
        assert admin_client.post(address("undo") + forged).status_code == 400


@pytest.mark.django_db
def test_a_selection_that_no_list_made_is_refused(admin_client: Client) -> None:
    for given in ({"matching": "1", "target": "forged"}, {"id": "x"}, {"id": "9" * 30}, {"do": "drop"}):
        assert admin_client.post(address("bulk"), {"do": "delete", **given}).status_code == 400


@pytest.mark.django_db
def test_going_on_never_leaves_this_site(admin_client: Client, alice: Person) -> None:
    for wanted in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        memory = remember(alice.owner)
        answer = admin_client.post(address("memory-delete", memory.row), {"next": wanted})
        assert answer.headers["Location"] == address("memory", memory.row)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("list/?tab=all&session=chat:c1", "memory.list"),
        ("list/?tab=all&q=secret+words", "memory.list"),
        ("m/{row}/", "memory.view"),
        ("m/{row}/text/", "memory.view"),
        ("m/{row}/raw/", "memory.view"),
        ("m/{row}/edit/", "memory.view"),
        ("search/?q=secret+words&user=alice", "memory.lab"),
        ("add/?like={row}", "memory.view"),
        ("?user=alice", "memory.dashboard"),
    ],
)
def test_every_read_leaves_one_line_without_text(admin_client: Client, alice: Person, path: str, action: str) -> None:
    memory = remember(alice.owner, "secret words of alice")
    AuditEvent.objects.all().delete()
    assert admin_client.get(f"/admin/memory/{path.format(row=memory.row)}").status_code == 200
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_kind, event.actor, event.user_id) == (action, "operator", "admin", "alice")
    assert "secret" not in str(vars(event))


@pytest.mark.django_db
def test_a_list_says_whose_memories_were_read(admin_client: Client, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        remember(person.owner)
    AuditEvent.objects.all().delete()
    admin_client.get("/admin/memory/list/?agent=&importance_min=0.2")
    detail: dict[str, Any] = AuditEvent.objects.get().detail
    assert detail == {"filter": {"importance_min": "0.2"}, "users": ["alice", "bob"]}


@pytest.mark.django_db
@pytest.mark.parametrize("row", [999, 2**63, 10**20])
def test_a_memory_that_is_not_there_is_a_page(admin_client: Client, row: int) -> None:
    answer = admin_client.get(address("memory", row))
    assert answer.status_code == 404
    assert "This is not here" in answer.content.decode()


@pytest.mark.django_db
def test_find_leads_to_a_memory_and_only_where_one_may_go(alice: Person) -> None:
    memory = remember(alice.owner)
    reader = operator(VIEW)
    for words, found in (
        (memory.memory_id, address("memory", memory.row)),
        ("alice", "/admin/memory/list/?tab=all&user=alice"),
        (str(alice.user_pk), "/admin/memory/list/?tab=all&user=alice"),
        ("nobody's", "/admin/memory/list/?tab=all&q=nobody%27s"),
    ):
        assert reader.get(address("find"), {"q": words}).headers["Location"] == found


@pytest.mark.django_db
def test_the_zone_of_the_browser_is_the_pages(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner)
    for zone, shown in (("Asia%2FShanghai", "20:00"), ("America/New_York", "07:00"), ("../../etc/passwd", "12:00")):
        admin_client.cookies["mg_zone"] = zone
        assert f"2026-11-20 {shown}</time>" in admin_client.get(address("memory", memory.row)).content.decode()


@pytest.mark.django_db
def test_a_form_that_got_lost_while_signing_in_is_explained(admin_client: Client, alice: Person) -> None:
    answer = admin_client.get(address("memory-delete", remember(alice.owner).row))
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "Nothing was done" in answer.content.decode()


@pytest.mark.django_db
def test_a_refused_form_leads_back_to_its_page_and_nowhere_else(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    for referer, back in (
        ("http://testserver/admin/memory/list/?q=tea", "http://testserver/admin/memory/list/?q=tea"),
        ("https://evil.example/admin/", ""),
    ):
        page = admin_client.post(address("memory-restore", row), headers={"Referer": referer}).content.decode()
        content = page[page.index('id="content"') :]
        assert "This memory is not in the trash. Nothing was changed." in content
        assert (f'href="{back}"' in content) is bool(back)
        assert "evil" not in content


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    ["from=2100-12-31", "range=7d&from=2100-12-31T23:59", "from=2026-11-20T10:00:00.0001&to=2026-11-20T10:00:00.0002"],
)
def test_a_dashboard_without_any_time_says_so(admin_client: Client, query: str) -> None:
    answer = admin_client.get(f"/admin/memory/?{query}")
    assert (answer.status_code, "The start lies after the end." in answer.content.decode()) == (200, True)
