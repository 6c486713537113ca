"""Files inside messages, stored at `{storage}/{user}/memory_attachments/{sha256}/content.{ext}`.

The same bytes of one user are one file. The path holds no text of the caller, except for a short extension.
"""

import base64
import binascii
import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from core.messages import Message as _
from resources import storage
from resources.services import storage_binding

_EXTENSION = re.compile(r"[a-z0-9]{1,8}")


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file in a message: its bytes, and the path where they are stored."""

    data: bytes
    sha256: str
    path: Path


def decode_base64(text: str) -> bytes:
    """Decode plain base64 with its padding; line breaks are allowed. Raises: `ValueError` with the remedy."""
    try:
        data = base64.b64decode(text.translate({ord("\r"): None, ord("\n"): None}), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(_("must be plain base64 (no data: prefix, with its padding)")) from None
    if not data:
        raise ValueError(_("must not be empty"))
    return data


def inline_file(user_pk: UUID, data: bytes, extension: str) -> InlineFile:
    """Return the file without writing it. An invalid extension is omitted."""
    sha256 = hashlib.sha256(data).hexdigest()
    extension = extension.lower().lstrip(".")
    name = f"content.{extension}" if _EXTENSION.fullmatch(extension) else "content"
    return InlineFile(data, sha256, storage.root() / str(user_pk) / storage.MESSAGE_FILES / sha256 / name)


def keep(file: InlineFile) -> bool:
    """Write the file unless it exists, and return True if it was written. Raises: `NoSpace`, `StorageUnavailable`."""
    storage_binding.require_unchanged()
    if file.path.exists():
        return False
    with storage.full_disk_is_no_space():
        storage.require_free(len(file.data))
        descriptor, temporary = storage.create_temporary()
        try:
            storage.write_all(descriptor, file.data)
            os.fsync(descriptor)
            _move_into_place(temporary, file.path)
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
        storage.keep_names(file.path.parent)
    return True


def drop(file: InlineFile) -> None:
    """Delete the file, and its folder unless the same bytes are stored there with another extension."""
    file.path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.path.parent.rmdir()


def _move_into_place(temporary: Path, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        temporary.rename(path)
    except FileNotFoundError:  # a refused call with the same bytes has just removed the folder
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.rename(path)
