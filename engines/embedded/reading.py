"""Read documents with the text recognition (OCR) of the settings."""

from pathlib import Path

from django.conf import settings

from documents import ocr
from documents.document import Document
from documents.reader import read_document


def read(path: Path, mime_type: str) -> Document:
    """Return the text of a file. Raises: `Unreadable`, `EngineUnavailable`."""
    return read_document(path, mime_type, ocr=configured())


def configured() -> ocr.Ocr | None:
    """Return the settings of text recognition; None if it is off."""
    engine: str = settings.MEMORY_GATEWAY_OCR
    return None if engine == "off" else ocr.Ocr(engine, settings.MEMORY_GATEWAY_DB_PATH.parent / "ocr")
