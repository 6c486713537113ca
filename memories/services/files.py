"""Files that came inside messages: `{storage}/{user}/memory_attachments/{sha256}/content.{ext}`.

The same bytes of the same user are one file. Paths are made of what we made: the user's key, a digest, a short
extension.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from resources import storage

_EXTENSION = re.compile(r"[a-z0-9]{1,8}")


@dataclass(frozen=True, slots=True)
class InlineFile:
    """Bytes of a message, and where they will lie."""

    data: bytes
    sha256: str
    path: Path


def decode_base64(text: str) -> bytes:
    """Plain base64 with its padding; line breaks are allowed. Errors: ValueError with the remedy."""
    try:
        data = base64.b64decode(text.translate({ord("\r"): None, ord("\n"): None}), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be plain base64 (no data: prefix, with its padding)") from None
    if not data:
        raise ValueError("must not be empty")
    return data


def inline_file(user_pk: UUID, data: bytes, extension: str) -> InlineFile:
    """Nothing is written yet. An extension that could not be a file's is left away."""
    sha256 = hashlib.sha256(data).hexdigest()
    extension = extension.lower().lstrip(".")
    name = f"content.{extension}" if _EXTENSION.fullmatch(extension) else "content"
    return InlineFile(data, sha256, storage.root() / str(user_pk) / storage.MESSAGE_FILES / sha256 / name)


def keep(file: InlineFile) -> bool:
    """Writes the file unless it is there; whether it was written. Errors: `NoSpace`."""
    if file.path.exists():
        return False
    with storage.full_disk_is_no_space():
        storage.require_free(len(file.data))
        descriptor, temporary = storage.create_temporary()
        try:
            storage.write_all(descriptor, file.data)
            os.fsync(descriptor)
            _place(temporary, file.path)
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)
        storage.keep_names(file.path.parent)
    return True


def drop(file: InlineFile) -> None:
    """Removes the file, and its folder unless the same bytes lie there under another ending."""
    file.path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.path.parent.rmdir()


def _place(temporary: Path, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        temporary.rename(path)
    except FileNotFoundError:  # a refused call with the same bytes has cleared the folder away just now
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.rename(path)
