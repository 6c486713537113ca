"""Applications whose client id is the address of a document that describes them."""

from __future__ import annotations

import json
import secrets
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts import client_documents, oauth
from accounts.api import limits
from accounts.client_documents import MAX_BYTES, read
from accounts.models import OAuthClient, OAuthConnection
from core.errors import InvalidInput
from core.network.http_client import trusted_authorities
from tests.agents.oauth.flow import ORIGIN, REDIRECT, Application, answer_of
from tests.conftest import Person
from tests.web import WebServer, dripping, page, tls_contexts, web_server

pytestmark = pytest.mark.django_db
PATH = "/app/client.json"


class Described(Application):
    """An application that does not register."""

    def __init__(self, http: Client, client_id: str) -> None:
        self.http, self.client_id, self.redirect_uri = http, client_id, REDIRECT
        self.verifier = secrets.token_urlsafe(48)


@pytest.fixture(autouse=True)
def no_earlier_registrations() -> Iterator[None]:
    limits._limits.cache_clear()
    yield
    limits._limits.cache_clear()


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS context of a server for `localhost`; the gateway trusts its certificate too."""
    folder: Path = tmp_path_factory.mktemp("tls")
    server, client = tls_contexts(folder, "localhost")
    trusted_authorities().load_verify_locations(folder / "chain.pem")
    return server, client


@pytest.fixture
def web(contexts: tuple[ssl.SSLContext, ssl.SSLContext], settings: Any) -> Iterator[WebServer]:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = ["localhost"]
    with web_server(contexts[0]) as server:
        yield server


@pytest.fixture
def publish(web: WebServer) -> Callable[..., str]:
    """Publish a document, and return its address."""

    def publish(path: str = PATH, *, kind: str = "application/json", status: str = "200 OK", **fields: Any) -> str:
        address = web.url(path, host="localhost", scheme="https")
        document = {"client_id": address, "client_name": "Notes", "redirect_uris": [REDIRECT], **fields}
        web.pages[path] = page(json.dumps(document).encode(), status, content_type=kind)
        return address

    return publish


def consent(client: Client, client_id: str, *, status: int = 200, **changes: Any) -> str:
    answer = client.get(Described(client, client_id).address(**changes))
    assert answer.status_code == status, answer.content.decode()
    return str(answer.content.decode())


def problem_of(client_id: str, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(client_id, **options)
    [error] = caught.value.errors
    assert error.field == "client_id"
    return str(error.message)


def test_the_metadata_announces_it(client: Client) -> None:
    server = client.get("/.well-known/oauth-authorization-server").json()
    assert server["client_id_metadata_document_supported"] is True


def test_an_application_connects_by_its_document(
    client: Client, alice: Person, publish: Callable[..., str], web: WebServer
) -> None:
    application = Described(client, publish())
    tokens = application.connect(alice.user_key)
    [connection] = OAuthConnection.objects.all()
    assert (connection.client.address, connection.client.name) == (application.client_id, "Notes")
    refreshed = application.refresh(tokens["refresh_token"])
    assert refreshed.status_code == 200, refreshed.content
    assert len(web.heads) == 1  # the document is read once an hour
    assert "authorization" not in web.heads[0].lower()
    assert "cookie" not in web.heads[0].lower()
    other = Described(client, publish("/other.json"))
    consent(client, other.client_id)
    assert other.redeem(application.code(alice.user_key)).status_code == 400
    client.post("/oauth/revoke", {"token": refreshed.json()["access_token"], "client_id": other.client_id})
    assert OAuthConnection.objects.filter(pk=connection.pk).exists()
    client.post("/oauth/revoke", {"token": refreshed.json()["access_token"], "client_id": application.client_id})
    assert not OAuthConnection.objects.filter(pk=connection.pk).exists()


def test_the_page_shows_the_host_that_describes_it_and_the_destination(
    client: Client, publish: Callable[..., str], web: WebServer
) -> None:
    shown = consent(client, publish(client_name="<b>Bank</b>\u202e"))
    assert f"<strong>localhost:{web.port}</strong>" in shown
    assert "<strong>127.0.0.1:33418</strong>" in shown
    assert "<b>Bank" not in shown
    assert "\u202e" not in shown
    assert "Connect localhost" in consent(client, publish("/nameless.json", client_name=" "))


def test_only_redirects_of_the_document_are_followed(client: Client, publish: Callable[..., str]) -> None:
    address = publish()
    shown = consent(client, address, status=400, redirect_uri="https://evil.example/cb")
    assert "has not registered" in shown
    assert "evil.example" not in shown
    assert consent(client, address, redirect_uri="http://127.0.0.1:5/callback")  # another port of this machine


def test_a_changed_document_counts_after_an_hour(client: Client, alice: Person, publish: Callable[..., str]) -> None:
    address = publish()
    Described(client, address).connect(alice.user_key)
    publish(redirect_uris=["https://app.example/cb"], client_name="Renamed")
    consent(client, address)
    OAuthClient.objects.update(read_at=timezone.now() - oauth.DOCUMENT_LIFETIME)
    consent(client, address, status=400)
    shown = consent(client, address, redirect_uri="https://app.example/cb")
    assert "Renamed" in shown
    [stored] = OAuthClient.objects.all()
    assert stored.expires_at > timezone.now() + oauth.UNUSED_LIFETIME  # it stays connected
    assert OAuthConnection.objects.count() == 1


def test_a_document_that_is_gone_opens_no_page_after_an_hour(
    client: Client, publish: Callable[..., str], web: WebServer
) -> None:
    address = publish()
    consent(client, address)
    del web.pages[PATH]
    OAuthClient.objects.update(read_at=timezone.now() - oauth.DOCUMENT_LIFETIME)
    assert "status 200, not 404" in consent(client, address, status=400)


def test_a_client_without_a_connection_is_forgotten(client: Client, publish: Callable[..., str]) -> None:
    consent(client, publish())
    OAuthClient.objects.update(expires_at=timezone.now())
    oauth.forget_old(timezone.now())
    assert OAuthClient.objects.count() == 0


def test_the_id_of_the_row_is_no_client_id(client: Client, publish: Callable[..., str]) -> None:
    consent(client, publish())
    consent(client, str(OAuthClient.objects.get().pk), status=400)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"client_id": "https://bank.example/app"}, "names this address as client_id"),
        ({"client_id": None}, "names this address as client_id"),
        ({"client_secret": "s"}, "public client"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "public client"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "public client"),
        ({"client_name": ["x"]}, "client_name as text"),
        ({"redirect_uris": REDIRECT}, "a list of addresses"),
        ({"redirect_uris": [1]}, "a list of addresses"),
        ({"kind": "text/html"}, "of type application/json"),
        ({"status": "302 Found"}, "status 200, not 302"),
        ({"status": "500 No"}, "status 200, not 500"),
    ],
)
def test_a_document_of_another_client_is_refused(
    client: Client, publish: Callable[..., str], fields: dict[str, Any], reason: str
) -> None:
    address = publish(**fields)
    assert reason in problem_of(address)
    assert reason.replace("'", "&#x27;") in consent(client, address, status=400)
    assert OAuthClient.objects.count() == 0


@pytest.mark.parametrize("uris", [[], ["javascript:alert(1)"], ["http://app.example/cb"], [REDIRECT] * 11])
def test_its_redirect_addresses_meet_the_rules_of_registration(
    client: Client, publish: Callable[..., str], uris: list[str]
) -> None:
    assert "redirect_uris must be" in consent(client, publish(redirect_uris=uris), status=400)


def test_a_redirect_is_not_followed(publish: Callable[..., str], web: WebServer) -> None:
    target = publish("/target.json", client_id=web.url(PATH, host="localhost", scheme="https"))
    web.pages[PATH] = page(b"", "302 Found", location=target)
    problem_of(web.url(PATH, host="localhost", scheme="https"))
    assert len(web.heads) == 1


def test_a_huge_slow_or_deep_document_is_given_up(
    publish: Callable[..., str], web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = publish(padding="x" * MAX_BYTES)
    assert "larger than" in problem_of(address)
    endless = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    web.pages[PATH] = dripping(endless, b"x" * 10_000, every_seconds=0)
    assert "larger than" in problem_of(address)
    deep = b"[" * 16_000 + b"]" * 16_000
    web.pages[PATH] = page(deep, content_type="application/json")
    assert "application/json" in problem_of(address)
    monkeypatch.setattr(client_documents, "SECONDS", 0.5)
    web.pages[PATH] = dripping(endless, b"x", every_seconds=0.1)
    assert "timed out" in problem_of(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1", "fd00::1", "64:ff9b::7f00:1"])
def test_a_private_address_is_never_asked(web: WebServer, settings: Any, address: str) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    uri = web.url("/a", host="app.example", scheme="https")
    assert "private network" in problem_of(uri, resolver=lambda _host, _port: [address])
    assert "private network" in problem_of(uri, resolver=lambda _host, _port: ["93.184.215.14", address])
    assert web.heads == []


def test_a_private_host_is_refused_on_the_page(client: Client, web: WebServer, settings: Any) -> None:
    settings.MEMORY_GATEWAY_ALLOWED_PRIVATE_HOSTS = []
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert "private network" in consent(client, web.url("/a", host=host, scheme="https"), status=400)
    assert web.heads == []


def test_the_certificate_is_verified(web: WebServer, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    uri = web.url("/a", host="app.example", scheme="https")
    found = problem_of(uri, resolver=lambda _host, _port: ["127.0.0.1"], tls=contexts[1])
    assert "private network" in found
    with_name = web.url("/a", host="localhost", scheme="https")
    assert "certificate" in problem_of(with_name, tls=ssl.create_default_context())


@pytest.mark.parametrize(
    "client_id",
    [
        "https://app.example",
        "https://app.example/",
        "https://app.example/a#b",
        "https://app.example/a#",
        "https://app.example/a/../b",
        "https://app.example/./a",
        "https://APP.example/a",
        "https://äpp.example/a",
        "https://user:pass@app.example/a",
        "https://app.example:x/a",
        "https://app.example/a b",
        "https://app.example/" + "a" * 1000,
        "https:///a",
        "https://[::1/a",
    ],
)
def test_an_address_of_another_form_is_refused_without_a_look_up(client_id: str) -> None:
    def resolver(_host: str, _port: int) -> list[str]:
        raise AssertionError

    assert problem_of(client_id, resolver=resolver)


def test_plain_http_is_no_client_id(client: Client, web: WebServer) -> None:
    assert "is not registered" in consent(client, web.url("/a", host="localhost"), status=400)
    assert web.heads == []


def test_reading_documents_is_limited_as_registrations_are(
    client: Client, publish: Callable[..., str], web: WebServer, settings: Any
) -> None:
    addresses = [publish(f"/{number}.json") for number in range(5)]
    applications = [Described(client, address) for address in addresses]
    settings.CLIENT_REGISTRATIONS_PER_MINUTE = 3
    limits._limits.cache_clear()
    assert [client.get(one.address()).status_code for one in applications] == [200, 200, 200, 429, 429]
    assert len(web.heads) == 3
    assert client.get(applications[0].address()).status_code == 200  # it was read before


def test_the_answer_names_the_issuer(client: Client, alice: Person, publish: Callable[..., str]) -> None:
    answer = Described(client, publish()).approve(alice.user_key)
    assert answer_of(answer)["iss"] == ORIGIN
