"""Check all parts of a gateway, and repair some problems."""

import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.core import checks
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from accounts import audit_chain
from accounts.models import AuditEvent, MemoryUser
from core.messages import MANAGE
from core.persistence import database_errors
from core.persistence.files import old_temporaries, root, stored_files
from engines.registry import get_engine
from operations import erase, files, ledger, secret_rotation
from operations.cleanup import compaction, orphans, purge
from operations.commands import Report, no_report
from operations.external import delivery_retry
from remote import outbox, sources
from resources import quarantine, storage
from resources import queries as resources
from resources.models import Resource
from resources.services import storage_binding
from store import derived
from store.cover import is_attached
from store.models import Memory, State
from store.types import Owner

Status = Literal["ok", "warning", "problem", "fixed"]
_WAL_RESET_BUG = (3, 51, 3)
_MAX_WAIT_MINUTES = 15
_ENGINE_SECONDS = 3.0
_CLOCK_SECONDS = 5.0
_SHOWN = 10
_FUTURE = float("inf")


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. A problem needs a repair, a warning does not."""

    check: str
    status: Status
    text: str


@dataclass(frozen=True, slots=True)
class Doctor:
    """The options of an examination.

    `fix` repairs the problems that can be repaired, of files only those older than `min_age`. `any_number` moves files
    without a row even if they are very many.
    """

    fix: bool = False
    min_age: timedelta = orphans.MIN_AGE
    compact: bool = False
    any_number: bool = False

    def examine(self, report: Report = no_report) -> list[Finding]:
        """Run all checks. A check that fails does not prevent the others."""
        findings = []
        for number, check in enumerate(CHECKS, 1):
            name = check.__name__.removeprefix("_").replace("_", " ")
            try:
                findings += [Finding(name, status, text) for status, text in check(self)]
            except Exception as error:  # noqa: BLE001  any failure of a check is a finding
                refusal = database_errors.explain(error)
                text = refusal.detail if refusal else f"The check failed: {error}"
                findings.append(Finding(name, "problem", text))
            report("Running checks", number, len(CHECKS))
        return findings


_Found = Iterator[tuple[Status, str]]


def _settings(_doctor: Doctor) -> _Found:
    """Run the system checks of Django and of the gateway, and look for values of former secrets."""
    messages = [item for item in checks.run_checks() if not item.is_silenced() and item.level >= checks.WARNING]
    for item in messages:
        yield ("problem" if item.level >= checks.ERROR else "warning"), f"{item.id}: {item.msg}"
    if not messages:
        yield "ok", f"The settings of the {settings.MEMORY_GATEWAY_PROFILE} profile are valid."
    yield from _secrets()


def _secrets() -> _Found:
    """Count what only a former secret, or none, can decrypt."""
    left = secret_rotation.left()
    if left.former:
        yield "warning", f"{left.former:,} values are encrypted with a former secret. Run `{MANAGE} rotate_secret`."
    if left.undecryptable:
        text = (
            f"{left.undecryptable:,} values cannot be decrypted. Add their secret to "
            "MEMORY_GATEWAY_SECRET_KEY_FALLBACKS, or rotate the API keys and webhook secrets."
        )
        yield "warning", text


def _database(doctor: Doctor) -> _Found:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        yield "problem", f"There are unapplied migrations. Run `{MANAGE} migrate`."
    if connection.vendor == "sqlite":
        yield from _sqlite(doctor)
    else:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            yield "ok", f"PostgreSQL {cursor.fetchone()[0]} is available."


def _sqlite(doctor: Doctor) -> _Found:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < _WAL_RESET_BUG:
        bug = f"SQLite {version} can, very rarely, damage a database that several processes write (fixed in 3.51.3)"
        yield "warning", f"{bug}. Run one process, or use PostgreSQL."
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check(5)")
        found = "; ".join(row[0] for row in cursor.fetchall())
        cursor.execute("PRAGMA foreign_key_check")
        broken = len(cursor.fetchall())
    if found != "ok":
        database_errors.note_damage()
        yield "problem", f"{database_errors.DAMAGED} Details: {' '.join(found.split())[:500]}"
    elif broken:
        yield "problem", f"{broken} rows reference rows that do not exist. Restore a backup."
    else:
        yield "ok", f"SQLite {version}: the integrity check passed."
    if doctor.fix and doctor.compact:
        residue = compaction.compact(however_large=True)
        yield ("warning", residue[0]) if residue else ("fixed", "The database file was rewritten.")


def _index(doctor: Doctor) -> _Found:
    """Compare the derived stores with the memories: the totals, and all of some users by chance."""
    owners, is_right = derived.sample(), True
    for store in derived.STORES:
        wrong = _wrong(store, owners)
        if not wrong:
            continue
        is_right = False
        if doctor.fix:
            yield "fixed", f"{wrong} They were made again from {sum(store.rebuild(None)):,} rows."
        else:
            yield "problem", f"{wrong} Run `{MANAGE} doctor --fix`, or `{MANAGE} rebuild {store.name}`."
    if not is_right:
        return
    indexed = f"The keyword index contains {Memory.objects.filter(is_indexed=True).count():,} memories."
    if not (pending := derived.pending_count()):
        yield "ok", indexed
    elif doctor.fix:
        yield "fixed", f"{indexed} {sum(derived.fill()):,} were added."
    else:
        yield "warning", f"{indexed} The server or `--fix` adds {pending:,} more."


def _wrong(store: derived.Derived, owners: Sequence[Owner]) -> str:
    """Return a sentence that says what is wrong with a store, empty if nothing is."""
    if store.outdated():
        return f"The {store.name} were written by another version."
    # What another process writes between two statements looks like a fault; a fault is found again.
    if list(store.differences(owners)) and (found := list(store.differences(owners))):
        return f"The {store.name} do not match the memories: {', '.join(found)}."
    return ""


def _decisions(doctor: Doctor) -> _Found:
    """Compare the states of memories, sessions and resources with the open decisions."""
    found = list(islice(ledger.differences(), _SHOWN))
    if not found:
        yield "ok", "Everything is shown or hidden as the open decisions say."
    elif doctor.fix:
        ledger.repair()
        yield "fixed", "Rows are shown or hidden as the open decisions say again."
    else:
        yield "problem", f"{'; '.join(found)}. Run `{MANAGE} doctor --fix`."


def _files(doctor: Doctor) -> _Found:
    """Find rows without a file, and files without a row."""
    missing = []
    for user in MemoryUser.objects.all():
        missing += sorted(set(files.of_rows(user)) - set(files.on_disk_of(user.pk)))
    if missing:
        yield "problem", f"{len(missing):,} files are missing: {', '.join(missing[:_SHOWN])}."
    before = time.time() - doctor.min_age.total_seconds()
    partial, found = old_temporaries(before), orphans.find(before)
    young = len(old_temporaries(_FUTURE)) - len(partial) + len(orphans.find(_FUTURE).folders) - len(found.folders)
    if young:
        yield "ok", f"{young:,} recent files have no row yet; they may still be uploading."
    if not partial and not found.folders:
        if not missing and not young:
            yield "ok", "Every file has a row, and every row has its file."
        return
    counts = f"{len(partial):,} uploads are incomplete and {len(found.folders):,} files have no row"
    objection = "" if doctor.any_number else found.objection()
    if doctor.fix:
        removed = storage.remove_old_temporaries(before) + orphans.remove_erased(found)
        if not objection:
            moved = orphans.move(found.to_move(), timezone.now())
            yield "fixed", f"{counts}: {removed:,} were removed, {moved:,} moved to quarantine."
    if objection:
        yield "problem", objection if doctor.fix else f"{counts}. {objection}"
    elif not doctor.fix:
        yield "warning", f"{counts}. The server or `--fix` removes the uploads and quarantines the files."


def _storage(_doctor: Doctor) -> _Found:
    """Check that the storage folder is this database's, and report the quarantine."""
    if problem := storage_binding.refusal():
        yield "problem", problem
    else:
        yield "ok", f"The storage {stored_files().place_name()} belongs to this database."
    counts: Counter[str] = Counter()
    for batch in quarantine.batches():
        counts[str(batch.user_pk)] += len(batch.folders())
    if counts:
        users = ", ".join(f"{user} {count:,}" for user, count in counts.most_common(_SHOWN))
        text = (
            f"{counts.total():,} files are in quarantine for {quarantine.KEPT.days} days, by user: {users}. "
            f"To restore a file, move its folder from {stored_files().place_name()}/{quarantine.FOLDER} to the user's "
            "folder."
        )
        yield "warning", text


def _erasures(doctor: Doctor) -> _Found:
    unfinished = erase.unfinished(begun_before=timezone.now() - timedelta(minutes=10))
    if not unfinished:
        yield "ok", "There are no unfinished erasures."
    elif doctor.fix:
        for user_pk in unfinished:
            erase.finish(user_pk)
        yield "fixed", f"{len(unfinished)} unfinished erasures were finished."
    else:
        yield "problem", f"{len(unfinished)} erasures were interrupted. The server or `--fix` finishes them."


def _engine(_doctor: Doctor) -> _Found:
    engine = get_engine()
    health = engine.health(_ENGINE_SECONDS)
    where = f" at {health.base_url}" if health.base_url else ""
    if health.status == "ok":
        yield "ok", f"The {engine.label} engine{where} is available."
    else:
        yield "problem", f"The {engine.label} engine{where} is unavailable: {health.error}"


def _deliveries(_doctor: Doctor) -> _Found:
    """Report deliveries that are no longer retried and wait for an operator."""
    files_failed = resources.waiting_for_operator().count()
    unconfirmed = outbox.count_given_up(timezone.now() - delivery_retry.RETRY_PERIOD)
    if files_failed:
        yield "warning", f"{files_failed:,} files failed and are no longer retried. Run `{MANAGE} ingest --failed`."
    if unconfirmed:
        yield (
            "warning",
            f"{unconfirmed:,} messages have been unconfirmed for seven days. Run `{MANAGE} ingest --failed`.",
        )
    backlog = outbox.backlog()
    minutes = backlog.age_seconds(timezone.now()) // 60
    if is_attached() and minutes >= _MAX_WAIT_MINUTES:
        yield "warning", f"{backlog.waiting:,} messages wait for the remote, the oldest for {minutes:,} minutes."
    if backlog.refused:
        yield "warning", f"The remote refused {backlog.refused:,} messages, which are kept here only."
    if not_linked := sources.not_linked().count():
        yield "warning", f"{not_linked:,} sessions of an older version are being linked to what a remote derived."
    for base_url in outbox.other_remotes():
        yield "warning", f"{base_url} still holds data that was sent to it."
    if not files_failed and not unconfirmed:
        yield "ok", "No files or messages need attention."


def _readings(_doctor: Doctor) -> _Found:
    """Count the files that were read in part."""
    live = Resource.objects.filter(state=State.LIVE)
    if partial := live.filter(resources.READ_IN_PART).count():
        text = f"{partial:,} files were read in part. The panel lists them, with what is missing, under Resources."
        yield "warning", text
    else:
        yield "ok", "No file is known to have been read in part."


def _trail(_doctor: Doctor) -> _Found:
    """Compare the audit trail with its chain of digests."""
    found = audit_chain.verify()
    if found.problems:
        more = len(found.problems) - _SHOWN
        text = "; ".join(found.problems[:_SHOWN]) + (f"; and {more:,} more" if more > 0 else "")
        yield "problem", f"The audit trail was changed outside the gateway: {text}. Restore it from a backup."
        return
    text = f"{found.events:,} audit events in {found.batches:,} batches are as they were written"
    left = f", {found.released:,} of them removed by erasures and retention" if found.released else ""
    yield "ok", f"{text}{left}. Last root: {found.root or 'none'}."


def _clock(_doctor: Doctor) -> _Found:
    """Compare the clock with that of the database and with the last audit event."""
    now = timezone.now()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            database_time: datetime = cursor.fetchone()[0]
        if abs((database_time - now).total_seconds()) > _CLOCK_SECONDS:
            yield "warning", f"The clock of this machine shows {now}, that of the database {database_time}."
    last = AuditEvent.objects.order_by("-at").values_list("at", flat=True).first()
    if last is not None and last > now + timedelta(minutes=5):
        yield "problem", f"The clock went back: the last audit event is from {last}, but it is {now}."
    elif until := purge.purges_paused_until(now):
        yield "warning", f"The clock jumped, or the gateway was stopped for days. Nothing is purged before {until}."
    else:
        yield "ok", f"The clock shows {now:%Y-%m-%d %H:%M:%S} UTC."


def _disk(_doctor: Doctor) -> _Found:
    places = (root(), Path(settings.MEMORY_GATEWAY_DB_PATH).parent)
    for folder in {next(path for path in (place, *place.parents) if path.exists()) for place in places}:
        free = shutil.disk_usage(folder).free
        is_low = free < max(settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES, 1)
        yield ("problem" if is_low else "ok"), f"{free // 2**20:,} MiB are free in {folder}."


CHECKS: tuple[Callable[[Doctor], _Found], ...] = (
    _settings,
    _database,
    _index,
    _decisions,
    _files,
    _storage,
    _erasures,
    _engine,
    _deliveries,
    _readings,
    _trail,
    _clock,
    _disk,
)


def summary(findings: list[Finding]) -> dict[str, Any]:
    return {"ok": is_healthy(findings), "findings": [asdict(finding) for finding in findings]}


def is_healthy(findings: list[Finding]) -> bool:
    return all(finding.status != "problem" for finding in findings)
