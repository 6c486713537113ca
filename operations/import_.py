"""Taking in an archive that `export` made: first all of it is checked, then one user after the other comes in whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Literal, cast
from uuid import UUID

from django.db import DataError, IntegrityError, transaction

from accounts.audit import Actor, record
from accounts.models import MemoryUser, UserKey
from core.errors import Conflict, InvalidInput
from core.ids import check_name
from engines.registry import get_engine
from operations import deletion_replay, erase, files, row_removal
from operations.archive import Reader
from operations.commands import Report, Stop, no_report
from operations.export import FORMAT, MAX_NAMED_USERS
from operations.serialization import Loader
from operations.storage_paths import BELOW_ROOT
from operations.tables import KEYS, MEMORIES, PORTABLE, USER, Row, Table
from resources.storage import require_free
from store import storage
from store.index import keyword
from store.models import Memory
from store.types import Owner

OnConflict = Literal["skip", "replace", "fail"]
_BATCH = 500
_USER_KEY = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LINES = re.compile(rf"users/({_USER_KEY})/({'|'.join(table.name for table in PORTABLE)})\.jsonl")
_FILE = re.compile(rf"users/({_USER_KEY})/files/(.+)")


@dataclass(slots=True)
class Imported:
    """The ids of the users that came in, of those that were there and stayed as they were, and how many rows came."""

    users: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    files: int = 0


@dataclass(frozen=True, slots=True)
class _Person:
    user: MemoryUser
    files: tuple[str, ...]

    @property
    def folder(self) -> str:
        return f"users/{self.user.pk}"


@dataclass(frozen=True, slots=True)
class _Replaced:
    keys: list[UserKey] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    deletions: deletion_replay.Deletions | None = None


def import_archive(
    path: Path,
    *,
    on_conflict: OnConflict = "fail",
    even_erased: bool = False,
    actor: Actor,
    report: Report = no_report,
    stop: Stop | None = None,
) -> Imported:
    """Takes in the users of an archive. Who is here already is left as they are (`skip`), gives way to the archive's
    but keeps their keys unless it brings some, and what they deleted since stays deleted (`replace`), or is a reason to
    take in nobody (`fail`). Who was erased here is left out (`skip`) or such a reason too, unless `even_erased`.

    A user comes in whole or not at all; stopped between two users, `skip` goes on. Errors: `InvalidInput` naming what
    is wrong with the archive, `Conflict`, `NotFound`, `NoSpace`, `Stopped`.
    """
    with Reader(path, FORMAT) as archive:
        people = _people(archive)
        archive.verify(report, stop)
        for person in people:
            _check(archive, person)
        skipped = [] if even_erased else _erased(people, on_conflict)
        people = [one for one in people if one.user.user_id not in skipped]
        wanted, here = _sorted_out(people, on_conflict)
        skipped = sorted([*skipped, *here])
        require_free(sum(archive.files[f"{one.folder}/files/{name}"]["size"] for one in wanted for name in one.files))
        done = Imported(skipped=skipped)
        for number, person in enumerate(wanted, 1):
            if stop:
                stop.check()
            _take_in(archive, person, actor, done)
            report("Importing users", number, len(wanted))
    _record(actor, done, path)
    return done


def _people(archive: Reader) -> list[_Person]:
    """Who is in the archive, by its manifest. Errors: `InvalidInput`."""
    told = archive.manifest.get("users")
    if not isinstance(told, dict):
        raise InvalidInput("The manifest names no users.")
    stored: dict[str, list[str]] = {key: [] for key in told}
    for name in archive.files:
        lines, file = _LINES.fullmatch(name), _FILE.fullmatch(name)
        found = lines or file
        if found is None or found[1] not in told:
            raise InvalidInput(f"The archive holds {name}, which belongs to none of its users.")
        if file:
            if not re.fullmatch(BELOW_ROOT, f"{file[1]}/{file[2]}"):
                raise InvalidInput(f"The archive holds {name}, which is no stored file.")
            stored[file[1]].append(file[2])
    return [_person(archive, key, user_id, stored[key]) for key, user_id in told.items()]


def _person(archive: Reader, key: str, user_id: Any, stored: Iterable[str]) -> _Person:
    if missing := [name for name in _names(key) if not archive.has(name)]:
        raise InvalidInput(f"The archive lacks {', '.join(missing)}.")
    try:
        user = MemoryUser(pk=UUID(key), user_id=check_name(user_id))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The manifest names a user {user_id!r}: {error}.") from None
    return _Person(user, tuple(sorted(stored)))


def _names(key: str) -> list[str]:
    return [f"users/{key}/{table.name}.jsonl" for table in PORTABLE if table is not KEYS]


def _check(archive: Reader, person: _Person) -> None:
    """Reads all rows once without saving any. Errors: `InvalidInput` naming file and line."""
    loader = Loader(person.user)
    users = [(row.pk, cast("MemoryUser", row).user_id) for row, _ in _rows(archive, person, USER, loader)]
    if users != [(person.user.pk, person.user.user_id)]:
        raise InvalidInput(f"{person.folder}/user.jsonl does not hold the user that the manifest names.")
    for table in PORTABLE[1:]:
        for _ in _rows(archive, person, table, loader):
            pass


def _erased(people: Sequence[_Person], on_conflict: OnConflict) -> list[str]:
    """The ids of those who were erased here. Errors: `Conflict`."""
    gone = erase.erased([one.user.pk for one in people])
    names = sorted(one.user.user_id for one in people if one.user.pk in gone)
    if names and on_conflict != "skip":
        raise Conflict(
            f"{len(names)} of its users were erased here, nobody was imported: {', '.join(names[:20])}. "
            "--on-conflict skip leaves them out, --even-erased brings them back."
        )
    return names


def _sorted_out(people: Sequence[_Person], on_conflict: OnConflict) -> tuple[list[_Person], list[str]]:
    """Whom to take in, and the ids of those who stay as they are. Errors: `Conflict`."""
    here = dict(
        MemoryUser.objects.filter(user_id__in=[one.user.user_id for one in people]).values_list("user_id", "pk")
    )
    taken = dict(MemoryUser.objects.filter(pk__in=[one.user.pk for one in people]).values_list("pk", "user_id"))
    for one in people:
        if taken.get(one.user.pk, one.user.user_id) != one.user.user_id:
            raise Conflict(f"The key of {one.user.user_id} belongs to {taken[one.user.pk]} here: nobody was imported.")
    if here and on_conflict == "fail":
        names = ", ".join(sorted(here)[:20])
        raise Conflict(f"{len(here)} of its users are here already, nobody was imported: {names}.")
    if on_conflict == "skip":
        return [one for one in people if one.user.user_id not in here], sorted(here)
    return list(people), []


def _take_in(archive: Reader, person: _Person, actor: Actor, done: Imported) -> None:
    """Files first: a row without its file is worse than a file without its row, which the sweeper finds."""
    there = set(files.on_disk_of(person.user.pk))
    placed = []
    try:
        for name in person.files:
            with archive.open(f"{person.folder}/files/{name}") as source:
                files.put(f"{person.user.pk}/{name}", source)
            placed.append(f"{person.user.pk}/{name}")
        replaced = _save_all(archive, person, actor, done)
    except BaseException:
        for path in set(placed) - there:
            files.remove(path)
        raise
    for path in replaced.files - set(placed):
        files.remove(path)
    if replaced.deletions:
        deletion_replay.purge_again(person.user, replaced.deletions, actor)
    done.users.append(person.user.user_id)
    done.files += len(placed)


def _save_all(archive: Reader, person: _Person, actor: Actor, done: Imported) -> _Replaced:
    """All rows in one transaction; what there was of the user who had to give way."""
    counts = dict(done.rows)
    try:
        with transaction.atomic():
            replaced = _make_room(person)
            loader = Loader(person.user)
            for table in PORTABLE:
                count = _save(archive, person, table, loader)
                counts[table.name] = counts.get(table.name, 0) + count
            if not archive.has(f"{person.folder}/{KEYS.name}.jsonl"):
                _keep(replaced.keys, person.user)
            if replaced.deletions:
                deletion_replay.repeat(person.user, replaced.deletions, actor)
    except IntegrityError as error:
        raise Conflict(f"{person.user.user_id} was not imported: a row of theirs is here already ({error}).") from error
    except DataError as error:
        raise InvalidInput(f"{person.user.user_id} was not imported: the database refused a row ({error}).") from error
    done.rows = counts
    return replaced


def _make_room(person: _Person) -> _Replaced:
    """What there was of the user of the same name, whose rows are gone now."""
    there = MemoryUser.objects.select_for_update().filter(user_id=person.user.user_id).first()
    if there is None:
        return _Replaced()
    replaced = _Replaced(
        list(UserKey.objects.filter(user=there)),
        set(files.on_disk_of(there.pk)),
        deletion_replay.of(there) if there.pk == person.user.pk else None,  # a namesake deleted other things
    )
    row_removal.remove_rows(there)
    row_removal.remove_user(there)
    return replaced


def _keep(keys: Iterable[UserKey], user: MemoryUser) -> None:
    for key in keys:
        key.user = user
        key.save_base(raw=True, force_insert=True)


def _save(archive: Reader, person: _Person, table: Table, loader: Loader) -> int:
    rows, count = _rows(archive, person, table, loader), 0
    while batch := list(islice(rows, _BATCH)):
        for row, data in batch:
            loader.resolve(table, row, data)
        if table is MEMORIES:
            _save_memories(person.user, [cast("Memory", row) for row, _ in batch])
        else:
            for row, _ in batch:
                row.save_base(raw=True, force_insert=True)  # raw: with its own times
        count += len(batch)
    return count


def _save_memories(user: MemoryUser, memories: Iterable[Memory]) -> None:
    """In their order, with index entries for those that our index finds."""
    is_embedded = not get_engine().is_external

    def kind(memory: Memory) -> tuple[bool, str, str]:
        return _is_found_here(memory, is_embedded=is_embedded), memory.app_id, memory.project_id

    for (is_found, app_id, project_id), group in groupby(memories, key=kind):
        rows = list(group)
        if is_found:
            owner = Owner(user.pk, user.user_id, app_id, project_id)
            storage.insert(owner, rows, [keyword.entry_of(row) for row in rows])
        else:
            Memory.objects.bulk_create(rows)


def _is_found_here(memory: Memory, *, is_embedded: bool) -> bool:
    """An upstream finds its own words itself; where it is not in use any more, our index has to."""
    if memory.origin != Memory.Origin.UPSTREAM:
        return True
    is_episode = memory.memory_type == Memory.Type.EPISODE
    return is_episode and (is_embedded or memory.text != memory.payload.get("episode"))


def _rows(archive: Reader, person: _Person, table: Table, loader: Loader) -> Iterator[tuple[Any, Row]]:
    """The checked rows of a file with their data. Errors: `InvalidInput` naming file and line."""
    name = f"{person.folder}/{table.name}.jsonl"
    if not archive.has(name):
        return
    for number, data in archive.lines(name):
        try:
            yield loader.row(table, data), data
        except InvalidInput as error:
            raise InvalidInput(f"{name}, line {number}: {error.detail}") from None


def _record(actor: Actor, done: Imported, path: Path) -> None:
    """Under no user: what follows an import is as it was before the export."""
    detail = {"users": done.users[:MAX_NAMED_USERS], "count": len(done.users), "skipped": len(done.skipped)}
    record(actor, "archive.import", subject_type="archive", subject_id=path.name, detail=detail)
