"""A backup of everything in one file, taken while the gateway works, and its way back.

It holds the database and the stored files as of one moment; a restore gives the database's id to the storage folder.
It does not hold the secret: without `MEMORY_GATEWAY_SECRET_KEY` (or the file `secret_key` beside the database) keys go
on working, but none is shown again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import quote

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.utils import timezone

from accounts.models import MemoryUser
from core.errors import Conflict, InvalidInput, NoSpace, NotFound
from core.leases import is_dead
from operations import files
from operations.archive import Reader, Writer
from operations.commands import Report, Stop, no_report
from operations.models import Lease
from resources import storage
from resources.services import storage_binding

FORMAT = "memory-gateway-backup"
_DUMPS = {"sqlite": "database.sqlite3", "postgresql": "database.dump"}

_PAGES_AT_ONCE = 10_000
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Backup:
    files: int
    database_bytes: int


@dataclass(frozen=True, slots=True)
class _Moment:
    """The files that the database of one moment speaks of, and how to write that database into a file."""

    spoken_of: set[str]
    write: Callable[[Path, Report, Stop | None], None]


def backup(target: Path, *, report: Report = no_report, stop: Stop | None = None) -> Backup:
    """Writes a backup and verifies it. Errors: `Conflict` if `target` exists, `NotFound` for its folder or PostgreSQL's
    own tool, `NoSpace`, `Stopped`.
    """
    if not target.parent.is_dir():
        raise NotFound(f"There is no folder {target.parent}.")
    with Writer(target, FORMAT) as writer:
        kept = writer.folder
        kept.mkdir(mode=0o700)
        dump, paths = _snapshot(kept, report, stop)
        with dump.open("rb") as source:
            writer.add_file(dump.name, source)
        for number, path in enumerate(paths, 1):
            if stop:
                stop.check()
            with (kept / "files" / path).open("rb") as source:
                writer.add_file(f"files/{path}", source)
            report("Writing files", number, len(paths))
        size = dump.stat().st_size
        writer.finish({"database": connection.vendor, "taken_at": timezone.now().isoformat()})
    with Reader(target, FORMAT) as written:
        written.verify(report, stop)
    return Backup(len(paths), size)


def restore(archive: Path, *, report: Report = no_report) -> Backup:
    """Puts a backup in the place of this gateway's database and files, which must be empty, while no server runs.

    Errors: `InvalidInput` naming what is wrong with the backup, `Conflict`.
    """
    with Reader(archive, FORMAT) as source:
        vendor = source.manifest.get("database")
        if vendor != connection.vendor:
            raise InvalidInput(f"This is a backup of {vendor}; the gateway has {connection.vendor}. Use export_memory.")
        source.verify(report)
        _require_empty()
        names = [name for name in source.files if name.startswith("files/")]
        _require_empty_storage({name.removeprefix("files/") for name in names})
        # A restore that is killed leaves a folder without an id, which it or the next start can bind.
        storage_binding.forget_storage_id()
        storage.require_free(sum(source.files[name]["size"] for name in names))
        for number, name in enumerate(names, 1):
            with source.open(name) as file:
                files.put(name.removeprefix("files/"), file)
            report("Restoring files", number, len(names))
        with source.open(_DUMPS[vendor]) as dump:
            _load(dump)
        size = int(source.files[_DUMPS[vendor]]["size"])
    call_command("migrate", verbosity=0)
    storage_binding.bind()
    return Backup(len(names), size)


def _snapshot(folder: Path, report: Report, stop: Stop | None) -> tuple[Path, list[str]]:
    """The database of one moment, and every file that it speaks of, kept in the folder.

    Files are linked before that moment, so that one that is deleted meanwhile is there all the same; and again right
    after it, for those that came meanwhile. One that came and went in between asks for another try.
    """
    dump = folder / _DUMPS[connection.vendor]
    for tries_left in reversed(range(_TRIES)):
        before = _spoken_of()
        _keep_files(folder / "files")
        with _moment() as moment:
            _keep_files(folder / "files")
            missing = {path for path in moment.spoken_of if not (folder / "files" / path).exists()}
            # What was spoken of and missing before is no fault of this moment: the doctor says so.
            if missing <= before or not tries_left:
                moment.write(dump, report, stop)
                break
    kept = sorted(path.relative_to(folder / "files").as_posix() for path in files.on_disk(folder / "files"))
    return dump, kept


@contextlib.contextmanager
def _moment() -> Iterator[_Moment]:
    """The database as it is now, whatever others write from now on."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")  # a reader's: writers do not wait
            try:
                yield _Moment(_spoken_of(), _copy)
            finally:
                cursor.execute("ROLLBACK")
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT pg_export_snapshot()")
        (snapshot,) = cursor.fetchone()
        yield _Moment(_spoken_of(), partial(_dump, snapshot))


def _spoken_of() -> set[str]:
    return {path for user in MemoryUser.objects.iterator() for path in files.of_rows(user)}


def _keep_files(folder: Path) -> None:
    for user_pk in MemoryUser.objects.values_list("pk", flat=True):
        for path in files.on_disk_of(user_pk):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                with contextlib.suppress(FileNotFoundError):
                    _link_or_copy(files.locate(path), place)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # another file system
        shutil.copyfile(source, target, follow_symlinks=False)


def _dump(snapshot: str, target: Path, _report: Report, _stop: Stop | None) -> None:
    _run_postgresql("pg_dump", "--format=custom", "--no-owner", f"--snapshot={snapshot}", f"--file={target}")


def _copy(target: Path, report: Report, stop: Stop | None) -> None:
    def progress(_status: int, remaining: int, total: int) -> None:
        report("Copying the database", total - remaining, total)
        if stop:
            stop.check()

    try:
        with _sqlite(target) as copy:
            connection.connection.backup(copy, pages=_PAGES_AT_ONCE, progress=progress)
            copy.execute("PRAGMA journal_mode=DELETE")
            (said,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
            raise
        raise NoSpace(
            f"There is no space for a copy of the database in {target.parent}: nothing was written."
        ) from None
    if said != "ok":
        raise InvalidInput(f"The database is damaged, so its copy is too: {said}")


@contextlib.contextmanager
def _sqlite(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}", uri=True, timeout=60)) as opened:
        yield opened


def _require_empty() -> None:
    """Errors: `Conflict`."""
    now = timezone.now()
    alive = Lease.objects.filter(expires_at__gt=now).values_list("holder", flat=True)
    if any(not is_dead(holder) for holder in alive):
        raise Conflict("A server works on this database: stop it first.")
    if MemoryUser.objects.exists():
        raise Conflict("This database has users: restore into an empty one (`manage.py migrate` makes it).")


def _require_empty_storage(archived: set[str]) -> None:
    """A restore that was killed may have left some of its files. Raises: `Conflict`."""
    theirs = storage_binding.storage_id()
    stored = {f"{folder.user_pk}/{folder.path_below_user}" for folder in storage.stored_folders()}
    is_foreign = theirs is not None and theirs != storage_binding.database_id()
    if is_foreign or stored - {path.rpartition("/")[0] for path in archived}:
        raise Conflict(
            f"The storage folder {storage.root()} is in use: set MEMORY_GATEWAY_STORAGE_DIR to an empty folder."
        )


def _load(dump: IO[bytes]) -> None:
    if connection.vendor == "sqlite":
        database = Path(str(connection.settings_dict["NAME"]))
        _put_in_place(dump, database.with_name(f".{database.name}.restoring"), database)
    else:
        descriptor, path = storage.create_temporary()
        try:
            with os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(dump, target)
            connections.close_all()
            _run_postgresql("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(path))
        finally:
            path.unlink(missing_ok=True)
    connections.close_all()


def _put_in_place(dump: IO[bytes], copy: Path, database: Path) -> None:
    """By way of a copy under one name: what a kill leaves of it the next restore writes over."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with storage.full_disk_is_no_space(), os.fdopen(os.open(copy, flags, 0o600), "wb") as target:
            shutil.copyfileobj(dump, target)
            target.flush()
            os.fsync(target.fileno())
        connections.close_all()
        for left in (database.with_name(f"{database.name}-wal"), database.with_name(f"{database.name}-shm")):
            left.unlink(missing_ok=True)
        copy.rename(database)
    finally:
        copy.unlink(missing_ok=True)


def _run_postgresql(tool: str, *arguments: str) -> None:
    """The password goes by the environment, where no other account sees it."""
    found = shutil.which(tool)
    if found is None:
        raise NotFound(f"{tool} is not installed: install PostgreSQL's client, or use `manage.py export_memory --all`.")
    told = connection.settings_dict
    names = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    env = {name: str(told[key]) for name, key in names.items() if told[key]}
    database = ["--dbname", str(told["NAME"])] if tool == "pg_restore" else []
    done = subprocess.run(  # noqa: S603  our own arguments
        [found, *database, *arguments], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Conflict(f"{tool} failed: {done.stderr.strip()[-500:]}")
