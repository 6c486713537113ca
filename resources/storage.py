"""The layout of the stored files: `{user}/{resource_id}/content{.ext}` for uploads.

Files of messages are `{user}/memory_attachments/{sha256}/content{.ext}`. A file is temporary in `.incoming` while it
arrives. Paths consist of generated ids.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple
from uuid import UUID

from core.persistence import files
from core.persistence.files import MESSAGE_FILES, entries, modified_before, old_temporaries, root, stored_files

_USER_FOLDER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_RESOURCE_FOLDER = re.compile(r"r_[0-9a-f]{32}")
_FILE = re.compile(r"content(\.[a-z0-9]{1,8})?")


def storage_path(user_pk: UUID, resource_id: str, extension: str) -> str:
    """Return a resource's key. `extension` includes its dot, or is empty."""
    return f"{user_pk}/{resource_id}/content{extension}"


def resolve(key: str) -> Path:
    """Return the path of a `storage_path`. Raises: `ValueError` for anything else."""
    parts = key.split("/")
    patterns = (_USER_FOLDER, _RESOURCE_FOLDER, _FILE)
    if len(parts) != len(patterns) or not all(map(re.Pattern.fullmatch, patterns, parts)):
        raise ValueError("not a path of the storage")
    return files.path_of(key)


def open_stored(key: str) -> BinaryIO:
    """Open a stored file. Raises: `FileNotFoundError`, also if it is a symbolic link."""
    resolve(key)
    return stored_files().open_key(key)


def exists(key: str) -> bool:
    resolve(key)
    return stored_files().exists(key)


def remove(key: str) -> None:
    """Remove a resource's file and folder, if they exist."""
    resolve(key)
    stored_files().remove(key)


def remove_old_temporaries(before: float) -> int:
    """Remove temporary files that a crash left; `before` is Unix time in seconds."""
    old = old_temporaries(before)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


class StoredFolder(NamedTuple):
    """The folder of one stored file: `name` is the resource id, or the SHA-256 of a message's file.

    `keys` are its files in a bucket, `modified_at` is their Unix time in seconds. A local folder is looked at later.
    """

    user_pk: UUID
    name: str
    path: Path
    is_message_file: bool
    keys: tuple[str, ...] = ()
    modified_at: float | None = None

    @property
    def path_below_user(self) -> str:
        return f"{MESSAGE_FILES}/{self.name}" if self.is_message_file else self.name

    @property
    def has_files(self) -> bool:
        return bool(self.keys) or any(entries(self.path))

    def is_older_than(self, before: float) -> bool:
        """Return True if the folder is older than `before`, Unix time in seconds."""
        return modified_before(self.path, before) if self.modified_at is None else self.modified_at < before


def stored_folders() -> Iterator[StoredFolder]:
    """Yield the folders of all stored files, user by user."""
    if not files.is_local():
        yield from _folders_in_bucket("")
        return
    for user_folder in entries(root()):
        if _USER_FOLDER.fullmatch(user_folder.name):
            yield from folders_below(user_folder, UUID(user_folder.name))


def folders_below(folder: Path, user_pk: UUID) -> Iterator[StoredFolder]:
    """Yield the folders of one user's files below `folder`."""
    if not files.is_local():
        yield from _folders_in_bucket(f"{folder.relative_to(root()).as_posix()}/", user_pk)
        return
    for path in entries(folder):
        if _RESOURCE_FOLDER.fullmatch(path.name):
            yield StoredFolder(user_pk, path.name, path, is_message_file=False)
    for path in entries(folder / MESSAGE_FILES):
        if _DIGEST.fullmatch(path.name):
            yield StoredFolder(user_pk, path.name, path, is_message_file=True)


def _folders_in_bucket(prefix: str, user_pk: UUID | None = None) -> Iterator[StoredFolder]:
    """Yield the folders below a prefix: of one user, or of all users at the top."""
    for folder, found in groupby(stored_files().walk(prefix), key=lambda file: file.key.rpartition("/")[0]):
        parts = folder.removeprefix(prefix).split("/")
        if user_pk is None and not _USER_FOLDER.fullmatch(parts[0]):
            continue
        owner = user_pk or UUID(parts.pop(0))
        is_message_file = parts[:1] == [MESSAGE_FILES]
        pattern = _DIGEST if is_message_file else _RESOURCE_FOLDER
        if len(parts) == 1 + is_message_file and pattern.fullmatch(parts[-1]):
            of_folder = list(found)
            keys, modified_at = tuple(file.key for file in of_folder), max(file.modified_at for file in of_folder)
            yield StoredFolder(owner, parts[-1], root() / folder, is_message_file, keys, modified_at)


def message_file_sizes(user_pk: UUID) -> list[int]:
    """Return the sizes in bytes of the files in a user's messages."""
    return [file.size_bytes for file in stored_files().walk(f"{user_pk}/{MESSAGE_FILES}/")]
