"""The database of the original gateway: SQLite, with its users, resources, attachments, tombstones and overrides.

It is opened read-only. Its columns are read by name; those that are missing count as empty.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from core.errors import InvalidInput, NotFound
from core.ids import check_name, check_session_id
from core.storable import NotStorable, check_moment, check_ms, check_text
from core.times import from_ms

TABLES: Final = ("users", "user_resources", "memory_attachments", "memory_tombstones", "memory_overrides")
"""Its tables, in the order of the import: users come before what belongs to them."""
_MAX_VALUE_BYTES: Final = 16 * 2**20


class Left(Exception):
    """Raised for a row that cannot be imported, with the reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the original gateway. `number` is its position in the table."""

    number: int
    values: dict[str, Any]

    def text(self, name: str, most: int = 1_000_000) -> str:
        """Return a text, "" without one. Raises: `Left`."""
        value = self.values.get(name)
        if value is None:
            return ""
        try:
            return check_text(value if isinstance(value, str) else str(value), most)
        except NotStorable:
            raise Left(f"an invalid {name}") from None

    def name(self, name: str) -> str:
        """Return an app or project, "default" without one. Raises: `Left`."""
        try:
            return check_name(self.text(name) or "default")
        except ValueError:
            raise Left(f"an invalid {name}") from None

    def session(self) -> str:
        """Return the session id, "" without one. Raises: `Left`."""
        session_id = self.text("session_id")
        try:
            return check_session_id(session_id) if session_id else ""
        except ValueError:
            raise Left("an invalid session_id") from None

    def time(self, name: str) -> datetime | None:
        """Return a time of ISO 8601 or a Unix time; without a zone it is in UTC."""
        value = self.values.get(name)
        try:
            if isinstance(value, int | float):
                return from_ms(check_ms(int(value * 1000 if value < 100_000_000_000 else value)))
            moment = check_moment(datetime.fromisoformat(str(value))) if value else None
        except (ValueError, OverflowError):
            return None
        return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the original storage folder."""

    path: Path
    size_bytes: int
    sha256: str


class Source:
    """The open database, and the storage folder beside it."""

    def __init__(self, database: sqlite3.Connection, storage: Path) -> None:
        self._database, self._storage = database, storage.resolve()
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in found}
        self.tables = [table for table in TABLES if table in names]
        if "users" not in names:
            raise InvalidInput("The file is not a database of the original gateway: it has no table users.")

    def count(self) -> int:
        """Return the number of rows of all tables."""
        return sum(self._rows(f"SELECT COUNT(*) AS number FROM {table}")[0]["number"] for table in self.tables)

    def batches(self, size: int, table: str = TABLES[0], after: int = 0) -> Iterator[tuple[str, list[Row]]]:
        """Yield the rows of each table in batches with its name, beginning after a position of a table."""
        for name in self.tables[self.tables.index(table) if table in self.tables else 0 :]:
            statement = f"SELECT rowid AS _number, * FROM {name} WHERE rowid > ? ORDER BY rowid LIMIT ?"
            while found := self._rows(statement, after, size):
                rows = [Row(values.pop("_number"), values) for values in found]
                after = rows[-1].number
                yield name, rows
            after = 0

    def has_user(self, user_id: str) -> bool:
        return bool(self._rows("SELECT 1 FROM users WHERE user_id = ?", user_id))

    def scope_of(self, user_id: str, session_id: str) -> Row:
        """Return the resource of a session, whose app and project its memories share; an empty row without one."""
        statement = "SELECT * FROM user_resources WHERE user_id = ? AND session_id = ?"
        found = self._rows(statement, user_id, session_id) if session_id and "user_resources" in self.tables else []
        return Row(0, found[0] if found else {})

    def file(self, uri: str) -> StoredFile | None:
        """Return the stored file of a `file://` address, whose folder may have moved; None if it is not in the storage.

        Symbolic links and other special files are none.
        """
        parts = Path(unquote(urlsplit(uri).path)).parts[1:] if uri.startswith("file://") else ()
        if ".." in parts:
            return None
        for start in range(len(parts)):
            path = self._storage.joinpath(*parts[start:])
            if path.is_file() and path.resolve() == path and stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                    return StoredFile(path, os.fstat(file.fileno()).st_size, digest)
        return None

    def _rows(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        try:
            cursor = self._database.execute(statement, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise InvalidInput(f"The database of the original gateway cannot be read: {error}.") from error


@contextmanager
def open_source(path: Path, storage: Path) -> Iterator[Source]:
    """Open a database of the original gateway. Raises: `NotFound`, `InvalidInput`."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise NotFound(f"The file {path} does not exist.") from None
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is not a regular file.")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        # Bytes that are not UTF-8 become lone surrogates, for which their row is left out.
        database.text_factory = lambda data: data.decode(errors="surrogateescape")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            source = Source(database, storage)
        except sqlite3.Error as error:
            raise InvalidInput(f"{path} is not a SQLite database: {error}.") from error
        yield source
