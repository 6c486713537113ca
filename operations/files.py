"""The files of a user in the storage, by their keys."""

import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final
from uuid import UUID

from django.db.models import Exists

from accounts.models import MemoryUser
from core.persistence.file_keys import FileKey, file_key, is_key
from core.persistence.files import stored_files, temporary_file
from remote import outbox
from resources import quarantine
from resources.models import Attachment, Resource
from store.models import State

ARCHIVES: Final = ".archives"
"""The folder of exports and uploaded imports, by user."""
ARCHIVE_LIFETIME: Final = timedelta(days=1)


def of_rows(user: MemoryUser, *, left_out: Exists | None = None) -> list[FileKey]:
    """Return the files that a user's rows refer to: uploads, also those in the trash, and files in messages.

    `left_out` is the condition of attachments that do not count.
    """
    uploads = Resource.objects.filter(user=user).exclude(state=State.PURGED).exclude(storage_path="")
    found = set(map(file_key, uploads.values_list("storage_path", flat=True)))
    attached = Attachment.objects.filter(user=user, source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    if left_out is not None:
        attached = attached.exclude(left_out)
    items = (item for message in outbox.waiting_messages(user.pk) for item in message.content)
    unconfirmed = [str(item.file) for item in items if item.file]
    return sorted(found.union(filter(is_key, [*attached.values_list("internal_uri", flat=True), *unconfirmed])))


def put(key: FileKey, source: IO[bytes]) -> None:
    """Write a file. Raises: `NoSpace`, `StorageUnavailable`."""
    with temporary_file() as (descriptor, temporary):
        with os.fdopen(os.dup(descriptor), "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(descriptor)
        stored_files().put(temporary, key)


def copy_to(key: FileKey, target: Path) -> None:
    """Copy a file, by a link if that is possible. Raises: FileNotFoundError, `StorageUnavailable`."""
    with stored_files().local_copy(key) as path:
        try:
            os.link(path, target, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:  # another file system
            shutil.copyfile(path, target, follow_symlinks=False)


def archive_key(user_pk: UUID, name: str) -> FileKey:
    """Return the key of an export or an uploaded import; an erasure of the user removes it."""
    return FileKey(f"{ARCHIVES}/{user_pk}/{name}")


def remove_old_archives(now: datetime) -> int:
    """Remove exports and uploaded imports older than a day; return their number."""
    before = (now - ARCHIVE_LIFETIME).timestamp()
    old = [file.key for file in stored_files().walk(f"{ARCHIVES}/") if file.modified_at < before]
    for key in old:
        stored_files().remove(key)
    return len(old)


def remove_all(user: MemoryUser) -> list[int]:
    """Remove a user's whole folder and quarantine; return the sizes of the files in bytes."""
    return [size for prefix in _prefixes(user.pk) for size in stored_files().remove_folder(prefix)]


def count_of(user_pk: UUID) -> int:
    """Return how many files an erasure would remove, including those in quarantine."""
    return sum(1 for prefix in _prefixes(user_pk) for _file in stored_files().walk(prefix))


def on_disk_of(user_pk: UUID) -> list[FileKey]:
    """Return the keys of all files of a user whose names the gateway gave."""
    return [file.key for file in stored_files().walk(f"{user_pk}/") if is_key(file.key)]


def _prefixes(user_pk: UUID) -> tuple[str, ...]:
    return f"{user_pk}/", quarantine.prefix_of(user_pk), archive_key(user_pk, "")
