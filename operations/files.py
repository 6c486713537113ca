"""The files of a user in the storage, whichever rows speak of them. Paths are below the storage folder."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO
from uuid import UUID

from accounts.models import MemoryUser
from operations.storage_paths import BELOW_ROOT
from resources import quarantine, storage
from resources.models import Attachment, Resource
from store.external import journal

OF_MESSAGES = "/memory_attachments/"
"""What stands in the path of a file that came inside a message."""
_PATH = re.compile(BELOW_ROOT)
_OF_URI = re.compile(rf"file:///(?:.*/)?({BELOW_ROOT})", re.DOTALL)
_CHUNK = 2**20


def of_rows(user: MemoryUser) -> list[str]:
    """The files that the user's rows speak of: uploads, and what came inside messages, those of which an upstream's
    answer is still owed among them."""
    uploads = Resource.objects.filter(user=user, deleted_at__isnull=True).exclude(storage_path="")
    found = set(uploads.values_list("storage_path", flat=True))
    attached = Attachment.objects.filter(user=user, source=Attachment.Source.MEMORY_ADD).exclude(sha256="")
    uris = [*attached.values_list("internal_uri", flat=True), *_of_open_messages(user)]
    return sorted(found | of_attachments(uris))


def of_attachments(uris: Iterable[str]) -> set[str]:
    """Return the stored files among the addresses of attachments."""
    matches = (_OF_URI.fullmatch(uri) for uri in uris)
    return {match[1] for match in matches if match}


def _of_open_messages(user: MemoryUser) -> Iterator[str]:
    for message in journal.unconfirmed_messages(user.pk):
        yield from (item.file.as_uri() for item in message.content if item.file)


def on_disk(user_folder: Path) -> Iterator[Path]:
    """Every stored file of a user, without following a link."""
    for folder, names, entries in os.walk(user_folder, followlinks=False):
        names.sort()
        yield from (Path(folder) / entry for entry in sorted(entries))


def open_file(path: str) -> IO[bytes]:
    """Errors: FileNotFoundError, also for a link in the file's place; ValueError for what is no path of ours."""
    place = locate(path)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise FileNotFoundError(errno.ENOENT, "no file lies there", str(place)) from None
        raise
    return os.fdopen(descriptor, "rb")


def locate(path: str) -> Path:
    """Errors: ValueError for what is no path of ours."""
    if not _PATH.fullmatch(path):
        raise ValueError("not a path of the storage")
    return storage.root() / path


def put(path: str, source: IO[bytes]) -> bool:
    """Writes a file where it belongs, and whether none was there. Errors: `NoSpace`."""
    place = locate(path)
    is_new = not place.exists()
    with storage.full_disk_is_no_space():
        descriptor, temporary = storage.create_temporary()
        try:
            while chunk := source.read(_CHUNK):
                storage.write_all(descriptor, chunk)
            os.fsync(descriptor)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.rename(place)
            storage.keep_names(place.parent)
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
    return is_new


def remove(path: str) -> None:
    """Removes a file and what folders it leaves empty; one that is gone already is fine."""
    place = locate(path)
    place.unlink(missing_ok=True)
    remove_empty_folders(place.parent)


def remove_empty_folders(folder: Path) -> None:
    """A folder of the storage and those above it, as far as nothing lies in them."""
    with contextlib.suppress(OSError):
        while folder != storage.root() and folder.is_relative_to(storage.root()):
            folder.rmdir()
            folder = folder.parent


def remove_all(user: MemoryUser) -> tuple[int, int]:
    """Removes a user's whole folder and quarantine; how many files and bytes that were."""
    sizes = []
    for folder in (storage.root() / str(user.pk), quarantine.folder_of(user.pk)):
        sizes += [path.lstat().st_size for path in on_disk(folder)]
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder, ignore_errors=False)
    return len(sizes), sum(sizes)


def count_of(user_pk: UUID) -> int:
    """Return how many files an erasure would remove, those in quarantine among them."""
    return len(on_disk_of(user_pk)) + sum(1 for _ in on_disk(quarantine.folder_of(user_pk)))


def on_disk_of(user_pk: UUID) -> list[str]:
    """The paths of all files in a user's folder that have a name of ours."""
    found = (path.relative_to(storage.root()).as_posix() for path in on_disk(storage.root() / str(user_pk)))
    return [path for path in found if _PATH.fullmatch(path)]
