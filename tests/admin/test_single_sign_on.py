"""Operators sign in by OpenID Connect at a real provider on loopback, also when it lies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from accounts import oidc, tokens
from accounts.audit import Actor
from accounts.models import AuditEvent, OperatorIdentity
from core.background.tasks import Round
from core.errors import Unauthenticated
from operations.tasks import clean_up
from tests import stub_oidc
from tests.roles import create_roles
from tests.stub_oidc import CLIENT_ID, CLIENT_SECRET, Provider

pytestmark = pytest.mark.django_db
START, CALLBACK = "/admin/memory/sign-in/", "/admin/memory/sign-in/callback/"
ROLES = {"cn=mg": "Administrator", "support": "Viewer"}
Lie = Callable[[Provider], Any]


@pytest.fixture(autouse=True)
def roles(db: Any) -> None:
    create_roles()


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    with stub_oidc.running() as running:
        settings.MEMORY_GATEWAY_OIDC_ISSUER = running.issuer
        settings.MEMORY_GATEWAY_OIDC_CLIENT_ID = CLIENT_ID
        settings.MEMORY_GATEWAY_OIDC_CLIENT_SECRET = CLIENT_SECRET
        settings.MEMORY_GATEWAY_OIDC_ROLES = ROLES
        running.person = {"sub": "s-1", "preferred_username": "maria", "groups": ["support"]}
        oidc._discovered.cache_clear()
        yield running


def go_to_provider(client: Client, next_address: str = "") -> str:
    """Begin a sign-in, and return the address with which the provider sends the browser back."""
    begun = client.get(START, {"next": next_address})
    assert begun.status_code == 302
    return requests.get(begun["Location"], allow_redirects=False, timeout=10).headers["Location"]


def sign_in(client: Client | None = None, next_address: str = "") -> Any:
    client = client or Client()
    return client.get(go_to_provider(client, next_address))


def role_of(name: str) -> list[str]:
    return [group.name for group in User.objects.get(username=name).groups.all()]


def is_signed_in(client: Client) -> bool:
    return client.get("/admin/memory/").status_code == 200


def test_a_new_operator_gets_the_role_of_their_group(provider: Provider) -> None:
    client = Client()
    answer = sign_in(client, "/admin/memory/users/?q=a")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/memory/users/?q=a")
    assert is_signed_in(client)
    operator = User.objects.get()
    assert (operator.username, operator.is_staff, operator.is_superuser) == ("maria", True, False)
    assert not operator.has_usable_password()
    assert role_of("maria") == ["Viewer"]
    assert client.post("/admin/memory/operators/add/").status_code == 403
    created, signed_in = AuditEvent.objects.exclude(kind="read").order_by("pk")
    assert (created.action, created.detail) == ("operator.create", {"roles": ["Viewer"]})
    assert (signed_in.action, signed_in.kind, signed_in.actor) == ("operator.sign_in", "sign_in", "maria")


def test_each_request_has_a_new_challenge_state_and_nonce(provider: Provider) -> None:
    queries = [parse_qs(urlsplit(Client().get(START)["Location"]).query) for _ in range(2)]
    for name in ("state", "nonce", "code_challenge"):
        assert queries[0][name] != queries[1][name]
        assert len(queries[0][name][0]) >= 43
    assert queries[0]["redirect_uri"] == [f"http://testserver{CALLBACK}"]
    assert queries[0]["scope"] == ["openid profile"]


def test_the_subject_decides_not_the_name(provider: Provider) -> None:
    sign_in()
    provider.person |= {"preferred_username": "maria.b", "email": "m@example.org"}
    sign_in()
    assert User.objects.count() == 1
    provider.person |= {"sub": "s-2", "preferred_username": "maria"}
    sign_in()
    other = OperatorIdentity.objects.get(subject="s-2").operator
    assert other.username.startswith("maria-")


def test_a_local_operator_is_not_taken_over(provider: Provider) -> None:
    admin = User.objects.create_superuser("Admin", "m@example.org", "x")
    provider.person |= {"preferred_username": "admin", "email": "m@example.org", "email_verified": True}
    client = Client()
    sign_in(client)
    assert client.session["_auth_user_id"] != str(admin.pk)
    assert User.objects.get(pk=client.session["_auth_user_id"]).is_superuser is False


def test_the_first_group_of_the_setting_wins_and_the_role_follows_the_groups(provider: Provider) -> None:
    provider.person["groups"] = ["support", "other", "cn=mg"]
    sign_in()
    assert role_of("maria") == ["Administrator"]
    provider.person["groups"] = "support"
    sign_in()
    assert role_of("maria") == ["Viewer"]
    change = AuditEvent.objects.get(action="operator.change")
    assert change.detail["before"]["roles"] == ["Administrator"]


def test_groups_may_come_from_the_user_information(provider: Provider) -> None:
    provider.left_out = {"groups"}
    assert sign_in().status_code == 302
    assert "/realm/me" in provider.requests


def test_a_person_without_a_mapped_group_is_refused_and_loses_the_sessions(provider: Provider) -> None:
    client = Client()
    sign_in(client)
    provider.person["groups"] = ["other"]
    refused = sign_in()
    assert (refused.status_code, "No group of your account" in refused.content.decode()) == (403, True)
    assert role_of("maria") == []
    assert not is_signed_in(client)
    provider.person |= {"sub": "s-3", "preferred_username": "nils"}
    assert sign_in().status_code == 403
    assert not User.objects.filter(username="nils").exists()
    refusals = AuditEvent.objects.filter(action="operator.refuse").order_by("pk")
    assert [event.subject_id for event in refusals] == ["maria", "nils"]


def test_without_roles_in_the_settings_operators_begin_without_one_and_keep_theirs(
    provider: Provider, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_OIDC_ROLES = {}
    client = Client()
    sign_in(client)
    assert client.get("/admin/memory/").status_code == 403
    User.objects.get().groups.set(Group.objects.filter(name="Editor"))
    sign_in()
    assert role_of("maria") == ["Editor"]


@pytest.mark.parametrize("field", ["is_active", "is_staff"])
def test_a_deactivated_operator_stays_out(provider: Provider, field: str) -> None:
    sign_in()
    User.objects.update(**{field: False})
    client = Client()
    assert sign_in(client).status_code == 403
    assert not is_signed_in(client)


LIES: dict[str, Lie] = {
    "another audience": lambda it: it.claims.update(aud="other"),
    "two audiences, no party": lambda it: it.claims.update(aud=[CLIENT_ID, "other"]),
    "another party": lambda it: it.claims.update(azp="other"),
    "another issuer": lambda it: it.claims.update(iss="https://id.example.org"),
    "another nonce": lambda it: it.claims.update(nonce="x" * 64),
    "no nonce": lambda it: it.left_out.add("nonce"),
    "expired": lambda it: it.claims.update(exp=int(time.time()) - 60),
    "no expiry": lambda it: it.left_out.add("exp"),
    "issued in the future": lambda it: it.claims.update(iat=int(time.time()) + 600),
    "no subject": lambda it: it.left_out.add("sub"),
    "a long subject": lambda it: it.claims.update(sub="s" * 256),
    "not signed": lambda it: setattr(it, "algorithm", "none"),
    "signed with the client secret": lambda it: setattr(it, "algorithm", "HS256"),
    "signed with another key": lambda it: setattr(it, "signing_key", stub_oidc.new_key()),
    "another issuer answers": lambda it: it.redirected.update(iss="https://id.example.org"),
    "an issuer is promised and absent": lambda it: it.discovery.update(
        authorization_response_iss_parameter_supported=True
    ),
    "another state": lambda it: it.redirected.update(state="x" * 64),
    "the user information of another person": lambda it: (it.left_out.add("groups"), it.user_info.update(sub="s-2")),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_an_answer_that_proves_nothing_is_refused(provider: Provider, lie: Lie) -> None:
    lie(provider)
    client = Client()
    answer = sign_in(client)
    assert answer.status_code == 403
    assert answer["X-Request-Id"] in answer.content.decode()
    assert not is_signed_in(client)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "metadata",
    [{"issuer": "https://id.example.org"}, {"token_endpoint": "file:///etc/passwd"}, {"jwks_uri": None}],
    ids=["issuer", "scheme", "absent"],
)
def test_a_provider_that_describes_another_is_refused(provider: Provider, metadata: dict[str, Any]) -> None:
    provider.discovery.update(metadata)
    answer = Client().get(START)
    assert (answer.status_code, answer["X-Request-Id"] in answer.content.decode()) == (502, True)


def test_a_provider_that_is_down_leaves_the_password_form(provider: Provider, settings: Any) -> None:
    settings.MEMORY_GATEWAY_OIDC_ISSUER = "http://127.0.0.1:9"
    assert Client().get(START).status_code == 502
    User.objects.create_superuser("local", password="Lantern-4711-x")
    form = {"username": "local", "password": "Lantern-4711-x", "next": "/admin/"}
    assert Client().post("/admin/login/", form).status_code == 302


def test_an_answer_counts_once_and_in_its_own_browser(provider: Provider) -> None:
    client = Client()
    back = go_to_provider(client)
    assert Client().get(back).status_code == 403
    assert client.get(back).status_code == 302
    assert client.get(back).status_code == 403
    assert Client().get(CALLBACK).status_code == 403


def test_an_error_of_the_provider_is_a_page(provider: Provider) -> None:
    client = Client()
    state = parse_qs(urlsplit(client.get(START)["Location"]).query)["state"][0]
    answer = client.get(CALLBACK, {"state": state, "error": "access_denied"})
    assert (answer.status_code, "Sign in again" in answer.content.decode()) == (403, True)


@pytest.mark.parametrize("target", ["https://example.org/", "//example.org/", "javascript:alert(1)"])
def test_the_sign_in_leads_nowhere_else(provider: Provider, target: str) -> None:
    assert sign_in(next_address=target)["Location"] == "/admin/memory/"


def test_the_form_for_passwords_can_be_turned_off(provider: Provider, settings: Any) -> None:
    User.objects.create_superuser("local", password="Lantern-4711-x")
    form = {"username": "local", "password": "Lantern-4711-x", "next": "/admin/"}
    page = Client().get("/admin/login/?next=/admin/memory/").content.decode()
    assert f"{START}?next=/admin/memory/" in page
    assert 'name="password"' in page
    settings.MEMORY_GATEWAY_PASSWORD_SIGN_IN = False
    page = Client().get("/admin/login/").content.decode()
    assert (START in page, 'name="password"' in page) == (True, False)
    assert Client().post("/admin/login/", form).status_code == 200
    assert not AuditEvent.objects.filter(action="operator.sign_in").exists()


def test_sign_out_ends_the_session_and_leads_to_the_providers(provider: Provider) -> None:
    client = Client()
    sign_in(client)
    assert "/admin/memory/sign-out/" in client.post("/admin/logout/").content.decode()
    assert not is_signed_in(client)
    address = urlsplit(client.get("/admin/memory/sign-out/")["Location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{provider.issuer}/leave"
    assert parse_qs(address.query)["post_logout_redirect_uri"] == ["http://testserver/admin/login/"]
    provider.discovery["end_session_endpoint"] = None
    oidc._discovered.cache_clear()
    assert client.get("/admin/memory/sign-out/")["Location"] == "http://testserver/admin/login/"


def test_such_an_operator_gets_no_password(provider: Provider, admin_client: Client) -> None:
    sign_in()
    pk = User.objects.get(username="maria").pk
    page = admin_client.get(f"/admin/memory/operators/{pk}/").content.decode()
    assert provider.issuer in page
    assert f"operators/{pk}/password/" not in page
    assert admin_client.post(f"/admin/memory/operators/{pk}/password/").status_code == 409
    assert not User.objects.get(pk=pk).has_usable_password()
    form = {"password1": "Lantern-4711-x", "password2": "Lantern-4711-x", "usable_password": "true"}
    assert admin_client.post(f"/admin/auth/user/{pk}/password/", form).status_code == 403
    assert not User.objects.get(pk=pk).has_usable_password()


def test_a_password_that_such_an_operator_has_nevertheless_opens_nothing(provider: Provider) -> None:
    sign_in()
    operator = User.objects.get(username="maria")
    operator.set_password("Lantern-4711-x")
    operator.save()
    form = {"username": "maria", "password": "Lantern-4711-x", "next": "/admin/"}
    answer = Client().post("/admin/login/", form)
    assert (answer.status_code, "signs in by single sign-on" in answer.content.decode()) == (200, True)


def test_a_sign_in_that_is_not_finished_stores_nothing(provider: Provider) -> None:
    client = Client()
    for _ in range(3):
        cookie = client.get(START).cookies["memory_gateway_sign_in"]
    assert not Session.objects.exists()
    assert (cookie["httponly"], cookie["samesite"], cookie["max-age"]) == (True, "Lax", 600)
    assert len(client.get(START, {"next": "/admin/?q=" + "x" * 9000}).cookies["memory_gateway_sign_in"].value) < 4000
    client.get(go_to_provider(client))
    assert Session.objects.count() == 1
    assert not client.cookies["memory_gateway_sign_in"].value


def test_a_state_of_another_time_or_hand_is_refused(provider: Provider, settings: Any) -> None:
    client = Client()
    back = go_to_provider(client)
    forged = client.cookies["memory_gateway_sign_in"].value
    for cookie in ("", "x", forged[:-1] + ("a" if forged[-1] != "a" else "b")):
        client.cookies["memory_gateway_sign_in"] = cookie
        assert client.get(back).status_code == 403


def test_the_requests_before_a_sign_in_are_counted(provider: Provider, settings: Any) -> None:
    settings.ANONYMOUS_REQUESTS_PER_MINUTE = 3
    answers = [Client(REMOTE_ADDR="192.0.2.77").get(START) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [302, 302, 302, 429, 429]
    assert answers[-1]["Retry-After"]


# --- the role is asked for again


def signed_in(provider: Provider) -> Client:
    provider.refresh_tokens = set()
    client = Client()
    sign_in(client)
    return client


def pass_minutes(client: Client, minutes: int) -> None:
    """Let the sign-in, the last answer of the provider and the session be older."""
    session = client.session
    for name in ("signed_in_at", "confirmed_at"):
        if name in session:
            session[name] -= minutes * 60
    session.save()
    for identity in OperatorIdentity.objects.exclude(confirmed_at=None):
        identity.confirmed_at -= timedelta(minutes=minutes)  # type: ignore[operator]
        identity.save()


def token_of(name: str) -> str:
    operator = User.objects.get(username=name)
    return tokens.issue("desk", operator=operator, actor=Actor.command("tests")).plaintext


def is_live(plaintext: str) -> bool:
    try:
        return bool(tokens.authenticate(plaintext))
    except Unauthenticated:
        return False


def refreshes(provider: Provider) -> int:
    return provider.requests.count("/realm/token") - 1


def test_the_refresh_token_is_stored_encrypted(provider: Provider) -> None:
    signed_in(provider)
    [refresh_token] = provider.refresh_tokens or ()
    stored = OperatorIdentity.objects.values().get()
    assert refresh_token not in str(stored)
    assert stored["sealed_refresh_token"]
    assert all(refresh_token not in str(session.get_decoded()) for session in Session.objects.all())


def test_the_provider_is_asked_every_fifteen_minutes_of_activity(provider: Provider) -> None:
    client = signed_in(provider)
    for _ in range(3):
        assert is_signed_in(client)
    assert refreshes(provider) == 0
    for count in (1, 2, 3):  # each time with the next refresh token
        pass_minutes(client, 15)
        assert is_signed_in(client)
        assert is_signed_in(client)
        assert refreshes(provider) == count


def test_two_browsers_ask_once(provider: Provider) -> None:
    one = signed_in(provider)
    other = Client()
    sign_in(other)
    before = refreshes(provider)
    pass_minutes(one, 20)
    pass_minutes(other, 0)
    session = other.session
    session["confirmed_at"] -= 1200
    session.save()
    assert is_signed_in(one)
    assert is_signed_in(other)
    assert refreshes(provider) == before + 1


@pytest.mark.parametrize("from_user_info", [False, True])
def test_a_group_that_is_lost_ends_the_session_and_the_tokens(provider: Provider, from_user_info: bool) -> None:
    provider.is_id_token_refreshed = not from_user_info
    client = signed_in(provider)
    plaintext = token_of("maria")
    provider.person["groups"] = ["other"]
    assert is_signed_in(client)
    pass_minutes(client, 16)
    assert not is_signed_in(client)
    assert role_of("maria") == []
    assert not is_live(plaintext)


def test_a_smaller_role_ends_the_session_and_a_larger_one_does_not(provider: Provider) -> None:
    client = signed_in(provider)
    provider.person["groups"] = ["cn=mg"]
    pass_minutes(client, 16)
    assert client.get("/admin/memory/operators/").status_code == 200
    provider.person["groups"] = ["support"]
    pass_minutes(client, 16)
    assert not is_signed_in(client)
    assert role_of("maria") == ["Viewer"]


@pytest.mark.parametrize("error", ["invalid_grant", "access_denied"])
def test_a_person_who_is_gone_is_signed_out_and_tokens_rest(provider: Provider, error: str) -> None:
    client = signed_in(provider)
    other = Client()
    other.force_login(User.objects.get(username="maria"))
    plaintext = token_of("maria")
    provider.refresh_answer = 400, {"error": error}
    pass_minutes(client, 16)
    assert not is_signed_in(client)
    assert not is_signed_in(other)
    assert not is_live(plaintext)
    event = AuditEvent.objects.get(action="operator.sign_out")
    assert (event.subject_id, event.detail["reason"]) == ("maria", "provider")
    assert OperatorIdentity.objects.get().sealed_refresh_token == ""
    provider.refresh_answer = None
    sign_in(client)
    assert is_signed_in(client)
    assert is_live(plaintext)


OUTAGES: list[tuple[int, dict[str, Any]]] = [
    (503, {}),
    (500, {"error": "invalid_grant"}),
    (401, {"error": "invalid_client"}),
]


@pytest.mark.parametrize("answer", OUTAGES)
def test_an_outage_of_the_provider_ends_no_session(provider: Provider, answer: tuple[int, dict[str, Any]]) -> None:
    client = signed_in(provider)
    provider.refresh_answer = answer
    pass_minutes(client, 16)
    for _ in range(3):
        assert is_signed_in(client)
    assert refreshes(provider) == 1  # not at each request
    pass_minutes(client, 1)
    assert is_signed_in(client)
    assert refreshes(provider) == 2
    provider.refresh_answer = None
    provider.person["groups"] = ["other"]
    pass_minutes(client, 1)
    assert not is_signed_in(client)


def test_a_refresh_that_names_another_person_ends_the_session(provider: Provider) -> None:
    client = signed_in(provider)
    provider.person["sub"] = "s-2"
    pass_minutes(client, 16)
    assert not is_signed_in(client)


@pytest.mark.parametrize("has_refresh_token", [True, False])
def test_a_session_ends_after_twelve_hours_of_activity(provider: Provider, has_refresh_token: bool) -> None:
    client = signed_in(provider) if has_refresh_token else Client()
    if not has_refresh_token:
        sign_in(client)
    for _ in range(47):
        pass_minutes(client, 15)
        assert is_signed_in(client)
    pass_minutes(client, 15)
    assert not is_signed_in(client)
    assert refreshes(provider) == (47 if has_refresh_token else 0)


def test_refresh_tokens_are_deleted_when_all_sessions_have_ended(provider: Provider) -> None:
    client = signed_in(provider)
    clean_up(Round())
    assert OperatorIdentity.objects.get().sealed_refresh_token
    pass_minutes(client, 12 * 60 + 1)
    clean_up(Round())
    assert not OperatorIdentity.objects.get().sealed_refresh_token


def test_a_role_that_does_not_exist_stops_the_start(settings: Any) -> None:
    settings.MEMORY_GATEWAY_OIDC_ROLES = {"staff": "viewer"}
    with pytest.raises(ImproperlyConfigured, match="names the role 'viewer', which does not exist"):
        oidc.require_roles()
    settings.MEMORY_GATEWAY_OIDC_ROLES = ROLES
    oidc.require_roles()
