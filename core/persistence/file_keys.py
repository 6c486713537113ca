"""Keys of the stored files: `{user}/{resource_id}/content{.ext}`, `{user}/memory_attachments/{sha256}/content{.ext}`.

Rows, archives and programs name a stored file by its key.
"""

import re
from typing import NewType, TypeGuard

MESSAGE_FILES = "memory_attachments"
FOLDER = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/(?:r_[0-9a-f]{32}|memory_attachments/[0-9a-f]{64})"
"""A regular expression of the folders of files."""
KEY = rf"{FOLDER}/content(?:\.[a-z0-9]{{1,8}})?"
"""A regular expression of keys."""
_KEY = re.compile(KEY)

FileKey = NewType("FileKey", str)
"""The key of a stored file. `file_key` checks text; archives and the storage id have keys of another form."""


def is_key(location: str) -> TypeGuard[FileKey]:
    return _KEY.fullmatch(location) is not None


def file_key(location: str) -> FileKey:
    """Return the key that a row or an archive names. Raises: `ValueError`."""
    if not is_key(location):
        raise ValueError("not a key of the storage")
    return location
