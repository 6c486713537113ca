"""Texts of Office files that the parser leaves out: of SmartArt, charts, pictures, boxes on sheets, comments on slides.

They, and inserted files, are found by the relations of the part that shows them.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from typing import Final
from xml.etree import ElementTree  # the members were checked for declarations
from xml.sax.saxutils import unescape

_SLIDES: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_VALUE: Final = "{http://schemas.openxmlformats.org/drawingml/2006/chart}v"
_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DESCRIPTION: Final = re.compile(rb'<\w+:(?:cNvPr|docPr)\b[^>]*?\sdescr="([^"]+)"')
_DOCUMENT: Final = "word/document.xml"

Load = Callable[[str], bytes | None]
"""Returns a part of a package by its name; None if it is absent."""


def related(load: Load, part: str) -> dict[str, tuple[str, str]]:
    """Return the kind and the part of each relation of a part, by their identifiers."""
    folder, name = posixpath.split(part)
    root = ElementTree.fromstring(load(f"{folder}/_rels/{name}.rels") or b"<none/>")  # noqa: S314
    return {
        one.get("Id", ""): (
            one.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, one.get("Target", ""))).lstrip("/"),
        )
        for one in root
        if one.get("TargetMode") != "External"
    }


def texts_in(load: Load, part: str, kinds: Container[str]) -> Iterator[str]:
    """Yield the descriptions of pictures in a part, then the texts of its related parts of these kinds.

    Damaged parts are left out.
    """
    yield from (unescape(found.decode(), {"&quot;": '"'}) for found in _DESCRIPTION.findall(load(part) or b""))
    with suppress(ElementTree.ParseError):
        for kind, target in related(load, part).values():
            if kind in kinds and (content := load(target)):
                yield from paragraphs_in(content)
                if values := list(filter(None, (one.text for one in _root(content).iter(_VALUE)))):
                    yield ", ".join(values)


def paragraphs_in(content: bytes) -> Iterator[str]:
    """Yield the paragraphs of a drawing, or of comments on a slide, each text once."""
    found = [
        one.text or "" if one.tag == f"{_SLIDES}text" else "".join(text.text or "" for text in one.iter(f"{_DRAWING}t"))
        for one in _root(content).iter()
        if one.tag in {f"{_SLIDES}text", f"{_DRAWING}p"}
    ]
    yield from filter(None, dict.fromkeys(" ".join(text.split()) for text in found))


def _root(content: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(content)  # noqa: S314


class OfficeFile:
    """A checked package of Word or PowerPoint."""

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(data))

    def load(self, name: str) -> bytes | None:
        """Return a part; None if it is absent or damaged."""
        with suppress(KeyError, zipfile.BadZipFile, zlib.error, EOFError):
            return self._archive.read(name)
        return None

    def shown(self) -> list[str]:
        """Return the parts that are shown: the document, or the slides in their order; empty if one is damaged."""
        with suppress(ElementTree.ParseError):
            if _DOCUMENT in self._archive.NameToInfo:
                return [_DOCUMENT]
            main = "ppt/presentation.xml"
            slides, targets = _root(self.load(main) or b"<none/>").iter(f"{_SLIDES}sldId"), related(self.load, main)
            return [targets.get(one.get(_RELATION, ""), ("", ""))[1] for one in slides]
        return []

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the content of each file that is inserted in the document, such as a workbook."""
        for part in self.shown():
            with suppress(ElementTree.ParseError):
                for kind, target in related(self.load, part).values():
                    if kind in {"aFChunk", "package"} and (content := self.load(target)):
                        yield posixpath.basename(target), content
