"""People sign in to their own pages by OpenID Connect, at a real provider on loopback, also when it lies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from accounts import controls, oidc
from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser, PortalLink
from memory_gateway import safety
from tests import stub_oidc
from tests.conftest import Person
from tests.portal.visits import Visit
from tests.stub_oidc import CLIENT_ID, CLIENT_SECRET, Provider

pytestmark = pytest.mark.django_db
START = "/portal/sign-in"


@pytest.fixture
def provider(settings: Any, alice: Person) -> Iterator[Provider]:
    with stub_oidc.running() as running:
        settings.MEMORY_GATEWAY_OIDC_ISSUER = running.issuer
        settings.MEMORY_GATEWAY_OIDC_CLIENT_ID = CLIENT_ID
        settings.MEMORY_GATEWAY_OIDC_CLIENT_SECRET = CLIENT_SECRET
        settings.MEMORY_GATEWAY_OIDC_ROLES = {"staff": "Viewer"}
        settings.MEMORY_GATEWAY_PORTAL_OIDC_CLAIM = "sub"
        running.person = {"sub": alice.user_id}
        oidc._discovered.cache_clear()
        yield running


def answered(client: Client) -> Any:
    """Sign in at the provider, and return the answer to the address where it sends the browser."""
    begun = client.get(START)
    assert begun.status_code == 302
    back = requests.get(begun["Location"], allow_redirects=False, timeout=10).headers["Location"]
    assert urlsplit(back).path == f"{START}/callback"
    return client.get(back)


def test_a_person_signs_in_and_may_resume(provider: Provider, alice: Person) -> None:
    client = Client()
    assert START in client.get("/portal/").content.decode()
    link = answered(client)["Location"]
    assert link.startswith("/portal/open/upl_")
    made = AuditEvent.objects.get(action="portal_link.create")  # before it is used
    assert (made.actor_kind, made.actor, made.user_id) == ("system", "single sign-on", alice.user_id)
    assert alice.user_id in client.get(link).content.decode()
    opened = client.post(link)
    cookie = opened.cookies["memory_gateway_portal"]
    assert (cookie["max-age"], cookie["samesite"]) == (1800, "Strict")
    at = Visit(client)
    assert "single sign-on" in at.get("/portal/looks")
    controls.set_paused(alice.user_pk, ["chats"], actor=Actor.command("tests"))
    assert at.post("/portal/remembering/chats/resume").status_code == 302
    assert not controls.pauses_of(alice.user_pk)
    assert (MemoryUser.objects.count(), User.objects.count()) == (1, 0)


LIES: dict[str, Callable[[Provider], Any]] = {
    "an unknown person": lambda provider: provider.person.update(sub="stranger"),
    "another case": lambda provider: provider.person.update(sub=provider.person["sub"].upper()),
    "another nonce": lambda provider: provider.claims.update(nonce="x"),
    "another audience": lambda provider: provider.claims.update(aud="another"),
    "another key": lambda provider: setattr(provider, "signing_key", stub_oidc.new_key()),
    "an unsigned token": lambda provider: setattr(provider, "algorithm", "none"),
    "no code": lambda provider: provider.redirected.update(code="", error="access_denied"),
    "another state": lambda provider: provider.redirected.update(state="x"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_no_other_answer_opens_the_pages(provider: Provider, lie: Callable[[Provider], Any]) -> None:
    lie(provider)
    client = Client()
    answer = answered(client)
    assert answer.status_code in {403, 502}
    assert "upl_" not in answer.content.decode()
    assert not PortalLink.objects.exists()
    assert MemoryUser.objects.count() == 1
    assert client.get("/portal/").status_code == 401


def test_an_answer_counts_once_and_in_its_own_browser(provider: Provider) -> None:
    client, other = Client(), Client()
    back = requests.get(client.get(START)["Location"], allow_redirects=False, timeout=10).headers["Location"]
    assert other.get(back).status_code == 403
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 403


@pytest.mark.parametrize(("claims", "status"), [({"email_verified": True}, 302), ({}, 403)])
def test_an_address_counts_if_it_is_verified(
    provider: Provider, settings: Any, alice: Person, claims: dict[str, Any], status: int
) -> None:
    settings.MEMORY_GATEWAY_PORTAL_OIDC_CLAIM = "email"
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id="ann@example.org")
    provider.person = {"sub": "s-1"}
    provider.user_info = {"email": "ann@example.org", **claims}  # not in the ID token
    assert answered(Client()).status_code == status


def test_without_the_setting_there_is_no_sign_in(provider: Provider, settings: Any) -> None:
    settings.MEMORY_GATEWAY_PORTAL_OIDC_CLAIM = ""
    client = Client()
    assert [client.get(path).status_code for path in (START, f"{START}/callback")] == [404, 404]
    assert START not in client.get("/portal/").content.decode()


@pytest.mark.parametrize(
    ("claim", "issuer", "message"),
    [
        ("sub", "", "requires MEMORY_GATEWAY_OIDC_ISSUER"),
        ("sub,email", "https://id.example.org", "the name of one claim, such as sub, not 'sub,email'"),
        ("email", "https://id.example.org", "is email, which requires email in MEMORY_GATEWAY_OIDC_SCOPES"),
    ],
)
def test_a_bad_setting_stops_the_start(claim: str, issuer: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=message):
        safety.require_user_claim(claim, scopes=["profile"], issuer=issuer, has_roles=True)
