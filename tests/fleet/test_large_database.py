"""PostgreSQL with 100,000 memories and with 500,000 or more: the work for a user does not grow with the others.

`LARGE_MEMORIES=100000,5000000` is the whole promise: the numbers of memories, with 100 for each user. `LARGE_DATABASES`
names two databases that `seed_memories` filled before, separated by a comma, the smaller one first;
`LARGE_SECRET_KEY` is then the secret key with which it ran.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
import requests

from tests.fleet.load import signed_in
from tests.million import Pair, in_turns, managed
from tests.resources.people import RemotePerson
from tests.server import RunningServer, own_database, server_environment

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="SQLite has one machine"),
]
FEW, MANY = map(int, os.environ.get("LARGE_MEMORIES", "100000,500000").split(","))
OF_USER = 100
MAX_RATIO, MAX_PAGE_MS = 1.2, 300.0
ROUNDS = 101
KNOWN_USERS = 20
TYPICAL_USERS = f"""
    SELECT max(u.user_id) FROM store_memory m JOIN accounts_memoryuser u ON u.id = m.user_id
    GROUP BY m.user_id HAVING count(*) BETWEEN {OF_USER} - 5 AND {OF_USER} + 5 LIMIT {KNOWN_USERS}
"""
NOON = 1_781_172_177_000


class Installation(NamedTuple):
    """A gateway, keys of some of its users, and the session of an operator."""

    server: RunningServer
    people: list[RemotePerson]
    operator: requests.Session


@pytest.fixture(scope="module")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installation, Installation]]:
    filled = os.environ.get("LARGE_DATABASES", "").split(",")
    with ExitStack() as stack:
        started = []
        for number, url in zip((FEW, MANY), filled if len(filled) == 2 else ("", ""), strict=True):
            folder = tmp_path_factory.mktemp(str(number))
            secret = os.environ.get("LARGE_SECRET_KEY", "of-the-test-" * 6)
            env = server_environment(folder, url or own_database(folder), MEMORY_GATEWAY_SECRET_KEY=secret)
            server = RunningServer(folder, env)
            if not url:
                managed(server, "seed_memories", str(number), "--users", str(number // OF_USER))
            else:
                managed(server, "adopt_storage", "--yes")
            # docs/operate/scaling.md; the planner expects a search of many memories to be worth a compilation
            server.write(f"ALTER DATABASE {server.env['DATABASE_URL'].rpartition('/')[2]} SET jit = off")
            server.start()
            stack.callback(server.kill)
            people = [RemotePerson.create(server, name) for (name,) in server.rows(TYPICAL_USERS)]
            started.append(Installation(server, people, signed_in(server)))
        yield started[0], started[1]


def compared(
    installations: tuple[Installation, Installation], call: Callable[[RemotePerson, int], requests.Response]
) -> Pair:
    """Return the medians in milliseconds of a call by one user after the other."""
    counts = {id(one.server): 0 for one in installations}
    people = {id(one.server): one.people for one in installations}

    def run(server: RunningServer) -> None:
        number = counts[id(server)]
        counts[id(server)] += 1
        answer = call(people[id(server)][number % KNOWN_USERS], number)
        assert answer.ok, answer.text

    took = in_turns((installations[0].server, installations[1].server), run, rounds=ROUNDS)
    print(f"{took.few:.1f} ms, {took.many:.1f} ms, {took.many / took.few:.2f}")  # noqa: T201
    return took


def test_a_search_takes_as_long_as_in_a_small_database(installations: tuple[Installation, Installation]) -> None:
    def search(person: RemotePerson, number: int) -> requests.Response:
        body = {"query": f"the budget of the garden {number}", "scope": ["all_user_memory"], "method": "keyword"}
        url = f"{person.server.url}/memories/search"
        answer = requests.post(url, json=body, headers=person.headers, timeout=30)
        assert answer.json()["results"]
        return answer

    took = compared(installations, search)
    assert took.many <= MAX_RATIO * took.few


def test_an_add_takes_as_long_as_in_a_small_database(installations: tuple[Installation, Installation]) -> None:
    def add(person: RemotePerson, number: int) -> requests.Response:
        message = {
            "sender_id": person.user_id,
            "role": "user",
            "timestamp": NOON,
            "content": f"I like number {number}.",
        }
        body = {"session_id": f"chat:{number}", "messages": [message]}
        return requests.post(f"{person.server.url}/memories/add", json=body, headers=person.headers, timeout=30)

    took = compared(installations, add)
    assert took.many <= MAX_RATIO * took.few


def test_the_dashboard_stays_quick(installations: tuple[Installation, Installation]) -> None:
    operators = {id(one.server): one.operator for one in installations}

    def look(server: RunningServer) -> None:
        answer = operators[id(server)].get(f"{server.url}/admin/memory/", timeout=30)
        assert answer.status_code == 200

    took = in_turns((installations[0].server, installations[1].server), look)
    print(f"{took.few:.1f} ms, {took.many:.1f} ms")  # noqa: T201
    assert took.many <= MAX_PAGE_MS


def test_a_user_is_read_by_the_index_of_the_user(installations: tuple[Installation, Installation]) -> None:
    """PostgreSQL reads neither the memories nor the sessions of other users, whatever their number."""
    server, people = installations[1].server, installations[1].people
    [(pk,)] = server.rows(f"SELECT id FROM accounts_memoryuser WHERE user_id = '{people[0].user_id}'")
    of_user = f"WHERE user_id = '{pk}' AND app_id = 'default' AND project_id = 'default'"
    for statement in (
        f"SELECT memory_id FROM store_memory {of_user} ORDER BY created_at_ms DESC LIMIT 50",
        f"SELECT number FROM store_factpage {of_user}",
        f"SELECT id FROM store_session {of_user}",
    ):
        plan = "\n".join(line for (line,) in server.rows(f"EXPLAIN {statement}"))
        assert "Seq Scan" not in plan, plan
