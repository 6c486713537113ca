"""Against an EverOS that is deployed somewhere: is it there, and does the whole main job work with it?

    RUN_BACKEND_INTEGRATION=1 MEMORY_GATEWAY_BACKEND_BASE_URL=http://… pytest tests/test_backend_integration.py

`RUN_BACKEND_INGEST_INTEGRATION=1` beside it uploads a file as well: that leaves memories of a new user in that EverOS,
and takes as long as its models do.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.server import RunningServer, running_server

pytestmark = pytest.mark.upstream

_SECONDS = 300


@pytest.fixture(scope="module")
def base_url() -> str:
    if os.environ.get("RUN_BACKEND_INTEGRATION") != "1":
        pytest.skip("needs a deployed EverOS: set RUN_BACKEND_INTEGRATION=1")
    url = os.environ.get("DEPLOYED_BACKEND_BASE_URL", "").rstrip("/")
    if not url:
        pytest.skip("needs a deployed EverOS: set MEMORY_GATEWAY_BACKEND_BASE_URL to its address")
    return url


@pytest.fixture(scope="module")
def server(base_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("gateway"), MEMORY_GATEWAY_BACKEND_BASE_URL=base_url) as running:
        yield running


def answer(server: RunningServer, method: str, path: str, **options: Any) -> Any:
    response = requests.request(method, server.url + path, timeout=_SECONDS, **options)
    assert response.status_code == 200, response.text
    return response.json()


def test_the_deployed_everos_is_healthy(server: RunningServer, base_url: str) -> None:
    health = answer(server, "GET", "/health")
    assert (health["status"], health["backend"]["status"]) == ("ok", "ok"), health
    assert health["backend"]["base_url"] == base_url


def test_an_uploaded_file_is_ingested_found_and_hidden_again(server: RunningServer) -> None:
    if os.environ.get("RUN_BACKEND_INGEST_INTEGRATION") != "1":
        pytest.skip("writes into a deployed EverOS: set RUN_BACKEND_INGEST_INTEGRATION=1")
    created = answer(server, "POST", "/users", json={"user_id": f"integration.{secrets.token_hex(6)}"})
    caller = {name: created[name] for name in ("user_id", "user_key")}
    file = ("contract.txt", "付款期限为收到发票后 30 天内。".encode())
    uploaded = answer(server, "POST", "/resources", data=caller, files={"file": file})
    assert uploaded["status"] == "extracted"
    search = {**caller, "query": "付款期限", "scope": ["resources"], "method": "keyword"}
    results = answer(server, "POST", "/memories/search", json=search)["results"]
    assert uploaded["resource_id"] in {item["resource_id"] for item in results}
    answer(server, "DELETE", f"/resources/{uploaded['resource_id']}", params=caller)
    results = answer(server, "POST", "/memories/search", json=search)["results"]
    assert uploaded["resource_id"] not in {item["resource_id"] for item in results}
