"""Tokens for OpenClaw clients in the admin: issued, shown once, revoked."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from accounts import tokens
from accounts.models import AuditEvent, RpcToken
from core.errors import Unauthenticated
from tests.conftest import Person

ADD = "/admin/accounts/rpctoken/add/"

pytestmark = pytest.mark.django_db


def add(client: Client, **fields: Any) -> Any:
    return client.post(ADD, {"label": "laptop", "scopes": [tokens.ADMIN], **fields})


def shown(response: Any) -> str:
    assert response.templates[0].name == "admin/accounts/token_once.html"
    plaintext: str = response.context["issued"].plaintext
    assert response.content.decode().count(plaintext) == 1
    assert "no-store" in response["Cache-Control"]
    return plaintext


def test_a_users_token_is_shown_once(admin_client: Client, alice: Person) -> None:
    plaintext = shown(add(admin_client, user_id="alice", days=7))
    assert tokens.authenticate(plaintext).user_id == "alice"
    token = RpcToken.objects.get()
    assert token.expires_at is not None
    for page in (reverse("admin:accounts_rpctoken_change", args=[token.pk]), "/admin/accounts/rpctoken/"):
        assert plaintext not in admin_client.get(page).content.decode()
    assert AuditEvent.objects.get(action="token.issue").actor == "admin"


def test_an_operators_token_sees_everybody(admin_client: Client, admin_user: Any) -> None:
    plaintext = shown(add(admin_client, operator=admin_user.pk))
    assert tokens.authenticate(plaintext).operator == "admin"


@pytest.mark.parametrize("fields", [{}, {"user_id": "nobody"}, {"user_id": "alice", "scopes": []}])
def test_the_form_says_what_is_wrong(admin_client: Client, alice: Person, fields: dict[str, Any]) -> None:
    page = add(admin_client, **fields)
    assert page.status_code == 200
    assert page.context["form"].errors
    assert not RpcToken.objects.exists()


def test_revoking_asks_first_and_then_ends_it(admin_client: Client, alice: Person) -> None:
    plaintext = shown(add(admin_client, user_id="alice"))
    address = reverse("admin:accounts_rpctoken_revoke", args=[RpcToken.objects.get().pk])
    assert "user alice" in admin_client.get(address).content.decode()
    assert tokens.authenticate(plaintext)
    admin_client.post(address)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(plaintext)


def test_issuing_and_revoking_are_rights_of_their_own(client: Client, alice: Person, django_user_model: Any) -> None:
    helper = django_user_model.objects.create_user("helper", is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_rpctoken"))
    client.force_login(helper)
    token = RpcToken.objects.create(user_id=alice.user_pk, digest="d")
    assert client.get(reverse("admin:accounts_rpctoken_change", args=[token.pk])).status_code == 200
    assert add(client, user_id="alice").status_code == 403
    assert client.post(reverse("admin:accounts_rpctoken_revoke", args=[token.pk])).status_code == 403
