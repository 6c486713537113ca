"""One archive of everything that is a user's, or all users': rows, files, decisions. See docs/lifecycle.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import NotFound
from operations import files
from operations import serialization as rows
from operations.archive import Writer
from operations.commands import Report, Stop, no_report
from operations.tables import KEYS, PORTABLE, SESSIONS, Row, Table
from store.external.engine_ids import unique_session_id
from store.models import Session

FORMAT = "memory-gateway-export"
MAX_NAMED_USERS = 100


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was written. `missing` are files that rows speak of and the storage has not."""

    users: tuple[str, ...]
    rows: Mapping[str, int]
    files: int
    missing: tuple[str, ...]


def export(
    user_pks: Sequence[UUID] | None,
    target: Path,
    *,
    with_keys: bool = False,
    actor: Actor,
    report: Report = no_report,
    stop: Stop | None = None,
) -> Manifest:
    """Writes the archive of some users, or of all. The gateway may go on working: of each user everything is of one
    moment. Errors: `NotFound` for a user or the folder, `Conflict` if `target` exists, `NoSpace`, `Stopped`.
    """
    users = _users(user_pks)
    counts: dict[str, int] = {}
    missing: list[str] = []
    with Writer(target, FORMAT) as writer:
        for number, user in enumerate(users, 1):
            if stop:
                stop.check()
            missing += _write_user(writer, user, _tables(with_keys=with_keys), counts)
            report("Exporting users", number, len(users))
        head = {"users": {str(user.pk): user.user_id for user in users}, "missing": missing}
        manifest = writer.finish(head)
    names = tuple(user.user_id for user in users)
    _record(actor, names, target)
    stored = sum("/files/" in name for name in manifest["files"])
    return Manifest(names, counts, stored, tuple(missing))


def _users(user_pks: Sequence[UUID] | None) -> list[MemoryUser]:
    users = MemoryUser.objects.order_by("user_id")
    if user_pks is None:
        return list(users)
    found = list(users.filter(pk__in=user_pks))
    if len(found) < len(set(user_pks)):
        raise NotFound("There is no such user.")
    return found


def _tables(*, with_keys: bool) -> list[Table]:
    return [table for table in PORTABLE if with_keys or table is not KEYS]


def _write_user(writer: Writer, user: MemoryUser, tables: Iterable[Table], counts: dict[str, int]) -> list[str]:
    """The files that were missing."""
    folder = f"users/{user.pk}"
    with _one_moment():
        stored = files.of_rows(user)
        for table in tables:
            count = writer.add_lines(f"{folder}/{table.name}.jsonl", _rows(table, user))
            counts[table.name] = counts.get(table.name, 0) + count
    missing = []
    for path in stored:
        try:
            with files.open_file(path) as source:
                writer.add_file(f"{folder}/files/{path.partition('/')[2]}", source)
        except FileNotFoundError:
            missing.append(path)
    return missing


def _rows(table: Table, user: MemoryUser) -> Iterator[Row]:
    if table is not SESSIONS:
        yield from rows.dumped(table, user)
        return
    shared = _held_by_others(user)
    for row in rows.dumped(table, user):
        if _scoped(row) in shared:
            row["engine_session_id"] = unique_session_id(row["session_id"], user.pk)
        yield row


def _held_by_others(user: MemoryUser) -> set[tuple[Any, ...]]:
    """Sessions whose engine id an older session of somebody else holds. Which row is older is lost on the way, so they
    leave with the id that they would get when they are next written to."""
    older = Session.objects.filter(
        engine_session_id=OuterRef("engine_session_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        pk__lt=OuterRef("pk"),
    ).exclude(user=user)
    shared = Session.objects.filter(Exists(older), user=user)
    return set(shared.values_list("app_id", "project_id", "session_id"))


def _scoped(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in SESSIONS.key)


@contextmanager
def _one_moment() -> Iterator[None]:
    """Whatever is read inside is of one moment; nobody who writes has to wait."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        with connection.cursor() as cursor:
            # Django's own transactions lock at once.
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")


def _record(actor: Actor, names: Sequence[str], target: Path) -> None:
    """Under no user: the trail of each is in the archive, and would differ with every export."""
    detail = {"users": list(names[:MAX_NAMED_USERS]), "count": len(names)}
    record(actor, "archive.export", subject_type="archive", subject_id=target.name, detail=detail)
