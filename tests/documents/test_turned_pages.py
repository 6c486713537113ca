"""Scanned pages that are turned, and their columns, are read as people read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from documents import ocr
from documents.document import Box
from documents.ocr import turned
from documents.ocr_child import in_reading_order
from tests.documents import small_files


def _lines(*places: tuple[str, float, float, float]) -> list[tuple[str, Box, float]]:
    return [(text, (left, top, right, top + 0.02), 1.0) for text, left, right, top in places]


def test_columns_are_read_one_after_the_other() -> None:
    rows = [
        (f"{side}{row}", left, left + 0.4, 0.2 + row / 20)
        for row in range(4)
        for side, left in (("l", 0.05), ("r", 0.55))
    ]
    lines = _lines(("title", 0.1, 0.9, 0.1), *rows, ("end", 0.1, 0.9, 0.6))
    assert [text for text, _box, _score in in_reading_order(lines)] == [
        *("title", "l0", "l1", "l2", "l3", "r0", "r1", "r2", "r3", "end"),
    ]


def test_tables_are_read_by_rows() -> None:
    rows = [
        (f"{side}{row}", left, left + 0.1, 0.2 + row / 20)
        for row in range(4)
        for side, left in (("a", 0.1), ("b", 0.6))
    ]
    lines = _lines(*rows)
    assert in_reading_order(lines) == lines
    assert in_reading_order([]) == []


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        (0, (0.1, 0.2, 0.5, 0.3)),
        (90, (0.7, 0.1, 0.8, 0.5)),
        (180, (0.5, 0.7, 0.9, 0.8)),
        (270, (0.2, 0.5, 0.3, 0.9)),
    ],
)
def test_places_are_those_of_the_stored_page(turn: int, place: Box) -> None:
    assert turned((0.1, 0.2, 0.5, 0.3), turn) == place


@pytest.mark.slow
@pytest.mark.skipif(not ocr.is_available("rapidocr"), reason="the extra `ocr` is not installed")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scan-rot90.pdf", "This contract is about the mill."),
        pytest.param("scan-180.pdf", "This contract is about the mill.", marks=pytest.mark.torture),
        pytest.param("scan-stamp.pdf", "This contract is about the mill.", marks=pytest.mark.torture),
        pytest.param("scan-skew.pdf", "This contract is about the mill.", marks=pytest.mark.torture),
        ("scan-columns.pdf", "harbour crane that stood beside the old mill"),
    ],
)
def test_scans_are_recognized_however_they_lie(tmp_path: Path, name: str, text: str) -> None:
    document = small_files.read(name, ocr=ocr.Ocr("rapidocr", tmp_path))
    assert text in document.text
    assert document.reading is not None
    assert document.reading.notes == ()
