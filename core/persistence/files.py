"""The stored files: one storage of Django's API, a local folder or a bucket (`core.persistence.object_store`).

A stored file is a `FileKey`. A `Path` is a temporary file: take a `local_copy` where a program needs one.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, cast
from urllib.parse import quote

from django.conf import settings
from django.core.cache import cache as process_cache
from django.core.files.storage import FileSystemStorage, storages

from core.errors import NoSpace
from core.messages import Translatable as _
from core.persistence.file_keys import FileKey, is_key

INCOMING = ".incoming"
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_RECENT_SECONDS = 60
_FULL_BELOW_BYTES = 2**20
_WRITE_FAILED = "write-failed"


class StoredFile(NamedTuple):
    """An entry of a storage. `modified_at` is Unix time in seconds."""

    key: FileKey
    size_bytes: int
    modified_at: float


class Folder(NamedTuple):
    """A folder of a storage. Its `prefix` ends in a slash, `modified_at` is Unix time in seconds."""

    prefix: str
    modified_at: float
    has_files: bool


class Files(Protocol):
    """A storage of files. Raises: `NoSpace`, `StorageUnavailable`."""

    def put(self, temporary: Path, key: FileKey) -> None:
        """Store a finished temporary file under a key, durably. The temporary file may be gone afterwards."""

    def undo_put(self, temporary: Path, key: FileKey) -> None:
        """Undo `put()`."""

    def open_key(self, key: FileKey) -> BinaryIO:
        """Open a file that can seek. Raises: `FileNotFoundError`, also if it is a symbolic link."""

    def open_whole(self, key: FileKey) -> contextlib.AbstractContextManager[BinaryIO]:
        """Open a file that is read to its end. Raises: `FileNotFoundError`, also if it is a symbolic link."""

    def exists(self, key: FileKey) -> bool: ...

    def remove(self, key: FileKey) -> None:
        """Remove a file, if it exists, and the folders that become empty."""

    def walk(self, prefix: str) -> Iterator[StoredFile]:
        """Yield all files whose key begins with `prefix`, which ends in a slash or is empty, sorted by key."""

    def folders(self, prefix: str) -> Iterator[Folder]:
        """Yield the folders below `prefix` that hold files, one subtree after the other, and maybe others."""

    def move_folder(self, prefix: str, new_prefix: str) -> None:
        """Rename a folder with its files."""

    def remove_folder(self, prefix: str) -> list[int]:
        """Remove a folder with its files, and the one above if it becomes empty. Return the files' sizes in bytes."""

    def local_copy(self, key: FileKey) -> contextlib.AbstractContextManager[Path]:
        """Return a block with a readable path of the file. The path of a missing file does not exist."""

    def url(self, key: FileKey) -> str:
        """Return the address of a file, which exists if the file does."""

    def place_name(self) -> str:
        """Return the name of the storage for operators."""

    def read_small(self, key: FileKey, *, is_quick: bool = False) -> bytes | None:
        """Return the first 100 bytes of a file; None if it does not exist. `is_quick`: within a second, or fail."""

    def write_small(self, key: FileKey, data: bytes, *, replace: bool) -> None:
        """Write a file atomically. Without `replace` the first writer wins."""


def stored_files() -> Files:
    return cast("Files", storages["default"])


def root() -> Path:
    """Return the folder of the files. With a bucket it holds temporary files only."""
    return Path(settings.MEMORY_GATEWAY_STORAGE_DIR)


def address_of(location: str) -> str:
    """Return the address of a stored file, given by its key. Other locations are addresses already."""
    return stored_files().url(location) if is_key(location) else location


def digest_of(file: FileKey | Path) -> str:
    """Return the SHA-256 of a stored or temporary file, empty if it is missing."""
    try:
        with file.open("rb") if isinstance(file, Path) else stored_files().open_key(file) as source:
            return hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
    except FileNotFoundError:
        return ""


def local_copy(file: FileKey | Path) -> contextlib.AbstractContextManager[Path]:
    """Return a block with a readable path of a stored or temporary file. Raises: `NoSpace`, `StorageUnavailable`."""
    return contextlib.nullcontext(file) if isinstance(file, Path) else stored_files().local_copy(file)


class LocalFiles(FileSystemStorage):
    """Files in a local folder. Symbolic links are never followed, only this account can read the files."""

    @property
    def base_location(self) -> str:
        return str(root())

    @property
    def location(self) -> str:
        return str(root().absolute())

    def put(self, temporary: Path, key: FileKey) -> None:
        target = root() / key
        with raising_no_space():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                temporary.rename(target)
            except FileNotFoundError:  # another call has just removed an empty folder
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                temporary.rename(target)
            sync_folders(target.parent)

    def undo_put(self, temporary: Path, key: FileKey) -> None:
        path = root() / key
        path.rename(temporary)
        path.parent.rmdir()

    def open_key(self, key: FileKey) -> BinaryIO:
        path = root() / key
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise FileNotFoundError(errno.ENOENT, "not a regular file", str(path)) from None
            raise
        return os.fdopen(descriptor, "rb")

    open_whole = open_key

    def exists(self, name: str) -> bool:
        return (root() / name).exists()

    def remove(self, key: FileKey) -> None:
        path = root() / key
        path.unlink(missing_ok=True)
        folder = path.parent
        with contextlib.suppress(OSError):  # until a folder is not empty
            while folder != root() and folder.is_relative_to(root()):
                folder.rmdir()
                folder = folder.parent

    def walk(self, prefix: str) -> Iterator[StoredFile]:
        folder = root() / prefix
        if folder.is_symlink() or not folder.is_dir():
            return
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_dir():
                with contextlib.suppress(FileNotFoundError):
                    status = path.lstat()
                    key = FileKey(path.relative_to(root()).as_posix())
                    yield StoredFile(key, status.st_size, status.st_mtime)

    def folders(self, prefix: str) -> Iterator[Folder]:
        top = root() / prefix
        for path, below, names in os.walk(top) if not top.is_symlink() else ():
            with contextlib.suppress(FileNotFoundError):
                modified_at = os.lstat(path).st_mtime
                yield Folder(f"{os.path.relpath(path, root())}/", modified_at, has_files=bool(below or names))

    def move_folder(self, prefix: str, new_prefix: str) -> None:
        target = root() / new_prefix
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (root() / prefix).rename(target)

    def remove_folder(self, prefix: str) -> list[int]:
        folder = root() / prefix
        sizes = [file.size_bytes for file in self.walk(prefix)]
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        if folder.parent != root():
            with contextlib.suppress(OSError):  # it is not empty
                folder.parent.rmdir()
        return sizes

    def local_copy(self, key: FileKey) -> contextlib.AbstractContextManager[Path]:
        return contextlib.nullcontext(root() / key)

    def url(self, name: str | None) -> str:
        return f"file://{quote(os.fsencode(f'{settings.MEMORY_GATEWAY_STORAGE_DIR}/{name}'))}"

    def place_name(self) -> str:
        return str(root())

    def read_small(self, key: FileKey, *, is_quick: bool = False) -> bytes | None:
        try:
            descriptor = os.open(root() / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            return file.read(100)

    def write_small(self, key: FileKey, data: bytes, *, replace: bool) -> None:
        target = root() / key
        with temporary_file() as (descriptor, temporary):
            write_all(descriptor, data)
            os.fsync(descriptor)
            if replace:
                temporary.replace(target)
            else:
                _link(temporary, target, data)
            sync_folders(root())


@contextlib.contextmanager
def raising_no_space() -> Iterator[None]:
    """Raise `NoSpace` (507) if a write in the block fails because the disk is full or read-only."""
    try:
        yield
    except OSError as error:
        if error.errno not in {*NO_SPACE, errno.EROFS}:
            raise
        note_failed_write()
        if error.errno == errno.EROFS:
            message = _("The disk of the gateway is read-only, so nothing was stored. Try again later.")
            raise NoSpace(message) from None
        raise NoSpace(_("The disk of the gateway is full, so nothing was stored. Try again later.")) from None


def note_failed_write() -> None:
    """Record that a write to disk failed just now."""
    process_cache.set(_WRITE_FAILED, True, _RECENT_SECONDS)


def has_write_failed_lately() -> bool:
    """Return True if a write failed within the last minute, as under a quota that the free space does not show."""
    return _WRITE_FAILED in process_cache


def disk_problem(folder: Path, name: str, floor_bytes: int) -> str:
    """Return a sentence about the problem of a folder's disk, empty if none. `name` names the folder in it."""
    while not folder.exists():
        folder = folder.parent
    status = os.statvfs(folder)
    if status.f_flag & os.ST_RDONLY:
        return f"The disk of the {name} is read-only, so nothing new is stored. Make it writable."
    if status.f_bavail * status.f_frsize < _FULL_BELOW_BYTES:
        return f"The disk of the {name} is full, so nothing new is stored. Free some space."
    if status.f_bavail * status.f_frsize < floor_bytes:
        return (
            f"The disk of the {name} has less than {floor_bytes} bytes free (MEMORY_GATEWAY_MIN_FREE_DISK_BYTES), "
            "so uploads are refused. Free some space."
        )
    return ""


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


@contextlib.contextmanager
def temporary_file() -> Iterator[tuple[int, Path]]:
    """Yield the descriptor and path of a temporary file, which is removed unless it was moved. Raises: `NoSpace`."""
    with raising_no_space():
        descriptor, path = create_temporary()
        try:
            yield descriptor, path
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Write without a buffer: a full disk then fails here and not on close."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def old_temporaries(before: float) -> list[Path]:
    """Return the files in `.incoming` that are older than `before`, Unix time in seconds."""
    old = []
    for path in entries(root() / INCOMING):
        name = _TEMPORARY.fullmatch(path.name)
        if name and name[1] == _boot_id():
            # Compare times since the machine's start, because the system clock may leap.
            is_old = _seconds_since_boot() - int(name[2]) > time.time() - before
        else:
            is_old = modified_before(path, before)
        if is_old:
            old.append(path)
    return old


def entries(folder: Path) -> Iterator[Path]:
    if not folder.is_symlink() and folder.is_dir():
        with os.scandir(folder) as entries:
            yield from [folder / entry.name for entry in entries]


def modified_before(path: Path, before: float) -> bool:
    try:
        return path.lstat().st_mtime < before
    except FileNotFoundError:
        return False


def sync_folders(folder: Path) -> None:
    """Sync a folder of the storage, and those above it, to disk."""
    below = folder.relative_to(root())
    for part in (below, *below.parents):
        descriptor = os.open(root() / part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK}
_TEMPORARY = re.compile(r"([0-9a-f]{32})-([0-9]+)-[0-9a-f]{32}")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _link(temporary: Path, target: Path, data: bytes) -> None:
    """Create the file unless it exists, also on a file system without hard links."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        return
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)


@cache
def _boot_id() -> str:
    """Return the id of this start of the machine, 32 hexadecimal digits; empty if the system has none."""
    return _BOOT_ID.read_text("ascii").strip().replace("-", "") if _BOOT_ID.exists() else ""


def _seconds_since_boot() -> float:
    """Return the seconds since this start of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
