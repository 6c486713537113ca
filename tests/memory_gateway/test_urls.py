"""Access to every address. A new address that is in no table here fails."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.memory_gateway.routes import Route, all_routes

OPEN, KEY = "open", "key"
OPENCLAW = "openclaw"  # for a key too, refused in OpenClaw's words
# `POST /users` is open under the `local` profile only.
API = {
    ("GET", "/"): OPEN,
    ("GET", "/health"): OPEN,
    ("GET", "/api/schema/"): OPEN,
    ("GET", "/api/docs/"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("POST", "/users"): OPEN,
    ("PATCH", "/users"): OPEN,
    ("DELETE", "/users"): KEY,
    ("DELETE", "/users/<str:user_id>"): KEY,
    ("GET", "/users/me/export"): KEY,
    ("GET", "/users/me/audit"): KEY,
    ("GET", "/users/me/controls"): KEY,
    ("PUT", "/users/me/controls"): KEY,
    ("GET", "/users/me/expiry"): KEY,
    ("PUT", "/users/me/expiry"): KEY,
    ("GET", "/users/me/keys"): KEY,
    ("POST", "/users/me/keys"): KEY,
    ("POST", "/users/me/keys/rotate"): KEY,
    ("DELETE", "/users/me/keys/<uuid:key_id>"): KEY,
    ("POST", "/portal-links"): KEY,
    ("POST", "/browser-keys"): KEY,
    ("GET", "/resources"): KEY,
    ("POST", "/resources"): KEY,
    ("POST", "/resources/external"): KEY,
    ("GET", "/resources/<str:resource_id>"): KEY,
    ("PATCH", "/resources/<str:resource_id>"): KEY,
    ("DELETE", "/resources/<str:resource_id>"): KEY,
    ("GET", "/resources/<str:resource_id>/content"): KEY,
    ("POST", "/resources/<str:resource_id>/restore"): KEY,
    ("POST", "/memories/add"): KEY,
    ("POST", "/memories/flush"): KEY,
    ("POST", "/memories/context"): KEY,
    ("POST", "/memories/search"): KEY,
    ("GET", "/memories"): KEY,
    ("POST", "/memories"): KEY,
    ("POST", "/memories/bulk"): KEY,
    ("POST", "/memories/delete"): KEY,
    ("POST", "/memories/forget"): KEY,
    ("GET", "/memories/delete/<uuid:deletion_id>"): KEY,
    ("POST", "/memories/delete/<uuid:deletion_id>/undo"): KEY,
    ("DELETE", "/memories"): KEY,
    ("GET", "/memories/trash"): KEY,
    ("GET", "/memories/<path:memory_id>"): KEY,
    ("PATCH", "/memories/<path:memory_id>"): KEY,
    ("DELETE", "/memories/<path:memory_id>"): KEY,
    ("POST", "/memories/<path:memory_id>/restore"): KEY,
    ("DELETE", "/memories/<path:memory_id>/override"): KEY,
    ("GET", "/api/v1/memories"): KEY,
    ("GET", "/api/v1/memories/"): KEY,
    ("GET", "/api/v1/memories/user"): KEY,
    ("PUT", "/api/v1/memories/user"): KEY,
    ("PATCH", "/api/v1/memories/user"): KEY,
    ("GET", "/api/v1/memories/work"): KEY,
    ("PUT", "/api/v1/memories/work"): KEY,
    ("PATCH", "/api/v1/memories/work"): KEY,
    ("GET", "/api/v1/memories/prompt"): KEY,
    ("GET", "/api/v1/memories/schema/<str:kind>"): KEY,
    ("GET", "/api/v1/memories/<str:kind>/history"): KEY,
    ("GET", "/api/v1/memories/<str:kind>/history/<int:version>"): KEY,
    ("POST", "/api/v1/memories/<str:kind>/restore/<int:version>"): KEY,
    ("GET", "/sessions"): KEY,
    ("GET", "/sessions/<path:session_id>"): KEY,
    ("DELETE", "/sessions/<path:session_id>"): KEY,
    ("GET", "/sessions/<path:session_id>/restore"): KEY,
    ("POST", "/sessions/<path:session_id>/restore"): KEY,
    ("DELETE", "/sessions/<path:session_id>/restore"): KEY,
    ("GET", "/webhooks"): KEY,
    ("POST", "/webhooks"): KEY,
    ("GET", "/webhooks/<uuid:webhook_id>"): KEY,
    ("PATCH", "/webhooks/<uuid:webhook_id>"): KEY,
    ("DELETE", "/webhooks/<uuid:webhook_id>"): KEY,
    ("POST", "/webhooks/<uuid:webhook_id>/rotate-secret"): KEY,
    ("POST", "/webhooks/<uuid:webhook_id>/test"): KEY,
    ("GET", "/webhooks/<uuid:webhook_id>/deliveries"): KEY,
    ("POST", "/tools/invoke"): OPENCLAW,
}
SUFFIXES = ("", "/mcp", "/mcp/")
# Views that name no methods decide themselves who sees what, each with separate tests.
FUNCTIONS = {
    "/.well-known/security.txt",
    "/robots.txt",
    "/live",
    "/metrics",
    "/ready",
    "/mcp",
    "/mcp/",
    "/plugins/memory",
    "/plugins/memory/",
    "/plugins/memory/<path:rest>",
    "/plugins/memory/api/<path:rest>",
    *(
        f"/.well-known/{name}{suffix}"
        for name in ("oauth-protected-resource", "oauth-authorization-server", "openid-configuration")
        for suffix in SUFFIXES
    ),
    *(f"/oauth/{name}" for name in ("authorize", "register", "revoke", "token")),
}
# The pages of a person answer 401 as a page: `tests.portal` has their tests.
PORTAL = "/portal/"
PORTAL_SIGN_IN = ("/portal/sign-in", "/portal/sign-in/callback")
# Every other page under /admin/ is for signed-in staff.
ADMIN_OPEN = {"/admin/login/"}
# Open as well, and absent without an OpenID Connect provider.
SIGN_IN = {"/admin/memory/sign-in/", "/admin/memory/sign-in/callback/", "/admin/memory/sign-out/"}
INVITATION = "/admin/memory/invitation/<str:uidb64>/<str:token>/"

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

ROUTES = all_routes()
API_ROUTES = [route for route in ROUTES if not route.pattern.startswith(("/admin/", PORTAL))]
PORTAL_ROUTES = [route for route in ROUTES if route.pattern.startswith(PORTAL)]
ADMIN_ROUTES = [route for route in ROUTES if route.pattern.startswith("/admin/")]
API_CALLS = [(method, route) for route in API_ROUTES for method in sorted(route.methods)]


def call_id(value: Any) -> str:
    return value.pattern if isinstance(value, Route) else str(value)


def test_the_table_names_every_call_and_no_other() -> None:
    assert {(method, route.pattern) for method, route in API_CALLS} == set(API)


def test_what_names_no_methods_is_known_too() -> None:
    assert {route.pattern for route in API_ROUTES if not route.methods} == FUNCTIONS


@pytest.mark.django_db
@pytest.mark.parametrize("route", PORTAL_ROUTES, ids=call_id)
def test_an_outsider_sees_no_page_of_a_person(client: Client, route: Route) -> None:
    # A receipt is sent after the erasure, when there is no session any longer.
    # Without a claim for it, there is no sign-in.
    others = {"/portal/receipt": [405, 400]} | {name: [404, 405] for name in PORTAL_SIGN_IN}
    expected = others.get(route.pattern, [401, 401])
    assert [send(route.address).status_code for send in (client.get, client.post)] == expected


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "route"), API_CALLS, ids=call_id)
def test_an_outsider_gets_as_far_as_the_table_says(client: Client, method: str, route: Route) -> None:
    answer = client.generic(method, route.address, b"{}", "application/json")
    if API[method, route.pattern] == KEY:
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    elif API[method, route.pattern] == OPENCLAW:
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    else:
        assert answer.status_code in {200, 302, 422}


@pytest.mark.django_db
@pytest.mark.parametrize("route", ADMIN_ROUTES, ids=call_id)
def test_the_panel_is_for_staff(client: Client, route: Route) -> None:
    for answer in (client.get(route.address), client.post(route.address)):
        if route.pattern == "/admin/memory/language/":
            assert (answer.status_code, answer.headers.get("Location")) in {(405, None), (302, "/")}
        elif route.pattern == INVITATION:
            assert answer.status_code == 404
        elif route.pattern in SIGN_IN:
            assert answer.status_code in {404, 405}
        elif route.pattern in ADMIN_OPEN:
            assert answer.status_code == 200
        else:
            assert answer.status_code == 302
            assert answer.headers["Location"].startswith("/admin/")


@pytest.mark.django_db
def test_a_user_key_opens_no_page_of_the_panel(client: Client, alice: Any) -> None:
    assert alice.client.get("/admin/").status_code == 302


def check_security_headers(answer: Any) -> None:
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers[name] == value
    is_form = answer.request["PATH_INFO"].startswith(("/admin/", "/oauth/authorize"))
    assert answer.headers["Referrer-Policy"] == ("same-origin" if is_form else "no-referrer")
    policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Request-Id"]


@pytest.mark.django_db
@pytest.mark.parametrize("route", ROUTES, ids=call_id)
def test_every_answer_carries_the_security_headers(client: Client, route: Route) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS", "PROPFIND"):
        answer = client.generic(method, route.address, b"{}", "application/json")
        check_security_headers(answer)
        if not route.pattern.startswith("/admin/"):
            assert "no-store" in answer.headers["Cache-Control"]
        assert answer.status_code < 500


@pytest.mark.parametrize("address", ["/nothing", "/admin/nothing", "/static/nothing", "/static/docs/page.css"])
@pytest.mark.django_db
def test_addresses_beside_the_routes_carry_them_too(client: Client, address: str) -> None:
    answer = client.get(address)
    check_security_headers(answer)
    answer.close()


@pytest.mark.django_db
def test_only_https_answers_carry_hsts(client: Client, settings: Any) -> None:
    settings.SECURE_HSTS_SECONDS = 600
    assert client.get("/health", secure=True).headers["Strict-Transport-Security"].startswith("max-age=600")


@pytest.mark.django_db
def test_crawlers_are_asked_to_read_nothing(client: Client) -> None:
    answer = client.get("/robots.txt")
    assert (answer.headers["Content-Type"], answer.content) == (
        "text/plain; charset=utf-8",
        b"User-agent: *\nDisallow: /\n",
    )
    assert client.post("/robots.txt").status_code == 405


@pytest.mark.django_db
def test_without_a_contact_there_is_no_security_txt(client: Client) -> None:
    answer = client.get("/.well-known/security.txt")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.django_db  # closing an answer looks at the connections
def test_no_other_sites_page_may_read_an_answer(client: Client) -> None:
    for address in ("/api/docs/", "/static/docs/page.css"):
        answer = client.get(address, headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in answer.headers
        answer.close()


def test_a_foreign_host_is_refused(client: Client) -> None:
    answer = client.get("/api/schema/", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


def test_an_unknown_address_is_a_problem_document_and_in_the_panel_a_page(client: Client, admin_client: Client) -> None:
    answer = client.get("/no/such/thing")
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "not_found"
    page = admin_client.get("/admin/accounts/nothing/")
    assert page.status_code == 404
    assert page.headers["Content-Type"].startswith("text/html")
    assert b"There is nothing at this address." in page.content


@pytest.mark.parametrize(
    ("address", "meant"),
    [("/resources/", "/resources"), ("/health/", "/health"), ("/api/docs", "/api/docs/"), ("/admin", "/admin/")],
)
def test_an_address_that_is_off_by_a_slash_hears_the_right_one(client: Client, address: str, meant: str) -> None:
    assert client.get(address).json()["detail"] == f"There is nothing at this address. Use {meant}."


@pytest.mark.parametrize("address", ["/nothing", "/nothing/", "//"])
def test_an_address_that_is_off_by_more_hears_no_guess(client: Client, address: str) -> None:
    assert "Use " not in client.get(address).content.decode()


def test_documentation_lies_where_clients_of_a_fastapi_service_look(client: Client) -> None:
    assert client.get("/docs").headers["Location"] == "/api/docs/"
    document = client.get("/openapi.json")
    assert (document.status_code, document.headers["Content-Type"]) == (200, "application/vnd.oai.openapi+json")
    assert "/memories/search" in document.json()["paths"]


@pytest.mark.urls("tests.memory_gateway.site_urls")
def test_a_defect_in_the_panel_is_a_plain_page(client: Client) -> None:
    client.raise_request_exception = False
    page = client.get("/admin/test/fail", headers={"X-Request-Id": "trace-3"})
    assert page.status_code == 500
    assert b"trace-3" in page.content
    assert b"RuntimeError" not in page.content
