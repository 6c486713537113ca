"""Small files of one fault or one strength each, kept in `small_files.zip` so that no linter reads them."""

from __future__ import annotations

import atexit
import tempfile
import zipfile
from pathlib import Path

from documents.document import DEFAULT_LIMITS, Document, Limits
from documents.ocr import Ocr
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, sniff, with_charset

_temporary = tempfile.TemporaryDirectory(prefix="small-files-")
atexit.register(_temporary.cleanup)
FOLDER = Path(_temporary.name)
with zipfile.ZipFile(Path(__file__).with_suffix(".zip")) as _archive:
    _archive.extractall(FOLDER)
NAMES = sorted(path.name for path in FOLDER.iterdir())


def read(name: str, limits: Limits = DEFAULT_LIMITS, *, sent: str | None = None, ocr: Ocr | None = None) -> Document:
    """Read a file as an upload under its own name is read."""
    path = FOLDER / name
    with path.open("rb") as file:
        mime = sniff(file.read(HEAD_BYTES), name, sent)
    return read_document(path, with_charset(mime, sent), limits=limits, ocr=ocr)
