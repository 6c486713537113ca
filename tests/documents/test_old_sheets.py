"""Cells of old Excel workbooks (.xls) read as people see them, with their comments."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from documents import mime_types as mt
from documents.document import DEFAULT_LIMITS, Document
from documents.reader import read_document
from documents.sheets import prepared
from tests.documents.outlook_files import compound

_FORMATS = {164: '#,##0.00 "EUR"', 165: "d mmm yyyy"}
_STYLES = (0, 9, 164, 165)
"""The format of each style: general, 0%, and those of the workbook."""


def _record(kind: int, layout: str, *values: object) -> bytes:
    content = struct.pack(f"<{layout}", *values)
    return struct.pack("<HH", kind, len(content)) + content


def _begin(kind: int) -> bytes:
    return _record(0x809, "HHHHII", 0x600, kind, 0, 0, 0, 0)


_END = _record(0x0A, "")


def _label(row: int, column: int, text: str) -> bytes:
    return _record(0x204, f"HHHHB{len(text)}s", row, column, 0, len(text), 0, text.encode("latin-1"))


def _comment(row: int, column: int, number: int, text: str) -> bytes:
    characters = text.encode("utf-16-le")
    return (
        _record(0x5D, "HHHHH10x", 0x15, 18, 0x19, number, 0)
        + _record(0x1B6, "10xHHI", len(text), 8, 0)
        + _record(0x3C, f"B{len(characters)}s", 1, characters)
        + _record(0x1C, "HHHH4x", row, column, 0, number)
    )


def _workbook(*sheets: bytes) -> bytes:
    formats = (_record(0x41E, f"HHB{len(one)}s", at, len(one), 0, one.encode()) for at, one in _FORMATS.items())
    styles = (_record(0xE0, "HH16x", 0, one) for one in _STYLES)
    head = _begin(5) + b"".join([*formats, *styles])
    names = [f"Sheet{number}" for number in range(1, len(sheets) + 1)]
    start = len(head) + sum(12 + len(name) for name in names) + len(_END)
    for name, sheet in zip(names, sheets, strict=True):
        head += _record(0x85, f"IHBB{len(name)}s", start, 0, len(name), 0, name.encode())
        start += len(sheet)
    return compound({"Workbook": (head + _END + b"".join(sheets)).ljust(4096, b"\0")})


_CHART = _begin(0x20) + _record(0x203, "HHHd", 0, 0, 1, 0.5) + _END
_CELLS = (
    _label(2, 1, "Wombat")
    + _record(0x203, "HHHd", 2, 2, 1, 0.25)
    + _record(0x27E, "HHHI", 2, 3, 2, 120050 << 2 | 3)
    + _record(0xBD, "HHHIHIH", 4, 2, 1, 1 << 2 | 2, 1, 0x3FE00000, 3)
    + _record(0x06, "HHHdHIH", 5, 2, 2, -3.0, 0, 0, 0)
    + _record(0x203, "HHHd", 5, 3, 3, 46329.0)
    + _record(0x203, "HHHd", 5, 4, 0, 0.25)
)


def _read(tmp_path: Path, data: bytes) -> Document:
    path = tmp_path / "book.xls"
    path.write_bytes(data)
    return read_document(path, mt.XLS)


def test_cells_are_shown_by_their_formats_and_comments_are_read(tmp_path: Path) -> None:
    comment = _comment(2, 27, 7, "Ask the Käufer")
    second = _begin(0x10) + _record(0x203, "HHHd", 0, 0, 1, 0.07) + _END
    document = _read(tmp_path, _workbook(_begin(0x10) + _CELLS + _CHART + comment + _END, second))
    assert document.text.split("\n\n") == [
        "Sheet1",
        "Wombat | 25% | 1,200.50 EUR\n| 100% | 50%\n| -3.00 EUR | 2026-11-03 | 0.25",
        "AB3: Ask the Käufer",
        "Sheet2",
        "7%",
    ]
    assert document.reading is not None
    assert document.reading.notes == ()


def test_a_damaged_workbook_is_left_to_the_parser() -> None:
    rng = random.Random(20260610)
    whole = _workbook(_begin(0x10) + _CELLS + _comment(2, 1, 7, "Note") + _END)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 30)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        assert len(prepared(bytes(data), mt.XLS, DEFAULT_LIMITS).data) == len(data)
