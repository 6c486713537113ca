"""Creating users, and issuing, rotating and revoking keys in the admin. A new key is shown once."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services
from accounts.models import AuditEvent, MemoryUser, UserKey
from core.errors import Unauthenticated
from tests.conftest import Person

ADD_USER = "/admin/accounts/memoryuser/add/"
ADD_KEY = "/admin/accounts/userkey/add/"

pytestmark = pytest.mark.django_db


def shown_key(response: Any) -> str:
    assert response.status_code == 200
    assert response.templates[0].name == "admin/accounts/key_once.html"
    plaintext: str = response.context["issued"].plaintext
    assert response.content.decode().count(plaintext) == 1
    assert "no-store" in response["Cache-Control"]
    assert plaintext not in str(response.cookies) + str(response.headers)
    return plaintext


def action_url(action: str, key: Any) -> str:
    return reverse(f"admin:accounts_userkey_{action}", args=[key])


def own_key(person: Person) -> UserKey:
    return UserKey.objects.filter(user_id=person.user_pk).earliest("created_at")


def works(plaintext: str) -> bool:
    try:
        services.authenticate(plaintext)
    except Unauthenticated:
        return False
    return True


def test_a_new_user_gets_a_key_that_is_shown_once(admin_client: Client) -> None:
    plaintext = shown_key(admin_client.post(ADD_USER, {"user_id": "dora"}))
    assert services.authenticate(plaintext).user_id == "dora"
    user = MemoryUser.objects.get()
    for address in (f"/admin/accounts/memoryuser/{user.pk}/change/", "/admin/accounts/userkey/", "/admin/"):
        assert plaintext not in admin_client.get(address).content.decode()


@pytest.mark.parametrize("user_id", ["", "a\u202eb", " dora", "..", "x" * 256, "dora"])
def test_an_invalid_or_existing_user_id_is_an_error_of_the_form(admin_client: Client, user_id: str) -> None:
    admin_client.post(ADD_USER, {"user_id": "dora"})
    response = admin_client.post(ADD_USER, {"user_id": user_id})
    assert response.status_code == 422
    assert re.search('class="(mg-err|mg-note is-bad)"', response.content.decode())
    assert "uk_" not in response.content.decode()
    assert MemoryUser.objects.count() == UserKey.objects.count() == 1


def test_a_key_is_issued_for_a_user(admin_client: Client, alice: Person) -> None:
    form = {"user_id": "alice", "label": "laptop", "days": "30"}
    plaintext = shown_key(admin_client.post(ADD_KEY, form))
    key = UserKey.objects.latest("created_at")
    assert services.authenticate(plaintext).key_id == key.pk
    assert key.label == "laptop"
    assert key.expires_at is not None
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)


@pytest.mark.parametrize("form", [{"user_id": "nobody"}, {"user_id": "alice", "days": "0"}, {"user_id": ""}])
def test_an_invalid_key_form_creates_no_key(admin_client: Client, alice: Person, form: dict[str, str]) -> None:
    response = admin_client.post(ADD_KEY, form)
    assert response.status_code == 422
    assert re.search('class="(mg-err|mg-note is-bad)"', response.content.decode())
    assert UserKey.objects.count() == 1


def test_the_page_of_a_user_links_to_the_key_form(admin_client: Client, alice: Person) -> None:
    page = admin_client.get(f"/admin/accounts/memoryuser/{alice.user_pk}/change/").content.decode()
    assert f'href="{ADD_KEY}?user_id=alice"' in page
    assert 'value="alice"' in admin_client.get(ADD_KEY, {"user_id": "alice"}).content.decode()


def test_rotation_shows_the_new_key_and_keeps_the_old_one_for_the_grace_period(
    admin_client: Client, alice: Person
) -> None:
    plaintext = shown_key(admin_client.post(action_url("rotate", own_key(alice).pk), {"grace_hours": "2"}))
    assert works(plaintext)
    assert works(alice.user_key)
    expires_at = own_key(alice).expires_at
    assert expires_at is not None
    assert expires_at - timezone.now() <= timedelta(hours=2)


def test_rotation_without_grace_ends_the_old_key(admin_client: Client, alice: Person) -> None:
    shown_key(admin_client.post(action_url("rotate", own_key(alice).pk), {"grace_hours": "0"}))
    assert not works(alice.user_key)


def test_a_revoked_key_cannot_be_rotated(admin_client: Client, alice: Person) -> None:
    UserKey.objects.update(revoked_at=timezone.now())
    response = admin_client.post(action_url("rotate", own_key(alice).pk), {"grace_hours": "2"})
    assert "Create a new one" in response.content.decode()
    assert UserKey.objects.count() == 1


def test_an_operator_may_revoke_the_last_key(admin_client: Client, alice: Person) -> None:
    response = admin_client.post(action_url("revoke", own_key(alice).pk), follow=True)
    assert "Requests with it now fail" in response.content.decode()
    assert not works(alice.user_key)


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_opening_a_form_changes_nothing(admin_client: Client, alice: Person, action: str) -> None:
    assert admin_client.get(action_url(action, own_key(alice).pk)).status_code == 200
    assert works(alice.user_key)
    assert UserKey.objects.count() == 1


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_an_unknown_key_redirects(admin_client: Client, action: str) -> None:
    assert admin_client.post(action_url(action, uuid4())).status_code == 302


@pytest.mark.parametrize("address", [ADD_USER, ADD_KEY])
def test_forms_require_the_csrf_token(django_user_model: Any, address: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.create_superuser("admin"))
    assert client.post(address, {"user_id": "dora"}).status_code == 403
    assert MemoryUser.objects.count() == 0


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_actions_require_the_csrf_token(django_user_model: Any, alice: Person, action: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(django_user_model.objects.create_superuser("admin"))
    assert client.post(action_url(action, own_key(alice).pk), {"grace_hours": "0"}).status_code == 403
    assert works(alice.user_key)


def test_each_action_needs_a_separate_permission(client: Client, django_user_model: Any, alice: Person) -> None:
    helper = django_user_model.objects.create_user("helper", is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_userkey"))
    client.force_login(helper)
    page = client.get(reverse("admin:accounts_userkey_change", args=[own_key(alice).pk]))
    assert page.status_code == 200
    addresses = {
        "add_memoryuser": (ADD_USER, {"user_id": "dora"}),
        "add_userkey": (ADD_KEY, {"user_id": "alice"}),
        "rotate_userkey": (action_url("rotate", own_key(alice).pk), {"grace_hours": "1"}),
        "revoke_userkey": (action_url("revoke", own_key(alice).pk), {}),
    }
    for address, form in addresses.values():
        assert client.post(address, form).status_code == 403
        assert client.get(address).status_code == 403
    for codename, (address, form) in addresses.items():
        assert address not in page.content.decode()
        helper.user_permissions.add(Permission.objects.get(codename=codename))
        assert client.post(address, form).status_code in {200, 302}
    assert not works(alice.user_key)


def test_each_action_is_audited_with_the_operator(admin_client: Client) -> None:
    admin_client.post(ADD_USER, {"user_id": "dora"})
    admin_client.post(ADD_KEY, {"user_id": "dora"})
    key = UserKey.objects.earliest("created_at").pk
    admin_client.post(action_url("rotate", key), {"grace_hours": "1"})
    admin_client.post(action_url("revoke", key))
    events = AuditEvent.objects.filter(actor_kind="operator", actor="admin", user_id="dora").order_by("id")
    actions = ["user.create", "key.issue", "key.issue", "key.issue", "key.rotate", "key.revoke"]
    assert [event.action for event in events] == actions


def test_changes_of_operators_are_audited(admin_client: Client, django_user_model: Any) -> None:
    form = {"username": "eve", "usable_password": "true", "password1": "Lantern-4711-x", "password2": "Lantern-4711-x"}
    admin_client.post("/admin/auth/user/add/", form)
    eve = django_user_model.objects.get(username="eve")
    admin_client.post(f"/admin/auth/user/{eve.pk}/delete/", {"post": "yes"})
    admin_client.post("/admin/auth/group/add/", {"name": "readers"})
    events = AuditEvent.objects.filter(actor="admin").order_by("id").values_list("action", "subject_id")
    assert list(events) == [
        ("operator.create", "eve"),
        ("operator.delete", "eve"),
        ("operator_group.create", "readers"),
    ]
