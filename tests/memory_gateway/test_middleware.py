"""Middleware that pages need and API requests skip."""

from __future__ import annotations

from functools import partial
from unittest.mock import Mock

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import InterfaceError, OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import translation

from core.errors import TooLarge
from core.messages import Translatable
from memory_gateway.middleware import DATA_POLICY, SessionMiddleware
from memory_gateway.server.responses import refusal_answer
from tests.conftest import Person

pytestmark = pytest.mark.django_db
URL = "/users/me/keys"


def test_an_api_request_opens_no_session_and_sets_no_cookie(alice: Person) -> None:
    alice.client.cookies["memory_gateway_sessionid"] = "x" * 32
    with CaptureQueriesContext(connection) as queries:
        answer = alice.client.get(URL)
    assert answer.status_code == 200
    assert not answer.cookies
    assert not [query for query in queries if "session" in query["sql"]]


def test_the_language_of_a_page_does_not_reach_the_next_answer(client: Client) -> None:
    page = client.get("/admin/login/", headers={"Accept-Language": "zh-hans"})
    assert page.headers["Content-Language"] == "zh-hans"
    assert translation.get_language() == "en"
    refused = client.post("/users", b"x", content_type="text/plain", headers={"Accept-Language": "zh-hans"})
    assert refused.status_code == 415
    assert "Content-Type" in refused.json()["detail"]


@pytest.mark.parametrize(("language", "link"), [("en", "Back to the panel"), ("zh-hans", "返回面板")])
def test_error_pages_are_in_the_language_of_the_reader(language: str, link: str, admin_client: Client) -> None:
    headers = {"Accept-Language": language}
    unknown = admin_client.get("/admin/accounts/nothing/", headers=headers)
    forged = Client(enforce_csrf_checks=True).post("/admin/login/", headers=headers)
    assert (unknown.status_code, forged.status_code) == (404, 403)
    for page in (unknown, forged):
        assert f'lang="{language}"' in page.content.decode()
        assert link in page.content.decode()


@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
@pytest.mark.parametrize("path", ["/", "/docs", "/api/docs/", "/metrics", "/.well-known/oauth-authorization-server"])
def test_other_methods_of_addresses_that_only_read_are_a_problem_document(path: str, method: str) -> None:
    answer = Client(enforce_csrf_checks=True).generic(method, path, headers={"Accept-Language": "zh-CN"})
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")
    assert (answer["Allow"], answer.json()["code"]) == ("GET, HEAD", "method_not_allowed")
    assert answer.json()["detail"] == f"此地址不接受 {method}。请使用 GET, HEAD。"


def test_a_method_that_oauth_refuses_is_a_problem_document(client: Client) -> None:
    answer = client.put("/oauth/token")
    assert (answer.status_code, answer["Allow"], answer["Content-Type"]) == (405, "POST", "application/problem+json")
    assert answer.json()["detail"] == "This address does not take PUT. Use POST."


@pytest.mark.django_db
def test_an_error_page_names_the_request_and_the_next_step(admin_client: Client, client: Client) -> None:
    unknown = admin_client.get("/admin/memory/zzz/", headers={"X-Request-Id": "the-request"})
    forged = Client(enforce_csrf_checks=True).post("/admin/login/")
    text = unknown.content.decode()
    assert "the-request" in text
    assert "Use /admin" not in text
    for page in (unknown, forged):
        assert 'href="/admin/memory/"' in page.content.decode()
        assert "console/panel.css" in page.content.decode()
    assert 'href="/admin/login/"' in forged.content.decode()


class AwaySession(SessionStore):
    """A session whose database does not answer."""

    def save(self, must_create: bool = False) -> None:
        raise OperationalError("server closed the connection")


@pytest.mark.parametrize(("path", "is_page"), [("/admin/memory/", True), ("/metrics", False)])
def test_a_change_of_a_session_that_cannot_be_saved_says_when_to_repeat(path: str, is_page: bool) -> None:
    def answer(request: HttpRequest, *, is_changed: bool) -> HttpResponse:
        request.session = AwaySession("k" * 32)
        request.session._session_cache = {"who": "ann"}
        request.session.modified = is_changed
        return HttpResponse("as ever")

    request = RequestFactory().get(path)
    refused = SessionMiddleware(partial(answer, is_changed=True))(request)
    assert (refused.status_code, refused["Retry-After"]) == (503, "1")
    assert refused["Content-Type"].startswith("text/html") == is_page
    assert SessionMiddleware(partial(answer, is_changed=False))(request).content == b"as ever"


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError])
@pytest.mark.parametrize("moment", ["before the view", "in the view"])
def test_a_page_says_when_to_repeat_while_the_database_does_not_answer(
    failure: type[Exception], moment: str, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is read before the view, where only Django's handler of all errors sees the failure."""
    admin_client.raise_request_exception = False
    place = "django.contrib.sessions.backends.db.SessionStore.load"
    if moment == "in the view":
        place = "console.views.dashboard.queries.user_pk"
    monkeypatch.setattr(place, Mock(side_effect=failure("server closed the connection")))
    answer = admin_client.get("/admin/memory/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "busy or unreachable" in answer.content.decode()


def test_an_upload_over_the_limit_is_a_page_for_operators_and_a_problem_for_programs() -> None:
    def refused(path: str) -> tuple[int, bytes, str]:
        headers = [(b"accept-language", b"zh-hans"), (b"host", b"localhost")]
        scope = {"path": path, "method": "POST", "headers": headers, "query_string": b""}
        answer = refusal_answer(scope, TooLarge(Translatable("The body is larger than %(limit)s bytes.", limit=7)))
        return answer.status, dict(answer.headers)[b"content-type"], answer.body.decode()

    status, content_type, document = refused("/resources")
    assert (status, content_type) == (413, b"application/problem+json")
    assert '"detail":"请求体超过 7 字节。"' in document
    status, content_type, page = refused("/admin/memory/resources/upload/")
    assert (status, content_type) == (413, b"text/html; charset=utf-8")
    assert 'lang="zh-hans"' in page
    assert "返回面板" in page


@pytest.mark.django_db
def test_the_root_leads_browsers_to_the_panel_and_programs_to_the_documentation(client: Client) -> None:
    browser = client.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (browser.status_code, browser.headers["Location"]) == (302, "/admin/memory/")
    assert "Accept" in browser.headers["Vary"]
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        assert client.get("/", headers=headers).headers["Location"] == "/api/docs/"


def test_data_may_be_neither_run_nor_framed_and_pages_keep_their_policy(alice: Person, client: Client) -> None:
    for answer in (alice.client.get(URL), client.get(URL), client.get("/nothing")):
        assert answer.headers["Content-Security-Policy"] == DATA_POLICY
    assert "script-src 'self'" in client.get("/admin/login/").headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("application/*;q=0.5, text/html", 200),
        ("text/html, */*;q=0.1", 200),
        ("text/html", 406),
        ("image/png", 406),
    ],
)
def test_answers_are_json_for_clients_that_accept_json(alice: Person, accept: str, status: int) -> None:
    answer = alice.client.get(URL, headers={"Accept": accept} if accept else {})
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("application/")


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("APPLICATION/JSON", 200),
        ("text/plain", 415),
        ("application/xml", 415),
    ],
)
def test_bodies_are_json_however_their_type_is_written(alice: Person, content_type: str, status: int) -> None:
    assert alice.client.post(URL, b'{"label": "x"}', content_type=content_type).status_code == status
