"""Receive a file: count, hash and check it while it streams to disk."""

from __future__ import annotations

import hashlib
import os

from django.conf import settings

from core.errors import TooLarge, UnsupportedType
from documents import mime_types
from documents.sniff import TypeMismatch, sniff
from resources import filenames, storage

HEAD_BYTES = 8192
# The type that clients send when they do not know it.
_UNSAID = {"", "application/octet-stream", "binary/octet-stream", "application/x-unknown"}


class IncomingFile:
    """A file that is being received: `write()` each chunk, then `finish()`; `close()` removes it unless kept.

    After `finish()`: `size_bytes`, `sha256` (hex), `mime_type` (detected) and `filename` (cleaned). Raises: `TooLarge`
    413, `UnsupportedType` 415, `NoSpace` 507.
    """

    def __init__(self, filename: str, claimed_type: str = "", expected_bytes: int = 0) -> None:
        self.filename = filenames.clean(filename)
        self.size_bytes = 0
        self.sha256 = ""
        self.mime_type = ""
        self._given_name = filename
        self._claimed_type = claimed_type.partition(";")[0].strip().lower()
        self._hash = hashlib.sha256()
        self._head = b""
        self._is_open = True
        self._is_kept = False
        with storage.full_disk_is_no_space():
            storage.require_free(expected_bytes)
            self._descriptor, self._path = storage.create_temporary()

    def write(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        require_size(self.size_bytes)
        storage.require_free(len(chunk))
        self._check_head(chunk)
        self._hash.update(chunk)
        with storage.full_disk_is_no_space():
            storage.write_all(self._descriptor, chunk)

    def finish(self) -> None:
        """Write the file to disk durably and set the results."""
        if not self.mime_type:
            self._check_type()
        self.filename = filenames.clean(self._given_name, self.mime_type)
        self.sha256 = self._hash.hexdigest()
        with storage.full_disk_is_no_space():
            os.fsync(self._descriptor)
        self._close_descriptor()

    def keep_as(self, path_below_root: str) -> None:
        """Move the finished file to its place in the storage."""
        with storage.full_disk_is_no_space():
            storage.place(self._path, path_below_root)
        self._is_kept = True

    def take_back(self, path_below_root: str) -> None:
        """Undo `keep_as()`."""
        storage.take_back(self._path, path_below_root)
        self._is_kept = False

    def close(self) -> None:
        self._close_descriptor()
        if not self._is_kept:
            self._path.unlink(missing_ok=True)

    def _check_head(self, chunk: bytes) -> None:
        """Check the type as soon as the first bytes are here, not after the whole file."""
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
            if len(self._head) == HEAD_BYTES:
                self._check_type()

    def _check_type(self) -> None:
        self.mime_type = checked_type(self._head, self.filename, self._claimed_type)

    def _close_descriptor(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._descriptor)


def require_size(size_bytes: int) -> None:
    """Check the size limit of uploads. Raises: `TooLarge`."""
    limit: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
    if size_bytes > limit:
        raise TooLarge.of_field("file", f"must be at most {limit} bytes (MEMORY_GATEWAY_MAX_UPLOAD_BYTES)")


def checked_type(head: bytes, filename: str, claimed_type: str) -> str:
    """Return the MIME type that the first bytes show.

    Raises: `UnsupportedType` if it contradicts the name or the claimed type, or may not be uploaded.
    """
    try:
        mime_type = sniff(head, filename, None if claimed_type in _UNSAID else claimed_type)
    except TypeMismatch as error:
        raise UnsupportedType.of_field("file", str(error)) from None
    require_allowed(mime_type, "file")
    return mime_type


def require_allowed(mime_type: str, field: str) -> None:
    """Check that the type may be stored; `field` names its source. Raises: `UnsupportedType`."""
    allowed = settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES
    if not mime_types.is_allowed(mime_type, allowed):
        raise UnsupportedType.of_field(
            field, f"is {mime_type}, which may not be uploaded here; allowed are {', '.join(allowed)}"
        )
