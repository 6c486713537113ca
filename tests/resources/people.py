"""People of a real server, and what its database holds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from resources import quarantine
from resources.services.storage_binding import FILE
from tests.server import RunningServer

_COUNT = """
import json
from django.db.models import Count
from accounts.models import MemoryUser
from store.models import Memory
from resources.models import Attachment, Resource
print(json.dumps({
    "resources": list(Resource.objects.values("resource_id", "session_id", "status", "attempts", "storage_path",
        "sha256", "error_message")),
    "attachments": Attachment.objects.count(),
    "memories": {row["session__session_id"]: [row["all"], row["texts"]] for row in
        Memory.objects.values("session__session_id").annotate(all=Count("pk"), texts=Count("text", distinct=True))},
}))
"""


@dataclass(frozen=True)
class RemotePerson:
    """A user of a running server; a new connection for every call, so that a restart is no surprise."""

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
        body = {"query": query, "scope": ["resources"], "method": "keyword", "top_k": 20}
        return requests.post(f"{self.server.url}/memories/search", json=body, headers=self.headers, timeout=30)


def stored(server: RunningServer) -> dict[str, Any]:
    """The rows of resources, the number of attachments, and per session [memories, different texts]."""
    shell = server.manage("shell", "-v", "0", "-c", _COUNT)
    assert shell.returncode == 0, shell.stderr
    found: dict[str, Any] = json.loads(shell.stdout.splitlines()[-1])
    return found


def files_of(server: RunningServer) -> list[Path]:
    """Return the stored files, without the storage's id and what is in quarantine."""
    root = server.data_dir / "storage"
    found = [path for path in root.rglob("*") if path.is_file() and path != root / FILE]
    return [path for path in found if quarantine.FOLDER not in path.parts]


def eventually(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (result := holds()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return result
