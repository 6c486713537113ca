"""Files on disk. Paths consist of generated ids, symbolic links are never followed, only this account can read them.

A file is `{storage}/.incoming/{boot}-{seconds}-{random}` while it arrives, then
`{storage}/{user}/{resource_id}/content{.ext}`, or `{storage}/{user}/memory_attachments/{sha256}/content{.ext}` if it
came in a message.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import UUID

from django.conf import settings

from core import disks
from core.errors import NoSpace
from core.messages import Message as _

INCOMING = ".incoming"
MESSAGE_FILES = "memory_attachments"
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_USER_FOLDER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RESOURCE_FOLDER = re.compile(r"r_[0-9a-f]{32}")
_FILE = re.compile(r"content(\.[a-z0-9]{1,8})?")
_TEMPORARY = re.compile(r"([0-9a-f]{32})-([0-9]+)-[0-9a-f]{32}")


def root() -> Path:
    return Path(settings.MEMORY_GATEWAY_STORAGE_DIR)


def storage_path(user_pk: UUID, resource_id: str, extension: str) -> str:
    """Return a resource's path below the root. `extension` includes its dot, or is empty."""
    return f"{user_pk}/{resource_id}/content{extension}"


def resolve(path_below_root: str) -> Path:
    """Return the absolute path of a `storage_path`. Raises: `ValueError` for anything else."""
    parts = path_below_root.split("/")
    patterns = (_USER_FOLDER, _RESOURCE_FOLDER, _FILE)
    if len(parts) != len(patterns) or not all(map(re.Pattern.fullmatch, patterns, parts)):
        raise ValueError("not a path of the storage")
    return root().joinpath(*parts)


@contextlib.contextmanager
def full_disk_is_no_space() -> Iterator[None]:
    """Raise `NoSpace` (507) if a write in the block fails because the disk is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno not in {*NO_SPACE, errno.EROFS}:
            raise
        disks.note_failed_write()
        if error.errno == errno.EROFS:
            message = _("The disk of the gateway is read-only, so nothing was stored. Try again later.")
            raise NoSpace(message) from None
        raise NoSpace(_("The disk of the gateway is full, so nothing was stored. Try again later.")) from None


def require_free(size_bytes: int) -> None:
    """Check that the disk keeps its minimum of free space after a write of `size_bytes`. Raises: `NoSpace`."""
    floor: int = settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES
    if floor:
        root().mkdir(mode=0o700, parents=True, exist_ok=True)
    if floor and shutil.disk_usage(root()).free - size_bytes < floor:
        raise NoSpace(
            _(
                "The disk would have less than %(floor)s bytes free, so nothing was stored. Try again later.",
                floor=floor,
            )
        )


def create_temporary() -> tuple[int, Path]:
    """Create a temporary file in the file system of the storage; return its descriptor and path."""
    folder = root() / INCOMING
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{_boot_id()}-{_seconds_since_boot():.0f}-{secrets.token_hex(16)}"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), path


def write_all(descriptor: int, data: bytes) -> None:
    """Write without a buffer: a full disk then fails here and not on close."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def place(temporary: Path, path_below_root: str) -> None:
    """Move a finished file to its path in the storage, durably."""
    target = resolve(path_below_root)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary.rename(target)
    keep_names(target.parent)


def undo_place(temporary: Path, path_below_root: str) -> None:
    """Undo `place()`."""
    path = resolve(path_below_root)
    path.rename(temporary)
    path.parent.rmdir()


def open_stored(path_below_root: str) -> BinaryIO:
    """Open a stored file. Raises: `FileNotFoundError`, also if it is a symbolic link."""
    path = resolve(path_below_root)
    if path.is_symlink():
        raise FileNotFoundError(errno.ENOENT, "a link lies where the file should be", str(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    return os.fdopen(descriptor, "rb")


def remove(path_below_root: str) -> None:
    """Remove a resource's file and folder, if they exist."""
    path = resolve(path_below_root)
    path.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.parent.rmdir()


def remove_old_temporaries(before: float) -> int:
    """Remove temporary files that a crash left; `before` is Unix time in seconds."""
    old = old_temporaries(before)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


class StoredFolder(NamedTuple):
    """The folder of one stored file: `name` is the resource id, or the SHA-256 of a message's file."""

    user_pk: UUID
    name: str
    path: Path
    is_message_file: bool

    @property
    def path_below_user(self) -> str:
        return f"{MESSAGE_FILES}/{self.name}" if self.is_message_file else self.name

    def is_older_than(self, before: float) -> bool:
        """Return True if the folder is older than `before`, Unix time in seconds."""
        return _modified_before(self.path, before)


def stored_folders() -> Iterator[StoredFolder]:
    """Yield the folders of all stored files, user by user."""
    for user_folder in entries(root()):
        if _USER_FOLDER.fullmatch(user_folder.name):
            yield from folders_below(user_folder, UUID(user_folder.name))


def folders_below(folder: Path, user_pk: UUID) -> Iterator[StoredFolder]:
    """Yield the folders of one user's files below `folder`."""
    for path in entries(folder):
        if _RESOURCE_FOLDER.fullmatch(path.name):
            yield StoredFolder(user_pk, path.name, path, is_message_file=False)
    for path in entries(folder / MESSAGE_FILES):
        if _DIGEST.fullmatch(path.name):
            yield StoredFolder(user_pk, path.name, path, is_message_file=True)


def old_temporaries(before: float) -> list[Path]:
    """Return the files in `.incoming` that are older than `before`, Unix time in seconds."""
    old = []
    for path in entries(root() / INCOMING):
        name = _TEMPORARY.fullmatch(path.name)
        if name and name[1] == _boot_id():
            # Compare times since the machine's start, because the system clock may leap.
            is_old = _seconds_since_boot() - int(name[2]) > time.time() - before
        else:
            is_old = _modified_before(path, before)
        if is_old:
            old.append(path)
    return old


def message_file_sizes(user_pk: UUID) -> list[int]:
    """Return the sizes in bytes of the files in a user's messages."""
    return [
        path.lstat().st_size for folder in entries(root() / str(user_pk) / MESSAGE_FILES) for path in entries(folder)
    ]


def entries(folder: Path) -> Iterator[Path]:
    if not folder.is_symlink() and folder.is_dir():
        with os.scandir(folder) as entries:
            yield from [folder / entry.name for entry in entries]


def _modified_before(path: Path, before: float) -> bool:
    try:
        return path.lstat().st_mtime < before
    except FileNotFoundError:
        return False


def keep_names(folder: Path) -> None:
    """Sync a folder of the storage, and those above it, to disk."""
    below = folder.relative_to(root())
    for part in (below, *below.parents):
        sync_folder(root() / part)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def _boot_id() -> str:
    """Return the id of this start of the machine, 32 hexadecimal digits; empty if the system has none."""
    return _BOOT_ID.read_text("ascii").strip().replace("-", "") if _BOOT_ID.exists() else ""


def _seconds_since_boot() -> float:
    """Return the seconds since this start of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
