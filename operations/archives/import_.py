"""Import an archive of `export`: check it completely, then import user by user."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from textwrap import shorten
from typing import Literal, NamedTuple, cast
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from accounts.audit import Actor, record
from accounts.controls import FormerControls, Paused, require_not_paused
from accounts.models import AuditSubject, MemoryUser, UserKey
from accounts.services import require_no_alias
from core.errors import Conflict, FieldError, InvalidInput
from core.ids import check_user_id
from core.localization import localized
from core.persistence.file_keys import FileKey, file_key, is_key
from core.persistence.files import require_free, stored_files
from operations import erase, files, tables
from operations.archives import deletions, old_archives
from operations.archives.archive import VERSION, Reader
from operations.archives.deletions import Deletions
from operations.archives.export import FORMAT
from operations.archives.refused import NeverKept
from operations.archives.repairs import storable_row
from operations.archives.serialization import Loader, fields_of
from operations.cleanup import incognito, purge
from operations.commands import Report, no_report
from operations.tables import (
    AUDIT,
    CONTROLS,
    EXTERNAL_IDS,
    IMPORTED,
    KEYS,
    MEMORIES,
    OUTBOX,
    PORTABLE,
    RESENDS,
    USER,
    Row,
    Table,
)
from store import writes
from store.models import Memory, State
from store.types import Owner

OnConflict = Literal["skip", "replace", "fail"]
_MAX_NAMED_USERS = 100
_BATCH = 500
_NAMED_CHANGES = 5
_REPAIR_CHARS = 300
MAX_NAMED_REPAIRS = 100
_USER_KEY = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LINES = re.compile(rf"users/({_USER_KEY})/({'|'.join(table.name for table in PORTABLE)})\.jsonl")
_FILE = re.compile(rf"users/({_USER_KEY})/files/(.+)")


@dataclass(slots=True)
class Imported:
    """The ids of imported users and of skipped ones, and the number of imported rows and files.

    `refused` are the reasons by the id of each user who was not imported. `repairs` name the rows that were made
    storable, by file and line: the first of them, `repaired` in all. `never_kept` is the number of memories left out.
    """

    users: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    repaired: int = 0
    repairs: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    files: int = 0
    never_kept: int = 0


@dataclass(frozen=True, slots=True)
class _ArchivedUser:
    user: MemoryUser
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"users/{self.user.pk}"


@dataclass(frozen=True, slots=True)
class _Replaced:
    keys: list[UserKey] = field(default_factory=list)
    files: set[FileKey] = field(default_factory=set)
    deletions: Deletions | None = None
    controls: FormerControls | None = None
    never_kept: NeverKept | None = None


def import_archive(
    path: Path,
    *,
    on_conflict: OnConflict = "fail",
    even_erased: bool = False,
    key: bytes | None = None,
    actor: Actor,
    report: Report = no_report,
) -> Imported:
    """Import the users of an archive.

    An existing user is kept (`skip`), replaced (`replace`: keys stay unless the archive has some, and later deletions
    are repeated), or prevents the import (`fail`). An erased user is left out (`skip`) or prevents the import, unless
    `even_erased`. After a stop between two users, `skip` continues.

    A memory that cannot be stored is repaired; a session, resource or decision refuses its user. Raises:
    `InvalidInput` for a damaged archive and if all users are refused, `Conflict`, `NotFound`, `NoSpace`, `Stopped`.
    """
    with Reader(path, FORMAT, oldest=1, key=key) as archive:
        archived = _archived_users(archive)
        archive.verify(report)
        done = Imported()
        whole = [one for one in archived if _is_importable(archive, one, done)]
        skipped = _skipped(whole, on_conflict, even_erased=even_erased)
        wanted = [one for one in whole if one.user.user_id not in skipped]
        require_free(sum(archive.files[f"{one.folder}/files/{name}"]["size"] for one in wanted for name in one.files))
        done.skipped = sorted(skipped)
        for number, one in enumerate(wanted, 1):
            report("Importing users", number, len(wanted))
            try:
                _import_user(archive, one, actor, done)
            except (InvalidInput, Conflict, Paused) as error:
                done.refused[one.user.user_id] = error.detail
    if done.refused and not done.users and not done.skipped:
        raise InvalidInput(" ".join([*done.refused.values()][:_MAX_NAMED_USERS]))
    detail = {
        "count": len(done.users),
        "skipped": len(done.skipped),
        "refused": [*done.refused][:_MAX_NAMED_USERS],
        "repaired": done.repaired,
        "never_kept": done.never_kept,
    }
    record(actor, IMPORTED, path.name, users=done.users, detail=detail)
    return done


def _archived_users(archive: Reader) -> list[_ArchivedUser]:
    """Return the users of the archive, by its manifest. Raises: `InvalidInput`."""
    users = archive.manifest.get("users")
    if not isinstance(users, dict):
        raise InvalidInput("The manifest lists no users.")
    stored: dict[str, list[str]] = {key: [] for key in users}
    for name in archive.files:
        lines, file = _LINES.fullmatch(name), _FILE.fullmatch(name)
        found = lines or file
        if found is None or found[1] not in users:
            raise InvalidInput(f"The archive contains {name}, which belongs to none of its users.")
        if file:
            if not is_key(f"{file[1]}/{file[2]}"):
                raise InvalidInput(f"The archive contains {name}, which is not a stored file.")
            stored[file[1]].append(file[2])
    archived = []
    for key, user_id in users.items():
        left_out = {KEYS, RESENDS, EXTERNAL_IDS, *CONTROLS}
        if archive.manifest["version"] < old_archives.WITH_OUTBOX:
            left_out.add(OUTBOX)
        names = [f"users/{key}/{table.name}.jsonl" for table in PORTABLE if table not in left_out]
        if missing := [name for name in names if name not in archive.files]:
            raise InvalidInput(f"The archive lacks {', '.join(missing)}.")
        try:
            user = MemoryUser(pk=UUID(key), user_id=check_user_id(user_id))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"The manifest contains an invalid user {user_id!r}: {error}.") from None
        archived.append(_ArchivedUser(user, tuple(sorted(stored[key]))))
    return archived


def _is_importable(archive: Reader, one: _ArchivedUser, done: Imported) -> bool:
    """Check the rows of a user; add their repairs to `done`, or the reason why the user cannot be imported."""
    repairs: list[str] = []
    try:
        _check(archive, one, repairs)
    except InvalidInput as error:
        done.refused[one.user.user_id] = error.detail
        return False
    done.repaired += len(repairs)
    done.repairs += repairs[: MAX_NAMED_REPAIRS - len(done.repairs)]
    return True


def _check(archive: Reader, one: _ArchivedUser, repairs: list[str]) -> None:
    """Read all rows once without saving any; add what has to be repaired.

    Raises: `InvalidInput` naming file and line.
    """
    loader = _loader(archive, one)
    users = [(line.row.pk, cast("MemoryUser", line.row).user_id) for line in _rows(archive, one, USER, loader)]
    if users != [(one.user.pk, one.user.user_id)]:
        raise InvalidInput(f"{one.folder}/user.jsonl does not contain the user that the manifest lists.")
    matches = deletions.Matches()
    for table in PORTABLE[1:]:
        for line in _rows(archive, one, table, loader):
            with _naming(line.place):
                matches.check(line.row, line.data)
            if line.changes:
                repairs.append(f"{line.place}: {_said(line.changes)}")


def _loader(archive: Reader, one: _ArchivedUser) -> Loader:
    version = archive.manifest["version"]
    return Loader(one.user, old_archives.Converter(one.user.pk, version) if version < VERSION else None)


def _said(changes: list[FieldError]) -> str:
    words = "; ".join(f"{change.field}: {localized(change.message)}" for change in changes[:_NAMED_CHANGES])
    return shorten(words, _REPAIR_CHARS, placeholder="…")


def _skipped(archived: Sequence[_ArchivedUser], on_conflict: OnConflict, *, even_erased: bool) -> set[str]:
    """Return the ids of users to leave out: erased ones and existing ones. Raises: `Conflict`."""
    pks = [one.user.pk for one in archived]
    gone = set() if even_erased else erase.erased(pks)
    erased = sorted(one.user.user_id for one in archived if one.user.pk in gone)
    if erased and on_conflict != "skip":
        raise Conflict(
            f"{len(erased)} users of the archive were erased here: {', '.join(erased[:20])}. No user was imported. "
            "Skip them with --on-conflict skip, or import them with --even-erased."
        )
    users = MemoryUser.objects.filter(user_id__in=[one.user.user_id for one in archived])
    here = sorted(users.values_list("user_id", flat=True))
    taken = dict(MemoryUser.objects.filter(pk__in=pks).values_list("pk", "user_id"))
    for one in archived:
        if taken.get(one.user.pk, one.user.user_id) != one.user.user_id and one.user.pk not in gone:
            raise Conflict(
                f"The UUID of {one.user.user_id} belongs to {taken[one.user.pk]} here. No user was imported."
            )
    if here and on_conflict == "fail":
        raise Conflict(
            f"{len(here)} users of the archive already exist: {', '.join(here[:20])}. No user was imported. "
            "Skip or replace them with --on-conflict."
        )
    return {*erased, *here} if on_conflict == "skip" else set()


def _import_user(archive: Reader, one: _ArchivedUser, actor: Actor, done: Imported) -> None:
    """Import one user.

    Files come first, because the worker cleans up a file without a row, but cannot repair a row without a file.
    """
    existing = set(files.on_disk_of(one.user.pk))
    placed = []
    try:
        for name in one.files:
            key = file_key(f"{one.user.pk}/{name}")
            with archive.open(f"{one.folder}/files/{name}") as source:
                files.put(key, source)
            placed.append(key)
        replaced = _save_all(archive, one, actor, done)
    except BaseException:
        for key in set(placed) - existing:
            stored_files().remove(key)
        raise
    for key in replaced.files - set(placed):
        stored_files().remove(key)
    # If interrupted before this, the repeated deletions are in the trash for the next purge.
    if replaced.deletions and replaced.deletions.purged:
        purge.purge_memory(replaced.deletions.purged, user_pk=one.user.pk, actor=actor)
    incognito.purge_all(one.user.pk)
    done.users.append(one.user.user_id)
    done.files += len(placed)


def _save_all(archive: Reader, one: _ArchivedUser, actor: Actor, done: Imported) -> _Replaced:
    """Save all rows in one transaction; return the data kept from the replaced user."""
    counts: Counter[str] = Counter()
    try:
        with transaction.atomic():
            replaced = _remove_existing(one)
            loader = _loader(archive, one)
            for table in PORTABLE:
                counts[table.name] = _save(archive, one, table, loader)
            if f"{one.folder}/{KEYS.name}.jsonl" not in archive.files:
                for key in replaced.keys:
                    key.user = one.user
                    key.save_base(raw=True, force_insert=True)
            if replaced.controls:
                replaced.controls.add_to(one.user)
            if replaced.never_kept:
                counts["never_kept"] = replaced.never_kept.take_out(one.user)
            deletions.hold(one.user, loader.old_rows.reasons if loader.old_rows else {})
            if replaced.deletions:
                replaced.deletions.repeat(one.user, actor)
    except IntegrityError as error:
        raise Conflict(
            f"{one.user.user_id} was not imported: one of the user's rows already exists ({_first_line(error)})."
        ) from error
    except DataError as error:
        raise InvalidInput(
            f"{one.user.user_id} was not imported: the database rejected a row ({_first_line(error)})."
        ) from error
    done.never_kept += counts.pop("never_kept", 0)
    done.rows.update(counts)
    return replaced


def _first_line(error: Exception) -> str:
    """Return the message without PostgreSQL's details, which quote the row."""
    return str(error).partition("\n")[0]


def _remove_existing(one: _ArchivedUser) -> _Replaced:
    """Remove the existing user with the same id; return the data to keep.

    Raises: `Paused`, and as `require_no_alias`.
    """
    require_no_alias(one.user.user_id, one.user.pk)
    existing = MemoryUser.objects.select_for_update().filter(user_id=one.user.user_id).first()
    if existing is None:
        return _Replaced()
    require_not_paused(existing.pk)
    replaced = _Replaced(
        list(UserKey.objects.filter(user=existing)),
        set(files.on_disk_of(existing.pk)),
        Deletions.of(existing) if existing.pk == one.user.pk else None,  # else deletions of an unrelated user
        FormerControls.of(existing),
        NeverKept.of(existing),
    )
    tables.remove_rows(existing)
    tables.remove_user(existing)
    return replaced


def _save(archive: Reader, one: _ArchivedUser, table: Table, loader: Loader) -> int:
    rows, count = _rows(archive, one, table, loader), 0
    while batch := list(islice(rows, _BATCH)):
        for line in batch:
            with _naming(line.place):
                loader.resolve(table, line.row, line.data)
        if table is MEMORIES:
            _save_memories(one.user, [cast("Memory", line.row) for line in batch])
        else:
            for line in batch:
                line.row.save_base(raw=True, force_insert=True)  # raw: keeps the times of the row
        if table is AUDIT:
            subjects = [AuditSubject(event_id=line.row.pk, user_id=one.user.user_id) for line in batch]
            AuditSubject.objects.bulk_create(subjects)
        count += len(batch)
    return count


def _save_memories(user: MemoryUser, memories: Iterable[Memory]) -> None:
    """Save memories in their order, and index those that are not purged."""

    def group_key(memory: Memory) -> tuple[bool, str, str]:
        return memory.state == State.PURGED, memory.app_id, memory.project_id

    for (is_purged, app_id, project_id), group in groupby(memories, key=group_key):
        rows = list(group)
        if not is_purged:
            owner = Owner(user.pk, user.user_id, app_id, project_id)
            writes.insert(owner, rows, is_new=False)
        else:
            writes.insert_unindexed(rows)


class _Line(NamedTuple):
    """A line of a file: the unsaved row, its data, and what was changed so that it can be stored."""

    place: str
    row: Model
    data: Row
    changes: list[FieldError]


def _rows(archive: Reader, one: _ArchivedUser, table: Table, loader: Loader) -> Iterator[_Line]:
    """Yield the checked rows of a file. Raises: `InvalidInput` naming file and line."""
    old = loader.old_rows
    name = f"{one.folder}/{old.source_of(table.name) if old else table.name}.jsonl"
    if name not in archive.files:
        return
    for number, line in archive.lines(name, is_checked=not table.is_repaired):
        place = f"{name}, line {number}"
        with _naming(place):
            rows = old.rows(table.name, line) if old else [line]
        for data in rows:
            changes: list[FieldError] = []
            with _naming(place):
                if table.is_repaired and isinstance(data, dict):
                    data, changes = storable_row(fields_of(table), data)  # noqa: PLW2901
                row = loader.row(table, data)
            yield _Line(place, row, data, changes)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Begin the message of an `InvalidInput` with the file and line."""
    try:
        yield
    except InvalidInput as error:
        reason = " ".join(str(localized(error.detail)).split())  # values may have line ends
        raise InvalidInput(f"{place}: {reason}") from None
