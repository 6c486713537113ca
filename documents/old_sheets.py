"""Numbers as people see them and comments of old Excel workbooks (.xls).

The parser gives stored values, takes those of charts for cells, and leaves comments out. A workbook is a stream of
records: its formats and styles first, then the cells of each sheet (MS-XLS).
"""

import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from olefile import OleFileIO

from documents.number_formats import BUILT_IN, displayed

_BOF, _EOF, _CONTINUE, _FORMAT, _XF, _SHEET = 0x809, 0x0A, 0x3C, 0x41E, 0xE0, 0x85
_NUMBER, _RK, _ROW_OF_RK, _FORMULA = 0x203, 0x27E, 0xBD, 0x06
_NOTE, _OBJECT, _OBJECT_TEXT = 0x1C, 0x5D, 0x1B6
_IGNORED: Final = 0x862
"""A kind of records that no parser of cells reads."""
_OTHER_CELLS: Final = frozenset({0xFD, 0x204, 0x205, 0xD6})
"""Texts, truth values and errors."""
_UNICODE_VERSION: Final = 0x600
_HIDDEN: Final = " (hidden)"

Number = tuple[float, str]
"""The stored value of a cell and what its format shows."""


@dataclass(slots=True)
class OldSheet:
    """The numbers of a sheet by row and column, counted from its first used ones, and its comments."""

    numbers: dict[tuple[int, int], Number] = field(default_factory=dict)
    comments: list[str] = field(default_factory=list)


def old_sheets(data: bytes) -> tuple[bytes, dict[str, OldSheet]]:
    """Return a workbook without the values of charts in its sheets, and its sheets by name.

    Raises: `OSError`, `ValueError`, `struct.error` or others of olefile if it is damaged.
    """
    content = io.BytesIO(data)
    with OleFileIO(content, write_mode=True) as file:
        name = next(name for name in ("Workbook", "Book") if file.exists(name))
        workbook = _Workbook(file.openstream(name).read())
        sheets = {name: workbook.sheet(start) for name, start in workbook.starts.items()}
        if changed := workbook.without_charts():
            file.write_stream(name, changed)
        return content.getvalue() if changed else data, sheets


class _Workbook:
    """The formats of a workbook and the offsets of its sheets."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self.starts: dict[str, int] = {}
        self._of_charts: list[int] = []
        self._formats: list[str] = []
        codes = dict(BUILT_IN)
        for kind, record in self._records(0):
            if kind == _BOF:
                self._is_unicode = struct.unpack_from("<H", record)[0] == _UNICODE_VERSION
            elif kind == _FORMAT:
                (number,) = struct.unpack_from("<H", record)
                codes[number] = self._text(record, 2, 2 if self._is_unicode else 1)
            elif kind == _XF:
                self._formats.append(codes.get(struct.unpack_from("<H", record, 2)[0], ""))
            elif kind == _SHEET:
                self.starts[self._text(record, 6, 1)] = struct.unpack_from("<I", record)[0]

    def _records(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield the records from an offset to the end of their part, without those of charts in it."""
        depth = 0
        while start + 4 <= len(self._stream):
            kind, size = struct.unpack_from("<HH", self._stream, start)
            is_of_chart = depth + (kind == _BOF) > 1
            depth += (kind == _BOF) - (kind == _EOF)
            if depth <= 0:
                return
            if is_of_chart:
                self._of_charts.append(start)
            else:
                yield kind, self._stream[start + 4 : start + 4 + size]
            start += 4 + size

    def without_charts(self) -> bytes:
        """Return the stream without the charts in the sheets that were read; empty if there are none."""
        changed = bytearray(self._stream if self._of_charts else b"")
        for start in self._of_charts:
            struct.pack_into("<H", changed, start, _IGNORED)
        return bytes(changed)

    def _text(self, record: bytes, at: int, width: int) -> str:
        """Return a text whose length is a number of `width` bytes."""
        count = int.from_bytes(record[at : at + width], "little")
        at += width
        return _characters(record[at:], count) if self._is_unicode else record[at : at + count].decode("cp1252")

    def sheet(self, start: int) -> OldSheet:
        """Return the sheet that starts at an offset."""
        cells: dict[tuple[int, int], Number | None] = {}
        texts, comments = _Texts(), dict[tuple[int, int], int]()
        for kind, record in self._records(start):
            if kind in {_NUMBER, _RK, _ROW_OF_RK, _FORMULA} or kind in _OTHER_CELLS:
                row, column = struct.unpack_from("<HH", record)
                shown = [self._shown(*one) for one in _numbers(kind, record)] or [None]
                cells |= {(row, column + at): one for at, one in enumerate(shown)}
            elif kind == _NOTE and self._is_unicode:
                row, column, _flags, number = struct.unpack_from("<HHHH", record)
                comments[row, column] = number
            else:
                texts.read(kind, record)
        top, left = min((row for row, _ in cells), default=0), min((column for _, column in cells), default=0)
        numbers = {(row - top, column - left): one for (row, column), one in cells.items() if one}
        named = ((_name(*place), texts.found.get(number, "")) for place, number in sorted(comments.items()))
        return OldSheet(numbers, [f"{name}: {text}" for name, text in named if text])

    def _shown(self, style: int, value: float) -> Number | None:
        code = self._formats[style] if style < len(self._formats) else ""
        shown = displayed(repr(value), code) if code else None
        return (value, shown) if shown else None


class _Texts:
    """The texts of the objects of a sheet by their numbers; a text follows its object."""

    def __init__(self) -> None:
        self.found: dict[int, str] = {}
        self._number = self._count = 0

    def read(self, kind: int, record: bytes) -> None:
        if kind == _OBJECT and len(record) >= 8:
            (self._number,) = struct.unpack_from("<H", record, 6)
        elif kind == _OBJECT_TEXT:
            (self._count,) = struct.unpack_from("<H", record, 10)
        elif kind == _CONTINUE and self._count:
            self.found[self._number] = " ".join(_characters(record, self._count).split())
            self._count = 0


def _characters(text: bytes, count: int) -> str:
    """Return characters after a byte that says if each has two bytes."""
    return text[1 : 1 + 2 * count].decode("utf-16-le") if text[0] & 1 else text[1 : 1 + count].decode("latin-1")


def _numbers(kind: int, record: bytes) -> Iterator[tuple[int, float]]:
    """Yield style and value of the numbers of a record, which is a cell or a part of a row."""
    if kind == _NUMBER or (kind == _FORMULA and record[12:14] != b"\xff\xff"):  # otherwise its result is no number
        yield struct.unpack_from("<Hd", record, 4)
    elif kind in {_RK, _ROW_OF_RK}:
        for at in range(4, len(record) - 5, 6):
            style, packed = struct.unpack_from("<HI", record, at)
            yield style, _unpacked(packed)


def _unpacked(packed: int) -> float:
    """Return a number of 30 bits: an integer or the first half of a floating-point number, maybe times 100."""
    (integer,) = struct.unpack("<i", struct.pack("<I", packed))
    number = float(integer >> 2) if packed & 2 else struct.unpack("<d", struct.pack("<II", 0, packed & 0xFFFFFFFC))[0]
    return number / 100 if packed & 1 else number


def _name(row: int, column: int) -> str:
    """Return the name of a cell: B3."""
    letters = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return f"{letters}{row + 1}"


def as_shown(content: str, sheets: dict[str, OldSheet]) -> str:
    """Return the sheets that the parser wrote as "## name" and "| cell | cell |", with numbers as people see them."""
    numbers: dict[tuple[int, int], Number] = {}
    lines, count = [], 0
    for line in content.split("\n"):
        shown = line
        if line.startswith("## "):
            name = line.removeprefix("## ")
            sheet = sheets.get(name) or sheets.get(name.removesuffix(_HIDDEN))
            numbers, count = sheet.numbers if sheet else {}, 0
        elif line.startswith("|"):
            row = count and count - 1  # a rule follows the first row
            cells = line.removeprefix("| ").removesuffix(" |").split(" | ")
            shown = f"| {' | '.join(_cell(cell, numbers.get((row, at))) for at, cell in enumerate(cells))} |"
            count += 1
        lines.append(shown)
    return "\n".join(lines)


def _cell(cell: str, number: Number | None) -> str:
    """Return what a cell shows, if the parser wrote the number that is stored in it."""
    with suppress(ValueError):
        if number and float(cell) == number[0]:
            return number[1].replace("|", "\\|")
    return cell
