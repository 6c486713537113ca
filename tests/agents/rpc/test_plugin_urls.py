"""`/plugins/memory`, the address of the panel of OpenClaw's plugin, and its removed HTTP API."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts import tokens
from accounts.audit import Actor
from accounts.models import MemoryUser
from tests.browser import chromium, open_page
from tests.conftest import Person
from tests.server import RunningServer

pytestmark = pytest.mark.django_db

SECRET = "the-token-of-the-setting"
# The headers in the specification of the plugin.
DOCUMENTED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store, no-cache, must-revalidate",
    "Pragma": "no-cache",
}
PAGES = ["/plugins/memory", "/plugins/memory/", "/plugins/memory/some/where", "/plugins/memory?token=x"]
CALLS = [
    ("GET", "config"),
    ("GET", "list"),
    ("POST", "delete"),
    ("POST", "add"),
    ("PUT", "anything/else"),
    ("GET", "v1/call"),
]


@pytest.mark.parametrize("address", PAGES)
def test_without_a_session_the_sign_in_page_has_the_specified_headers(client: Client, address: str) -> None:
    page = client.get(address)
    assert page.status_code == 200
    assert {name: page.headers[name] for name in DOCUMENTED} == DOCUMENTED
    assert 'name="password"' in page.content.decode()


@pytest.mark.parametrize("address", PAGES)
def test_the_panel_has_the_specified_headers(admin_client: Client, address: str) -> None:
    page = admin_client.get(address)
    assert page.status_code == 200
    assert {name: page.headers[name] for name in DOCUMENTED} == DOCUMENTED
    assert 'name="password"' not in page.content.decode()


def test_users_who_are_no_operators_see_the_sign_in_page(client: Client, django_user_model: Any, alice: Person) -> None:
    client.force_login(django_user_model.objects.create_user("helper"))
    assert 'name="password"' in client.get("/plugins/memory").content.decode()
    assert 'name="password"' in alice.client.get("/plugins/memory").content.decode()


@pytest.mark.parametrize(("method", "name"), CALLS)
def test_the_removed_api_is_410_and_names_its_replacement(client: Client, method: str, name: str) -> None:
    answer = client.generic(method, f"/plugins/memory/api/{name}", b'{"items":[]}', "application/json")
    assert answer.status_code == 410
    assert answer.headers["Content-Type"] == "application/json"
    for successor in ("config", "facets", "dashboard", "list", "delete", "add"):
        assert f"memory.admin.{successor}" in answer.json()["error"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_removed_api_requires_the_configured_token(client: Client, settings: Any, method: str) -> None:
    settings.MEMORY_GATEWAY_RPC_TOKEN = SECRET
    address = "/plugins/memory/api/config"
    for wrong in ({}, {"Authorization": "Bearer wrong-token"}, {"Authorization": f"Basic {SECRET}"}):
        refused = client.generic(method, address, headers=wrong)
        assert refused.status_code == 401
        assert refused.json() == {"error": {"message": "Unauthorized", "type": "unauthorized"}}
    right = {"Authorization": f"Bearer {SECRET}"}
    assert client.generic(method, address, headers=right).status_code == 410
    assert client.generic(method, f"{address}?token={SECRET}").status_code == 410
    assert client.generic(method, f"{address}?token=wrong", headers=right).status_code == 410
    assert (
        client.generic(method, f"{address}?token={SECRET}", headers={"Authorization": "Bearer wrong"}).status_code
        == 410
    )


def test_the_removed_api_accepts_issued_tokens(client: Client, alice: Person) -> None:
    issued = tokens.issue("laptop", user=MemoryUser.objects.get(), actor=Actor.command("tests"))
    assert client.get("/plugins/memory/api/config").status_code == 401
    assert client.get(f"/plugins/memory/api/config?token={issued.plaintext}").status_code == 410


def test_wrong_tokens_count_as_failures(client: Client, settings: Any) -> None:
    settings.MEMORY_GATEWAY_RPC_TOKEN = SECRET
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 7
    statuses = [client.get("/plugins/memory/api/config?token=wrong").status_code for _ in range(9)]
    assert statuses == [401] * 7 + [429] * 2
    answer = client.get("/plugins/memory/api/config?token=wrong")
    assert answer.json()["error"]["type"] == "rate_limited"
    assert int(answer.headers["Retry-After"]) > 0
    assert client.get(f"/plugins/memory/api/config?token={SECRET}").status_code == 410


@pytest.mark.browser
def test_signing_in_returns_to_the_plugin_address(server: RunningServer) -> None:
    printed = server.manage("ensure_operator").stdout
    user, password = re.findall(r"(?:user|password) +(\S+)", printed)[-2:]
    with chromium() as browser, open_page(browser) as (page, observed):
        page.goto(f"{server.url}/plugins/memory")
        page.fill("input[name=username]", user)
        page.fill("input[name=password]", password)
        page.click("input[type=submit]")
        page.wait_for_selector("input[name=password]", state="detached")
        assert page.url == f"{server.url}/plugins/memory"
        assert observed.errors == []
        assert observed.foreign(server.url) == []
