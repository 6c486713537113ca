"""Serve the gateway's competitor: FastAPI with plain functions as handlers, one `httpx.Client`, `sqlite3`.

    python -m benchmarks.http.reference --db FILE --seed RESOURCES     create tables and a user, print the key
    python -m benchmarks.http.reference --db FILE --port 8020 --upstream http://127.0.0.1:1995

It does only what the first design says of a search: key, the user's resources, the upstream's search, tombstones,
overrides, attachments, and a JSON log line with both bodies without secrets (`--no-log` omits it). Each thread has a
database connection, for speed.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import secrets
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import httpx
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, Field

_SCHEMA = """
CREATE TABLE users (user_id TEXT PRIMARY KEY, user_key TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL);
CREATE TABLE user_resources (resource_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, session_id TEXT NOT NULL, app_id TEXT
  NOT NULL, project_id TEXT NOT NULL, filename TEXT NOT NULL, uri TEXT NOT NULL, status TEXT NOT NULL, deleted_at TEXT);
CREATE INDEX resources_of_user ON user_resources (user_id, app_id, project_id, status);
CREATE TABLE memory_attachments (id INTEGER PRIMARY KEY, user_id TEXT NOT NULL, session_id TEXT NOT NULL, type TEXT NOT
  NULL, name TEXT NOT NULL, internal_uri TEXT NOT NULL);
CREATE INDEX attachments_of_session ON memory_attachments (user_id, session_id);
CREATE TABLE memory_tombstones (tombstone_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, memory_id TEXT, session_id TEXT,
  reason TEXT);
CREATE INDEX tombstones_of_user ON memory_tombstones (user_id);
CREATE TABLE memory_overrides (override_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, memory_id TEXT NOT NULL,
  override_text TEXT NOT NULL, status TEXT NOT NULL);
CREATE INDEX overrides_of_user ON memory_overrides (user_id, memory_id);
"""
_BATCH = 50
_LISTS = {
    "episodes": "episode",
    "profiles": "profile",
    "agent_cases": "agent_case",
    "agent_skills": "agent_skill",
    "unprocessed_messages": "unprocessed_message",
}


class SearchRequest(BaseModel):
    user_id: str
    user_key: str
    query: str = Field(min_length=1)
    conversation_id: str | None = None
    agent_id: str | None = None
    scope: list[Literal["current_chat", "resources", "all_user_memory"]] = ["current_chat", "resources"]
    method: Literal["keyword", "vector", "hybrid", "agentic"] = "hybrid"
    top_k: int = 8
    radius: float | None = None
    include_profile: bool = True
    enable_llm_rerank: bool = True
    filters: dict[str, Any] | None = None
    app_id: str = "default"
    project_id: str = "default"


class Attachment(BaseModel):
    type: str
    name: str
    internal_uri: str


class SearchResult(BaseModel):
    id: str
    memory_type: str
    session_id: str | None
    text: str
    score: float | None
    source_scope: str
    resource_id: str | None
    resource_uri: str | None
    attachments: list[Attachment]
    raw: dict[str, Any]


class SearchResponse(BaseModel):
    results: list[SearchResult]


class Repository:
    """The tables, with one connection per thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()

    def rows(self, statement: str, *values: Any) -> list[Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = sqlite3.connect(self._path)
            connection.execute("PRAGMA journal_mode=WAL")
        return list(connection.execute(statement, values))

    def has_key(self, user_id: str, user_key: str) -> bool:
        return bool(self.rows("SELECT 1 FROM users WHERE user_id = ? AND user_key = ?", user_id, user_key))

    def sessions(self, body: SearchRequest) -> list[str]:
        statement = (
            "SELECT session_id FROM user_resources WHERE user_id = ? AND app_id = ? AND project_id = ?"
            " AND status = 'extracted' AND deleted_at IS NULL"
        )
        return [row[0] for row in self.rows(statement, body.user_id, body.app_id, body.project_id)]

    def hidden(self, user_id: str) -> set[str]:
        rows = self.rows("SELECT memory_id, session_id FROM memory_tombstones WHERE user_id = ?", user_id)
        return {value for row in rows for value in row if value}

    def overrides(self, user_id: str, memory_ids: list[str]) -> dict[str, str]:
        statement = (
            "SELECT memory_id, override_text FROM memory_overrides WHERE user_id = ? AND status = 'active'"
            f" AND memory_id IN ({_marks(memory_ids)})"
        )
        return dict(self.rows(statement, user_id, *memory_ids))

    def attachments(self, user_id: str, sessions: list[str]) -> list[tuple[str, str, str, str]]:
        statement = (
            "SELECT session_id, type, name, internal_uri FROM memory_attachments WHERE user_id = ?"
            f" AND session_id IN ({_marks(sessions)})"
        )
        return self.rows(statement, user_id, *sessions)


class Service:
    """The steps of a search, in the order of the first design."""

    def __init__(self, repository: Repository, upstream: str) -> None:
        self._repository = repository
        self._http = httpx.Client(
            base_url=upstream, timeout=120, limits=httpx.Limits(max_connections=100, max_keepalive_connections=100)
        )

    def search(self, body: SearchRequest) -> dict[str, Any]:
        if not self._repository.has_key(body.user_id, body.user_key):
            raise HTTPException(401, "invalid user_id or user_key")
        merged: dict[str, dict[str, Any]] = {}
        for scope, filters in self._questions(body):
            for item in self._ask(body, scope, filters):
                merged.setdefault(item["id"], item)
        return {"results": self._decided(body.user_id, list(merged.values()))}

    def _questions(self, body: SearchRequest) -> Iterator[tuple[str, dict[str, Any] | None]]:
        if "current_chat" in body.scope and body.conversation_id:
            yield "current_chat", {"session_id": f"chat:{body.conversation_id}"}
        if "resources" in body.scope:
            sessions = self._repository.sessions(body)
            for start in range(0, len(sessions), _BATCH):
                yield "resources", {"session_id": {"in": sessions[start : start + _BATCH]}}
        if "all_user_memory" in body.scope:
            yield "all_user_memory", None

    def _ask(self, body: SearchRequest, scope: str, filters: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
        if body.filters and filters:
            filters = {"AND": [body.filters, filters]}
        fields = {"query", "method", "top_k", "include_profile", "enable_llm_rerank", "app_id", "project_id"}
        payload = body.model_dump(include=fields)
        payload |= {"agent_id": body.agent_id} if body.agent_id else {"user_id": body.user_id}
        if filters or body.filters:
            payload["filters"] = filters or body.filters
        if body.radius is not None:
            payload["radius"] = body.radius
        response = self._http.post("/api/v1/memory/search", json=payload)
        response.raise_for_status()
        data = response.json()["data"]
        for name, memory_type in _LISTS.items():
            for raw in data.get(name, []):
                yield _result(raw, memory_type, scope)

    def _decided(self, user_id: str, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Remove deleted results, apply overrides and add attachments."""
        hidden = self._repository.hidden(user_id)
        kept = [item for item in results if item["id"] not in hidden and item["session_id"] not in hidden]
        texts = self._repository.overrides(user_id, [item["id"] for item in kept])
        sessions = sorted({item["session_id"] for item in kept if item["session_id"]})
        files = self._repository.attachments(user_id, sessions)
        for item in kept:
            item["text"] = texts.get(item["id"], item["text"])
            said = [text.casefold() for text in _strings(item["raw"])]
            item["attachments"] = [
                {"type": kind, "name": name, "internal_uri": uri}
                for session_id, kind, name, uri in files
                if session_id == item["session_id"] and any(name.casefold() in text for text in said)
            ]
        return kept


def _result(raw: dict[str, Any], memory_type: str, scope: str) -> dict[str, Any]:
    session_id = raw.get("session_id")
    kind, _, rest = (session_id or "").partition(":")
    user_id, _, resource_id = rest.partition(":")
    is_resource = kind == "resource"
    return {
        "id": raw["id"],
        "memory_type": memory_type,
        "session_id": session_id,
        "text": raw.get("episode") or raw.get("summary") or "",
        "score": raw.get("score"),
        "source_scope": scope,
        "resource_id": resource_id if is_resource else None,
        "resource_uri": f"resource://{user_id}/{resource_id}" if is_resource else None,
        "raw": raw,
    }


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "base64":
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _marks(values: list[str]) -> str:
    return ", ".join("?" * len(values))


logger = logging.getLogger("memory_gateway.api")
_SECRET = re.compile(r"key|token|password|secret", re.IGNORECASE)


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "[REDACTED]" if _SECRET.search(key) else _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list) else value


def _log(request: Request, body: SearchRequest, answer: dict[str, Any], began: float) -> None:
    line = {
        "request_time": datetime.now(UTC).isoformat(),
        "duration_ms": round((time.perf_counter() - began) * 1000, 2),
        "method": request.method,
        "path": request.url.path,
        "url": str(request.url),
        "client": request.client.host if request.client else None,
        "input": {"query": dict(request.query_params), "body": _redacted(body.model_dump())},
        "output": {"status": 200, "body": _redacted(answer)},
    }
    logger.info(json.dumps(line, ensure_ascii=False))


def application(db: Path, upstream: str) -> FastAPI:
    service = Service(Repository(db), upstream)
    app = FastAPI()

    @app.post("/memories/search", response_model=SearchResponse)
    def search(body: SearchRequest, request: Request) -> Any:
        began = time.perf_counter()
        answer = service.search(body)
        if logger.isEnabledFor(logging.INFO):
            _log(request, body, answer, began)
        return answer

    return app


def seed(db: Path, resources: int) -> str:
    """Create the tables, the user `u_bench` and this number of resources. Return the user's key."""
    user_id, key = "u_bench", f"uk_{secrets.token_urlsafe(32)}"
    with sqlite3.connect(db) as connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO users VALUES (?, ?, '2026-06-10T10:00:00+00:00')", (user_id, key))
        for number in range(resources):
            resource_id = f"r_{secrets.token_hex(16)}"
            session_id, name = f"resource:{user_id}:{resource_id}", f"contract-{number}.txt"
            uri = f"file:///srv/{user_id}/{resource_id}/{name}"
            connection.execute(
                "INSERT INTO user_resources VALUES (?, ?, ?, 'default', 'default', ?, ?, 'extracted', NULL)",
                (resource_id, user_id, session_id, name, uri),
            )
            connection.execute(
                "INSERT INTO memory_attachments (user_id, session_id, type, name, internal_uri) VALUES (?, ?, ?, ?, ?)",
                (user_id, session_id, "text", name, uri),
            )
    return key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int)
    parser.add_argument("--upstream", default="")
    parser.add_argument("--no-log", action="store_true")
    options = parser.parse_args()
    if options.seed is not None:
        print(seed(options.db, options.seed))
        return
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logger.setLevel(logging.WARNING if options.no_log else logging.INFO)
    uvicorn.run(application(options.db, options.upstream), port=options.port, access_log=False, log_level="warning")


if __name__ == "__main__":
    main()
