"""The trail answers "who saw this person?": every page of the panel is in the trail of every user that it shows.

The pages are those of `tests.console.pages` and the others that answer to GET. A new page without a line here fails,
and so does one that shows a user without recording it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
from django.urls import resolve

from tests import forked
from tests.console import shown, test_access, test_access_of_data_pages
from tests.console.pages import pages
from tests.console.panel import Panel
from tests.console.payloads import PASSWORD
from tests.server import running_server

# They show what the operator sends, or nobody.
WITHOUT_USERS = {"language", "demo"}


@dataclass
class Visits:
    """The pages that an operator visited, by name: the request's id, the users that it showed, and the URL name."""

    operator: requests.Session
    base: str
    requests: dict[str, str]
    users: dict[str, set[str]]
    url_names: set[str]

    def trail_of(self, user: str) -> set[str]:
        """Return the requests that the trail of a user has."""
        query = urlencode({"tab": "all", "user": user, "format": "json"})
        lines = self.operator.get(f"{self.base}/admin/memory/audit/export/?{query}").content.splitlines()
        return {json.loads(line)["request_id"] for line in lines}


def others(rows: dict[str, Any], operator: requests.Session, base: str) -> dict[str, str]:
    """Return the addresses of pages that `pages` lacks: parts, files, previews."""
    listed = operator.get(f"{base}/admin/memory/list/?tab=all&q=LT-40").text
    target = re.findall(r'name="target" value="([^"]+)"', listed)[0]
    previews = {
        f"preview-{verb}": f"bulk/preview/?{urlencode({'do': verb, 'target': target})}"
        for verb in ("delete", "export", "reread")
    }
    return {
        "text": f"m/{rows['edited']}/text/",
        "raw": f"m/{rows['edited']}/raw/",
        "place-image": f"m/{rows['passage']}/place/image/",
        "content": f"resources/{rows['file_extracted']}/content/",
        "palette": "find/?part=1&q=1",
        "palette-user": "find/?part=1&q=lin.wei",
        "palette-memory": "find/?part=1&q=LT-40",
        "job-of-user": f"jobs/{rows['export_job']}/",
        "download": f"jobs/{rows['export_job']}/download/",
        "users-csv": "users/export/",
        "audit-all": "audit/?tab=all",
        "audit-of-user": "audit/?tab=all&user=lin.wei",
        "audit-export": "audit/export/?tab=all&format=json",
        "memories-of-user-without": "list/?user=lin.wei&importance_min=0.99&agent=nobody",
        **previews,
    }


@pytest.fixture(scope="module")
def visits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visits]:
    with running_server(tmp_path_factory.mktemp("trail")) as server:
        seeded = forked.run(["-m", "tests.console.seed"], server.env)
        assert seeded.returncode == 0, seeded.stderr
        rows = json.loads(seeded.stdout)
        marks = json.loads(forked.run(["-m", "tests.console.shown"], server.env).stdout)
        operator = requests.Session()
        signed_in = post(operator, f"{server.url}/admin/login/", {"username": "chen.yu", "password": PASSWORD})
        assert signed_in.status_code == 302
        exported = post(operator, f"{server.url}/admin/memory/users/{rows['user']}/export/", {})
        rows["export_job"] = exported.headers["Location"].split("/")[-2]
        found = Visits(operator, server.url, {}, {}, set())
        paths = pages(Panel(server, None, rows))  # type: ignore[arg-type]
        for name, path in {**paths, **others(rows, operator, server.url)}.items():
            address = path if path.startswith("http") else f"{server.url}/admin/memory/{path}"
            answer = operator.get(address)
            is_page = answer.headers.get("Content-Type", "").startswith("text/html")
            is_text = is_page or any(kind in answer.headers.get("Content-Type", "") for kind in ("json", "csv"))
            text = shown.visible_text(answer.text) if is_page else answer.text if is_text else ""
            found.requests[name] = answer.headers["X-Request-Id"]
            found.users[name] = shown.users_shown(text, marks)
            match = resolve(address.removeprefix(server.url).partition("?")[0])
            found.url_names |= {match.url_name or ""} if match.app_name == "console" else set()
        yield found


def post(operator: requests.Session, address: str, data: dict[str, str]) -> requests.Response:
    if "memory_gateway_csrftoken" not in operator.cookies:
        operator.get(address)
    token = operator.cookies["memory_gateway_csrftoken"]
    headers = {"Referer": address}
    return operator.post(address, {**data, "csrfmiddlewaretoken": token}, headers=headers, allow_redirects=False)


def test_every_user_that_a_page_shows_has_it_in_the_trail(visits: Visits) -> None:
    users = set().union(*visits.users.values())
    trails = {user: visits.trail_of(user) for user in users}
    missing = {
        f"{name}: {user[:40]}"
        for name, of_page in visits.users.items()
        for user in of_page
        if visits.requests[name] not in trails[user]
    }
    assert missing == set()
    assert sum(len(of_page) > 1 for of_page in visits.users.values()) > 8  # pages that show several users
    assert {"memories", "preview-delete", "audit-all", "users", "raw", "palette-user", "user-erase"} <= {
        name for name, of_page in visits.users.items() if of_page
    }


def test_every_page_of_the_panel_is_visited(visits: Visits) -> None:
    by_get = {
        name
        for table in (test_access.PAGES, test_access_of_data_pages.PAGES)
        for name, (method, _permission) in table.items()
        if method == "get"
    }
    assert by_get - visits.url_names == WITHOUT_USERS & by_get
