"""The consent page: what it shows, whom it trusts, and where it sends the browser."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from accounts import oauth, operators
from accounts.api import limits
from accounts.audit import Actor
from accounts.models import OAuthClient, OAuthConnection
from core.errors import Unauthenticated
from tests.agents.oauth.flow import ORIGIN, REDIRECT, RESOURCE, Application, answer_of
from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def application(client: Client) -> Application:
    return Application(client)


def test_it_names_the_application_the_host_and_the_scopes(application: Application) -> None:
    page = application.http.get(application.address())
    text = page.content.decode()
    assert page.status_code == 200
    for shown in ("Connect Test agent?", "127.0.0.1:33418", "Read your memories", "Add, change and delete memories"):
        assert shown in text
    assert "Add, change" not in application.http.get(application.address(scope="memories:read")).content.decode()
    assert "user_id" not in text


def test_it_speaks_chinese(application: Application) -> None:
    page = application.http.get(application.address(), headers={"Accept-Language": "zh-Hans"}).content.decode()
    assert '<html lang="zh-hans"' in page
    assert "读取你的记忆、画像和文件" in page


def test_hostile_names_are_text(client: Client) -> None:
    application = Application(client, name="<script>alert(1)</script>")
    page = client.get(application.address()).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_an_application_without_a_name_is_named_by_its_host(client: Client) -> None:
    application = Application(client, name="\n\u202e ")
    assert "Connect 127.0.0.1:33418?" in client.get(application.address()).content.decode()


def test_it_cannot_be_framed_cached_or_leaked(application: Application) -> None:
    page = application.http.get(application.address())
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:33418;" in f"{policy};"
    assert "unsafe" not in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert "no-store" in page.headers["Cache-Control"]
    assert page.headers["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize(
    ("uri", "source"),
    [("https://app.example:8443/cb?a=1", "https://app.example:8443"), ("http://[::1]:5/cb", "http:")],
)
def test_forms_may_lead_to_the_application_only(client: Client, uri: str, source: str) -> None:
    page = client.get(Application(client, redirect_uris=(uri,)).address())
    assert f"form-action 'self' {source};" in f"{page.headers['Content-Security-Policy']};"


def test_the_form_needs_its_csrf_token(application: Application, alice: Person) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert application.approve(alice.user_key, http=strict).status_code == 403
    strict.get(application.address())
    token = strict.cookies["memory_gateway_csrftoken"].value
    answer = application.approve(alice.user_key, http=strict, csrfmiddlewaretoken=token)
    assert answer.status_code == 303


def test_the_answer_carries_code_state_and_issuer(application: Application, alice: Person) -> None:
    answer = application.approve(alice.user_key)
    assert answer.headers["Location"].startswith(f"{REDIRECT}?")
    found = answer_of(answer)
    assert found["code"].startswith("oac_")
    assert (found["state"], found["iss"]) == ("s t&te", ORIGIN)


def test_denying_tells_the_application(application: Application) -> None:
    answer = application.approve("", answer="deny")
    assert answer_of(answer) == {"error": "access_denied", "state": "s t&te", "iss": ORIGIN}
    assert not OAuthConnection.objects.exists()


def test_a_wrong_key_is_refused_within_the_limit_and_a_valid_one_passes(
    application: Application, alice: Person, settings: Any
) -> None:
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 2
    limits._limits.cache_clear()
    wrong = [application.approve("uk_" + "x" * 43) for _ in range(3)]
    assert [answer.status_code for answer in wrong] == [401, 401, 429]
    assert "unknown, expired or revoked" in wrong[0].content.decode()
    assert application.approve(alice.user_key).status_code == 303


@pytest.mark.parametrize("key", ["", "\x00", "x" * 300, "oat_" + "x" * 43, "密钥"])
def test_other_text_is_no_key(application: Application, alice: Person, key: str) -> None:
    answer = application.approve(key)
    assert answer.status_code in {401, 422}
    assert not OAuthConnection.objects.exists()
    assert "x" * 43 not in answer.content.decode()


def test_the_key_is_not_in_the_page(application: Application, alice: Person) -> None:
    answer = application.approve(alice.user_key + "x")
    assert answer.status_code == 401
    assert alice.user_key not in answer.content.decode()


def test_the_user_may_withhold_writing(application: Application, alice: Person) -> None:
    application.approve(alice.user_key, may_write="")
    assert OAuthConnection.objects.get().scopes == "memories:read"


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        (None, "memories:read memories:write"),
        ("memories:write", "memories:read memories:write"),
        ("offline_access memories:read", "memories:read"),
    ],
)
def test_scopes_follow_the_request(application: Application, alice: Person, scope: str | None, granted: str) -> None:
    data = {"key": alice.user_key, "may_write": "on", "answer": "allow"}
    assert application.http.post(application.address(scope=scope), data).status_code == 303
    assert OAuthConnection.objects.get().scopes == granted


# --- operators


def operator_client(*permissions: str) -> Client:
    operator = User.objects.create_user(f"op-{len(permissions)}", is_staff=True)
    operator.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    http = Client()
    http.force_login(operator)
    return http


def test_an_operator_who_may_issue_keys_picks_the_user(application: Application, alice: Person) -> None:
    http = operator_client("add_userkey")
    assert "user_id" in http.get(application.address()).content.decode()
    assert application.approve("", http=http, user_id="alice").status_code == 303
    connection = OAuthConnection.objects.get()
    assert (connection.user.user_id, connection.key) == ("alice", None)
    assert application.approve("", http=http, user_id="nobody").status_code == 404
    assert application.approve("", http=http, user_id="\x00").status_code == 422
    assert application.approve(alice.user_key, http=http, user_id="alice").status_code == 422


def is_accepted(token: str) -> bool:
    try:
        return bool(oauth.authenticate(token, RESOURCE))
    except Unauthenticated:
        return False


def test_a_connection_ends_with_the_right_of_the_operator_who_approved_it(
    application: Application, alice: Person
) -> None:
    http = operator_client("add_userkey")
    operator = User.objects.get(username="op-1")
    granted = application.connect("", http=http, user_id="alice")
    assert is_accepted(granted["access_token"])
    operator.user_permissions.clear()
    assert not is_accepted(granted["access_token"])
    operator.user_permissions.set(Permission.objects.filter(codename="add_userkey"))
    assert is_accepted(granted["access_token"])
    User.objects.filter(pk=operator.pk).update(is_active=False)
    assert not is_accepted(granted["access_token"])
    User.objects.filter(pk=operator.pk).update(is_active=True)
    operators.change(operator, None, is_active=False, actor=Actor.command("tests"))
    assert not OAuthConnection.objects.exists()


def test_other_operators_need_the_users_key(application: Application, alice: Person) -> None:
    http = operator_client("view_userkey")
    assert application.approve("", http=http, user_id="alice").status_code == 422
    assert application.approve("", user_id="alice").status_code == 422  # without a session
    assert not OAuthConnection.objects.exists()


# --- requests that cannot be approved


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"resource": [f"{ORIGIN}/mcp", "https://other.example"]}, "invalid_target"),
        ({"state": ["a", "b"]}, "invalid_request"),
        ({"state": "x" * 5000}, "invalid_request"),
    ],
    ids=str,
)
def test_an_invalid_request_is_explained_and_not_redirected(
    application: Application, alice: Person, changes: dict[str, Any], error: str
) -> None:
    page = application.http.get(application.address(**changes))
    assert (page.status_code, "Location" in page.headers) == (400, False)
    assert f'href="{REDIRECT}?error={error}&amp;' in page.content.decode()
    data = {"key": alice.user_key, "answer": "allow"}
    assert application.http.post(application.address(**changes), data).status_code == 400
    assert not OAuthConnection.objects.exists()


@pytest.mark.parametrize(
    "uri",
    [
        None,
        "",
        "http://127.0.0.1:33418/callback/",
        "http://127.0.0.1:33418/callback?x=1",
        "http://127.0.0.1:33418/other",
        "http://127.0.0.1:33418/callback#x",
        "http://user@127.0.0.1:33418/callback",
        "http://127.0.0.1@evil.example/callback",
        "http://localhost:33418/callback",
        "https://127.0.0.1:33418/callback",
        "https://evil.example/callback",
        "//evil.example/callback",
        "javascript:alert(1)",
        "\x00",
    ],
)
@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_other_redirect_addresses_lead_nowhere(
    application: Application, alice: Person, uri: str | None, answer: str
) -> None:
    page = application.http.post(application.address(redirect_uri=uri), {"key": alice.user_key, "answer": answer})
    assert (page.status_code, "Location" in page.headers) == (400, False)
    assert "Return to the application" not in page.content.decode()


def test_the_port_on_loopback_may_differ(application: Application, alice: Person) -> None:
    application.redirect_uri = "http://127.0.0.1:54321/callback"
    assert application.connect(alice.user_key)["access_token"]


def test_the_port_of_a_host_may_not_differ(client: Client, alice: Person) -> None:
    application = Application(client, redirect_uris=("https://app.example/cb",))
    application.redirect_uri = "https://app.example:8443/cb"
    assert client.get(application.address()).status_code == 400


@pytest.mark.parametrize("client_id", [None, "", "x", "\x00", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_application_is_explained(application: Application, client_id: str | None) -> None:
    page = application.http.get(application.address(client_id=client_id))
    assert page.status_code == 400
    assert "not registered" in page.content.decode()


def test_an_application_that_was_deleted_meanwhile_is_refused(application: Application, alice: Person) -> None:
    page = application.http.get(application.address())
    assert page.status_code == 200
    OAuthClient.objects.all().delete()
    assert application.approve(alice.user_key).status_code == 400


@pytest.mark.parametrize(
    ("uri", "source"),
    [
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor:"),
        ("com.example.app:/oauth2redirect", "com.example.app:"),
    ],
)
def test_an_application_is_opened_by_its_own_scheme(client: Client, alice: Person, uri: str, source: str) -> None:
    application = Application(client, redirect_uris=(uri,))
    for _time in range(2):  # the user is asked each time
        page = client.get(application.address())
        assert f"form-action 'self' {source};" in f"{page.headers['Content-Security-Policy']};"
        assert f"You will be sent to <strong>{source}" in page.content.decode()
        assert application.connect(alice.user_key)["access_token"]
    answer = application.approve(alice.user_key)
    assert answer.headers["Location"].startswith(f"{uri}?code=")
    denied = application.approve("", answer="deny")
    assert (denied.status_code, denied.headers["Location"].startswith(f"{uri}?error=")) == (303, True)
    for wrong in (uri.replace(":", "x:", 1), f"{uri}/other", "javascript:alert(1)"):
        refused = client.get(application.address(redirect_uri=wrong))
        assert (refused.status_code, "Location" in refused.headers) == (400, False)
    assert client.get(application.address(code_challenge=None)).status_code == 400
