"""Databases as the original gateway writes them, with its storage folder."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

SCHEMA = """
CREATE TABLE users (user_id TEXT PRIMARY KEY, user_key TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL);
CREATE TABLE user_resources (
    resource_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, app_id TEXT NOT NULL, project_id TEXT NOT NULL,
    filename TEXT NOT NULL, content_type TEXT NOT NULL, mime_type TEXT, size_bytes INTEGER, sha256 TEXT,
    uri TEXT NOT NULL, session_id TEXT NOT NULL, status TEXT NOT NULL, error_message TEXT, title TEXT,
    description TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT
);
CREATE TABLE memory_attachments (
    attachment_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, app_id TEXT NOT NULL, project_id TEXT NOT NULL,
    session_id TEXT NOT NULL, type TEXT, name TEXT NOT NULL, internal_uri TEXT NOT NULL, source TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE memory_tombstones (
    tombstone_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, memory_id TEXT, session_id TEXT, reason TEXT,
    created_at TEXT NOT NULL
);
CREATE TABLE memory_overrides (
    override_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, memory_id TEXT NOT NULL, session_id TEXT NOT NULL,
    override_text TEXT NOT NULL, status TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);
"""
AT = "2026-06-10T10:00:00+00:00"
LATER = "2026-06-10T10:00:05+00:00"
WAS_AT = "/home/tom/memory-gateway/data/storage"


class OriginalGateway:
    """A database in `folder`, and the storage folder beside it, which was at `WAS_AT`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.path = folder / "memory_gateway.sqlite3"
        self.storage = folder / "storage"
        with closing(sqlite3.connect(self.path)) as database:
            database.executescript(SCHEMA)

    def insert(self, table: str, *rows: tuple[object, ...]) -> None:
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute("PRAGMA synchronous = OFF")
            slots = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO {table} VALUES ({slots})", rows)

    def user(self, user_id: str, letter: str = "") -> str:
        """Insert a user and return the API key."""
        key = f"uk_{(letter or user_id[0]) * 43}"
        self.insert("users", (user_id, key, AT))
        return key

    def file(self, path: str, content: bytes) -> str:
        """Store a file and return the address that the original gateway has for it."""
        file = self.storage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return f"file://{WAS_AT}/{path}"

    def upload(self, user_id: str, resource_id: str, content: bytes, **values: object) -> None:
        uri = self.file(f"{user_id}/{resource_id}/notes.txt", content)
        self.resource(
            user_id,
            resource_id,
            **{"uri": uri, "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content), **values},
        )

    def resource(self, user_id: str, resource_id: str, **values: object) -> None:
        row = {
            "resource_id": resource_id, "user_id": user_id, "app_id": "default", "project_id": "default",
            "filename": "notes.txt", "content_type": "text", "mime_type": "text/plain", "size_bytes": None,
            "sha256": None, "uri": "", "session_id": f"resource:{user_id}:{resource_id}", "status": "extracted",
            "error_message": None, "title": "Notes", "description": "Of a walk", "created_at": AT,
            "updated_at": LATER, "deleted_at": None, **values,
        }  # fmt: skip
        self.insert("user_resources", tuple(row.values()))
