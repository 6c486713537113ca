"""Read texts of SQLite that are not UTF-8 as far as they are readable.

SQLite does not check texts. A damaged file, or another program, may leave bytes that are not UTF-8, and Python's module
then fails the statement. Here such a row is read again with replacement characters, and logged once. Good rows are read
as before: a `text_factory` for all of them would take seven times as long. PostgreSQL checks what it stores.
"""

import re
import sqlite3
from functools import cache
from itertools import islice
from typing import Any, Final

from core.readable import log_once

_UNREADABLE: Final = re.compile("Could not decode to UTF-8(?: column '([^']*)')?")


class _ReadableRows(sqlite3.Cursor):
    """Fetches of a cursor that replace what is not UTF-8.

    After the error the statement is still at its row, so the row is fetched again.
    """

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except sqlite3.OperationalError as error:
            return self._fetch_replaced(error)

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.OperationalError as error:
            return self._fetch_replaced(error)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        return self._fetch(self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        return self._fetch(None)

    def _fetch(self, size: int | None) -> list[Any]:
        rows: list[Any] = []
        while True:
            following = iter(super().fetchone, None)
            try:
                # `extend` keeps the rows before an error.
                rows.extend(following if size is None else islice(following, size - len(rows)))
            except sqlite3.OperationalError as error:
                rows.append(self._fetch_replaced(error))
            else:
                return rows

    def _fetch_replaced(self, error: sqlite3.OperationalError) -> Any:
        found = _UNREADABLE.match(str(error))
        if found is None:
            raise error
        value = str(error).partition(" with text ")[2]
        log_once(value, f"column {found[1]}", "it is not UTF-8")
        self.connection.text_factory = _replaced
        try:
            return super().fetchone()
        finally:
            self.connection.text_factory = str


def _replaced(value: bytes) -> str:
    return value.decode(errors="replace")


@cache
def readable(cursor: type[sqlite3.Cursor]) -> type[sqlite3.Cursor]:
    """Return a class of cursors like this one, whose rows can always be read."""
    return type(cursor.__name__, (_ReadableRows, cursor), {})
