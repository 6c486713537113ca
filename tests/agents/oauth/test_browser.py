"""The consent page in Chromium, without scripts: its policy lets the form lead back to the application."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import requests

from tests.browser import chromium
from tests.server import RunningServer, running_server
from tests.web import WebServer, page, web_server

pytestmark = pytest.mark.browser


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with running_server(tmp_path) as running:
        yield running


@pytest.fixture
def application() -> Iterator[WebServer]:
    with web_server() as web:
        web.pages["/cb"] = page(b"connected", content_type="text/plain")
        yield web


def test_a_user_connects_without_scripts(server: RunningServer, application: WebServer) -> None:
    key = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=60).json()["user_key"]
    redirect = application.url("/cb")
    metadata = {"redirect_uris": [redirect], "client_name": "Desk agent"}
    registered = requests.post(f"{server.url}/oauth/register", json=metadata, timeout=60).json()
    wanted = {
        "client_id": registered["client_id"],
        "redirect_uri": redirect,
        "response_type": "code",
        "code_challenge": "x" * 43,
        "code_challenge_method": "S256",
        "state": "s",
    }
    address = f"{server.url}/oauth/authorize?{urlencode(wanted)}"
    with chromium() as browser, browser.new_context(java_script_enabled=False) as context:
        tab = context.new_page()
        tab.goto(address)
        tab.fill("[name=key]", f"{key}x")
        tab.click("button[value=allow]")
        assert "unknown, expired or revoked" in tab.inner_text("[role=alert]")
        tab.fill("[name=key]", key)
        tab.click("button[value=allow]")
        tab.wait_for_url(f"{redirect}?code=oac_*")
        assert tab.inner_text("body") == "connected"
        tab.goto(address)
        tab.click("button[value=deny]")
        tab.wait_for_url(f"{redirect}?error=access_denied*")
    # A desktop browser also asks the application for an icon, from a page of the application.
    callbacks = [head.lower() for head in application.heads if head.startswith("GET /cb?")]
    assert len(callbacks) == 2
    assert not any("referer" in head for head in callbacks)
