"""Metadata, registration, tokens and revocation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import oauth, services
from accounts.api import limits
from accounts.audit import Actor
from accounts.models import AuditEvent, OAuthClient, OAuthConnection, OAuthToken
from core.background.tasks import Round
from core.errors import Unauthenticated
from operations import erase, tables
from operations.tasks import clean_up
from tests.agents.oauth.flow import ORIGIN, REDIRECT, RESOURCE, Application, register
from tests.conftest import Person

pytestmark = pytest.mark.django_db
ACTOR = Actor.command("tests")


@pytest.fixture
def application(client: Client) -> Application:
    return Application(client)


def is_valid(token: str, resource: str = RESOURCE) -> bool:
    try:
        return bool(oauth.authenticate(token, resource))
    except Unauthenticated:
        return False


def later(**change: Any) -> None:
    """Let all codes, tokens and clients become older."""
    age = timedelta(**change)
    for token in OAuthToken.objects.all():
        token.expires_at -= age
        token.used_at = token.used_at and token.used_at - age
        token.save()
    for client in OAuthClient.objects.all():
        client.expires_at -= age
        client.save()


# --- metadata


@pytest.mark.parametrize("suffix", ["", "/mcp", "/mcp/"])
def test_the_metadata_is_at_every_address_that_clients_try(client: Client, suffix: str) -> None:
    resource = client.get(f"/.well-known/oauth-protected-resource{suffix}").json()
    assert (resource["resource"], resource["authorization_servers"]) == (RESOURCE, [ORIGIN])
    server = client.get(f"/.well-known/oauth-authorization-server{suffix}").json()
    assert server["issuer"] == ORIGIN
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert server["authorization_response_iss_parameter_supported"] is True
    for name in ("authorization", "token", "registration", "revocation"):
        assert server[f"{name}_endpoint"].startswith(f"{ORIGIN}/oauth/")


def test_the_metadata_follows_the_host_and_scheme_and_refuses_other_hosts(client: Client) -> None:
    address = "/.well-known/oauth-protected-resource/mcp"
    assert client.get(address, headers={"Host": "LOCALHOST:8010"}).json()["resource"] == "http://localhost:8010/mcp"
    assert client.get(address, secure=True, headers={"Host": "localhost:443"}).json()["resource"] == (
        "https://localhost/mcp"
    )
    assert client.get(address, headers={"Host": "evil.example"}).status_code == 400


def test_in_production_plain_http_reaches_no_endpoint(client: Client, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    for address in ("/.well-known/oauth-authorization-server", "/oauth/authorize", "/oauth/token", "/oauth/register"):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["Location"]) == (301, f"https://testserver{address}")
        assert client.get(address, secure=True).status_code in {200, 400, 405}


def test_without_the_setting_there_is_no_endpoint(client: Client, settings: Any) -> None:
    settings.MEMORY_GATEWAY_OAUTH = False
    assert client.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
    for name in ("authorize", "token", "register", "revoke"):
        assert client.post(f"/oauth/{name}").status_code == 404
    assert client.post("/mcp").headers["WWW-Authenticate"] == "Bearer"


# --- registration


def test_a_registered_client_is_public_and_shown_as_stored(client: Client) -> None:
    answer = register(
        client,
        redirect_uris=[REDIRECT],
        client_name="Agent\u202e\n" + "x" * 200,
        token_endpoint_auth_method="client_secret_basic",
        scope="everything",
        logo_uri="https://app.example/logo.png",
    )
    shown = answer.json()
    assert (answer.status_code, shown["token_endpoint_auth_method"]) == (201, "none")
    assert shown["scope"] == "memories:read memories:write"
    assert "client_secret" not in shown
    assert "logo_uri" not in shown
    stored = OAuthClient.objects.get(pk=shown["client_id"])
    assert stored.name == shown["client_name"] == "Agent" + "x" * 95


@pytest.mark.parametrize(
    "uri",
    [
        "https://app.example/cb",
        "https://app.example:8443/cb?a=1",
        "http://localhost:3000/cb",
        "http://127.0.0.1/cb",
        "http://[::1]:5/cb",
        "http://localhost:1",
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "vscode://vscode.github-authentication/did-authenticate",
        "com.example.app:/oauth2redirect",
        "com.example.app://callback",
    ],
)
def test_addresses_of_the_web_loopback_and_applications_can_be_registered(client: Client, uri: str) -> None:
    assert register(client, redirect_uris=[uri]).json()["redirect_uris"] == [uri]


@pytest.mark.parametrize(
    "uri",
    "http://app.example/cb http://192.168.1.5/cb http://127.0.0.1.example/cb http://localhost@app.example/cb "
    "http://localhost.app.example/ https://user@app.example/cb https://app.example/cb#x myapp://cb javascript:alert(1) "
    "about:blank "
    "blob:x intent://x#Intent;end vbscript:x cursor://user@host/cb cursor://host/cb#x com..app:/cb .com:/cb "
    f"data:text/html,x file:///etc/passwd x https://app.example/{'x' * 1000}".split(),
)
def test_other_redirect_addresses_are_refused(client: Client, uri: str) -> None:
    answer = register(client, redirect_uris=[REDIRECT, uri])
    assert (answer.status_code, answer.json()["error"]) in {
        (400, "invalid_redirect_uri"),
        (400, "invalid_client_metadata"),
    }
    assert not OAuthClient.objects.exists()


def test_invalid_registrations_are_oauth_errors(client: Client) -> None:
    for metadata in ({}, {"redirect_uris": []}, {"redirect_uris": [REDIRECT] * 11}, {"redirect_uris": 5}):
        answer = register(client, **metadata)
        assert answer.status_code == 400
        assert answer.json()["error_description"]
    for body in (b"", b"[", b"\xff", b'{"redirect_uris": ["https://a.example"], "client_name": "\\ud800"}'):
        answer = client.post("/oauth/register", body, content_type="application/json")
        assert answer.status_code in {201, 400}
    assert client.get("/oauth/register").status_code == 405


def test_registrations_are_limited_per_address(client: Client, settings: Any) -> None:
    settings.CLIENT_REGISTRATIONS_PER_MINUTE = 3
    limits._limits.cache_clear()
    statuses = [register(client, redirect_uris=[REDIRECT]).status_code for _ in range(4)]
    assert statuses == [201, 201, 201, 429]
    answer = register(client, redirect_uris=[REDIRECT])
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["error"] == "temporarily_unavailable"


def test_an_unused_client_expires_and_a_connected_one_stays(client: Client, alice: Person) -> None:
    unused, used = Application(client), Application(client)
    used.connect(alice.user_key)
    later(hours=25)
    oauth.forget_old(timezone.now())
    assert [str(row.pk) for row in OAuthClient.objects.all()] == [used.client_id]
    answer = client.get(unused.address())
    assert (answer.status_code, "not registered" in answer.content.decode()) == (400, True)


def test_the_number_of_unconnected_clients_is_bounded(client: Client, alice: Person) -> None:
    connected, first = Application(client), Application(client)
    connected.connect(alice.user_key)
    expires_at = timezone.now() + oauth.UNUSED_LIFETIME
    OAuthClient.objects.bulk_create(
        OAuthClient(redirect_uris=[REDIRECT], expires_at=expires_at) for _ in range(oauth.MAX_UNCONNECTED)
    )
    last = Application(client)
    kept = {str(pk) for pk in OAuthClient.objects.values_list("pk", flat=True)}
    assert len(kept) == oauth.MAX_UNCONNECTED + 1
    assert {connected.client_id, last.client_id} <= kept
    assert first.client_id not in kept


# --- codes


def test_a_code_is_exchanged_for_tokens_of_its_user(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key)
    assert (issued["token_type"], issued["expires_in"]) == ("Bearer", 3600)
    assert issued["scope"] == "memories:read memories:write"
    found = oauth.authenticate(issued["access_token"], RESOURCE)
    assert (found.principal.user_pk, found.principal.user_id) == (alice.user_pk, "alice")
    assert found.scopes == ("memories:read", "memories:write")


def test_a_token_is_for_the_resource_only(application: Application, alice: Person) -> None:
    token = application.connect(alice.user_key)["access_token"]
    assert is_valid(token)
    assert not is_valid(token, "http://other.example/mcp")
    assert application.token(grant_type="authorization_code", resource="https://other.example/mcp").json() == {
        "error": "invalid_target",
        "error_description": f"Tokens are for {RESOURCE} only.",
    }


def test_neither_rest_nor_the_tools_accept_a_token(application: Application, alice: Person) -> None:
    headers = {"Authorization": f"Bearer {application.connect(alice.user_key)['access_token']}"}
    rest = Client().get("/memories", headers=headers)
    assert (rest.status_code, rest.json()["detail"]) == (
        401,
        "OAuth tokens are for /mcp only. Send an API key (uk_…) here.",
    )
    tool = Client().post("/tools/invoke", {"tool": "memory_recall"}, "application/json", headers=headers)
    assert (tool.status_code, tool.json()["error"]["message"]) == (401, rest.json()["detail"])


WRONG: list[dict[str, Any]] = [
    {"code_verifier": "x" * 43},
    {"code_verifier": ""},
    {"redirect_uri": "http://127.0.0.1:33418/other"},
    {"redirect_uri": "http://127.0.0.1:9/callback"},
    {"code": "oac_" + "x" * 43},
    {"client_id": "00000000-0000-4000-8000-000000000000"},
    {"client_id": "x"},
    {"client_id": "\x00"},
    {"client_id": ""},
    {"code": "\x00"},
    {"grant_type": "password"},
    {"grant_type": "client_credentials"},
    {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "x"},
]


@pytest.mark.parametrize("changes", WRONG, ids=str)
def test_a_wrong_exchange_gives_no_token(application: Application, alice: Person, changes: dict[str, Any]) -> None:
    code = application.code(alice.user_key)
    parameters = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": REDIRECT,
        "code_verifier": application.verifier,
    }
    answer = application.token(**{**parameters, **changes})
    assert answer.status_code in {400, 401}
    assert answer.json()["error"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert not OAuthToken.objects.filter(kind="access").exists()
    assert application.redeem(code).status_code == 200  # a wrong attempt does not use the code up


def test_a_code_of_another_client_is_unknown(application: Application, alice: Person, client: Client) -> None:
    other = Application(client)
    other.verifier = application.verifier
    assert other.redeem(application.code(alice.user_key)).json()["error"] == "invalid_grant"


def test_a_code_expires(application: Application, alice: Person) -> None:
    code = application.code(alice.user_key)
    later(minutes=6)
    assert application.redeem(code).json()["error"] == "invalid_grant"


def test_a_second_use_of_a_code_ends_the_connection(application: Application, alice: Person) -> None:
    code = application.code(alice.user_key)
    issued = application.redeem(code).json()
    assert is_valid(issued["access_token"])
    assert application.redeem(code).json()["error"] == "invalid_grant"
    assert not is_valid(issued["access_token"])
    assert application.refresh(issued["refresh_token"]).json()["error"] == "invalid_grant"
    event = AuditEvent.objects.get(action="connection.revoke")
    assert (event.user_id, event.detail["reason"]) == ("alice", "reuse")


# --- refresh


def test_a_refresh_rotates_both_tokens(application: Application, alice: Person) -> None:
    first = application.connect(alice.user_key)
    second = application.refresh(first["refresh_token"]).json()
    assert {first["access_token"], first["refresh_token"]}.isdisjoint(second.values())
    assert is_valid(second["access_token"])
    third = application.refresh(second["refresh_token"], scope="memories:read").json()
    assert third["scope"] == "memories:read"
    assert oauth.authenticate(third["access_token"], RESOURCE).scopes == ("memories:read",)
    assert application.refresh(third["refresh_token"]).json()["scope"] == "memories:read memories:write"


def test_a_refresh_token_that_was_copied_ends_the_connection(application: Application, alice: Person) -> None:
    first = application.connect(alice.user_key)
    second = application.refresh(first["refresh_token"]).json()
    later(seconds=61)
    assert application.refresh(first["refresh_token"]).status_code == 400
    assert not is_valid(second["access_token"])


def test_overlapping_refreshes_leave_the_connection(application: Application, alice: Person) -> None:
    first = application.connect(alice.user_key)
    second = application.refresh(first["refresh_token"]).json()
    assert application.refresh(first["refresh_token"]).status_code == 400
    assert is_valid(second["access_token"])


def test_a_refresh_cannot_widen_the_scopes(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key, may_write="")
    assert issued["scope"] == "memories:read"
    answer = application.refresh(issued["refresh_token"], scope="memories:read memories:write")
    assert answer.json()["error"] == "invalid_scope"


def test_a_refresh_token_of_another_client_is_unknown(application: Application, alice: Person, client: Client) -> None:
    token = application.connect(alice.user_key)["refresh_token"]
    assert Application(client).refresh(token).json()["error"] == "invalid_grant"
    assert application.refresh(token).status_code == 200


def test_tokens_expire(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key)
    later(minutes=61)
    assert not is_valid(issued["access_token"])
    refreshed = application.refresh(issued["refresh_token"]).json()
    assert is_valid(refreshed["access_token"])
    later(days=31)
    assert application.refresh(refreshed["refresh_token"]).status_code == 400
    oauth.forget_old(timezone.now())
    assert not OAuthToken.objects.exists()
    assert not OAuthConnection.objects.exists()


def test_the_worker_forgets_what_expired_unless_the_clock_leapt(application: Application, alice: Person) -> None:
    application.connect(alice.user_key)
    clean_up(Round())
    clean_up(Round(clock=lambda: timezone.now() + timedelta(days=91)))
    assert OAuthConnection.objects.exists()
    later(days=91)
    oauth.forget_old(timezone.now())
    assert not OAuthConnection.objects.exists()
    assert not OAuthClient.objects.exists()


# --- races


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["code", "refresh"])
def test_two_exchanges_at_once_give_tokens_once(alice: Person, kind: str) -> None:
    application = Application(Client())
    code = application.code(alice.user_key)
    if kind == "refresh":
        refresh_token = application.redeem(code).json()["refresh_token"]

    def exchange(_: int) -> Any:
        try:
            barrier.wait()
            return application.redeem(code) if kind == "code" else application.refresh(refresh_token)
        finally:
            connection.close()

    barrier = Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(exchange, range(6)))
    issued = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(issued) == 1
    assert {answer.json()["error"] for answer in answers if answer.status_code != 200} == {"invalid_grant"}
    # A code that is used twice was copied; two processes of one application may refresh at once.
    assert is_valid(issued[0]["access_token"]) == (kind == "refresh")


# --- the end of a connection


def test_a_client_revokes_its_connection_by_any_of_its_tokens(alice: Person, client: Client) -> None:
    for name in ("access_token", "refresh_token"):
        application = Application(client)
        issued = application.connect(alice.user_key)
        other = Application(client).client_id
        assert client.post("/oauth/revoke", {"token": issued[name], "client_id": other}).status_code == 200
        assert is_valid(issued["access_token"])
        client_id = application.client_id
        answer = client.post("/oauth/revoke", {"token": issued[name], "client_id": client_id, "token_type_hint": "x"})
        assert answer.status_code == 200
        assert not is_valid(issued["access_token"])
        assert application.refresh(issued["refresh_token"]).status_code == 400
        assert client.post("/oauth/revoke", {"token": issued[name]}).status_code == 200
    assert client.post("/oauth/revoke", {}).status_code == 400


def test_a_user_revokes_a_token_without_naming_the_client(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key)
    assert Client().post("/oauth/revoke", {"token": issued["refresh_token"]}).status_code == 200
    assert not is_valid(issued["access_token"])


def test_a_connection_ends_with_the_key_that_approved_it(application: Application, alice: Person) -> None:
    second = services.issue_key(alice.user_pk, actor=ACTOR)
    issued = application.connect(second.plaintext)
    by_other_key = Application(application.http).connect(alice.user_key)
    services.revoke_key(alice.user_pk, second.key.pk, actor=ACTOR)
    assert not is_valid(issued["access_token"])
    assert application.refresh(issued["refresh_token"]).status_code == 400
    assert is_valid(by_other_key["access_token"])
    assert [str(row.client_id) for row in oauth.connections_of(alice.user_pk)] != [application.client_id]


def test_a_rotation_ends_the_connection_after_its_grace(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key)
    key = services.authenticate(alice.user_key).key_id
    services.rotate_key(alice.user_pk, key, actor=ACTOR)
    assert is_valid(issued["access_token"])
    services.UserKey.objects.filter(pk=key).update(expires_at=timezone.now())
    assert not is_valid(issued["access_token"])


def test_an_approval_by_an_operator_ends_with_the_last_key(
    application: Application, alice: Person, admin_client: Client
) -> None:
    answer = application.approve("", http=admin_client, user_id="alice")
    code = answer.headers["Location"].partition("code=")[2].partition("&")[0]
    token = application.redeem(code).json()["access_token"]
    assert oauth.authenticate(token, RESOURCE).principal.user_id == "alice"
    key = services.authenticate(alice.user_key).key_id
    services.revoke_key(alice.user_pk, key, actor=ACTOR, may_be_last=True)
    assert not is_valid(token)


@pytest.mark.django_db(transaction=True)
def test_erasing_the_user_ends_and_removes_connections(alice: Person, bob: Person) -> None:
    application = Application(Client())
    issued, of_bob = application.connect(alice.user_key), application.connect(bob.user_key)
    assert erase.erase(alice.user_pk, actor=ACTOR)["removed"]["oauth_connections"] == 1
    assert not is_valid(issued["access_token"])
    assert is_valid(of_bob["access_token"])
    assert [row.user.user_id for row in OAuthConnection.objects.all()] == ["bob"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_revoked", [False, True])
def test_erasing_the_user_removes_the_applications_of_this_user_alone(
    alice: Person, bob: Person, is_revoked: bool
) -> None:
    own, shared, pending = Application(Client()), Application(Client()), Application(Client())
    own.connect(alice.user_key)
    shared.connect(alice.user_key)
    shared.connect(bob.user_key)
    if is_revoked:
        oauth.revoke(OAuthConnection.objects.get(client=own.client_id).pk, actor=ACTOR)
    assert erase.plan(alice.user_pk)["oauth_clients"] == 1
    assert erase.erase(alice.user_pk, actor=ACTOR)["removed"]["oauth_clients"] == 1
    assert {str(client.pk) for client in OAuthClient.objects.all()} == {shared.client_id, pending.client_id}


def test_an_archive_carries_no_connection() -> None:
    carried = {table.model for table in tables.PORTABLE}
    assert carried.isdisjoint({OAuthClient, OAuthConnection, OAuthToken})


# --- secrecy, limits, audit


def test_the_database_holds_digests_only(application: Application, alice: Person) -> None:
    code = application.code(alice.user_key)
    issued = application.redeem(code).json()
    rows = str([list(model.objects.values()) for model in (OAuthClient, OAuthConnection, OAuthToken, AuditEvent)])
    for secret in (code, issued["access_token"], issued["refresh_token"], alice.user_key):
        assert secret not in rows
        assert services.digest_of(secret) in rows or secret == alice.user_key


def test_wrong_codes_are_limited_and_a_valid_one_passes(application: Application, alice: Person, settings: Any) -> None:
    code = application.code(alice.user_key)
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 4
    limits._limits.cache_clear()
    statuses = [application.redeem("oac_" + "x" * 43).status_code for _ in range(6)]
    assert statuses == [400] * 4 + [429] * 2
    issued = application.redeem(code)
    assert issued.status_code == 200
    assert limits.authenticate_token("127.0.0.1", issued.json()["access_token"], RESOURCE)


def test_wrong_access_tokens_count_as_wrong_keys(application: Application, alice: Person, settings: Any) -> None:
    token = application.connect(alice.user_key)["access_token"]
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    limits._limits.cache_clear()
    for error in (Unauthenticated, Unauthenticated, limits.TooManyRequests):
        with pytest.raises(error):
            limits.authenticate_token("127.0.0.1", "oat_" + "x" * 43, RESOURCE)
    assert limits.authenticate_token("127.0.0.1", token, RESOURCE).principal.user_id == "alice"


def test_approval_and_revocation_are_audited(application: Application, alice: Person) -> None:
    issued = application.connect(alice.user_key)
    application.http.post("/oauth/revoke", {"token": issued["access_token"]})
    approved, revoked = AuditEvent.objects.filter(subject_type="connection").order_by("pk")
    assert (approved.action, approved.actor_kind, approved.user_id) == ("connection.approve", "key", "alice")
    assert approved.detail == {
        "application": "Test agent",
        "host": "127.0.0.1:33418",
        "scopes": "memories:read memories:write",
    }
    assert (revoked.action, revoked.actor_kind) == ("connection.revoke", "token")


@pytest.mark.parametrize("statement", [lambda: oauth.authenticate("oat_" + "x" * 43, RESOURCE)])
def test_an_unknown_token_takes_one_statement(
    statement: Callable[[], Any], django_assert_num_queries: Any, db: Any
) -> None:
    with django_assert_num_queries(1), pytest.raises(Unauthenticated):
        statement()
