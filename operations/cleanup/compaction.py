"""Remove deleted text from the files of the database."""

from contextlib import suppress
from pathlib import Path

from django.db import OperationalError, connection

from core.messages import MANAGE
from core.messages import Translatable as _
from core.persistence.sql import temporary_data_on_disk
from store import rollups

MAX_BYTES_AT_ONCE = 512 * 2**20
"""The largest SQLite file that is rewritten within a request."""
MAX_BYTES_MERGED = 64 * 2**20
"""The largest SQLite file whose keyword index is merged after a purge of incognito sessions."""
_POSTGRESQL = _(
    "PostgreSQL keeps deleted rows in its data files until vacuum reuses the space, and longer in its "
    "write-ahead log and in backups. Run VACUUM FULL to remove them from the data files now."
)
_TOO_LARGE = _(
    "The database file is large and was not rewritten. Its free pages may contain deleted text until you "
    "run `%(manage)s doctor --fix --compact`.",
    manage=MANAGE,
)
_BUSY = _(
    "The database was busy. Its write-ahead log or free pages may contain deleted text until you run "
    "`%(manage)s doctor --fix --compact`.",
    manage=MANAGE,
)


def overwrite_deleted() -> None:
    """Make SQLite overwrite data that this connection deletes later."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def forget_words() -> None:
    """Merge the keyword index of a small SQLite database, because its segments keep deleted words until then.

    That of a large one is merged part by part each day (`operations.tasks.merge_keywords`).
    """
    if connection.vendor != "sqlite":
        return
    path = Path(str(connection.settings_dict["NAME"]))
    if path.is_file() and path.stat().st_size > MAX_BYTES_MERGED:
        return
    with suppress(OperationalError), connection.cursor() as cursor:  # busy: the daily task merges it
        cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('optimize')")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def compact(*, however_large: bool) -> list[str]:
    """Rewrite the database's files without deleted text; return messages about text that remains."""
    rollups.settle(is_final=True)
    if connection.vendor != "sqlite":
        return [_POSTGRESQL]
    path = Path(str(connection.settings_dict["NAME"]))
    if not however_large and path.is_file() and path.stat().st_size > MAX_BYTES_AT_ONCE:
        return [_TOO_LARGE]
    try:
        with connection.cursor() as cursor:
            # Deleted words stay in segments of the index until they are merged.
            cursor.execute("INSERT INTO store_keywords (store_keywords) VALUES ('optimize')")
            with temporary_data_on_disk():
                cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy = cursor.fetchone()[0]
    except OperationalError:
        return [_BUSY]
    return [_BUSY] if is_busy else []
