"""Twenty clients at once, on a real server and a real database."""

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
    """Calls on the `user` document of a user of this test's own."""
    user_id = request.node.name[:64].replace("[", "-").replace("]", "")
    key = requests.post(f"{url}/users", json={"user_id": user_id}, timeout=30).json()["user_key"]

    def send(method: str, **given: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {key}", **given.pop("headers", {})}
        return requests.request(method, f"{url}/api/v1/memories/user", headers=headers, timeout=60, **given)

    return send


def at_once(deed: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(deed, range(CLIENTS)))


FIELDS = ("occupation", "timezone", "primary_language", "interests", "avoid_topics", "custom_rules")


def test_clients_that_change_different_fields_lose_nothing(call: Call) -> None:
    def change(number: int) -> int:
        named = {"people": [{"name": f"person {number}"}]} if number % 2 else {"places": [{"name": f"place {number}"}]}
        field = dict.fromkeys(FIELDS[number : number + 1], None)
        own = {name: [str(number)] if name.endswith(("s", "rules")) else str(number) for name in field}
        return call("PATCH", json={"content": {**named, **own}, "merge_lists": True}).status_code

    assert at_once(change) == [200] * CLIENTS
    document = call("GET").json()
    assert {person["name"] for person in document["people"]} == {f"person {number}" for number in range(1, CLIENTS, 2)}
    assert {place["name"] for place in document["places"]} == {f"place {number}" for number in range(0, CLIENTS, 2)}
    assert [document[field] for field in FIELDS] == ["0", "1", "2", ["3"], ["4"], ["5"]]
    assert call("GET").headers["ETag"] == f'"user-{CLIENTS}"'


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_of_clients_that_have_read_the_same_exactly_one_wins(call: Call, method: str) -> None:
    etag = call("GET").headers["ETag"]
    answers = at_once(
        lambda number: call(method, json={"content": {"occupation": str(number)}}, headers={"If-Match": etag})
    )
    assert Counter(answer.status_code for answer in answers) == {200: 1, 412: CLIENTS - 1}
    [winner] = (answer for answer in answers if answer.status_code == 200)
    assert call("GET").json() == winner.json()


def test_a_bomb_is_refused_by_the_server_too(call: Call) -> None:
    bodies = [
        (b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 413),
        (b'{"content": {"interests": ["' + b"x" * 2**20 + b'"]}}', 413),
    ]
    for body, status in bodies:
        assert call("PUT", data=body, headers={"Content-Type": "application/json"}).status_code == status
    assert call("GET").json()["interests"] == []
