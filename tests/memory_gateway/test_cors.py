"""CORS: pages of `MEMORY_GATEWAY_ALLOWED_ORIGINS`, and no others, may call the API from a browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from tests.agents.mcp.test_http import ACCEPT, call
from tests.browser import chromium, open_page
from tests.server import RunningServer, running_server

PAGE = "https://app.example"
PATHS = [("POST", "/memories/search"), ("PUT", "/api/v1/memories/user"), ("POST", "/mcp"), ("POST", "/tools/invoke")]


# What a page does, and what it sees of each answer.
FETCH_ALL = """async ([url, headers, calls]) => Promise.all(calls.map(([path, body]) =>
    fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) }).then(
        async (answer) => [answer.status, await answer.text()], (error) => [0, error.name])))"""


class EmptyPage(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Quiet."""


@pytest.fixture(scope="module")
def page_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        yield site.server_port
        site.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, page_port: int) -> Iterator[RunningServer]:
    origins = f"{PAGE},http://127.0.0.1:{page_port}"
    with running_server(tmp_path_factory.mktemp("cors"), MEMORY_GATEWAY_ALLOWED_ORIGINS=origins) as running:
        yield running


def preflight(server: RunningServer, method: str, path: str, origin: str) -> requests.Response:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,if-match,mcp-protocol-version,x-agent-id",
    }
    return requests.options(f"{server.url}{path}", headers=headers, timeout=30)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_pages_of_an_allowed_origin_may_call(server: RunningServer, method: str, path: str) -> None:
    asked = preflight(server, method, path, PAGE)
    assert asked.status_code == 200
    assert asked.headers["Access-Control-Allow-Origin"] == PAGE
    assert method in asked.headers["Access-Control-Allow-Methods"]
    assert "x-agent-id" in asked.headers["Access-Control-Allow-Headers"]
    answer = requests.request(method, f"{server.url}{path}", json={}, headers={"Origin": PAGE}, timeout=30)
    assert answer.status_code == 401  # a page sends its key like any client
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    assert {"ETag", "Idempotent-Replayed"} <= set(answer.headers["Access-Control-Expose-Headers"].split(", "))
    assert "Access-Control-Allow-Credentials" not in answer.headers  # no cookies: nothing opens the panel
    assert "Origin" in answer.headers["Vary"]


@pytest.mark.parametrize("origin", ["https://evil.example", "https://app.example.evil.example", "null"])
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_other_pages_may_not(server: RunningServer, method: str, path: str, origin: str) -> None:
    asked = preflight(server, method, path, origin)
    assert asked.status_code == 400
    answer = requests.request(method, f"{server.url}{path}", json={}, headers={"Origin": origin}, timeout=30)
    for response in (asked, answer):
        assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.browser
def test_chromium_lets_a_page_of_an_allowed_origin_call_and_no_other(server: RunningServer, page_port: int) -> None:
    """To a browser, `localhost` is another origin than `127.0.0.1`."""
    created = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=30).json()
    headers = {**ACCEPT, "Authorization": f"Bearer {created['user_key']}"}
    calls = [
        ["/memories/search", {"query": "tea"}],
        ["/mcp", call("memory_list")],
        ["/tools/invoke", {"tool": "memory_recall", "args": {"query": "tea"}}],
    ]
    with chromium() as browser, open_page(browser) as (page, _):
        page.goto(f"http://127.0.0.1:{page_port}/")
        allowed = page.evaluate(FETCH_ALL, [server.url, headers, calls])
        page.goto(f"http://localhost:{page_port}/")
        refused = page.evaluate(FETCH_ALL, [server.url, headers, calls])
    assert [status for status, _ in allowed] == [200, 200, 200], allowed
    assert "There are no such memories." in allowed[1][1]
    assert refused == [[0, "TypeError"]] * 3
