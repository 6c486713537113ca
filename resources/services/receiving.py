"""Receive a file: limit its size, hash it and detect its type while it streams to disk."""

import hashlib
import os
import re

from django.conf import settings

from core.errors import TooLarge, UnsupportedType
from core.messages import Translatable as _
from core.persistence.files import create_temporary, raising_no_space, require_free, write_all
from documents import mime_types
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff, with_charset


class IncomingFile:
    """A file that arrives at `path`: `write()` each chunk, then `finish()`; `close()` removes what is still there.

    After `finish()`: `size_bytes`, `sha256` (hex), `mime_type` (detected) and `filename` (cleaned). Raises: `TooLarge`
    413, `UnsupportedType` 415, `NoSpace` 507.
    """

    def __init__(self, filename: str, claimed_type: str = "", expected_bytes: int = 0) -> None:
        self.filename = clean_filename(filename)
        self.size_bytes = 0
        self.sha256 = ""
        self.mime_type = ""
        self._given_name = filename
        self._claimed_type = claimed_type
        self._hash = hashlib.sha256()
        self._head = b""
        with raising_no_space():
            require_free(expected_bytes)
            descriptor, self.path = create_temporary()
        self._file = os.fdopen(descriptor, "wb", buffering=0)

    def write(self, chunk: bytes) -> None:
        self.size_bytes += len(chunk)
        require_size(self.size_bytes)
        require_free(len(chunk))
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]
            if len(self._head) == HEAD_BYTES:
                self._check_type()  # refuses a wrong type before the rest has arrived
        self._hash.update(chunk)
        with raising_no_space():
            write_all(self._file.fileno(), chunk)

    def finish(self) -> None:
        """Write the file to disk durably and set the results."""
        if not self.mime_type:
            self._check_type()
        self.filename = clean_filename(self._given_name, self.mime_type)
        self.sha256 = self._hash.hexdigest()
        with raising_no_space():
            os.fsync(self._file.fileno())
        self._file.close()

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _check_type(self) -> None:
        """Set the MIME type by the first bytes.

        Raises: `UnsupportedType` if it contradicts the name or the claimed type, or may not be uploaded.
        """
        try:
            mime_type = sniff(self._head, self.filename, self._claimed_type)
        except TypeMismatch as error:
            raise UnsupportedType.of_field("file", error.message) from None
        require_allowed(mime_type, "file")
        self.mime_type = with_charset(mime_type, self._claimed_type)


def require_size(size_bytes: int) -> None:
    """Check the size limit of uploads. Raises: `TooLarge`."""
    limit: int = settings.MEMORY_GATEWAY_MAX_UPLOAD_BYTES
    if size_bytes > limit:
        raise TooLarge.of_field(
            "file", _("must be at most %(number)s bytes; ask the operator for a higher limit", number=limit)
        )


def require_allowed(mime_type: str, field: str) -> None:
    """Check that the type is accepted. `field` is the field to blame. Raises: `UnsupportedType`."""
    allowed = settings.MEMORY_GATEWAY_ALLOWED_MIME_TYPES
    if not mime_types.is_allowed(mime_type, allowed):
        raise UnsupportedType.of_field(
            field,
            _(
                "is of type %(type)s, which is not accepted; accepted types are %(types)s",
                type=mime_type,
                types=", ".join(allowed),
            ),
        )


MAX_FILENAME_CHARS = 255
_MAX_EXTENSION_CHARS = 20
# Control characters, lone surrogates, line separators and direction marks: "invoice\u202efdp.exe" is shown as
# "invoiceexe.pdf".
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_DRIVE = re.compile(r"^[A-Za-z]:")


def clean_filename(name: str, mime_type: str = "") -> str:
    """Return the display name: 1 to 255 characters without path, control characters and direction marks.

    Nothing else changes: wrongly decoded characters stay as the client sent them.
    """
    without_path = re.split(r"[/\\]", name)[-1]
    bare = _DRIVE.sub("", _HIDDEN.sub("", without_path)).strip()
    if not bare.strip(". "):
        return f"unnamed{mime_types.extension_of(mime_type)}" if mime_type else "unnamed"
    stem, dot, extension = bare.rpartition(".")
    if len(bare) <= MAX_FILENAME_CHARS or not stem or len(extension) > _MAX_EXTENSION_CHARS:
        return bare[:MAX_FILENAME_CHARS]
    return stem[: MAX_FILENAME_CHARS - len(extension) - 1] + dot + extension
