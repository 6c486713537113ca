"""Cells are read as people see them; comments are read; sheets that are not read are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documents import mime_types as mt
from documents.document import DEFAULT_LIMITS, Document, Limits
from documents.number_formats import displayed
from documents.reader import read_document
from documents.reading import Note
from tests.documents import small_files
from tests.documents.office_files import open_document, workbook


def _read(tmp_path: Path, data: bytes, mime: str, limits: Limits = DEFAULT_LIMITS) -> Document:
    path = tmp_path / "book"
    path.write_bytes(data)
    return read_document(path, mime, limits=limits)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        ("0.25", "0%", "25%"),
        ("0.2555", "0.0%", "25.6%"),
        ("1200.5", '#,##0.00 "EUR"', "1,200.50 EUR"),
        ("1200.5", "[$€-407] #,##0.00", "€ 1,200.50"),
        ("-3", "#,##0;[Red](#,##0)", "(3)"),
        ("-3", "0.0", "-3.0"),
        ("0", '0;-0;"none"', "none"),
        ("7", "0000", "0007"),
        ("1234567", '#,##0.0,,"M"', "1.2M"),
        ("2.50", "0.##", "2.5"),
        ("1e15", "#,##0", "1,000,000,000,000,000"),
        ("1e29", "0.00%", "10000000000000000000000000000000.00%"),
        ("1e31", "0.00", None),
        ("0.5", r"0.00\ kg", "0.50 kg"),
        ("46329", "yyyy-mm-dd", None),
        ("3.5", "# ?/?", None),
        ("3.5", "General", None),
        ("3.5", "0.00E+00", None),
        ("3.5", "[>2]0;0.0", None),
        ("text", "0", None),
        ("NaN", "0", None),
    ],
)
def test_numbers_are_shown_by_their_format(value: str, code: str, shown: str | None) -> None:
    assert displayed(value, code) == shown


def test_a_workbook_is_read_as_people_see_it() -> None:
    document = small_files.read("xlsx-cells.xlsx")
    assert "Deposit | 2026-11-03 | 1,200.50 EUR | 25% | true" in document.text
    assert "line one line two | a | b" in document.text
    assert [block.heading for block in document.blocks if block.text == "A2: cell comment numbat"] == ["Rent"]
    assert "rich kowari | inline mulgara" in small_files.read("xlsx-raw.xlsx").text
    assert "#N/A" in small_files.read("xlsx-raw.xlsx").text
    assert "2026-11-03 | 25% |" in small_files.read("ods-all.ods").text


def test_comments_of_open_document_are_read_and_its_cells_are_shown(tmp_path: Path) -> None:
    note = "<office:annotation><text:p>ask</text:p><text:p>Anna &amp; Ben</text:p></office:annotation>"
    cell = '<table:table-cell office:value-type="{}" office:value="{}">{}<text:p>{}</text:p></table:table-cell>'
    content = (
        '<table:table table:name="A &amp; B"><table:table-row>'
        + cell.format("currency", "1200.5", note, "1.200,50 €")
        + cell.format("float", "0.5", "", "1/2")
        + '<table:table-cell office:value-type="time" office:time-value="PT01H30M00S"><text:p>1:30</text:p>'
        "</table:table-cell>" + "</table:table-row></table:table>"
    )
    document = _read(tmp_path, open_document(content, kind="spreadsheet"), mt.ODS)
    assert [(block.text, block.heading) for block in document.blocks] == [
        ("A & B", "A & B"),
        ("1.200,50 € | 1/2 | 1:30", "A & B"),
        ("ask Anna & Ben", "A & B"),
    ]


_ROW = '<row r="{0}"><c r="A{0}"><v>{0}</v></c><c r="B{0}" s="1"><v>0.5</v></c></row>'


def test_sheets_that_are_charts_are_named(tmp_path: Path) -> None:
    data = workbook({"Data": _ROW.format(1), "Sales chart": ""}, ("0%",), {"Sales chart": "chartsheet"})
    document = _read(tmp_path, data, mt.XLSX)
    assert "1 | 50%" in document.text
    assert document.reading is not None
    assert document.reading.notes == (Note("sheets_skipped", 1, ("Sales chart",)),)
    assert document.reading.is_partial


def test_sheets_beyond_the_limit_of_cells_are_read_in_part_and_named(tmp_path: Path) -> None:
    rows = "".join(_ROW.format(number) for number in range(1, 11))
    data = workbook({"First": _ROW.format(77), "Second": rows, "Third": rows}, ("0%",))
    document = _read(tmp_path, data, mt.XLSX, replace(DEFAULT_LIMITS, table_cells=9))
    assert document.reading is not None
    assert Note("sheets_skipped", 2, ("Second", "Third")) in document.reading.notes
    assert "77 | 50%" in document.text
    assert "3 | 50%" in document.text
    assert "4 | 50%" not in document.text


def test_rows_that_fill_a_sheet_hide_none_of_its_cells(tmp_path: Path) -> None:
    empty = '<table:table-cell table:number-columns-repeated="16380"/>'
    many = f'<table:table-row table:number-rows-repeated="1048573">{empty}</table:table-row>'
    first, last = (
        f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>' for text in "az"
    )
    rows = [f"{first}<table:table-cell/>{first}{empty}", last]
    box = "<table:shapes><text:p>in a box</text:p></table:shapes>"
    sheet = box + many.join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    data = open_document(f'<table:table table:name="S">{sheet}{many}</table:table>', kind="spreadsheet")
    assert _read(tmp_path, data, mt.ODS).text == "S\n\na |  | a\nz\n\nin a box"
