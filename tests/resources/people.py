"""Users of a running server, and queries of its database and files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from resources import quarantine
from resources.services.storage_binding import FILE
from tests.server import RunningServer

_COLUMNS = ("resource_id", "session_id", "state", "status", "attempts", "storage_path", "sha256", "error_message")
_MEMORIES = """
SELECT session.session_id, count(*), count(DISTINCT memory.text)
FROM store_memory memory JOIN store_session session ON session.id = memory.session_id
GROUP BY session.session_id
"""


@dataclass(frozen=True)
class RemotePerson:
    """A user of a running server. Every call opens a connection, which lets tests restart the server."""

    server: RunningServer
    user_id: str
    user_key: str

    @classmethod
    def create(cls, server: RunningServer, user_id: str) -> RemotePerson:
        answer = requests.post(f"{server.url}/users", json={"user_id": user_id}, timeout=30)
        answer.raise_for_status()
        return cls(server, user_id, answer.json()["user_key"])

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.user_key}"}

    def upload(self, name: str, data: Any, *, timeout: float = 150, **headers: str) -> requests.Response:
        return requests.post(
            f"{self.server.url}/resources",
            files={"file": (name, data)},
            headers={**self.headers, **headers},
            timeout=timeout,
        )

    def resources(self) -> list[dict[str, Any]]:
        answer = requests.get(f"{self.server.url}/resources", headers=self.headers, timeout=30)
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()["resources"]
        return found

    def search(self, query: str) -> requests.Response:
        body = {"query": query, "scope": ["resources"], "method": "keyword", "top_k": 20, "fold": False}
        return requests.post(f"{self.server.url}/memories/search", json=body, headers=self.headers, timeout=30)


def stored(server: RunningServer) -> dict[str, Any]:
    """Return the rows of resources, the number of attachments, and per session [memories, distinct texts]."""
    resources = server.rows(f"SELECT {', '.join(_COLUMNS)} FROM resources_resource")
    return {
        "resources": [dict(zip(_COLUMNS, row, strict=True)) for row in resources],
        "attachments": server.rows("SELECT count(*) FROM resources_attachment")[0][0],
        "memories": {session_id: [count, texts] for session_id, count, texts in server.rows(_MEMORIES)},
    }


def files_of(server: RunningServer) -> list[Path]:
    """Return the stored files, without the file of the storage id and files in quarantine."""
    root = server.data_dir / "storage"
    # Unlike `rglob`, `os.walk` passes over a folder that the server removes meanwhile.
    found = [Path(folder) / name for folder, _folders, names in os.walk(root) for name in names]
    return [path for path in found if path != root / FILE and quarantine.FOLDER not in path.parts]


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (result := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
