"""Translation of database errors into errors for callers.

A locked database is a temporary error. Damage, a full disk and a read-only disk persist until an operator acts. After
SQLite has reported damage, all connections of this process are read-only.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db.utils import DatabaseError, InterfaceError, OperationalError

from core.errors import DatabaseDamaged, DatabaseNotWritable, EngineUnavailable
from core.messages import MANAGE
from core.messages import Translatable as _
from core.persistence import files
from core.persistence.readable_text import readable

DAMAGED: Final = _(
    "The database is damaged and accepts no more writes. The operator must stop the gateway and restore a "
    "backup: see docs/operate/backup.md."
)
_INDEX_DAMAGED: Final = _(
    "The keyword index is damaged. The operator must run `%(manage)s doctor --fix`.", manage=MANAGE
)
_FULL: Final = _("The disk of the database is full, and nothing was stored. The operator must free disk space.")
_READ_ONLY: Final = _("The database is read-only, and nothing was stored. The operator must make its disk writable.")

# SQLite reports an exceeded disk quota or file size limit only as a failed write.
_SQLITE_FULL: Final = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
}
_SQLSTATE_FULL: Final = "53100"
_SQLSTATE_READ_ONLY: Final = "25006"
_LOG_SECONDS: Final = 60.0

_damaged = threading.Event()


class Connection(sqlite3.Connection):
    """A SQLite connection whose rows can always be read, and that becomes read-only once damage is known."""

    _is_read_only = False

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        # Each thread sees to the connection that it uses: another's may wait for a lock that this thread holds.
        if _damaged.is_set() and not self._is_read_only:
            self._is_read_only = True
            super().cursor().execute("PRAGMA query_only = ON")
        return super().cursor(readable(factory))


def note_damage() -> None:
    """Mark the database as damaged for the life of this process: its connections become read-only."""
    _damaged.set()


def is_damaged() -> bool:
    return _damaged.is_set()


def is_index_damaged(error: BaseException) -> bool:
    """Return True for an error about the keyword index of SQLite alone."""
    cause = error.__cause__ or error
    return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT_VTAB


def explain(error: BaseException) -> EngineUnavailable | None:
    """Return the caller's error for a persistent database error, None for any other error. Damage is recorded."""
    if isinstance(error, (DatabaseDamaged, DatabaseNotWritable)):
        return error
    cause = error.__cause__ or error
    code, sqlstate = getattr(cause, "sqlite_errorcode", None) or 0, getattr(cause, "sqlstate", None)
    if is_index_damaged(error):
        return DatabaseDamaged(_INDEX_DAMAGED)
    if code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        note_damage()
    is_read_only = code & 0xFF == sqlite3.SQLITE_READONLY or sqlstate == _SQLSTATE_READ_ONLY
    if code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB} or (is_read_only and is_damaged()):
        return DatabaseDamaged(DAMAGED)
    if is_read_only or code in _SQLITE_FULL or sqlstate == _SQLSTATE_FULL:
        files.note_failed_write()
        return DatabaseNotWritable(_READ_ONLY if is_read_only else _FULL)
    return None


class PersistentErrorFilter(logging.Filter):
    """A logging filter that reduces a persistent database error to one line a minute, without its traceback.

    The error is taken from the record's attribute `cause`, else from its `exc_info`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = getattr(record, "cause", None) or (record.exc_info[1] if record.exc_info else None)
        refusal = explain(error) if error else None
        if refusal is None:
            return True
        now = time.monotonic()
        if now - self._logged_at.get(refusal.detail, float("-inf")) < _LOG_SECONDS:
            return False
        self._logged_at[refusal.detail] = now
        record.msg, record.args, record.exc_info, record.exc_text = refusal.detail, (), None, None
        return True


RETRY_AFTER_SECONDS = 1


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn errors of a locked, unreachable, full or damaged database into `EngineUnavailable` and its subclasses."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        if refusal := explain(error):
            raise refusal from error
        if not isinstance(error, (OperationalError, InterfaceError)):
            raise
        raise EngineUnavailable(
            _("The memory database is busy or unreachable. Try again."), retry_after_seconds=RETRY_AFTER_SECONDS
        ) from error
