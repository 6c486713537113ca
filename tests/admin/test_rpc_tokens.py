"""Issuing, showing once and revoking tokens for OpenClaw clients in the admin."""

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


def shown_token(response: Any) -> str:
    assert response.templates[0].name == "admin/accounts/token_once.html"
    plaintext: str = response.context["issued"].plaintext
    assert response.content.decode().count(plaintext) == 1
    assert "no-store" in response["Cache-Control"]
    return plaintext


def test_a_token_of_a_user_is_shown_once(admin_client: Client, alice: Person) -> None:
    plaintext = shown_token(add(admin_client, user_id="alice", days=7))
    assert tokens.authenticate(plaintext).user_id == "alice"
    token = RpcToken.objects.get()
    assert token.expires_at is not None
    for page in (reverse("admin:accounts_rpctoken_change", args=[token.pk]), "/admin/accounts/rpctoken/"):
        assert plaintext not in admin_client.get(page).content.decode()
    assert AuditEvent.objects.get(action="token.issue").actor == "admin"


def test_a_token_of_an_operator_authenticates_the_operator(admin_client: Client, admin_user: Any) -> None:
    plaintext = shown_token(add(admin_client, operator=admin_user.pk))
    assert tokens.authenticate(plaintext).operator == "admin"


@pytest.mark.parametrize("fields", [{}, {"user_id": "nobody"}, {"user_id": "alice", "scopes": []}])
def test_an_invalid_form_creates_no_token(admin_client: Client, alice: Person, fields: dict[str, Any]) -> None:
    page = add(admin_client, **fields)
    assert page.status_code == 422
    assert page.context["form"].errors
    assert not RpcToken.objects.exists()


def test_revoking_a_token_asks_for_confirmation(admin_client: Client, alice: Person) -> None:
    plaintext = shown_token(add(admin_client, user_id="alice"))
    address = reverse("admin:accounts_rpctoken_revoke", args=[RpcToken.objects.get().pk])
    assert "user alice" in admin_client.get(address).content.decode()
    assert tokens.authenticate(plaintext)
    admin_client.post(address)
    with pytest.raises(Unauthenticated):
        tokens.authenticate(plaintext)


def test_issuing_and_revoking_need_separate_permissions(client: Client, alice: Person, django_user_model: Any) -> None:
    helper = django_user_model.objects.create_user("helper", is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_rpctoken"))
    client.force_login(helper)
    token = RpcToken.objects.create(user_id=alice.user_pk, digest="d")
    assert client.get(reverse("admin:accounts_rpctoken_change", args=[token.pk])).status_code == 200
    assert add(client, user_id="alice").status_code == 403
    assert client.post(reverse("admin:accounts_rpctoken_revoke", args=[token.pk])).status_code == 403
