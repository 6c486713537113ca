"""Back up database and files into one archive while the gateway runs, and restore it.

The archive is consistent: database and files are of one moment. A restore gives the database's id to the storage
folder. The archive does not contain the secret: without `MEMORY_GATEWAY_SECRET_KEY` (or the file `secret_key` next to
the database), keys remain valid, but cannot be shown again.
"""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from accounts.models import MemoryUser
from core.errors import Conflict, DatabaseDamaged, InvalidInput, NoSpace, NotFound
from core.messages import MANAGE
from core.persistence import database_errors
from core.persistence.file_keys import FileKey, file_key
from core.persistence.files import create_temporary, raising_no_space, require_free, stored_files
from core.persistence.sql import consistent_read, has_tables
from operations import files
from operations.archives.archive import Reader, Writer
from operations.cleanup import incognito
from operations.commands import Report, no_report
from operations.models import Lease
from resources import storage
from resources.services import storage_binding

FORMAT = "memory-gateway-backup"
_DUMPS = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}

_PAGES_PER_STEP = 10_000
_MAX_TRIES = 3


@dataclass(frozen=True, slots=True)
class Backup:
    files: int
    database_bytes: int


def backup(target: Path, *, key: bytes | None = None, report: Report = no_report) -> Backup:
    """Write a backup, encrypted if there is a key, and verify it.

    Raises: `Conflict` if `target` exists, `NotFound` for its folder or `pg_dump`, `NoSpace`, `Stopped`.
    """
    with Writer(target, FORMAT, key) as writer:
        folder = writer.folder
        folder.mkdir(mode=0o700)
        dump, paths = _snapshot(folder, report)
        with dump.open("rb") as source:
            writer.add_file(dump.name, source)
        for number, path in enumerate(paths, 1):
            report("Writing files", number, len(paths))
            with (folder / "files" / path).open("rb") as source:
                writer.add_file(f"files/{path}", source)
        size = dump.stat().st_size
        writer.finish({"database": connection.vendor, "taken_at": timezone.now().isoformat()})
    with Reader(target, FORMAT, key=key) as written:
        written.verify(report)
    return Backup(len(paths), size)


def restore(archive: Path, *, key: bytes | None = None, report: Report = no_report) -> Backup:
    """Restore a backup into this gateway's database and storage, which must be empty, while no server runs.

    Incognito sessions are purged, because they may have ended since the backup was made.

    Raises: `InvalidInput` for a damaged or unsuitable backup, `Conflict` for a database or storage in use.
    """
    with Reader(archive, FORMAT, oldest=2, key=key) as source:
        vendor = source.manifest.get("database")
        if vendor != connection.vendor:
            raise InvalidInput(
                f"This is a {vendor} backup, but the gateway uses {connection.vendor}. Use export_memory."
            )
        source.verify(report)
        names = [name for name in source.files if name.startswith("files/")]
        _require_unused({name.removeprefix("files/") for name in names})
        # If the restore is killed, the folder has no id, so another restore or the next start can bind it.
        storage_binding.forget_storage_id()
        require_free(sum(source.files[name]["size"] for name in names))
        for number, name in enumerate(names, 1):
            report("Restoring files", number, len(names))
            with source.open(name) as file:
                files.put(file_key(name.removeprefix("files/")), file)
        with source.open(_DUMPS[vendor]) as dump:
            _load(dump)
        size = int(source.files[_DUMPS[vendor]]["size"])
    call_command("migrate", verbosity=0)
    storage_binding.bind()
    incognito.purge_all()
    return Backup(len(names), size)


def _snapshot(folder: Path, report: Report) -> tuple[Path, list[str]]:
    """Write a dump of the database and links to its files into the folder; return the dump and the files' paths.

    Files are linked before the database's snapshot, because some may be deleted meanwhile, and after it, because others
    may arrive. If a file arrives and is deleted in between, try again.
    """
    dump = folder / _DUMPS[connection.vendor]
    for tries_left in reversed(range(_MAX_TRIES)):
        before = _referenced_files()
        _link_files(folder / "files")
        with consistent_read() as cursor:
            referenced = _referenced_files()
            _link_files(folder / "files")
            missing = {path for path in referenced if not (folder / "files" / path).exists()}
            # Files that were missing before are ignored here: the doctor reports them.
            if missing <= before or not tries_left:
                _dump(cursor, dump, report)
                break
    found = (folder / "files").rglob("*")
    paths = sorted(
        path.relative_to(folder / "files").as_posix() for path in found if path.is_symlink() or path.is_file()
    )
    return dump, paths


def _dump(cursor: CursorWrapper, target: Path, report: Report) -> None:
    """Write the snapshot that the cursor reads to a file."""
    if connection.vendor == "sqlite":
        _copy_sqlite(target, report)
        return
    cursor.execute("SELECT pg_export_snapshot()")
    (snapshot,) = cursor.fetchone()
    _run_postgresql("pg_dump", "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}")


def _referenced_files() -> set[FileKey]:
    return {path for user in MemoryUser.objects.all() for path in files.of_rows(user)}


def _link_files(folder: Path) -> None:
    for user_pk in MemoryUser.objects.values_list("pk", flat=True):
        for path in files.on_disk_of(user_pk):
            link = folder / path
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                with contextlib.suppress(FileNotFoundError):
                    files.copy_to(path, link)


def _copy_sqlite(target: Path, report: Report) -> None:
    def progress(_status: int, remaining: int, total: int) -> None:
        report("Copying the database", total - remaining, total)

    try:
        with connection.wrap_database_errors, contextlib.closing(sqlite3.connect(target, timeout=60)) as copy:
            connection.connection.backup(copy, pages=_PAGES_PER_STEP, progress=progress)
            copy.execute("PRAGMA journal_mode=DELETE")
            (found,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        raise NoSpace(
            f"There is no space left for a copy of the database in {target.parent}. Nothing was written."
        ) from None
    if found != "ok":
        raise DatabaseDamaged(f"{database_errors.DAMAGED} Details: {' '.join(str(found).split())}")


def _require_unused(archived: set[str]) -> None:
    """Raise `Conflict` for a database or storage in use. Ignore files of the archive, left by a killed restore."""
    now, is_migrated = timezone.now(), has_tables()
    if is_migrated and any(lease.is_held(now) for lease in Lease.objects.all()):
        raise Conflict("A server is using this database. Stop it first.")
    if is_migrated and MemoryUser.objects.exists():
        raise Conflict("The database contains users. Restore into an empty one.")
    storage_id = storage_binding.storage_id()
    stored = {f"{folder.user_pk}/{folder.path_below_user}" for folder in storage.stored_folders()}
    own_id = storage_binding.database_id() if is_migrated else None
    is_foreign = storage_id is not None and storage_id != own_id
    if is_foreign or stored - {path.rpartition("/")[0] for path in archived}:
        raise Conflict(
            f"The storage {stored_files().place_name()} is in use. Set {storage_binding.SETTINGS} to an empty one."
        )


def _load(dump: IO[bytes]) -> None:
    """Replace the database, through a temporary copy that the next restore overwrites if this one is killed."""
    database = Path(str(connection.settings_dict["NAME"]))
    if connection.vendor == "sqlite":
        copy = database.with_name(f".{database.name}.restoring")
        descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    else:
        descriptor, copy = create_temporary()
    try:
        with raising_no_space(), os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(dump, target)
            target.flush()
            os.fsync(target.fileno())
        connections.close_all()
        if connection.vendor == "sqlite":
            for ending in ("-wal", "-shm"):
                database.with_name(f"{database.name}{ending}").unlink(missing_ok=True)
            copy.rename(database)
        else:
            _run_postgresql("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(copy))
    finally:
        copy.unlink(missing_ok=True)
    connections.close_all()


def _run_postgresql(tool: str, *arguments: str) -> None:
    """Run a tool of PostgreSQL. The password is passed in the environment, where other accounts cannot see it."""
    found = shutil.which(tool)
    if found is None:
        raise NotFound(
            f"{tool} is not installed. Install the PostgreSQL client, or use `{MANAGE} export_memory --all`."
        )
    options = connection.settings_dict
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    env = {name: str(options[key]) for name, key in names.items() if options[key]}
    database = ["--dbname", str(options["NAME"])] if tool == "pg_restore" else []
    done = subprocess.run(  # noqa: S603  our own arguments
        [found, *database, *arguments], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Conflict(f"{tool} failed: {done.stderr.strip()[-500:]}")
