"""Pages of PDFs that the parser reads wrongly are read with pdfium; comments and embedded files are read."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pypdfium2
import pytest

from documents import mime_types as mt
from documents.document import Document
from documents.pdf_text import PdfText, _Letter, _logical, _paragraphs, undivided
from documents.reader import read_document
from documents.reading import Note
from tests.documents import small_files
from tests.documents.pdf_files import pdf


def _read(tmp_path: Path, data: bytes) -> Document:
    path = tmp_path / "paper.pdf"
    path.write_bytes(data)
    return read_document(path, mt.PDF)


def _line(text: str, top: float = 700, size: float = 10) -> list[_Letter]:
    """Return a line as it is drawn, from the left; a space is a gap."""
    places = [(at * size / 2, one) for at, one in enumerate(text) if one != " "]
    return [_Letter(one, left, top - size, left + size / 2, top) for left, one in places]


@pytest.mark.parametrize(
    ("drawn", "read"),
    [
        ("הפיחב דרשמב", "במשרד בחיפה"),
        (".הפיחב 15:30 העשב", "בשעה 15:30 בחיפה."),
        ("(Port 25%) דרשמב", "במשרד (Port 25%)"),
        ("the word הפיח is a name", "the word חיפה is a name"),
        ("ﺔﺒﺘﻜﻤ", "مكتبة"),
        ("ﻻ", "لا"),
        ("plain words", "plain words"),
    ],
)
def test_lines_are_read_in_the_order_of_their_script(drawn: str, read: str) -> None:
    assert _logical(_line(drawn)) == read


def test_letters_that_one_sign_stands_for_keep_their_order() -> None:
    line = _line("مﻻس")
    one_sign = [replace(line[1], text=letter) for letter in "لا"]  # pdfium gives both the place of the sign
    assert _logical([line[0], *one_sign, line[2]]) == "سلام"


def test_lines_of_right_to_left_pages_become_paragraphs_under_headings() -> None:
    lines = [_line("הזוח", 740, 16), _line("תחא", 700), _line("םייתש", 688), _line("שולש", 676), _line("עברא", 640)]
    assert list(_paragraphs(lines, 3)) == [
        ("heading", 3, "חוזה"),
        ("paragraph", 3, "אחת שתיים שלוש"),
        ("paragraph", 3, "ארבע"),
    ]


def test_right_to_left_pages_are_in_logical_order() -> None:
    assert small_files.read("pdf-hebrew.pdf").text == "הפגישה תתקיים במשרד בחיפה"
    arabic = small_files.read("pdf-arabic.pdf")  # its font has no meaning for some letters
    assert arabic.text.startswith("سيعقد ")
    assert arabic.text.endswith("رقم 4711.")
    assert "نهاية" in arabic.text
    assert "مكتب" in arabic.text
    assert [block.page for block in arabic.blocks] == [1]


def test_vertical_text_is_read_by_columns(tmp_path: Path) -> None:
    columns = ("会議は大阪の事務所で", "開かれます。皆様の", "ご参加をお願いします")
    letters = [(400 - 24 * x, 700 - 18 * y, one) for x, text in enumerate(columns) for y, one in enumerate(text)]
    document = _read(tmp_path, pdf(letters))
    assert document.text == "".join(columns)
    assert [block.page for block in document.blocks] == [1]


def test_letter_spaced_words_are_joined(tmp_path: Path) -> None:
    data = pdf([(60, 680, "IMPORTANT NOTICE ABOUT HEATING")], spacing=4)
    assert _read(tmp_path, data).text == "IMPORTANT NOTICE ABOUT HEATING"


def test_divided_words_are_joined() -> None:
    document = small_files.read("pdf-hyphen.pdf")
    for expected in ("extraordinary notice", "tenant keeps", "wheelbarrow", "well-known place"):
        assert expected in document.text
    assert document.reading is not None
    assert (document.reading.notes, document.blocks[0].page) == ((), 1)
    assert undivided("A-\nB, 3-\nx, ten-\nAnt") == "A-\nB, 3-\nx, ten-\nAnt", "only words in small letters go on"


def test_comments_and_embedded_files_are_read() -> None:
    assert [(block.text, block.page) for block in small_files.read("pdf-annot.pdf").blocks] == [
        ("Body.", 1),
        ("Sticky note numbat", 1),
    ]
    attached = {block.text: block.heading for block in small_files.read("pdf-attach.pdf").blocks}
    assert attached["numbat 42"] == "invoice.xml"
    for name in ("pdf-annot.pdf", "pdf-attach.pdf"):
        reading = small_files.read(name).reading
        assert reading is not None
        assert reading.notes == ()


def test_text_that_was_written_on_a_page_is_read(tmp_path: Path) -> None:
    path = tmp_path / "form.pdf"
    typed = b"<</Type/Annot/Subtype/FreeText/Rect[60 600 200 620]/Contents(Typed on it)>>"
    address = b"<</Type/Annot/Subtype/Link/Rect[60 500 200 520]/Contents(an address)>>"
    path.write_bytes(pdf([(60, 700, "Printed.")], annotations=typed + address))
    assert [block.text for block in read_document(path, mt.PDF).blocks] == ["Printed.", "Typed on it"]


def test_a_file_that_is_attached_to_a_page_is_read(tmp_path: Path) -> None:
    path = tmp_path / "form.pdf"
    file = b"<</Type/Annot/Subtype/FileAttachment/Rect[60 600 80 620]/FS<</UF(note.txt)/F(note.txt)/EF<</F 99 0 R>>>>>>"
    stored = b"\n99 0 obj<</Type/EmbeddedFile/Length 16>>stream\nattached quokka.\nendstream\nendobj\nxref"
    path.write_bytes(pdf([(60, 700, "Printed.")], annotations=file).replace(b"\nxref", stored, 1))
    found = [(block.text, block.heading) for block in read_document(path, mt.PDF).blocks]
    assert found == [("Printed.", None), ("note.txt", "note.txt"), ("attached quokka.", "note.txt")]


def test_embedded_files_that_cannot_be_read_are_noted(tmp_path: Path) -> None:
    document = pypdfium2.PdfDocument(pdf([(60, 700, "Body of the letter.")]))
    document.new_attachment("deep.bin").set_data(bytes(range(256)))
    output = io.BytesIO()
    document.save(output)
    reading = _read(tmp_path, output.getvalue()).reading
    assert reading is not None
    assert reading.notes == (Note("parts_skipped", 1, ("deep.bin",)),)


def test_a_scan_with_a_stamp_is_not_read_whole() -> None:
    document = small_files.read("scan-stamp.pdf")
    assert document.text == "Scanned with CamScanner"
    assert document.reading is not None
    assert document.reading.notes == (Note("pages_without_text", 1, ("1",)),)
    assert document.reading.pages_read == 0


def test_pages_that_pdfium_cannot_open_are_left_to_the_parser() -> None:
    rows = [("paragraph", 1, "שלום"), ("paragraph", 2, "a b c d e f")]
    with PdfText(b"%PDF-1.4 nothing") as text:
        assert list(text.rows(rows)) == rows
        assert text.scans(rows) == []
        assert list(text.attachments()) == []


def test_clauses_keep_their_numbers(tmp_path: Path) -> None:
    """The parser's items lack the numbers by which a contract is cited."""
    text = """The parties agree on the clauses of this lease.
4. Fourth clause is about pets
5. Fifth clause is about rent

Some words between the lists of clauses.

(b) second option of the tenant
(c) third option of it

Some words between the options and letters.

A. Pets are allowed
B. Rent is due
C. Pets are allowed"""
    drawn = [(50.0, 800.0 - at * 16, line) for at, line in enumerate(text.split("\n")) if line]
    found = _read(tmp_path, pdf(drawn)).text.split("\n")
    assert [line for _x, _y, line in drawn if line not in found] == []
