"""Permissions of the pages of memories, and the audit events of reading."""

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
# The permission of each page. A test fails for a new page without a line here.
PAGES = {
    "dashboard": ("get", VIEW),
    "find": ("get", VIEW),
    "find-chosen": ("post", VIEW),
    "language": ("post", ""),
    "memories": ("get", VIEW),
    "memory": ("get", VIEW),
    "memory-text": ("get", VIEW),
    "memory-raw": ("get", VIEW),
    "memory-place": ("get", VIEW),
    "memory-place-image": ("get", VIEW),
    "memory-edit": ("get", CHANGE),
    "memory-keep": ("post", CHANGE),
    "memory-revert": ("post", CHANGE),
    "memory-delete": ("post", DELETE),
    "memory-restore": ("post", DELETE),
    "lab": ("get", VIEW),
    "add": ("get", ADD),
    "case-save": ("post", CHANGE),
    "bulk": ("post", VIEW),
    "bulk-preview": ("get", VIEW),
    "undo": ("post", VIEW),
    "job-undo": ("post", VIEW),
}
POST_PAGES = {name for name, (method, _permission) in PAGES.items() if method == "post"}


def address(name: str, row: int = ROW) -> str:
    if name == "job-undo":
        return reverse(f"console:{name}", args=["00000000-0000-4000-8000-000000000000"])
    return reverse(f"console:{name}", args=[row] if name.startswith("memory") else [])


def operator_client(*permissions: str) -> Client:
    user = User.objects.create_user(f"op-{'-'.join(permissions) or 'none'}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions, content_type__app_label="store"))
    client = Client()
    client.force_login(user)
    return client


def test_every_memory_page_has_a_listed_permission() -> None:
    named = {pattern.name for pattern in urlpatterns}
    assert set(PAGES) <= named
    assert {name for name in named if name.startswith(("memory", "add", "lab", "dash"))} <= set(PAGES)


@pytest.mark.django_db
@pytest.mark.parametrize("name", [name for name, (_method, permission) in PAGES.items() if permission])
def test_each_page_requires_its_permission(name: str) -> None:
    method, permission = PAGES[name]
    others = {VIEW, ADD, CHANGE, DELETE} - {permission}
    refused = getattr(operator_client(*others), method)(address(name))
    assert refused.status_code == 403
    assert f"store.{permission}" in refused.content.decode()
    assert getattr(operator_client(permission), method)(address(name)).status_code != 403


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(POST_PAGES))
def test_get_requests_change_nothing(admin_client: Client, name: str) -> None:
    assert admin_client.get(address(name)).status_code == 405


@pytest.mark.django_db
def test_a_form_requires_its_csrf_token(alice: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("op"))
    memory = remember(alice.owner)
    assert client.post(address("memory-delete", memory.row)).status_code == 403
    assert browse.get(memory.row).state == "live"


@pytest.mark.django_db
def test_a_bulk_action_requires_its_own_permission(alice: Person) -> None:
    memory = remember(alice.owner)
    answer = operator_client(VIEW).post(address("bulk"), {"do": "delete", "id": memory.row})
    assert answer.status_code == 403
    assert browse.get(memory.row).state == "live"


@pytest.mark.django_db
@pytest.mark.parametrize(("do", "permission", "other"), [("delete", DELETE, CHANGE), ("categorize", CHANGE, DELETE)])
def test_an_undo_requires_the_permission_of_the_action(alice: Person, do: str, permission: str, other: str) -> None:
    memory = remember(alice.owner)
    actor, outsider = operator_client(VIEW, permission), operator_client(VIEW, other)
    params = {"category": "user_memory_decision"} if do == "categorize" else {}
    job = bulk.start(do, bulk.of_rows([memory.row]), params, actor=Actor.operator("somebody"))
    pages = [reverse(f"console:{name}", args=[job.pk]) for name in ("job", "job-undo")]
    has_undo = [pages[1] in client.get(pages[0]).content.decode() for client in (actor, outsider)]
    assert has_undo == [True, False]
    refused = outsider.post(pages[1])
    assert (refused.status_code, f"store.{permission}" in refused.content.decode()) == (403, True)
    assert browse.get(memory.row) != memory
    assert actor.post(pages[1]).status_code == 302
    assert browse.get(memory.row) == memory


@pytest.mark.django_db
@pytest.mark.parametrize(("do", "permission", "other"), [("delete", DELETE, CHANGE), ("categorize", CHANGE, DELETE)])
def test_an_undo_without_a_job_requires_the_permission_of_the_action(
    alice: Person, do: str, permission: str, other: str
) -> None:
    memory = remember(alice.owner)
    actor, outsider = operator_client(VIEW, permission), operator_client(VIEW, other)
    actor.post(address("bulk"), {"do": do, "id": memory.row, "category": "user_memory_decision"})
    undo = undo_address(actor)
    refused = outsider.post(undo)
    assert (refused.status_code, f"store.{permission}" in refused.content.decode()) == (403, True)
    assert browse.get(memory.row) != memory
    assert actor.post(undo).status_code == 302
    assert browse.get(memory.row) == memory


@pytest.mark.django_db
def test_a_forged_undo_is_rejected(admin_client: Client) -> None:
    for forged in ("", "?changes=forged", f"?changes={signing.dumps(['delete', []], salt='other')}"):
        assert admin_client.post(address("undo") + forged).status_code == 400


@pytest.mark.django_db
def test_a_forged_selection_is_rejected(admin_client: Client) -> None:
    for data in ({"matching": "1", "target": "forged"}, {"id": "x"}, {"id": "9" * 30}, {"do": "drop"}):
        assert admin_client.post(address("bulk"), {"do": "delete", **data}).status_code == 400


@pytest.mark.django_db
def test_redirects_never_leave_the_site(admin_client: Client, alice: Person) -> None:
    for target in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        memory = remember(alice.owner)
        answer = admin_client.post(address("memory-delete", memory.row), {"next": target})
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
        ("search/?q=secret+words&user=alice", "lab.search"),
        ("?user=alice", "dashboard.view"),
    ],
)
def test_each_read_creates_one_audit_event_without_text(
    admin_client: Client, alice: Person, path: str, action: str
) -> None:
    memory = remember(alice.owner, "secret words of alice")
    AuditEvent.objects.all().delete()
    assert admin_client.get(f"/admin/memory/{path.format(row=memory.row)}").status_code == 200
    event = AuditEvent.objects.get()
    assert (event.action, event.actor_kind, event.actor, event.user_id) == (action, "operator", "admin", "alice")
    assert "secret" not in str(vars(event))


@pytest.mark.django_db
def test_the_audit_event_of_a_list_has_the_users_whose_memories_were_read(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        remember(person.owner)
    AuditEvent.objects.all().delete()
    admin_client.get("/admin/memory/list/?agent=&importance_min=0.2")
    event = AuditEvent.objects.get()
    assert event.detail == {"filter": {"importance_min": "0.2"}}
    assert sorted(event.subjects.values_list("user_id", flat=True)) == ["alice", "bob"]


@pytest.mark.django_db
@pytest.mark.parametrize("row", [999, 2**63, 10**20])
def test_an_unknown_memory_gives_a_404_page(admin_client: Client, row: int) -> None:
    answer = admin_client.get(address("memory", row))
    assert answer.status_code == 404
    assert "Not found" in answer.content.decode()


@pytest.mark.django_db
def test_global_search_redirects_to_pages_that_the_operator_may_open(alice: Person) -> None:
    memory = remember(alice.owner)
    reader = operator_client(VIEW)
    for query, expected in (
        (memory.memory_id, address("memory", memory.row)),
        ("alice", "/admin/memory/list/?tab=all&user=alice"),
        (str(alice.user_pk), "/admin/memory/list/?tab=all&user=alice"),
        ("nobody's", "/admin/memory/list/?tab=all&q=nobody%27s"),
    ):
        assert reader.get(address("find"), {"q": query}).headers["Location"] == expected


@pytest.mark.django_db
def test_times_are_in_the_time_zone_of_the_browser(admin_client: Client, alice: Person, settings: Any) -> None:
    memory = remember(alice.owner)
    settings.TIME_ZONE = "Europe/Berlin"
    assert "2026-11-20 13:00</time>" in admin_client.get(address("memory", memory.row)).content.decode()
    settings.TIME_ZONE = "UTC"
    for zone, shown in (("Asia%2FShanghai", "20:00"), ("America/New_York", "07:00"), ("../../etc/passwd", "12:00")):
        admin_client.cookies["mg_zone"] = zone
        assert f"2026-11-20 {shown}</time>" in admin_client.get(address("memory", memory.row)).content.decode()


@pytest.mark.django_db
def test_a_get_request_after_sign_in_explains_that_the_form_was_not_sent(admin_client: Client, alice: Person) -> None:
    answer = admin_client.get(address("memory-delete", remember(alice.owner).row))
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "No changes made" in answer.content.decode()


@pytest.mark.django_db
def test_a_form_that_was_sent_without_a_session_is_reported_after_signing_in(
    admin_client: Client, admin_user: User, alice: Person
) -> None:
    edit = address("memory-edit", remember(alice.owner).row)
    admin_client.logout()
    assert admin_client.post(edit, {"text": "much work"}).status_code == 302
    admin_client.force_login(admin_user)
    assert "Nothing was saved, because you had to sign in." in admin_client.get(edit).content.decode()


@pytest.mark.django_db
def test_an_error_page_links_back_to_the_form_but_not_to_other_sites(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    for referer, back in (
        ("http://testserver/admin/memory/list/?q=tea", "http://testserver/admin/memory/list/?q=tea"),
        ("https://evil.example/admin/", ""),
    ):
        page = admin_client.post(address("memory-restore", row), headers={"Referer": referer}).content.decode()
        content = page[page.index('id="content"') :]
        assert "The memory is not in the trash. Nothing was changed." in content
        assert (f'href="{back}"' in content) is bool(back)
        assert "evil" not in content


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    ["from=2100-12-31", "range=7d&from=2100-12-31T23:59", "from=2026-11-20T10:00:00.0001&to=2026-11-20T10:00:00.0002"],
)
def test_the_dashboard_reports_an_empty_time_range(admin_client: Client, query: str) -> None:
    answer = admin_client.get(f"/admin/memory/?{query}")
    assert (answer.status_code, "The start time must be before the end time." in answer.content.decode()) == (200, True)
