"""The connected applications on the page of a user."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts import oauth, services
from accounts.audit import Actor
from accounts.models import AuditEvent, OAuthConnection
from tests.agents.oauth.flow import Application, connect
from tests.conftest import Person
from tests.console.test_access_of_data_pages import operator_client

pytestmark = pytest.mark.django_db


def page(client: Client, person: Person) -> str:
    return client.get(reverse("console:user", args=[person.user_pk])).content.decode()


def test_an_operator_sees_and_ends_a_connection(admin_client: Client, alice: Person, bob: Person) -> None:
    issued = Application(Client(), name="Desk agent").connect(alice.user_key)
    connection = oauth.connections_of(alice.user_pk).get()
    oauth.authenticate(issued["access_token"], connection.resource)
    shown = page(admin_client, alice)
    for text in ("Connected applications", "Desk agent", "127.0.0.1:33418", "Read and write", "Disconnect Desk agent"):
        assert text in shown
    assert "Connected applications" not in page(admin_client, bob)
    of_bob = reverse("console:user-connection-revoke", args=[bob.user_pk, connection.pk])
    assert admin_client.post(of_bob).status_code == 404
    answer = admin_client.post(reverse("console:user-connection-revoke", args=[alice.user_pk, connection.pk]))
    assert answer.headers["Location"] == reverse("console:user", args=[alice.user_pk])
    assert not OAuthConnection.objects.exists()
    event = AuditEvent.objects.get(action="connection.revoke")
    assert (event.actor_kind, event.actor, event.user_id) == ("operator", "admin", "alice")
    assert "Disconnected an application" in page(admin_client, alice)


def test_only_live_connections_are_listed(admin_client: Client, alice: Person) -> None:
    second = services.issue_key(alice.user_pk, actor=Actor.command("tests")).key
    connect(alice.user_pk, second.pk, "Phone")
    connect(alice.user_pk, None, "Desk", (oauth.READ,))
    assert "Phone" in page(admin_client, alice)
    services.revoke_key(alice.user_pk, second.pk, actor=Actor.command("tests"))
    shown = page(admin_client, alice)
    assert ("Phone" in shown, "Desk" in shown, "Read only" in shown) == (False, True, True)


def test_who_may_not_revoke_keys_sees_no_button(alice: Person) -> None:
    connect(alice.user_pk, None, "Desk")
    shown = page(operator_client("accounts.view_memoryuser", "accounts.view_userkey"), alice)
    assert ("Desk" in shown, "Disconnect" in shown) == (True, False)
    assert "Desk" not in page(operator_client("accounts.view_memoryuser"), alice)
