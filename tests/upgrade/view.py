"""A user's data as the public interfaces show it, in a form by which two versions can be compared.

Ids are those that the client knows: a version that gives a memory another id must still answer to the former one, and
`alias` maps the new id back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from django.test import Client

MARK = re.compile(r"zq[a-j]{4}")
SCOPES = (("default", "default"), ("walks", "p2"))
IN_TRASH = ("false", "true")
ALL_SCOPES = ["all_user_memory", "resources"]
_SHOWN = (
    "id", "memory_type", "session_id", "text", "category", "importance", "sender_id", "sender_name", "role",
    "tool_calls", "tool_call_id", "agent_id", "timestamp_ms", "override_id", "deleted_at",
)  # fmt: skip
_SESSION = ("session_id", "kind", "memories", "pending", "deleted_at")
_NEW_IN_TRASH = {"state", "expires_at"}
"""Fields that the older version did not show."""
_RESOURCE = ("resource_id", "session_id", "filename", "title", "status", "content_type", "size_bytes", "sha256")
View = dict[str, Any]


@dataclass
class Reader:
    """A user's client. `alias` has the known id for each id that a newer version gives to a memory."""

    key: str
    alias: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
        if method == "get":
            return Client().get(path, query, headers=headers)
        return Client().generic(method.upper(), path, json.dumps(body), "application/json", headers=headers)

    def get(self, path: str, **query: Any) -> Any:
        answer = self.send("get", path, **query)
        assert answer.status_code == 200, (path, query, answer.status_code, answer.content)
        return answer.json()

    def every(self, path: str, rows: str, **query: Any) -> Iterator[dict[str, Any]]:
        """Yield the rows of all pages of a list."""
        query["limit"] = 100
        while True:
            page = self.get(path, **query)
            yield from page[rows]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def search(self, query: str, scope: tuple[str, str]) -> list[dict[str, Any]]:
        body = {"query": query, "scope": ALL_SCOPES, "method": "keyword", "top_k": 100, **as_scope(scope)}
        answer = self.send("post", "/memories/search", body)
        assert answer.status_code == 200, answer.content
        found: list[dict[str, Any]] = answer.json()["results"]
        # The marks differ by a letter or two: one that is gone is taken for another.
        return [one for one in found if one["session_id"] is None or query in one["text"] or "zq" not in one["text"]]

    def known(self, memory_id: str | None) -> str | None:
        return memory_id and self.alias.get(memory_id, memory_id)


def as_scope(scope: tuple[str, str]) -> dict[str, str]:
    return dict(zip(("app_id", "project_id"), scope, strict=True))


def view_of(client: Reader, memory_ids: Iterable[str], marks: Iterable[str]) -> View:
    """Return all that a user sees. `memory_ids` are those that the client keeps, `marks` the words to search for."""
    details = {memory_id: detail for memory_id in sorted(memory_ids) if (detail := _detail(client, memory_id))}
    client.alias |= {detail["memory"]["id"]: memory_id for memory_id, detail in details.items()}
    for memory_id, detail in details.items():
        detail["memory"]["id"] = memory_id
    return {
        "memories": details,
        "scopes": [_scope(client, scope, sorted(marks)) for scope in SCOPES],
        "about_oneself": client.get("/api/v1/memories/"),
    }


def _detail(client: Reader, memory_id: str) -> dict[str, Any] | None:
    answer = client.send("get", f"/memories/{quote(memory_id, safe='')}")
    if answer.status_code == 404:
        return None
    assert answer.status_code == 200, answer.content
    detail = answer.json()
    return {"memory": _only(detail["memory"], _SHOWN), "history": detail["history"]}


def _scope(client: Reader, scope: tuple[str, str], marks: Iterable[str]) -> View:
    named = as_scope(scope)
    rows = client.every("/memories", "memories", **named)
    trash = client.every("/memories/trash", "trash", **named)
    sessions = [row for deleted in IN_TRASH for row in client.every("/sessions", "sessions", deleted=deleted, **named)]
    files = [row for deleted in IN_TRASH for row in client.get("/resources", deleted=deleted, **named)["resources"]]
    found = {mark: _found(client, mark, scope) for mark in marks if sessions}
    return {
        "scope": list(scope),
        "listed": sorted(str(client.known(row["id"])) for row in rows),
        "trash": sorted(
            ({**_only(row, row.keys() - _NEW_IN_TRASH), "memory_id": client.known(row["memory_id"])} for row in trash),
            key=lambda row: str(row["tombstone_id"]),
        ),
        "sessions": sorted((_only(row, _SESSION) for row in sessions), key=lambda row: str(row["session_id"])),
        "resources": sorted((_resource(client, row) for row in files), key=lambda row: str(row["resource_id"])),
        "found": {mark: hits for mark, hits in found.items() if hits},
    }


def _found(client: Reader, mark: str, scope: tuple[str, str]) -> list[list[Any]]:
    hits = client.search(mark, scope)
    return sorted([client.known(hit["id"]), hit["session_id"], hit["text"]] for hit in hits)


def _resource(client: Reader, row: Mapping[str, Any]) -> View:
    """Return a resource with the digest of its content, None if it has none."""
    content = client.send("get", f"/resources/{row['resource_id']}/content")
    digest = hashlib.sha256(b"".join(content.streaming_content)).hexdigest() if content.status_code == 200 else None
    return {**_only(row, _RESOURCE), "content": digest}


def _only(row: Mapping[str, Any], names: Iterable[str]) -> View:
    return {name: row.get(name) for name in names}


def digest(view: View) -> str:
    """Return the digest of a user's view."""
    return hashlib.sha256(json.dumps(view, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
