"""Making sure that what was deleted is not left in the database's own files."""

from __future__ import annotations

from pathlib import Path

from django.db import OperationalError, connection

from core.spilling import on_disk
from store import rollups

MAX_BYTES_AT_ONCE = 512 * 2**20
"""A larger SQLite file is not rewritten while somebody waits for the answer."""
_POSTGRESQL = (
    "PostgreSQL keeps deleted rows in its data files until it vacuums them and reuses the space, and longer in its "
    "write-ahead log and in backups: run VACUUM FULL for what must be gone at once."
)
_TOO_LARGE = (
    "The database file is large and was not rewritten: deleted text may stand in its free pages until "
    "`manage.py doctor --fix --compact` ran."
)
_BUSY = (
    "The database was busy: deleted text may stand in its write-ahead log or free pages until "
    "`manage.py doctor --fix --compact` ran."
)


def overwrite_deleted() -> None:
    """Has SQLite overwrite what this connection deletes from now on."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def compact(*, however_large: bool) -> list[str]:
    """Leaves nothing of what was deleted in the files, as far as that can be done; what remains, in sentences."""
    rollups.settle(is_final=True)
    if connection.vendor != "sqlite":
        return [_POSTGRESQL]
    if not however_large and database_bytes() > MAX_BYTES_AT_ONCE:
        return [_TOO_LARGE]
    try:
        with connection.cursor() as cursor:
            # Deleted words stay in the index's older parts until all parts are made one.
            cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('optimize')")
            with on_disk():
                cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy = cursor.fetchone()[0]
    except OperationalError:
        return [_BUSY]
    return [_BUSY] if is_busy else []


def database_bytes() -> int:
    """The size of the SQLite file; 0 for another database."""
    if connection.vendor != "sqlite":
        return 0
    path = Path(str(connection.settings_dict["NAME"]))
    return path.stat().st_size if path.is_file() else 0
