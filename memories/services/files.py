"""Files inside messages, stored at `{storage}/{user}/memory_attachments/{sha256}/content.{ext}`.

The same bytes of one user are one file. The path holds no text of the caller, except for a short extension.
"""

import base64
import binascii
import hashlib
import os
import re
from dataclasses import dataclass
from uuid import UUID

from core.messages import Translatable as _
from core.persistence.file_keys import MESSAGE_FILES, FileKey, file_key
from core.persistence.files import require_free, stored_files, temporary_file, write_all
from resources.services import storage_binding

_EXTENSION = re.compile(r"[a-z0-9]{1,8}")


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file in a message: its bytes, and the key under which they are stored."""

    data: bytes
    sha256: str
    key: FileKey


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
    return InlineFile(data, sha256, file_key(f"{user_pk}/{MESSAGE_FILES}/{sha256}/{name}"))


def keep(file: InlineFile) -> bool:
    """Write the file unless it exists, and return True if it was written. Raises: `NoSpace`, `StorageUnavailable`."""
    storage_binding.require_unchanged()
    if exists(file):
        return False
    require_free(len(file.data))
    with temporary_file() as (descriptor, temporary):
        write_all(descriptor, file.data)
        os.fsync(descriptor)
        stored_files().put(temporary, file.key)
    return True


def exists(file: InlineFile) -> bool:
    return stored_files().exists(file.key)


def drop(file: InlineFile) -> None:
    """Delete the file, and its folder unless the same bytes are stored there with another extension."""
    stored_files().remove(file.key)
