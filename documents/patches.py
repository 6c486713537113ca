"""Change the parts of office files before they are parsed: byte ranges of XML, and members of a package."""

import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from documents.document import MIB

MAX_PART_BYTES: Final = 64 * MIB
"""The largest part that is changed; a larger one is parsed as it is."""
_TAG: Final = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_PICTURE: Final = re.compile(r"/media/|^Pictures/|^Thumbnails/|\.(?:png|jpe?g|gif|emf|wmf|tiff?)$", re.IGNORECASE)


@dataclass(slots=True)
class Patch:
    """The insertions and removals for one XML part in UTF-8, by offsets in bytes."""

    data: bytes
    inserted: list[tuple[int, bytes]] = field(default_factory=list)
    removed: list[tuple[int, int]] = field(default_factory=list)

    def end_of_tag(self, start: int) -> int:
        """Return the offset after the tag that starts at an offset."""
        tag = _TAG.match(self.data, start)
        return tag.end() if tag else start

    def is_empty_tag(self, start: int) -> bool:
        """Return True if the element that starts at an offset has no content: `<text:p/>`."""
        return self.data[: self.end_of_tag(start)].endswith(b"/>")

    @property
    def result(self) -> bytes:
        edits = [(at, at, text) for at, text in self.inserted] + [(start, end, b"") for start, end in self.removed]
        parts, last = [], 0
        for start, end, text in sorted(edits):
            if start >= last:
                parts += [self.data[last:start], text]
                last = end
        return b"".join([*parts, self.data[last:]])


def parser() -> expat.XMLParserType:
    """Return a parser that names elements by namespace and name, separated by a space."""
    found = expat.ParserCreate(namespace_separator=" ")
    found.buffer_text = True
    return found


def parts_of(data: bytes, names: re.Pattern[str]) -> dict[str, bytes]:
    """Return the members of a checked package whose names match and that are not too large."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [one for one in archive.infolist() if names.fullmatch(one.filename)]
        return {one.filename: archive.read(one) for one in members if one.file_size <= MAX_PART_BYTES}


_STRICT: Final = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
_OTHER_NAME: Final = re.compile(rb"word/(document\d+)\.xml")
_MARKUP: Final = re.compile(r".*\.(?:xml|rels)", re.DOTALL)
_MAIN: Final = re.compile(r"_rels/\.rels|word/document\d*\.xml|xl/workbook\.xml|ppt/presentation\.xml")


def as_usual(data: bytes) -> bytes:
    """Return an Office file as the parser knows it, also one that is Strict Open XML or has a `document2.xml`."""
    main = parts_of(data, _MAIN)
    other = _OTHER_NAME.search(main.get("_rels/.rels", b""))
    if not other and not any(_STRICT.search(content) for content in main.values()):
        return data
    old, new = other[1] if other else b"", b"document"
    parts = {
        name: _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", content).replace(old or new, new)
        for name, content in parts_of(data, _MARKUP).items()
    }
    named = f"{old.decode()}.xml"
    renamed = {f"word/{named}": "word/document.xml", f"word/_rels/{named}.rels": "word/_rels/document.xml.rels"}
    return repacked(data, parts, renamed)


def repacked(data: bytes, changed: Mapping[str, bytes], renamed: Mapping[str, str] | None = None) -> bytes:
    """Return a package with changed and renamed members and without pictures, which are not read."""
    if not changed:
        return data
    output = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for member in source.infolist():
            if not member.is_dir() and not _PICTURE.search(member.filename):
                name = (renamed or {}).get(member.filename, member.filename)
                target.writestr(name, changed.get(member.filename) or source.read(member))
    return output.getvalue()
