"""The engine's competitors: an FTS5 table with a user column, and LanceDB."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from benchmarks.engine.corpus import Item

_ADDED_AT_ONCE = 50_000


class Fts5:
    """FTS5 with one table for all users. The user is an indexed column, which is faster than filtering afterwards."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fts5.sqlite3"
        self._db = sqlite3.connect(self.path)
        self._db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        self._db.execute("CREATE VIRTUAL TABLE f USING fts5(body, user, tokenize='porter unicode61')")

    def build(self, items: Iterable[Item]) -> None:
        with self._db:
            self._db.executemany(
                "INSERT INTO f (body, user) VALUES (?, ?)", ((item.text, f"u{item.user}") for item in items)
            )

    def settle(self) -> None:
        """Checkpoint the write-ahead log."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def keyword(self, question: Item) -> Sequence[Any]:
        words = " OR ".join(f'"{word}"' for word in question.text.split())
        match = f'user : "u{question.user}" AND body : ({words})'
        statement = "SELECT rowid, body FROM f WHERE f MATCH ? ORDER BY rank LIMIT 10"
        return self._db.execute(statement, (match,)).fetchall()


class Lance:
    """LanceDB with one indexed table for all users, and separate tables for some of the users."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.path = folder / "lance"
        self._db = lancedb.connect(str(self.path))
        vector = pa.list_(pa.float32(), dimensions)
        self._schema = pa.schema([("user", pa.string()), ("text", pa.string()), ("vector", vector)])
        self._all = self._db.create_table("all", schema=self._schema)
        self._own: dict[int, Any] = {}

    def build(self, items: Sequence[Item]) -> None:
        for start in range(0, len(items), _ADDED_AT_ONCE):
            self._all.add(self._rows(items[start : start + _ADDED_AT_ONCE]))
        self._all.create_scalar_index("user", index_type="BTREE")
        self._all.create_fts_index("text")

    def build_of(self, user: int, items: Sequence[Item]) -> None:
        table = self._db.create_table(f"user_{user}", self._rows(items), schema=self._schema)
        table.create_fts_index("text")
        self._own[user] = table

    def vector(self, question: Item) -> Sequence[Any]:
        found = self._all.search(question.vector).metric("cosine").where(f"user = 'u{question.user}'", prefilter=True)
        return list(found.limit(10).select(["text", "_distance"]).to_list())

    def hybrid(self, question: Item) -> Sequence[Any]:
        search = self._own[question.user].search(query_type="hybrid")
        return list(search.vector(question.vector).text(question.text).limit(10).to_list())

    def add(self, item: Item) -> None:
        self._all.add(self._rows([item]))

    def settle(self) -> None:
        """Index the added rows and compact small files."""
        self._all.optimize()

    def _rows(self, items: Sequence[Item]) -> pa.Table:
        columns = {
            "user": [f"u{item.user}" for item in items],
            "text": [item.text for item in items],
            "vector": [item.vector for item in items],
        }
        return pa.table(columns, schema=self._schema)
