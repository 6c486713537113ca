"""Small files of one fault or one strength each, from `../shared/cases/files`."""

from __future__ import annotations

import pytest

from documents.document import DEFAULT_LIMITS, Document, Limits
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, sniff
from tests.conftest import SHARED

FOLDER = SHARED / "cases" / "files"
needs_small_files = pytest.mark.skipif(not FOLDER.exists(), reason="the files (../shared) are not here")


def read(name: str, limits: Limits = DEFAULT_LIMITS) -> Document:
    """Read a file as an upload under its own name is read."""
    path = FOLDER / name
    with path.open("rb") as file:
        mime = sniff(file.read(HEAD_BYTES), name, None)
    return read_document(path, mime, limits=limits)
