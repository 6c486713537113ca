"""CORS: pages of `MEMORY_GATEWAY_ALLOWED_ORIGINS`, and no others, may call the API from a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.server import RunningServer, running_server

PAGE = "https://app.example"
PATHS = [("POST", "/memories/search"), ("PUT", "/api/v1/memories/user"), ("POST", "/mcp"), ("POST", "/tools/invoke")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("cors"), MEMORY_GATEWAY_ALLOWED_ORIGINS=PAGE) as running:
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
