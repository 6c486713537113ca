"""Binding of a storage folder to a database: both hold the same id, and the gateway refuses any other pair.

The database holds the id in `StorageIdentity`, the folder in the file `storage_id`. A new id is written to the database
first: after a crash in between, the next check writes it to the folder.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache as process_cache
from django.db import connection, transaction

from accounts.audit import Actor, record
from core.errors import Conflict, StorageUnavailable
from core.messages import MANAGE
from core.messages import Translatable as _
from core.persistence import files
from core.persistence.file_keys import MESSAGE_FILES, FileKey
from core.persistence.sql import has_tables
from remote import outbox
from resources import queries, storage
from resources.models import Attachment, Resource, StorageIdentity
from store.models import State

logger = logging.getLogger("memory_gateway.worker")
_LOG_SECONDS = 600

FILE = FileKey("storage_id")
SETTINGS = "MEMORY_GATEWAY_STORAGE_DIR or MEMORY_GATEWAY_STORAGE_URL"
CHANGED = _(
    "The storage folder does not belong to this database, and nothing was stored. The operator must mount "
    "the right folder."
)
MAX_UNMATCHED = 100


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
    """Check that the storage folder and the database belong together; bind them if they are not bound yet.

    Any number of processes may do this at once. Raises: `StorageMismatch`, `NoSpace`, OSError if the id cannot be
    read or written.
    """
    if is_bound():
        return
    problem = refusal()
    if not problem:
        bind()
        problem = refusal()  # another process may have bound the folder to another database
    if problem and not is_bound():  # or to this database, which is fine
        raise StorageMismatch(problem)


def require_unchanged() -> None:
    """Check before a write that the folder is still the one with which the server started.

    Raises: `StorageUnavailable`.
    """
    if is_changed():
        raise StorageUnavailable(CHANGED)


def may_remove_files() -> bool:
    """Return True if the storage belongs to the database: it may have been unmounted or replaced since the start.

    A problem is logged, at most every ten minutes.
    """
    try:
        require()
    except (StorageMismatch, StorageUnavailable) as error:
        if process_cache.add("storage-mismatch-logged", True, _LOG_SECONDS):
            logger.error("No files are removed: %s", error.detail)  # noqa: TRY400  the sentence says it all
        return False
    return True


def is_changed(*, is_quick: bool = False) -> bool:
    """Return True if the database is bound to another folder. `is_quick`: within a second, or fail."""
    bound_id = database_id()
    return bound_id is not None and storage_id(is_quick=is_quick) != bound_id


def is_bound() -> bool:
    """Return True if both sides hold the same id."""
    folder_id = storage_id()
    return folder_id is not None and folder_id == database_id()


def database_id() -> UUID | None:
    return StorageIdentity.objects.values_list("uuid", flat=True).first()


def storage_id(*, is_quick: bool = False) -> UUID | None:
    """Return the storage folder's id; None if the file is missing or holds no id."""
    try:
        return UUID((files.stored_files().read_small(FILE, is_quick=is_quick) or b"").decode("ascii").strip())
    except ValueError:
        return None


def bind() -> None:
    """Write the database's id, or a new one, into a storage folder that has none."""
    identity, _ = StorageIdentity.objects.get_or_create(pk=1)
    _write(identity.uuid, replace=False)


def forget_storage_id() -> None:
    """Remove the id from the storage folder; the next `bind()` writes another."""
    files.stored_files().remove(FILE)


def adopt(actor: Actor) -> UUID:
    """Give the storage folder and the database a new common id. Copies with their old ids no longer match them."""
    new, previous = uuid.uuid4(), {"database": database_id(), "storage": storage_id()}
    with transaction.atomic():
        StorageIdentity.objects.update_or_create(pk=1, defaults={"uuid": new})
        detail = {name: str(value) if value else None for name, value in previous.items()}
        record(actor, "storage.adopt", str(new), detail=detail)
    _write(new, replace=True)
    return new


def survey(*, is_new: bool = False) -> Survey:
    """Compare the stored files with the rows that refer to them: none if the database `is_new`.

    Reads the whole storage folder.
    """
    existing = {f"{folder.user_pk}/{folder.path_below_user}" for folder in storage.stored_folders() if folder.has_files}
    if is_new:
        return Survey(0, len(existing), 0, len(existing))
    needed = set(_needed())
    # The files of purged resources may still exist.
    purged = queries.pending_cleanups().exclude(storage_path="")
    known = needed.union(path.rpartition("/")[0] for path in purged.values_list("storage_path", flat=True).iterator())
    return Survey(len(needed), len(existing), len(needed - existing), len(existing - known))


def require_before_migration() -> None:
    """Check what can be checked before anything is written to the database, which may not exist yet.

    Raises: `StorageMismatch`, `StorageUnavailable`.
    """
    is_new = not has_tables()
    if is_new or storage_id() not in {None, database_id()}:
        problem = refusal(is_new=is_new)
        if problem:
            raise StorageMismatch(problem)


def refusal(*, is_new: bool = False) -> str:
    """Return the reason why folder and database do not belong together, empty if they do. This binds nothing.

    `is_new`: the database has no tables yet.
    """
    folder_id = storage_id()
    if folder_id is not None and not is_new and folder_id == database_id():
        return ""
    folder, database = files.stored_files().place_name(), database_name()
    remedy = (
        "Set the storage (MEMORY_GATEWAY_STORAGE_DIR or MEMORY_GATEWAY_STORAGE_URL) and the database "
        "(MEMORY_GATEWAY_DB_PATH or DATABASE_URL) to a matching "
        f"pair, or run `{MANAGE} adopt_storage` to bind these two."
    )
    if folder_id is not None:
        return f"The storage folder {folder} belongs to another database, not to {database}. {remedy}"
    if files.stored_files().exists(FILE):
        return f"The file {FILE} in {folder} contains no ID to compare with that of the database {database}. {remedy}"
    found = survey(is_new=is_new)
    if found.is_match:
        return ""
    return (
        f"The storage folder {folder} ({found.files:,} files) does not match the database {database} "
        f"({found.rows:,} rows with files, {found.matched:,} of them found). {remedy}"
    )


def database_name() -> str:
    """Return the database's name without its password."""
    parameters = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(parameters["NAME"])
    place = f"{parameters['HOST'] or 'localhost'}:{parameters['PORT'] or 5432}"
    return f"{parameters['NAME']} ({connection.vendor} at {place})"


def _needed() -> Iterator[str]:
    """Yield the folders of all files that rows refer to, relative to the storage folder."""
    uploads = Resource.objects.exclude(state=State.PURGED).exclude(storage_path="")
    for path in uploads.order_by().values_list("storage_path", flat=True).iterator():
        yield path.rpartition("/")[0]
    attached = Attachment.objects.filter(source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    rows = attached.order_by().values_list("user_id", "sha256", "internal_uri").distinct()
    for user_pk, sha256, uri in rows.iterator():
        if f"/{MESSAGE_FILES}/{sha256}/" in uri:
            yield f"{user_pk}/{MESSAGE_FILES}/{sha256}"
    for user_pk in outbox.users_with_waiting():
        for message in outbox.waiting_messages(user_pk):
            for item in message.content:
                if item.file:
                    yield f"{user_pk}/{MESSAGE_FILES}/{item.sha256}"


def _write(identity: UUID, *, replace: bool) -> None:
    """Write the id atomically; without `replace` the first writer wins."""
    files.stored_files().write_small(FILE, f"{identity}\n".encode(), replace=replace)
