"""Bind a storage folder to a database: both hold the same id, and processes refuse any other pair.

The database holds it in `StorageIdentity`, the folder in the file `storage_id`. An id is written to the database first:
after a crash in between, the next check writes it to the folder.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q

from accounts.audit import Actor, record
from core.errors import Conflict
from resources import storage
from resources.models import Attachment, Resource, StorageIdentity
from store.external import journal

FILE = "storage_id"
MAX_UNMATCHED = 100
_MAX_BYTES = 100
_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}


class StorageMismatch(Conflict):
    """The storage folder and the database do not belong together."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A comparison of the stored files with the rows that refer to files."""

    rows: int
    files: int
    missing: int
    without_row: int

    @property
    def matched(self) -> int:
        return self.files - self.without_row

    @property
    def is_match(self) -> bool:
        """Return True if both sides are empty, or overlap except for at most 100 files or 1 % of them."""
        if not self.rows and not self.files:
            return True
        allowed = max(MAX_UNMATCHED, max(self.rows, self.files) // 100)
        return self.matched > 0 and max(self.missing, self.without_row) <= allowed


def require() -> None:
    """Check that the storage folder and the database belong together, and bind them at their first meeting.

    Any number of processes may do this at once. Raises: `StorageMismatch`, `NoSpace`, OSError if the id cannot be
    read or written.
    """
    if is_bound():
        return
    problem = refusal()
    if not problem:
        bind()
        problem = refusal()  # another process may have bound the folder to another database meanwhile
    if problem and not is_bound():  # or to this one
        raise StorageMismatch(problem)


def is_bound() -> bool:
    """Return True if both sides hold the same id."""
    theirs = storage_id()
    return theirs is not None and theirs == database_id()


def database_id() -> UUID | None:
    return StorageIdentity.objects.values_list("uuid", flat=True).first()


def storage_id() -> UUID | None:
    """Return the storage folder's id; None if it has none, or its file holds something else."""
    try:
        descriptor = os.open(storage.root() / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return UUID(os.read(descriptor, _MAX_BYTES).decode("ascii").strip())
    except ValueError:
        return None
    finally:
        os.close(descriptor)


def bind() -> None:
    """Write the database's id, or a new one, into a storage folder that has none."""
    identity, _ = StorageIdentity.objects.get_or_create(pk=1)
    _write(identity.uuid, replace=False)


def forget_storage_id() -> None:
    """Remove the id from the storage folder; the next `bind()` writes another."""
    (storage.root() / FILE).unlink(missing_ok=True)


def adopt(actor: Actor) -> UUID:
    """Give the storage folder and the database a new common id; copies with the old one are refused."""
    new, before = uuid.uuid4(), {"database": database_id(), "storage": storage_id()}
    with transaction.atomic():
        StorageIdentity.objects.update_or_create(pk=1, defaults={"uuid": new})
        detail = {name: str(value) if value else None for name, value in before.items()}
        record(actor, "storage.adopt", subject_type="storage", subject_id=str(new), detail=detail)
    _write(new, replace=True)
    return new


def survey() -> Survey:
    """Compare the stored files with the rows that refer to them. Reads the whole storage folder."""
    needed = set(_needed())
    known = needed | set(_to_be_removed())
    there = {
        f"{folder.user_pk}/{folder.path_below_user}"
        for folder in storage.stored_folders()
        if any(storage.entries(folder.path))
    }
    return Survey(len(needed), len(there), len(needed - there), len(there - known))


def refusal() -> str:
    """Return why the storage folder and the database do not belong together, empty if they do. Binds nothing."""
    theirs = storage_id()
    if theirs is not None and theirs == database_id():
        return ""
    folder, database = storage.root(), database_name()
    remedy = (
        "set MEMORY_GATEWAY_STORAGE_DIR and the database (MEMORY_GATEWAY_DB_PATH or DATABASE_URL) that belong "
        "together, or run `python manage.py adopt_storage` to join these two."
    )
    if theirs is not None:
        return f"The storage folder {folder} belongs to another database than {database}: {remedy}"
    if _is_file_present():
        return f"The file {folder / FILE} holds no id to compare with that of the database {database}: {remedy}"
    found = survey()
    if found.is_match:
        return ""
    return (
        f"The storage folder {folder} ({found.files:,} files) does not fit the database {database} "
        f"({found.rows:,} rows with files, {found.matched:,} of them there): {remedy}"
    )


def database_name() -> str:
    """Return the database's name without its password."""
    parameters = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(parameters["NAME"])
    place = f"{parameters['HOST'] or 'localhost'}:{parameters['PORT'] or 5432}"
    return f"{parameters['NAME']} ({connection.vendor} at {place})"


def _needed() -> Iterator[str]:
    """Yield the folders, below the storage, of all files that rows refer to."""
    uploads = Resource.objects.filter(deleted_at__isnull=True).exclude(storage_path="")
    for path in uploads.order_by().values_list("storage_path", flat=True).iterator():
        yield path.rpartition("/")[0]
    attached = Attachment.objects.filter(source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    rows = attached.order_by().values_list("user_id", "sha256", "internal_uri").distinct()
    for user_pk, sha256, uri in rows.iterator():
        if f"/{storage.MESSAGE_FILES}/{sha256}/" in uri:
            yield f"{user_pk}/{storage.MESSAGE_FILES}/{sha256}"
    for user_pk in journal.users_with_unconfirmed():
        for message in journal.unconfirmed_messages(user_pk):
            for item in message.content:
                if item.file:
                    yield f"{user_pk}/{storage.MESSAGE_FILES}/{item.file.parent.name}"


def _to_be_removed() -> Iterator[str]:
    """Yield the folders of deleted resources whose files may still be there."""
    deleted = Resource.objects.filter(Q(cleanup_owed=True), deleted_at__isnull=False).exclude(storage_path="")
    for path in deleted.order_by().values_list("storage_path", flat=True).iterator():
        yield path.rpartition("/")[0]


def _is_file_present() -> bool:
    return os.path.lexists(storage.root() / FILE)


def _write(identity: UUID, *, replace: bool) -> None:
    """Write the id atomically; without `replace` the first writer wins."""
    target = storage.root() / FILE
    data = f"{identity}\n".encode()
    with storage.full_disk_is_no_space():
        descriptor, temporary = storage.create_temporary()
        try:
            storage.write_all(descriptor, data)
            os.fsync(descriptor)
            if replace:
                temporary.replace(target)
            else:
                _link(temporary, target, data)
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
        storage.sync_folder(storage.root())


def _link(temporary: Path, target: Path, data: bytes) -> None:
    try:
        os.link(temporary, target)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _create(target, data)


def _create(target: Path, data: bytes) -> None:
    """Write the id on a file system without hard links."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        storage.write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
