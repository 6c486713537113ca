"""Slides of OpenDocument presentations, and the titles of those of PowerPoint, which the parser loses."""

import io
import zipfile
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree  # the members were checked for declarations

from documents.drawings import OfficeFile
from documents.guards import DAMAGED, Refused
from documents.rows import Row

_NAMESPACE: Final = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_PAGE, _FRAME = (f"{_NAMESPACE % 'drawing'}{name}" for name in ("page", "frame"))
_PARAGRAPHS: Final = frozenset(f"{_NAMESPACE % 'text'}{name}" for name in ("p", "h"))
_CLASS: Final = f"{_NAMESPACE % 'presentation'}class"
_ROW: Final = f"{_NAMESPACE % 'table'}table-row"
_CELL: Final = f"{_NAMESPACE % 'table'}table-cell"
_SLIDES: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SPACES: Final = {
    f"{_NAMESPACE % 'text'}{name}": mark for name, mark in (("s", " "), ("tab", "\t"), ("line-break", "\n"))
}


def open_document_slides(data: bytes) -> Iterator[Row]:
    """Yield the rows of a presentation: of each slide its title, then all other text. Raises: `Refused`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            root = ElementTree.fromstring(archive.read("content.xml"))  # noqa: S314
    except (KeyError, ElementTree.ParseError) as error:
        raise Refused(DAMAGED) from error
    for number, page in enumerate(root.iter(_PAGE), 1):
        frames = [frame for frame in page.iter(_FRAME) if frame.get(_CLASS) == "title"]
        title = " ".join(text for frame in frames for text in _paragraphs(frame))
        yield "slide", number, title
        seen = {id(one) for frame in frames for one in frame.iter()}
        for element in page.iter():
            if id(element) in seen:
                continue
            if element.tag == _ROW:
                cells = [" ".join(_paragraphs(cell)) for cell in element.iter(_CELL)]
                yield "item", number, " | ".join(cells)
                seen |= {id(one) for one in element.iter()}
            elif element.tag in _PARAGRAPHS:
                yield "paragraph", number, _text(element)


def power_point_titles(office: OfficeFile) -> list[str]:
    """Return the title of each slide in order, empty if it has none."""
    return [_title(office.load(name) or b"<none/>") for name in office.shown()]


def _title(slide: bytes) -> str:
    for shape in ElementTree.fromstring(slide).iter(f"{_SLIDES}sp"):  # noqa: S314
        if any(place.get("type") in {"title", "ctrTitle"} for place in shape.iter(f"{_SLIDES}ph")):
            return " ".join("".join(part.text or " " for part in shape.iter(f"{_DRAWING}t")).split())
    return ""


def _paragraphs(element: ElementTree.Element) -> list[str]:
    return [_text(one) for one in element.iter() if one.tag in _PARAGRAPHS]


def _text(element: ElementTree.Element) -> str:
    """Return the text of an element with the spaces, tabs and line breaks that are separate elements."""
    parts = [element.text or ""]
    for child in element:
        parts += [_SPACES.get(child.tag, ""), _text(child), child.tail or ""]
    return "".join(parts)
