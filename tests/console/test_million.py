"""Response times of pages with a million memories: at most 3 times those with few memories, or within 300 ms."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests

from tests.console.payloads import PASSWORD
from tests.forked import PROJECT
from tests.million import in_turns, too_slow, two_gateways
from tests.server import RunningServer

pytestmark = pytest.mark.torture

PAGES = {
    "dashboard": "",
    "dashboard of a day": "?range=24h",
    "dashboard of a week": "?range=7d",
    "dashboard of two years": "?range=2y",
    "dashboard of a user": "?user=many-00003",
    "dashboard of an agent": "?agent=coder",
    "dashboard of an application": "?app=default",
    "user": "list/",
    "user, last page": "list/?sort=oldest",
    "user, a year ago": "list/?at=2025-11-20",
    "self": "list/?tab=self",
    "full": "list/?tab=full",
    "full, a year ago": "list/?tab=full&at=2025-11-20",
    "all": "list/?tab=all",
    "all of a user": "list/?tab=all&user=many-00003",
    "all of an agent": "list/?tab=all&agent=coder",
    "all of an application": "list/?tab=all&app=default",
    "self of an agent": "list/?tab=self&agent=coder",
    "a category": "list/?category=user_memory_decision",
    "an origin": "list/?tab=all&origin=tool",
    "thirty days": "list/?tab=all&range=30d",
    "importance": "list/?importance_min=0.9",
    "low importance": "list/?tab=all&importance_max=0.3",
    "users": "users/",
    "trash": "trash/",
    "words in the trash": "trash/?q=green+tea",
    "the trash of an operator": "trash/?actor=chen.yu&from=2026-01-01",
    "resources": "resources/",
    "jobs": "jobs/",
    "audit trail": "audit/",
    "search log": "searches/",
    "health": "health/",
    "add": "add/",
    "an id that is not there": "find/?q=0f0e0d0c-0b0a-0908-0706-050403020100",
    "names and words in every third": "find/?part=1&q=green",
    "words": "list/?tab=all&q=4711",
    "words of one tab": "list/?q=4711+green",
    "words in every third": "list/?tab=all&q=green+tea",
    "words in every third, of one tab": "list/?q=green+tea",
    "words in every third, turns": "list/?tab=full&q=二号楼的租约",
    "words in every third, oldest first": "list/?tab=all&q=green+tea&sort=oldest",
    "words in every eighteenth": "list/?tab=all&q=green+租约",
    "words that are nowhere": "list/?tab=all&q=warehouse",
    "words of a user": "list/?tab=all&user=many-00003&q=warehouse",
    "queues": "queues/",
    "possible instructions": "list/?tab=all&mark=instruction",
    "what expires": "list/?tab=all&mark=expiring",
    "edited memories": "list/?tab=all&mark=edited",
    "duplicates of a user": "list/?tab=all&mark=duplicate&user=many-00003",
    "replaced memories of a user": "list/?tab=all&mark=replaced&user=many-00003",
    "a person": "find/?q=many-00003",
    "saved views with counts": "views/counts/",
    "words of a user in every third": "list/?tab=all&user=many-00003&q=green+tea",
}


def signed_in(server: RunningServer) -> requests.Session:
    session = requests.Session()
    address = f"{server.url}/admin/login/"
    session.get(f"{address}?next=/admin/memory/", timeout=60)
    token = session.cookies["memory_gateway_csrftoken"]
    form = {"username": "chen.yu", "password": PASSWORD, "csrfmiddlewaretoken": token}
    answer = session.post(address, {**form, "next": "/admin/memory/"}, headers={"Referer": address}, timeout=60)
    assert answer.url.endswith("/admin/memory/")
    return session


def make_operator(server: RunningServer) -> None:
    create = (
        f"from django.contrib.auth.models import User; User.objects.create_superuser('chen.yu', password={PASSWORD!r})"
    )
    subprocess.run([sys.executable, "manage.py", "shell", "-c", create], cwd=PROJECT, env=server.env, check=True)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[RunningServer, requests.Session]]:
    """Sessions of an operator with the small and with the large gateway."""
    with two_gateways(tmp_path_factory.mktemp("million")) as servers:
        for server in servers:
            make_operator(server)
        yield {server: signed_in(server) for server in servers}


@pytest.mark.parametrize("name", PAGES)
def test_a_million_memories_do_not_slow_pages_down(sessions: dict[RunningServer, requests.Session], name: str) -> None:
    def request_page(server: RunningServer) -> None:
        answer = sessions[server].get(f"{server.url}/admin/memory/{PAGES[name]}", timeout=120)
        assert answer.status_code == 200

    few, many = sessions
    assert not too_slow({name: in_turns((few, many), request_page)})
