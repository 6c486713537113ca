"""A running gateway with a language model, called over REST."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.server import running_server
from tests.stub_llm import StubLlm, running_llm


def wait_for(condition: Any, seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def answer(lines: list[dict[str, Any]]) -> dict[str, Any]:
    if any("memory" in line for line in lines):
        return {"summary": "Ann drinks tea."}
    return {"memories": [{"kind": "preference", "text": "Ann prefers tea.", "importance": 0.8, "messages": [1]}]}


@pytest.mark.slow
def test_memories_are_extracted_after_a_flush_and_found_by_agentic_search(tmp_path: Path) -> None:
    with running_llm() as llm:
        llm.extract, llm.failure = answer, 500
        settings = {"MEMORY_GATEWAY_MODELS": f"llm={llm.url}#stub"}
        with running_server(tmp_path, **settings) as server:
            check_extraction(server.url, llm)


def check_extraction(url: str, llm: StubLlm) -> None:
    created = requests.post(f"{url}/users", json={"user_id": "ann"}, timeout=10).json()
    headers = {"Authorization": f"Bearer {created['user_key']}"}

    def post(path: str, **body: Any) -> Any:
        response = requests.post(f"{url}{path}", json={"user_id": "ann", **body}, headers=headers, timeout=30)
        assert response.status_code == 200, response.text
        return response.json()

    def health() -> Any:
        return requests.get(f"{url}/health", timeout=10).json()["backend"]["data"]["llm"]

    def search(method: str) -> Any:
        return post("/memories/search", query="Which tea does Ann drink?", scope=["all_user_memory"], method=method)

    message = {"sender_id": "ann", "role": "user", "timestamp": 1_780_000_000_000, "content": "Ann says: tea for me"}
    post("/memories/add", session_id="chat:c1", messages=[message])
    started = time.monotonic()
    assert post("/memories/flush", session_id="chat:c1")["backend"]["data"]["status"] == "extracted"
    assert time.monotonic() - started < 3
    assert wait_for(lambda: health()["status"] == "failing")
    assert health()["pending"] == 1
    degraded = search("agentic")
    assert degraded["meta"]["method"] == "keyword"
    assert "language model" in degraded["meta"]["scopes"]["all_user_memory"]["degraded"]
    llm.failure = None
    assert wait_for(lambda: health() == {"status": "ok", "model": "stub", "pending": 0, "given_up": 0}, 40)
    response = search("agentic")
    assert response["meta"]["method"] == "agentic"
    by_type = {one["text"]: one for one in response["results"]}
    assert by_type["Ann prefers tea."]["raw"]["category"] == "user_memory_preference"
    assert by_type["Ann drinks tea."]["memory_type"] == "profile"
    assert by_type["Ann drinks tea."]["score"] is None
    listed = requests.get(f"{url}/memories", params={"category": "user_memory_preference"}, headers=headers, timeout=10)
    assert [one["text"] for one in listed.json()["memories"]] == ["Ann prefers tea."]
