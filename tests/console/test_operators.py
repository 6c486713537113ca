"""Operators and their roles: what each role may open, and what each change does."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils.http import urlsafe_base64_encode

from accounts import operators as services
from accounts.audit import Actor
from accounts.models import AuditEvent
from tests.console import test_access, test_access_of_data_pages
from tests.roles import create_roles

ROLES = ("Viewer", "Editor", "Curator", "Privacy officer", "Administrator")
PAGES = {name: permission for name, (_method, permission) in test_access_of_data_pages.PAGES.items()} | {
    name: f"store.{permission}" for name, (_method, permission) in test_access.PAGES.items() if permission
}

NEW_PASSWORD = "Harbor-2291-q"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def roles(db: Any) -> None:
    create_roles()


def member(role: str, name: str = "ann") -> Client:
    operator = User.objects.create_user(name, is_staff=True)
    operator.groups.add(Group.objects.get(name=role))
    client = Client()
    client.force_login(operator)
    return client


def invited(answer: Any) -> str:
    """Return the link of the invitation that a page shows."""
    return str(answer.context["link"])


def accept(link: str, password: str = NEW_PASSWORD) -> Any:
    """Open an invitation and set a password; return the answer."""
    client = Client()
    form = client.get(link)
    if form.status_code != 302:
        return form
    return client.post(form.headers["Location"], {"new_password1": password, "new_password2": password})


@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_the_pages_that_its_permissions_name_and_no_others(role: str) -> None:
    granted = {
        f"{permission.content_type.app_label}.{permission.codename}"
        for permission in Group.objects.get(name=role).permissions.select_related("content_type")
    }
    client, opened = member(role), set()
    for name, (method, _permission) in {**test_access.PAGES, **test_access_of_data_pages.PAGES}.items():
        module = test_access if name in test_access.PAGES else test_access_of_data_pages
        if name in PAGES and getattr(client, method)(module.address(name)).status_code != 403:
            opened.add(name)
    assert opened == {name for name, permission in PAGES.items() if permission in granted}


def test_each_role_may_do_its_work_and_no_more() -> None:
    def can(role: str, permission: str) -> bool:
        return User.objects.get(username=role.split(maxsplit=1)[0]).has_perm(permission)

    for role in ROLES:
        member(role, role.split()[0])
    may = {
        "store.view_memory": set(ROLES),
        "store.delete_memory": {"Editor", "Curator", "Administrator"},
        "memories.delete_tombstone": {"Curator", "Administrator"},
        "accounts.export_memoryuser": {"Privacy officer", "Administrator"},
        "accounts.erase_memoryuser": {"Privacy officer", "Administrator"},
        "accounts.view_auditevent": {"Curator", "Privacy officer", "Administrator"},
        "memories.view_loggedsearch": set(ROLES),
        "webhooks.view_webhook": {"Administrator"},
        "webhooks.change_webhook": {"Administrator"},
        "accounts.add_userkey": {"Administrator"},
        "auth.change_user": {"Administrator"},
        "auth.delete_user": set(),
        "auth.change_group": set(),
    }
    assert {permission: {role for role in ROLES if can(role, permission)} for permission in may} == may


def test_an_administrator_adds_an_operator_who_then_signs_in() -> None:
    administrator = member("Administrator")
    form = {"username": "bob", "role": Group.objects.get(name="Viewer").pk}
    link = invited(administrator.post(reverse("console:operator-add"), form))
    assert "invited" in administrator.get("/admin/memory/operators/").content.decode()
    assert accept(link, "short").status_code == 422
    assert accept(link).status_code == 302
    client = Client()
    signed_in: Any = client.post("/admin/login/", {"username": "bob", "password": NEW_PASSWORD})
    assert signed_in.status_code == 302
    assert client.get("/admin/memory/list/").status_code == 200
    assert client.get("/admin/memory/users/").status_code == 200
    assert client.get("/admin/memory/operators/").status_code == 403
    event = AuditEvent.objects.get(action="operator.create")
    assert (event.actor, event.subject_id, event.detail) == ("ann", "bob", {"roles": ["Viewer"]})
    accepted = AuditEvent.objects.get(action="operator.set_password")
    assert (accepted.actor, accepted.subject_id) == ("bob", "bob")
    assert link not in administrator.get("/admin/memory/operators/").content.decode()


@pytest.mark.parametrize("ending", ["used", "reset", "deactivated", "expired", "of another", "no passwords"])
def test_a_link_that_has_ended_sets_no_password(settings: Any, ending: str) -> None:
    administrator = member("Administrator")
    link = invited(administrator.post(reverse("console:operator-add"), {"username": "bob"}))
    bob = User.objects.get(username="bob")
    if ending == "used":
        assert accept(link).status_code == 302
    elif ending == "reset":
        assert invited(administrator.post(reverse("console:operator-password", args=[bob.pk]))) != link
    elif ending == "deactivated":
        User.objects.filter(pk=bob.pk).update(is_active=False)
    elif ending == "expired":
        settings.PASSWORD_RESET_TIMEOUT = -1
    elif ending == "no passwords":
        settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN = False
    else:
        key, _token = link.split("/")[-3:-1]
        link = link.replace(f"/{key}/", f"/{urlsafe_base64_encode(str(bob.pk - 1).encode())}/")
    before = User.objects.get(pk=bob.pk).password
    assert accept(link, "Another-7781-z").status_code == 404
    assert User.objects.get(pk=bob.pk).password == before


@pytest.mark.parametrize("username", ["", "ann", "a b", "x" * 151])
def test_an_invalid_or_existing_name_is_refused_with_the_field_marked(username: str) -> None:
    answer = member("Administrator").post(reverse("console:operator-add"), {"username": username})
    assert answer.status_code == 422
    assert 'id="username_error"' in answer.content.decode()
    assert User.objects.count() == 1


def test_a_role_change_is_audited_with_before_and_after() -> None:
    member("Viewer", "bob")
    bob = User.objects.get(username="bob")
    editor = Group.objects.get(name="Editor")
    member("Administrator").post(reverse("console:operator", args=[bob.pk]), {"role": editor.pk, "is_active": "on"})
    detail = AuditEvent.objects.get(action="operator.change").detail
    assert detail == {
        "before": {"roles": ["Viewer"], "active": True},
        "after": {"roles": ["Editor"], "active": True},
    }
    assert User.objects.get(pk=bob.pk).has_perm("store.change_memory")


@pytest.mark.parametrize("ending", ["sign-out", "password", "deactivate"])
def test_the_sessions_of_one_operator_end_and_those_of_others_go_on(ending: str) -> None:
    bob, administrator = member("Viewer", "bob"), member("Administrator")
    pk = User.objects.get(username="bob").pk
    if ending == "deactivate":
        administrator.post(reverse("console:operator", args=[pk]), {"role": ""})
        assert not User.objects.get(pk=pk).is_active
    else:
        administrator.post(reverse(f"console:operator-{ending}", args=[pk]))
    assert bob.get("/admin/memory/list/").status_code == 302
    assert administrator.get("/admin/memory/operators/").status_code == 200


def test_an_administrator_changes_neither_a_superuser_nor_the_own_account(
    admin_user: User, admin_client: Client
) -> None:
    administrator = member("Administrator")
    own = User.objects.get(username="ann").pk
    for pk in (admin_user.pk, own):
        assert administrator.post(reverse("console:operator", args=[pk]), {"role": ""}).status_code == 403
        for name in ("operator-password", "operator-sign-out"):
            assert administrator.post(reverse(f"console:{name}", args=[pk])).status_code == 403
    assert administrator.post(f"/admin/auth/user/{admin_user.pk}/change/", {"username": "x"}).status_code == 403
    assert admin_client.post(reverse("console:operator-sign-out", args=[own])).status_code == 302


def test_an_administrator_cannot_become_a_superuser_in_the_django_admin() -> None:
    administrator = member("Administrator")
    own = User.objects.get(username="ann")
    form = {
        "username": "ann", "is_active": "on", "is_staff": "on", "is_superuser": "on", "user_permissions": ["1", "2"],
        "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "last_login_0": "", "last_login_1": "",
    }  # fmt: skip
    administrator.post(f"/admin/auth/user/{own.pk}/change/", form)
    own.refresh_from_db()
    assert (own.is_superuser, own.user_permissions.count()) == (False, 0)
    assert own.date_joined.year == 2026


def _statuses(client: Client) -> set[int]:
    """Return the statuses of all pages that need a permission, and of Django's admin pages of every model."""
    found = set()
    for name in PAGES:
        module = test_access if name in test_access.PAGES else test_access_of_data_pages
        found.add(getattr(client, module.PAGES[name][0])(module.address(name)).status_code)
    lists = [reverse(f"admin:{one._meta.app_label}_{one._meta.model_name}_changelist") for one in admin.site._registry]
    return found | {client.get(address).status_code for address in lists}


@pytest.mark.parametrize("role", ["Viewer", "Editor", "Curator", "Privacy officer", "Administrator"])
def test_a_demoted_operator_opens_no_page(role: str) -> None:
    client = member(role)
    operator = User.objects.get(username="ann")
    assert client.get("/admin/memory/list/").status_code == 200
    services.change(operator, None, is_active=True, actor=Actor.command("tests"))
    assert _statuses(client) == {302}  # to the sign-in
    client.force_login(operator)
    assert _statuses(client) == {403}
