"""Twenty concurrent clients on a running server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.server import running_server

CLIENTS = 20
Call = Callable[..., requests.Response]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("profiles")) as server:
        yield server.url


@pytest.fixture
def call(url: str, request: pytest.FixtureRequest) -> Call:
    """Return a function that calls the `user` document of a separate user for each test."""
    user_id = request.node.name[:64].replace("[", "-").replace("]", "")
    key = requests.post(f"{url}/users", json={"user_id": user_id}, timeout=30).json()["user_key"]

    def send(method: str, **request_options: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {key}", **request_options.pop("headers", {})}
        return requests.request(method, f"{url}/api/v1/memories/user", headers=headers, timeout=60, **request_options)

    return send


def concurrently(action: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(action, range(CLIENTS)))


FIELDS = ("occupation", "timezone", "primary_language", "interests", "avoid_topics", "custom_rules")


def test_concurrent_changes_of_different_fields_are_all_kept(call: Call) -> None:
    def change(number: int) -> int:
        entry = {"people": [{"name": f"person {number}"}]} if number % 2 else {"places": [{"name": f"place {number}"}]}
        field = dict.fromkeys(FIELDS[number : number + 1], None)
        fields = {name: [str(number)] if name.endswith(("s", "rules")) else str(number) for name in field}
        return call("PATCH", json={"content": {**entry, **fields}, "merge_lists": True}).status_code

    assert concurrently(change) == [200] * CLIENTS
    document = call("GET").json()
    assert {person["name"] for person in document["people"]} == {f"person {number}" for number in range(1, CLIENTS, 2)}
    assert {place["name"] for place in document["places"]} == {f"place {number}" for number in range(0, CLIENTS, 2)}
    assert [document[field] for field in FIELDS] == ["0", "1", "2", ["3"], ["4"], ["5"]]
    assert call("GET").headers["ETag"] == f'"user-{CLIENTS}"'


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_one_of_many_writes_with_the_same_etag_wins(call: Call, method: str) -> None:
    etag = call("GET").headers["ETag"]
    answers = concurrently(
        lambda number: call(method, json={"content": {"occupation": str(number)}}, headers={"If-Match": etag})
    )
    assert Counter(answer.status_code for answer in answers) == {200: 1, 412: CLIENTS - 1}
    [winner] = (answer for answer in answers if answer.status_code == 200)
    assert call("GET").json() == winner.json()


def test_the_server_refuses_too_large_and_too_deep_bodies(call: Call) -> None:
    bodies = [
        (b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 413),
        (b'{"content": {"interests": ["' + b"x" * 2**20 + b'"]}}', 413),
    ]
    for body, status in bodies:
        assert call("PUT", data=body, headers={"Content-Type": "application/json"}).status_code == status
    assert call("GET").json()["interests"] == []
