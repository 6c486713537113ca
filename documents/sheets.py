"""Prepare sheets for the parser: cells with the values that people see, comments, and sheets that are not read.

The parser gives stored values (0.25 for 25%) and leaves comments out.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from xml.etree import ElementTree  # the members were checked for declarations
from xml.sax.saxutils import escape, unescape

from documents import mime_types as mt
from documents.document import Limits
from documents.drawings import paragraphs_in, related
from documents.number_formats import BUILT_IN, displayed
from documents.old_sheets import OldSheet, as_shown, old_sheets
from documents.patches import parts_of, repacked

_MAIN: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_THREADED: Final = "{http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments}"
_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PARTS: Final = re.compile(
    r"xl/(?:workbook\.xml|styles\.xml|sharedStrings\.xml|_rels/.*|worksheets/.*|(?:drawings|charts)/.*|.*[cC]omments?.*\.xml)"
)
_SPACED: Final = re.compile(rb"<t>(?=\s|[^<]*\s</t>)")
_CELL: Final = re.compile(rb"<c ([^>]*[^/>])>(?:<f[^>]*/>|<f[^>]*>[^<]*</f>)?<v>([^<]*)</v></c>")
_STYLE: Final = re.compile(rb'\bs="(\d+)"')
_KIND: Final = re.compile(rb' ?\bt="(\w+)"')
_CELL_START: Final = re.compile(rb"<(?:\w+:)?c[ >]")
_SHEET: Final = re.compile(rb'<table:table [^>]*?table:name="([^"]*)"')
_NOTE: Final = re.compile(rb"<office:annotation\b[^>]*?(?:/>|>(.*?)</office:annotation>)", re.DOTALL)
_SHAPES: Final = re.compile(rb"<table:shapes>(.*?)</table:shapes>", re.DOTALL)
_NUMBER_CELL: Final = re.compile(
    rb'<table:(?:covered-)?table-cell\b[^>]*?\boffice:value-type="(?:percentage|currency|float|time|boolean)"[^>]*[^/>]>(?=\s*<text:p)'
)
_STORED: Final = re.compile(rb' office:(?:value(?:-type)?|time-value|boolean-value)="[^"]*"')
_PARAGRAPH: Final = re.compile(rb"<text:p\b[^>]*>(.*?)</text:p>", re.DOTALL)
_TAGS: Final = re.compile(rb"<[^>]*>")
_EMPTY: Final = rb"(?:<table:(?:covered-)?table-cell\b(?![^>]*\boffice:)[^>]*/>\s*)"
_EMPTY_CELLS: Final = re.compile(_EMPTY + rb"++(</table:table-row>)?")
_EMPTY_ROW: Final = re.compile(
    rb"<table:table-row\b[^>]*\btable:number-rows-repeated=[^>]*(?:/>|(?<!/)>\s*" + _EMPTY + rb"*+</table:table-row>)"
)
"""Rows and cells with which office programs fill a sheet. The parser leaves out a sheet with many of them."""
_THREAD_MARK: Final = "[Threaded comment]"


@dataclass(slots=True)
class Sheets:
    """A workbook for the parser, the comments of each sheet, and the names of sheets that are not read to their end."""

    data: bytes
    comments: dict[str, list[str]] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    old: dict[str, OldSheet] = field(default_factory=dict)

    def as_shown(self, content: str) -> str:
        """Return what the parser wrote of the workbook with the values that people see."""
        return as_shown(content, self.old) if self.old else content


def prepared(data: bytes, mime: str, limits: Limits) -> Sheets:
    """Return a checked workbook with displayed values. A damaged one stays as it is."""
    with suppress(ElementTree.ParseError, KeyError, ValueError):  # the document's parser reports it
        if mime == mt.XLSX:
            return _Workbook(data, limits).prepared()
        if mime == mt.ODS:
            return _open_document(data)
    if mime == mt.XLS:
        with suppress(OSError, ValueError, IndexError, AttributeError, TypeError, StopIteration, struct.error):
            content, old = old_sheets(data)
            return Sheets(content, {name: one.comments for name, one in old.items() if one.comments}, old=old)
    return Sheets(data)


class _Workbook:
    """The parts of a workbook of Excel."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._data, self._cells_left = data, limits.table_cells
        self._parts = parts_of(data, _PARTS)
        self._sheets = Sheets(data)
        self._changed: dict[str, bytes] = {}

    def prepared(self) -> Sheets:
        formats = _formats(self._parts.get("xl/styles.xml"))
        relations = related(self._parts.get, "xl/workbook.xml")
        workbook = ElementTree.fromstring(self._parts["xl/workbook.xml"])  # noqa: S314
        for sheet in workbook.iter(f"{_MAIN}sheet"):
            name = sheet.get("name", "")
            kind, part = relations.get(sheet.get(_RELATION, ""), ("", ""))
            if kind != "worksheet":
                self._sheets.skipped.append(name)
            elif part in self._parts:
                self._prepare(name, part, formats)
        strings = self._parts.get("xl/sharedStrings.xml", b"")
        self._change("xl/sharedStrings.xml", strings, _SPACED.sub(b'<t xml:space="preserve">', strings))
        self._sheets.data = repacked(self._data, self._changed)
        return self._sheets

    def _prepare(self, name: str, part: str, formats: dict[bytes, str]) -> None:
        content = self._parts[part]
        shown = _CELL.sub(lambda match: _cell(match, formats), self._bounded(name, content))
        self._change(part, content, shown)
        if comments := list(self._comments(part)):
            self._sheets.comments[name] = comments

    def _bounded(self, name: str, content: bytes) -> bytes:
        """Return the rows of a sheet within the limit of cells; note the sheet if it has more."""
        count = sum(1 for _cell in _CELL_START.finditer(content))
        if count <= self._cells_left:
            self._cells_left -= count
            return content
        self._sheets.skipped.append(name)
        starts = [match.start() for match in _CELL_START.finditer(content)]
        last = content.rfind(b"</row>", 0, starts[self._cells_left])
        self._cells_left = 0
        end = content.find(b"</sheetData>")
        if end < 0:
            return content
        begin = last + len(b"</row>") if last >= 0 else content.find(b"<sheetData>") + len(b"<sheetData>")
        return content[:begin] + content[end:]

    def _change(self, part: str, before: bytes, after: bytes) -> None:
        if after != before:
            self._changed[part] = after

    def _comments(self, part: str) -> Iterator[str]:
        for kind, target in sorted(related(self._parts.get, part).values()):
            if kind == "drawing" and target in self._parts:
                with suppress(ElementTree.ParseError):
                    yield from paragraphs_in(self._parts[target])
                    charts = (chart for of, chart in related(self._parts.get, target).values() if of == "chart")
                    yield from (text for chart in charts for text in paragraphs_in(self._parts.get(chart, b"<none/>")))
            if kind in {"comments", "threadedComment"} and target in self._parts:
                root = ElementTree.fromstring(self._parts[target])  # noqa: S314
                for one in [*root.iter(f"{_MAIN}comment"), *root.iter(f"{_THREADED}threadedComment")]:
                    text = " ".join("".join(t.text or "" for t in one.iter() if t.tag in _TEXTS).split())
                    if text and not text.startswith(_THREAD_MARK):
                        yield f"{one.get('ref', '')}: {text}"


_TEXTS: Final = frozenset({f"{_MAIN}t", f"{_THREADED}text"})


def _formats(styles: bytes | None) -> dict[bytes, str]:
    """Return the number format of each cell style that has one."""
    if not styles:
        return {}
    root = ElementTree.fromstring(styles)  # noqa: S314
    codes = {str(number): code for number, code in BUILT_IN.items()}
    codes |= {one.get("numFmtId", ""): one.get("formatCode", "") for one in root.iter(f"{_MAIN}numFmt")}
    cells = root.find(f"{_MAIN}cellXfs")
    found = enumerate(cells if cells is not None else ())
    return {str(at).encode(): code for at, one in found if (code := codes.get(one.get("numFmtId", "0")))}


def _cell(match: re.Match[bytes], formats: dict[bytes, str]) -> bytes:
    """Return a cell whose text is what its format shows, or that of its error."""
    attributes, value = match.groups()
    kind, style = _KIND.search(attributes), _STYLE.search(attributes)
    shown: str | None = None
    if kind and kind[1] == b"e":
        shown = unescape(value.decode())
    elif style and (kind is None or kind[1] == b"n"):
        shown = displayed(value.decode(), formats.get(style[1], "General"))
    if shown is None:
        return match[0]
    text = escape(shown).encode()
    return b'<c %b t="inlineStr"><is><t>%b</t></is></c>' % (_KIND.sub(b"", attributes), text)


def _open_document(data: bytes) -> Sheets:
    content = parts_of(data, re.compile(r"content\.xml")).get("content.xml", b"")
    sheets = Sheets(data)
    names = [(match.start(), unescape(match[1].decode())) for match in _SHEET.finditer(content)]
    for note in [*_SHAPES.finditer(content), *_NOTE.finditer(content)]:
        texts = (_TAGS.sub(b"", one).decode() for one in _PARAGRAPH.findall(note[1] or b""))
        if text := unescape(" ".join(" ".join(texts).split())):
            name = next((name for start, name in reversed(names) if start < note.start()), "")
            sheets.comments.setdefault(name, []).append(text)
    shown = _NUMBER_CELL.sub(_shown_cell, _without_filling(_NOTE.sub(b"", content)))
    sheets.data = repacked(data, {"content.xml": shown} if shown != content else {})
    return sheets


def _without_filling(content: bytes) -> bytes:
    """Return sheets without the empty rows that are repeated and the empty cells at the ends of rows."""
    return _EMPTY_CELLS.sub(lambda match: match[1] or match[0], _EMPTY_ROW.sub(b"", content))


def _shown_cell(match: re.Match[bytes]) -> bytes:
    """Return the start of a cell whose text is what it shows, not the number that it stores."""
    return _STORED.sub(b"", match[0])[:-1] + b' office:value-type="string">'
