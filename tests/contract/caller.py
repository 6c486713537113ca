"""A gateway as its callers meet it: over HTTP, with the credentials where the document puts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.contract.differences import EngineName
from tests.server import RunningServer
from tests.web import WebServer

NOON_MS = 1_781_172_177_000
TIMEOUT_SECONDS = 120.0
_SECONDS = 150

Shape = type | tuple[type, ...] | dict[str, Any] | list[Any]


@dataclass(frozen=True)
class Gateway:
    """A running gateway over one engine; `base_url` is where that engine is, if elsewhere. Both engines may read the
    files in `files` and the pages of `web`."""

    engine: EngineName
    server: RunningServer
    base_url: str | None
    files: Path
    web: WebServer

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, method: str, path: str, /, *, status: int = 200, **options: Any) -> Any:
        """The answer as JSON, after a look at its status."""
        response = requests.request(method, self.url + path, timeout=_SECONDS, **options)
        assert response.status_code == status, f"{method} {path}: {response.status_code} {response.text}"
        if status >= 400:
            assert response.headers["Content-Type"] == "application/problem+json"
        return response.json()

    def new_user(self, user_id: str) -> Caller:
        created = self.ask("POST", "/users", json={"user_id": user_id})
        return Caller(self, user_id, created["user_key"])


@dataclass(frozen=True)
class Caller:
    """One user's application."""

    gateway: Gateway
    user_id: str
    user_key: str

    @property
    def credentials(self) -> dict[str, str]:
        return {"user_id": self.user_id, "user_key": self.user_key}

    def get(self, path: str, /, *, status: int = 200, **query: Any) -> Any:
        return self.gateway.ask("GET", path, status=status, params={**self.credentials, **query})

    def post(self, path: str, /, *, status: int = 200, **body: Any) -> Any:
        return self.send("POST", path, status=status, **body)

    def send(self, method: str, path: str, /, *, status: int = 200, **body: Any) -> Any:
        """With a JSON body, also where the method is DELETE."""
        return self.gateway.ask(method, path, status=status, json={**self.credentials, **body})

    def delete(self, path: str, /, *, status: int = 200, **query: Any) -> Any:
        return self.gateway.ask("DELETE", path, status=status, params={**self.credentials, **query})

    def upload(
        self, data: bytes, filename: str = "contract.txt", mime_type: str = "", *, status: int = 200, **form: str
    ) -> Any:
        file = (filename, data, mime_type) if mime_type else (filename, data)
        form = {**self.credentials, **form}
        return self.gateway.ask("POST", "/resources", status=status, data=form, files={"file": file})

    def resource(self, resource_id: str) -> dict[str, Any]:
        [found] = self.get(f"/resources/{resource_id}")["resources"]
        return dict(found)

    def add(self, session_id: str, *texts: str, status: int = 200, **body: Any) -> Any:
        """Says the texts one after the other, as messages of the user."""
        messages = [self.message(text, NOON_MS + position) for position, text in enumerate(texts)]
        return self.post("/memories/add", status=status, **{"session_id": session_id, "messages": messages, **body})

    def message(self, content: Any, timestamp: int = NOON_MS) -> dict[str, Any]:
        return {"sender_id": self.user_id, "role": "user", "timestamp": timestamp, "content": content}

    def flush(self, session_id: str, **body: Any) -> Any:
        return self.post("/memories/flush", session_id=session_id, **body)

    def remember(self, session_id: str, *texts: str, **scope: Any) -> None:
        self.add(session_id, *texts, **scope)
        assert self.flush(session_id, **scope)["backend"]["data"]["status"] == "extracted"

    def search(self, query: str, *, status: int = 200, **body: Any) -> Any:
        return self.post("/memories/search", status=status, query=query, **body)

    def found(self, query: str, **body: Any) -> list[dict[str, Any]]:
        """The results of a search by keyword, without the profile."""
        answer = self.search(query, **{"method": "keyword", "include_profile": False, **body})
        return list(answer["results"])


def require_shape(value: Any, shape: Shape) -> None:
    """The documented keys are there and of these types; a list's entries are all of its one shape."""
    if isinstance(shape, dict):
        assert isinstance(value, Mapping)
        for name, inner in shape.items():
            assert name in value, f"{name} is missing in {sorted(value)}"
            require_shape(value[name], inner)
    elif isinstance(shape, list):
        assert isinstance(value, list)
        for item in value:
            require_shape(item, shape[0])
    else:
        assert isinstance(value, shape), f"{value!r} is no {shape}"


def field_errors(problem: Mapping[str, Any]) -> list[str]:
    return [error["field"] for error in problem["errors"]]
