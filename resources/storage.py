"""The layout of the stored files: `{user}/{resource_id}/content{.ext}` for uploads.

Files of messages are `{user}/memory_attachments/{sha256}/content{.ext}`. A file is temporary in `.incoming` while it
arrives. Keys consist of generated ids.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from core.persistence.file_keys import FOLDER, MESSAGE_FILES, FileKey, file_key
from core.persistence.files import old_temporaries, stored_files

_FOLDER = re.compile(f"{FOLDER}/")


def storage_path(user_pk: UUID, resource_id: str, extension: str) -> FileKey:
    """Return a resource's key. `extension` includes its dot, or is empty."""
    return file_key(f"{user_pk}/{resource_id}/content{extension}")


def remove_old_temporaries(before: float) -> int:
    """Remove temporary files that a crash left; `before` is Unix time in seconds."""
    old = old_temporaries(before)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


class StoredFolder(NamedTuple):
    """The folder of one stored file, also in quarantine. `modified_at` is Unix time in seconds."""

    user_pk: UUID
    path_below_user: str
    prefix: str
    modified_at: float
    has_files: bool

    @property
    def name(self) -> str:
        """The resource id, or the SHA-256 of a message's file."""
        return self.path_below_user.rpartition("/")[2]

    @property
    def is_message_file(self) -> bool:
        return "/" in self.path_below_user


def stored_folders(prefix: str = "", user: str = "") -> Iterator[StoredFolder]:
    """Yield the folders of all stored files, user by user; or of those of one `user`, as `{id}/`, below a prefix."""
    for folder in stored_files().folders(prefix):
        path = user + folder.prefix.removeprefix(prefix)
        if _FOLDER.fullmatch(path):
            user_pk, below = path.removesuffix("/").split("/", 1)
            yield StoredFolder(UUID(user_pk), below, *folder)


def message_file_sizes(user_pk: UUID) -> list[int]:
    """Return the sizes in bytes of the files in a user's messages."""
    return [file.size_bytes for file in stored_files().walk(f"{user_pk}/{MESSAGE_FILES}/")]
