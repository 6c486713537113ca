"""Write all data of some or all users into one archive: rows, files, decisions. See docs/operate/backup.md.

Of an incognito session the archive has its id alone, which the import closes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db.models import Exists, OuterRef

from accounts import expiry
from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import NotFound
from core.messages import Translatable as _
from core.persistence.file_keys import FileKey
from core.persistence.files import stored_files
from core.persistence.sql import consistent_read
from operations import files
from operations.archives import serialization as rows
from operations.archives.archive import Writer
from operations.archives.deletions import sessions_of_tombstones
from operations.commands import Report, no_report
from operations.tables import EXPORTED, KEYS, OF_INCOGNITO, PORTABLE, SESSIONS, Row, Table
from remote.engine_ids import unique_session_id
from store.models import Session

FORMAT = "memory-gateway-export"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of an archive. `missing` are files that rows refer to but the storage lacks."""

    users: tuple[str, ...]
    rows: Mapping[str, int]
    files: int
    missing: tuple[str, ...]


def export(
    user_pks: Sequence[UUID] | None,
    target: Path,
    *,
    with_keys: bool = False,
    key: bytes | None = None,
    actor: Actor,
    report: Report = no_report,
) -> Manifest:
    """Write the archive of some users, or of all, while the gateway runs, encrypted if there is a key.

    The rows of each user are one snapshot.

    Raises: `NotFound` for a user or the folder, `Conflict` if `target` exists, `NoSpace`, `Stopped`.
    """
    users = _users(user_pks)
    tables = [table for table in PORTABLE if with_keys or table is not KEYS]
    counts: Counter[str] = Counter()
    missing: list[str] = []
    with Writer(target, FORMAT, key) as writer:
        for number, user in enumerate(users, 1):
            report("Exporting users", number, len(users))
            missing += _write_user(writer, user, tables, counts)
        head = {"users": {str(user.pk): user.user_id for user in users}, "missing": missing}
        manifest = writer.finish(head)
    names = tuple(user.user_id for user in users)
    record(actor, EXPORTED, target.name, users=names, detail={"count": len(names)})
    stored = sum("/files/" in name for name in manifest["files"])
    return Manifest(names, counts, stored, tuple(missing))


def _users(user_pks: Sequence[UUID] | None) -> list[MemoryUser]:
    expiry.end_all_due()
    users = MemoryUser.objects.order_by("user_id")
    if user_pks is None:
        return list(users)
    found = list(users.filter(pk__in=user_pks))
    if len(found) < len(set(user_pks)):
        raise NotFound(_("There is no such user."))
    return found


def _write_user(writer: Writer, user: MemoryUser, tables: Iterable[Table], counts: Counter[str]) -> list[FileKey]:
    """Write one user's rows and files; return the missing files."""
    folder = f"users/{user.pk}"
    with consistent_read():
        stored = files.of_rows(user, left_out=OF_INCOGNITO)
        for table in tables:
            counts[table.name] += writer.add_lines(f"{folder}/{table.name}.jsonl", _rows(table, user))
    missing = []
    for path in stored:
        try:
            with stored_files().open_whole(path) as source:
                writer.add_file(f"{folder}/files/{path.partition('/')[2]}", source)
        except FileNotFoundError:
            missing.append(path)
    return missing


def _rows(table: Table, user: MemoryUser) -> Iterator[Row]:
    if table is not SESSIONS:
        yield from rows.dump_rows(table, user)
        return
    # An import cannot tell which session is older. So a session whose engine id belongs to an older session of another
    # user gets the unique id here that its next write would give it.
    older = Session.objects.filter(
        engine_session_id=OuterRef("engine_session_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        pk__lt=OuterRef("pk"),
    ).exclude(user=user)
    shared = set(Session.objects.filter(Exists(older), user=user).values_list(*SESSIONS.key))
    for row in rows.dump_rows(table, user):
        if tuple(row[name] for name in SESSIONS.key) in shared:
            row["engine_session_id"] = unique_session_id(row["session_id"], user.pk)
        yield row
    for session in sessions_of_tombstones(user):
        yield rows.dump_row(table, session)
