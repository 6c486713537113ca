"""The files of a user in the storage. Paths are relative to the storage folder."""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import IO
from uuid import UUID

from accounts.models import MemoryUser
from operations.tables import BELOW_ROOT
from resources import quarantine, storage
from resources.models import NOT_PURGED, Attachment, Resource
from store.external import journal

MESSAGE_FILES = "/memory_attachments/"
"""A part of the path of every file that came in a message."""
_PATH = re.compile(BELOW_ROOT)
_STORED_URI = re.compile(rf"file:///(?:.*/)?({BELOW_ROOT})", re.DOTALL)


def of_rows(user: MemoryUser) -> list[str]:
    """Return the files that a user's rows refer to: uploads, also those in the trash, and files in messages."""
    uploads = Resource.objects.filter(NOT_PURGED, user=user).exclude(storage_path="")
    found = set(uploads.values_list("storage_path", flat=True))
    attached = Attachment.objects.filter(user=user, source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    items = (item for message in journal.unconfirmed_messages(user.pk) for item in message.content)
    unconfirmed = [item.file.as_uri() for item in items if item.file]
    return sorted(found | of_attachments([*attached.values_list("internal_uri", flat=True), *unconfirmed]))


def of_attachments(uris: Iterable[str]) -> set[str]:
    """Return the stored files among the addresses of attachments."""
    matches = (_STORED_URI.fullmatch(uri) for uri in uris)
    return {match[1] for match in matches if match}


def on_disk(folder: Path) -> list[Path]:
    """Return all files below a folder, links included but not followed."""
    return [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]


def open_file(path: str) -> IO[bytes]:
    """Open a stored file.

    Raises: FileNotFoundError, also if the path is a link; ValueError for a path outside the storage.
    """
    place = locate(path)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise FileNotFoundError(errno.ENOENT, "not a regular file", str(place)) from None
        raise
    return os.fdopen(descriptor, "rb")


def locate(path: str) -> Path:
    """Return the absolute path of a stored file. Raises: ValueError for a path outside the storage."""
    if not _PATH.fullmatch(path):
        raise ValueError("not a path of the storage")
    return storage.root() / path


def put(path: str, source: IO[bytes]) -> None:
    """Write a file to its path. Raises: `NoSpace`."""
    place = locate(path)
    with storage.full_disk_is_no_space():
        descriptor, temporary = storage.create_temporary()
        try:
            with os.fdopen(descriptor, "wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(descriptor)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.rename(place)
            storage.keep_names(place.parent)
        finally:
            temporary.unlink(missing_ok=True)


def remove(path: str) -> None:
    """Remove a file, if it exists, and the folders that become empty."""
    place = locate(path)
    place.unlink(missing_ok=True)
    folder = place.parent
    with contextlib.suppress(OSError):
        while folder != storage.root() and folder.is_relative_to(storage.root()):
            folder.rmdir()
            folder = folder.parent


def remove_all(user: MemoryUser) -> list[int]:
    """Remove a user's whole folder and quarantine; return the sizes of the files in bytes."""
    sizes: list[int] = []
    for folder in (storage.root() / str(user.pk), quarantine.folder_of(user.pk)):
        sizes += [path.lstat().st_size for path in on_disk(folder)]
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=False)
    return sizes


def count_of(user_pk: UUID) -> int:
    """Return how many files an erasure would remove, including those in quarantine."""
    return len(on_disk_of(user_pk)) + len(on_disk(quarantine.folder_of(user_pk)))


def on_disk_of(user_pk: UUID) -> list[str]:
    """Return the paths of all files in a user's folder whose names the gateway gave."""
    found = (path.relative_to(storage.root()).as_posix() for path in on_disk(storage.root() / str(user_pk)))
    return [path for path in found if _PATH.fullmatch(path)]
