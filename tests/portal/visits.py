"""Visits of a person's pages for tests: a link, the button, and a client with the session."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django.test import Client

from tests.conftest import Person

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([0-9a-f]+)"')


def make_link(person: Person, **body: Any) -> str:
    """Return the path of a new link."""
    answer = person.client.post("/portal-links", body, "application/json")
    assert answer.status_code == 200, answer.content
    return urlsplit(answer.json()["url"]).path


def visit(person: Person) -> Visit:
    """Open the pages of a person."""
    client = Client()
    path = make_link(person)
    assert client.get(path).status_code == 200
    assert client.post(path).headers["Location"] == "/portal/"
    return Visit(client)


class Visit:
    """A browser with a session. Forms are sent with the token that pages contain."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.token = _TOKEN.findall(self.get("/portal/"))[0]

    def get(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, answer.content.decode()
        return answer.content.decode()

    def post(self, path: str, **fields: Any) -> Any:
        return self.client.post(path, {"csrfmiddlewaretoken": self.token, **fields})
