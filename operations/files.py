"""The files of a user in the storage, by their keys."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final
from uuid import UUID

from accounts.models import MemoryUser
from core.persistence.files import is_key, is_local, key_of, root, stored_files, temporary_file
from resources import quarantine
from resources.models import NOT_PURGED, Attachment, Resource
from store.external import journal

ARCHIVES: Final = ".archives"
"""The folder of exports and uploaded imports, by user."""
ARCHIVE_LIFETIME: Final = timedelta(days=1)


def of_rows(user: MemoryUser) -> list[str]:
    """Return the files that a user's rows refer to: uploads, also those in the trash, and files in messages."""
    uploads = Resource.objects.filter(NOT_PURGED, user=user).exclude(storage_path="")
    found = set(uploads.values_list("storage_path", flat=True))
    attached = Attachment.objects.filter(user=user, source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    items = (item for message in journal.unconfirmed_messages(user.pk) for item in message.content)
    unconfirmed = [key_of(item.file) or "" for item in items if item.file]
    return sorted(found.union(filter(is_key, [*attached.values_list("internal_uri", flat=True), *unconfirmed])))


@contextmanager
def open_file(key: str) -> Iterator[IO[bytes]]:
    """Open a stored file, or a local copy of it.

    Raises: FileNotFoundError, also if the path is a link; ValueError for a path outside the storage.
    """
    with ExitStack() as opened:
        if is_local():
            yield opened.enter_context(stored_files().open_key(_checked(key)))
        else:
            yield opened.enter_context(opened.enter_context(stored_files().local_copy(_checked(key))).open("rb"))


def put(key: str, source: IO[bytes]) -> None:
    """Write a file. Raises: `NoSpace`, `StorageUnavailable`."""
    _checked(key)
    with temporary_file() as (descriptor, temporary):
        with os.fdopen(os.dup(descriptor), "wb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(descriptor)
        stored_files().put(temporary, key)


def copy_to(key: str, target: Path) -> None:
    """Copy a file, by a link if that is possible. Raises: FileNotFoundError, `StorageUnavailable`."""
    with stored_files().local_copy(_checked(key)) as path:
        try:
            os.link(path, target, follow_symlinks=False)
        except FileNotFoundError:
            raise
        except OSError:  # another file system
            shutil.copyfile(path, target, follow_symlinks=False)


def remove(key: str) -> None:
    """Remove a file, if it exists, and the folders that become empty."""
    stored_files().remove(_checked(key))


def archive_key(user_pk: UUID, name: str) -> str:
    """Return the key of an export or an uploaded import; an erasure of the user removes it."""
    return f"{ARCHIVES}/{user_pk}/{name}"


def remove_old_archives(now: datetime) -> int:
    """Remove exports and uploaded imports older than a day; return their number."""
    before = (now - ARCHIVE_LIFETIME).timestamp()
    old = [file.key for file in stored_files().walk(f"{ARCHIVES}/") if file.modified_at < before]
    for key in old:
        stored_files().remove(key)
    return len(old)


def remove_all(user: MemoryUser) -> list[int]:
    """Remove a user's whole folder and quarantine; return the sizes of the files in bytes."""
    sizes: list[int] = []
    for prefix in _prefixes(user.pk):
        for file in stored_files().walk(prefix):
            sizes.append(file.size_bytes)
            if not is_local():
                stored_files().remove(file.key)
        folder = root() / prefix
        if is_local() and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=False)
    return sizes


def count_of(user_pk: UUID) -> int:
    """Return how many files an erasure would remove, including those in quarantine."""
    return sum(1 for prefix in _prefixes(user_pk) for _file in stored_files().walk(prefix))


def on_disk_of(user_pk: UUID) -> list[str]:
    """Return the keys of all files of a user whose names the gateway gave."""
    return [file.key for file in stored_files().walk(f"{user_pk}/") if is_key(file.key)]


def _prefixes(user_pk: UUID) -> tuple[str, ...]:
    quarantined = quarantine.folder_of(user_pk).relative_to(root()).as_posix()
    return f"{user_pk}/", f"{quarantined}/", archive_key(user_pk, "")


def _checked(key: str) -> str:
    if not is_key(key):
        raise ValueError("not a key of the storage")
    return key
