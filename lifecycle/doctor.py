"""Looking a gateway over: is everything as it should be, and what can be put right?"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from accounts.models import AuditEvent, MemoryUser
from engine.embedded import rebuild
from engine.models import IndexStatistics, Memory
from engine.registry import get_engine
from lifecycle import compaction, erase, files, orphans
from lifecycle.commands import Report, no_report
from resources import storage
from resources.models import Resource

Status = Literal["ok", "warning", "problem", "fixed"]
_WAL_RESET_BUG = (3, 51, 3)
_ENGINE_SECONDS = 3.0
_CLOCK_SECONDS = 5.0
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found, in a sentence. A problem is for somebody to mend; a warning is worth knowing."""

    check: str
    status: Status
    text: str

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Doctor:
    """`fix` puts right what can be, of files only those that are older than `min_age`."""

    fix: bool = False
    min_age: timedelta = orphans.MIN_AGE
    compact: bool = False

    def examine(self, report: Report = no_report) -> list[Finding]:
        """All checks; one that fails does not keep the others from their turn."""
        findings = []
        for number, check in enumerate(CHECKS, 1):
            name = check.__name__.removeprefix("_").replace("_", " ")
            try:
                findings += [Finding(name, status, text) for status, text in check(self)]
            except Exception as error:  # noqa: BLE001  whatever it is, it is a finding
                findings.append(Finding(name, "problem", f"The check itself failed: {error}"))
            report("Examining", number, len(CHECKS))
        return findings


_Found = Iterator[tuple[Status, str]]


def _settings(_doctor: Doctor) -> _Found:
    """Django's own checks and ours."""
    said = [item for item in checks.run_checks() if not item.is_silenced() and item.level >= checks.WARNING]
    for item in said:
        yield ("problem" if item.level >= checks.ERROR else "warning"), f"{item.id}: {item.msg}"
    if not said:
        yield "ok", f"The settings of the {settings.MEMORY_GATEWAY_PROFILE} profile are in order."


def _database(doctor: Doctor) -> _Found:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield "problem", "Migrations are waiting: run `manage.py migrate`."
    if connection.vendor == "sqlite":
        yield from _sqlite(doctor)
    else:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            yield "ok", f"PostgreSQL {cursor.fetchone()[0]} answers."


def _sqlite(doctor: Doctor) -> _Found:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _WAL_RESET_BUG:
        yield (
            "warning",
            f"SQLite {version}: before 3.51.3 a rare fault can damage what several processes write.",
        )
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check(5)")
        said = [row[0] for row in cursor.fetchall()]
        cursor.execute("PRAGMA foreign_key_check")
        broken = len(cursor.fetchall())
    if said != ["ok"]:
        yield "problem", f"The database is damaged, restore a backup: {'; '.join(said)[:500]}"
    elif broken:
        yield "problem", f"{broken} rows refer to rows that are not there: restore a backup."
    else:
        yield "ok", f"SQLite {version}: the file is intact."
    if doctor.fix and doctor.compact:
        residue = compaction.compact(however_large=True)
        yield ("warning", residue[0]) if residue else ("fixed", "The database file was rewritten.")


def _index(doctor: Doctor) -> _Found:
    """The keyword index against the rows that it should hold."""
    if rebuild.is_needed():
        wrong = "The keyword index was built by another version."
    elif differences := _index_differences():
        wrong = f"The keyword index does not fit the memories: {differences}."
    elif owed := rebuild.owed():
        wrong = f"{owed:,} memories wait for their place in the keyword index."
    else:
        yield "ok", f"The keyword index holds {Memory.objects.filter(is_indexed=True).count():,} memories."
        return
    if not doctor.fix:
        yield "problem", f"{wrong} `manage.py doctor --fix` builds it anew."
        return
    rebuild.empty()
    yield "fixed", f"{wrong} It was built anew: {sum(rebuild.fill()):,} memories."


def _index_differences() -> str:
    indexed = set(Memory.objects.filter(is_indexed=True, token_count__gt=0).values_list("pk", flat=True))
    source = "engine_keyword_postings" if connection.vendor == "sqlite" else "engine_keywords"
    column = "doc" if connection.vendor == "sqlite" else "memory_id"
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("INSERT INTO engine_keywords (engine_keywords) VALUES ('integrity-check')")
        cursor.execute(f"SELECT DISTINCT {column} FROM {source}")
        held = {row[0] for row in cursor.fetchall()}
    empty = set(Memory.objects.filter(is_indexed=True, token_count=0).values_list("pk", flat=True))
    said = []
    if missing := len(indexed - held):
        said.append(f"{missing:,} memories are missing")
    if left := len(held - indexed - empty):
        said.append(f"{left:,} entries are left over")
    counted = sum(IndexStatistics.objects.values_list("documents", flat=True))
    if counted != len(indexed | empty):
        said.append(f"the statistics count {counted:,} of {len(indexed | empty):,}")
    return ", ".join(said)


def _files(doctor: Doctor) -> _Found:
    """Rows without their file, and files without a row."""
    missing, left = [], []
    for user in MemoryUser.objects.iterator():
        spoken_of = set(files.of_rows(user))
        on_disk = set(files.on_disk_of(user.pk))
        missing += sorted(spoken_of - on_disk)
        left += _left_over(user.pk, on_disk - spoken_of)
    left += _of_nobody()
    if missing:
        yield "problem", f"{len(missing):,} files are missing: {', '.join(missing[:_SHOWN])}."
    yield from _treat_left_over(doctor, left)
    if not missing and not left:
        yield "ok", "Every file has its row and every row its file."


def _left_over(user_pk: UUID, paths: set[str]) -> list[Path]:
    """Without those that are still to be removed or sent."""
    owed = Resource.objects.filter(user_id=user_pk, cleanup_owed=True).values_list("storage_path", flat=True)
    attached = orphans.attached(user_pk)
    rest = [path for path in paths - set(owed) if not (files.OF_MESSAGES in path and path.split("/")[2] in attached)]
    return [files.locate(path) for path in sorted(rest)]


def _of_nobody() -> list[Path]:
    """Files that arrived halfway, and those of users who are not here."""
    users = {str(key) for key in MemoryUser.objects.values_list("pk", flat=True)}
    root = storage.root()
    folders = [folder for folder in (root.iterdir() if root.is_dir() else ()) if folder.name not in users]
    return [path for folder in folders for path in files.on_disk(folder)]


def _treat_left_over(doctor: Doctor, left: list[Path]) -> _Found:
    before = time.time() - doctor.min_age.total_seconds()
    old = [path for path in left if path.lstat().st_mtime < before]
    if young := len(left) - len(old):
        yield "ok", f"{young:,} files have no row yet; they are young and may be arriving."
    if not old:
        return
    if not doctor.fix:
        yield "warning", f"{len(old):,} files have no row; the server or `--fix` removes them: {old[0]} …"
        return
    for path in old:
        path.unlink(missing_ok=True)
        files.remove_empty_folders(path.parent)
    yield "fixed", f"{len(old):,} files without a row were removed."


def _erasures(doctor: Doctor) -> _Found:
    waiting = erase.unfinished(begun_before=timezone.now() - timedelta(minutes=10))
    if not waiting:
        yield "ok", "No erasure is unfinished."
    elif doctor.fix:
        for user_pk in waiting:
            erase.finish(user_pk)
        yield "fixed", f"{len(waiting)} unfinished erasures were finished."
    else:
        yield "problem", f"{len(waiting)} erasures broke off: `--fix` or the server finishes them."


def _engine(_doctor: Doctor) -> _Found:
    engine = get_engine()
    health = engine.health(_ENGINE_SECONDS)
    where = f" at {health.base_url}" if health.base_url else ""
    if health.status == "ok":
        yield "ok", f"The {engine.name} engine{where} answers."
    else:
        yield "problem", f"The {engine.name} engine{where} does not answer: {health.error}"


def _clock(_doctor: Doctor) -> _Found:
    """Against the database's, and against what was written last."""
    now = timezone.now()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            theirs: datetime = cursor.fetchone()[0]
        if abs((theirs - now).total_seconds()) > _CLOCK_SECONDS:
            yield "warning", f"This machine's clock and the database's differ: {now} and {theirs}."
    last = AuditEvent.objects.order_by("-at").values_list("at", flat=True).first()
    if last is not None and last > now + timedelta(minutes=5):
        yield "problem", f"The clock went backwards: something was written at {last}, and it is {now}."
    else:
        yield "ok", f"The clock says {now:%Y-%m-%d %H:%M:%S} UTC."


def _disk(_doctor: Doctor) -> _Found:
    for folder in {_existing(storage.root()), _existing(Path(settings.MEMORY_GATEWAY_DB_PATH).parent)}:
        free = shutil.disk_usage(folder).free
        is_low = free < max(settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES, 1)
        yield ("problem" if is_low else "ok"), f"{free // 2**20:,} MiB are free at {folder}."


def _existing(folder: Path) -> Path:
    return folder if folder.exists() else _existing(folder.parent)


CHECKS: tuple[Callable[[Doctor], _Found], ...] = (
    _settings,
    _database,
    _index,
    _files,
    _erasures,
    _engine,
    _clock,
    _disk,
)


def summary(findings: list[Finding]) -> dict[str, Any]:
    return {"ok": is_healthy(findings), "findings": [finding.as_dict() for finding in findings]}


def is_healthy(findings: list[Finding]) -> bool:
    return all(finding.status != "problem" for finding in findings)
