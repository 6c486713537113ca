"""Looking a gateway over: is everything as it should be, and what can be put right?"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from accounts.models import AuditEvent, MemoryUser
from engine import upstream_journal
from engine.embedded import rebuild
from engine.models import IndexStatistics, Memory
from engine.registry import get_engine
from lifecycle import compaction, erase, files, orphans, resending
from lifecycle.commands import Report, no_report
from resources import quarantine, storage
from resources.models import Resource
from resources.services import storage_binding

Status = Literal["ok", "warning", "problem", "fixed"]
_WAL_RESET_BUG = (3, 51, 3)
_ENGINE_SECONDS = 3.0
_CLOCK_SECONDS = 5.0
_SHOWN = 10
_EVER = float("inf")


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
    """`fix` puts right what can be, of files only those that are older than `min_age`. `any_number` moves files without
    a row however many they are."""

    fix: bool = False
    min_age: timedelta = orphans.MIN_AGE
    compact: bool = False
    any_number: bool = False

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
    missing = []
    for user in MemoryUser.objects.iterator():
        missing += sorted(set(files.of_rows(user)) - set(files.on_disk_of(user.pk)))
    if missing:
        yield "problem", f"{len(missing):,} files are missing: {', '.join(missing[:_SHOWN])}."
    before = time.time() - doctor.min_age.total_seconds()
    partial, found = storage.old_temporaries(before), orphans.find(before)
    young = len(storage.old_temporaries(_EVER)) - len(partial) + len(orphans.find(_EVER).folders) - len(found.folders)
    if young:
        yield "ok", f"{young:,} files have no row yet; they are young and may be arriving."
    if partial or found.folders:
        yield from _treat_left_over(doctor, len(partial), found, before)
    elif not missing and not young:
        yield "ok", "Every file has its row and every row its file."


def _treat_left_over(doctor: Doctor, partial: int, found: orphans.Orphans, before: float) -> _Found:
    said = f"{partial:,} uploads broke off and {len(found.folders):,} files have no row"
    objection = "" if doctor.any_number else found.objection()
    if not doctor.fix:
        yield (
            ("problem", f"{said}. {objection}")
            if objection
            else ("warning", f"{said}: the server or `--fix` removes the former and moves the latter into quarantine.")
        )
        return
    removed = storage.remove_old_temporaries(before) + orphans.remove_erased(found)
    if objection:
        yield "problem", objection
        return
    moved = orphans.move(found.to_move(), timezone.now())
    yield "fixed", f"{said}: {removed:,} were removed, {moved:,} moved into quarantine."


def _storage(_doctor: Doctor) -> _Found:
    """Whether the storage folder is this database's, and what lies in quarantine."""
    if problem := storage_binding.refusal():
        yield "problem", problem
    else:
        yield "ok", f"The storage folder {storage.root()} belongs to this database."
    counts: Counter[str] = Counter()
    for batch in quarantine.batches():
        counts[str(batch.user_pk)] += len(batch.folders())
    if counts:
        users = ", ".join(f"{user} {count:,}" for user, count in counts.most_common(_SHOWN))
        text = (
            f"{counts.total():,} files are in quarantine for {quarantine.KEPT.days} days, by user: {users}. "
            f"To put one back, move its folder from {storage.root() / quarantine.FOLDER} to the user's folder."
        )
        yield "warning", text


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


def _deliveries(_doctor: Doctor) -> _Found:
    """What is not retried any more and waits for an operator."""
    waiting = Resource.objects.filter(status=Resource.Status.FAILED, retry_at__isnull=True, deleted_at__isnull=True)
    files_failed = waiting.count()
    unconfirmed = upstream_journal.count_given_up(timezone.now() - resending.RETRIED_FOR)
    if files_failed:
        yield (
            "warning",
            f"{files_failed:,} files failed and are not retried: run `manage.py ingest --failed`.",
        )
    if unconfirmed:
        yield "warning", f"{unconfirmed:,} messages are unconfirmed for seven days: run `manage.py ingest --failed`."
    if not files_failed and not unconfirmed:
        yield "ok", "No file and no message waits for an operator."


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
    _storage,
    _erasures,
    _engine,
    _deliveries,
    _clock,
    _disk,
)


def summary(findings: list[Finding]) -> dict[str, Any]:
    return {"ok": is_healthy(findings), "findings": [finding.as_dict() for finding in findings]}


def is_healthy(findings: list[Finding]) -> bool:
    return all(finding.status != "problem" for finding in findings)
