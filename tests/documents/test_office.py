"""Titles of slides, marks, types that are not supported and protected files of office programs."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from core.errors import Unreadable
from documents import mime_types as mt
from documents import reader_child
from documents.document import split
from documents.reader import read_document
from documents.sniff import OLE_MAGIC, sniff
from tests.documents import small_files
from tests.documents.office_files import docx, package, paragraph, with_related, workbook

_DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_SHOWN = f"<x {_DRAWING}><a:p><a:r><a:t>Shown </a:t></a:r><a:r><a:t>%s</a:t></a:r></a:p></x>"
_CHART = (
    f'<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" {_DRAWING}><a:p><a:r><a:t>Sales</a:t>'
    "</a:r></a:p><c:v>Graz</c:v><c:v>12</c:v></c:chart>"
)


def _read(tmp_path: Path, data: bytes, mime: str) -> list[tuple[str, int | None, str | None]]:
    path = tmp_path / "file"
    path.write_bytes(data)
    document = read_document(path, mime)
    assert document.reading is not None
    assert document.reading.notes == ()
    return [(block.text, block.page, block.heading) for block in document.blocks]


def test_diagrams_charts_and_inserted_files_of_word_are_read(tmp_path: Path) -> None:
    picture = '<w:p><w:r><wp:docPr id="1" xmlns:wp="x" descr="A &quot;cat&quot;"/></w:r></w:p>'
    data = docx(paragraph("Pets", '<w:outlineLvl w:val="0"/>') + paragraph("Cats are fine.") + picture)
    more = {
        "word/diagrams/data1.xml": ("diagramData", _SHOWN % "plan"),
        "word/charts/chart1.xml": ("chart", _CHART),
        "word/charts/broken.xml": ("chart", "<broken"),
        "word/chunk.htm": ("aFChunk", "<html><p>Dogs are not.</html>"),
    }
    found = _read(tmp_path, with_related(data, "word/document.xml", more), mt.DOCX)
    assert found[:5] == [
        ("Pets", None, "Pets"),
        ("Cats are fine.", None, "Pets"),
        ('A "cat"', None, None),
        ("Shown plan", None, None),
        ("Sales", None, None),
    ]
    assert found[5:] == [
        ("Graz, 12", None, None),
        ("chunk.htm", None, "chunk.htm"),
        ("Dogs are not.", None, "chunk.htm"),
    ]


def test_text_boxes_and_charts_of_sheets_are_read(tmp_path: Path) -> None:
    data = workbook({"Rent": '<row r="1"><c r="A1" t="inlineStr"><is><t>cell</t></is></c></row>'})
    data = with_related(data, "xl/worksheets/sheet1.xml", {"xl/drawings/drawing1.xml": ("drawing", _SHOWN % "box")})
    data = with_related(data, "xl/drawings/drawing1.xml", {"xl/charts/chart1.xml": ("chart", _CHART)})
    found = _read(tmp_path, data, mt.XLSX)
    assert found[-2:] == [("Shown box", None, "Rent"), ("Sales", None, "Rent")]


def test_comments_on_slides_are_read(tmp_path: Path) -> None:
    main = "http://schemas.openxmlformats.org/presentationml/2006/main"
    comment = f'<p:cmLst xmlns:p="{main}"><p:text>Check it</p:text></p:cmLst>'
    more = {"ppt/comments/comment1.xml": ("comments", comment), "ppt/comments/new.xml": ("comments", _SHOWN % "again")}
    data = with_related((small_files.FOLDER / "pptx-deck.pptx").read_bytes(), "ppt/slides/slide2.xml", more)
    found = _read(tmp_path, data, mt.PPTX)
    assert [one for one in found if one[0] in {"Check it", "Shown again"}] == [
        ("Check it", 2, "Slide title 2"),
        ("Shown again", 2, "Slide title 2"),
    ]


@pytest.mark.parametrize(
    ("name", "part", "of"),
    [
        ("pptx-deck.pptx", "wolverine3", b"http://schemas.openxmlformats.org/"),
        ("xlsx-cells.xlsx", "1,200.50 EUR", b"http://schemas.openxmlformats.org/"),
        ("docx-textbox.docx", "Text box wallaby sentence.", b"word/document.xml"),
    ],
)
def test_office_files_of_other_names_are_read(tmp_path: Path, name: str, part: str, of: bytes) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(small_files.FOLDER / name) as archive, zipfile.ZipFile(data, "w") as written:
        for member in archive.namelist():
            content = archive.read(member)
            if of.startswith(b"http"):  # Strict Open XML
                content = re.sub(
                    rb"http://schemas.openxmlformats.org/(\w+)/2006/", rb"http://purl.oclc.org/ooxml/\1/", content
                )
            content = content.replace(b"word/document.xml", b"word/document2.xml")
            written.writestr(member.replace("document.xml", "document2.xml"), content)
    path = tmp_path / name
    path.write_bytes(data.getvalue())
    assert part in read_document(path, sniff(data.getvalue(), name, None)).text


@pytest.mark.parametrize("name", ["pptx-deck.pptx", "deck.pptm", "deck.ppsx", "deck.potx"])
def test_titles_of_slides_are_headings(name: str) -> None:
    passages = split(small_files.read(name))
    found = {passage.page: passage.heading for passage in passages}
    titles = {1: "Slide title 1", 2: "Slide title 2", 3: "Slide title 3", 4: None, 5: "Hidden slide lynx"}
    assert found == titles
    text = small_files.read(name).text
    for expected in ("wolverine3", "marmot2", "Loose box badger", "cell otter", "Grouped ferret", "Polecat east"):
        assert expected in text
    assert text.count("Slide title 2") == 1


def test_slides_of_open_document_have_titles_shapes_and_notes() -> None:
    document = small_files.read("odp-all.odp")
    places = {block.text: (block.page, block.heading) for block in document.blocks}
    assert places == {
        "Odp title dunlin": (1, "Odp title dunlin"),
        "Odp body knot": (1, "Odp title dunlin"),
        "Odp note ruff": (1, "Odp title dunlin"),
        "Shape text snipe": (2, None),
        "Group text teal": (2, None),
    }
    assert document.reading is not None
    assert (document.reading.pages, document.reading.notes) == (2, ())


def test_titles_of_old_slides_are_headings() -> None:
    """The parser gives titles of .ppt only in the nodes of slides."""
    contents: list[dict[str, Any]] = [
        {"node_type": "slide", "number": 1, "title": "Things to think about"},
        {"node_type": "paragraph", "text": "Things to think about"},
        {"node_type": "paragraph", "text": "Heating"},
        {"node_type": "slide", "number": 2, "title": None},
        {"node_type": "paragraph", "text": "Cellar"},
    ]
    nodes = [SimpleNamespace(page=None, content=orjson.dumps(content).decode()) for content in contents]
    assert list(reader_child._of_nodes(nodes)) == [  # type: ignore[arg-type]
        ("slide", 1, "Things to think about"),
        ("paragraph", 1, "Heating"),
        ("slide", 2, ""),
        ("paragraph", 2, "Cellar"),
    ]


def test_numbers_of_notes_and_comments_are_left_out() -> None:
    text = small_files.read("docx-parts.docx").text
    assert "Body with note commented" in text
    assert all(word in text for word in ("quokka", "wombat", "numbat", "dingo", "bilby"))


def test_open_document_with_an_external_doctype_is_read() -> None:
    assert small_files.read("odt-doctype.odt").text == "Plain OOo avocet."


def test_binary_workbooks_are_not_supported(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.bin", b"\x83\x01\x00")
    path = tmp_path / "book.xlsb"
    path.write_bytes(data.getvalue())
    with pytest.raises(Unreadable, match=r"Binary workbooks \(\.xlsb\) are not supported: save it as \.xlsx"):
        read_document(path, mt.XLSX)


@pytest.mark.parametrize("is_protected", [True, False])
def test_a_protected_word_document_says_so(tmp_path: Path, is_protected: bool) -> None:
    header = struct.pack("<HHHHHH", 0xA5EC, 0x00C1, 0, 0x409, 0, 0x0100 if is_protected else 0)
    data = OLE_MAGIC + bytes(504) + header + bytes(500)
    path = tmp_path / "letter.doc"
    path.write_bytes(data)
    with pytest.raises(Unreadable, match="encrypted or protected" if is_protected else "damaged"):
        read_document(path, mt.DOC)


def test_a_pdf_with_a_password_is_protected_and_one_with_restrictions_is_read() -> None:
    with pytest.raises(Unreadable, match="protected by a password"):
        small_files.read("pdf-pw.pdf")
    assert "Owner password only numbat" in small_files.read("pdf-userpw.pdf").text


def test_an_archive_that_is_named_as_a_document_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "photos.docx"
    path.write_bytes(package({"a.bin": "0123456789" * 2000}))
    with pytest.raises(Unreadable, match="ZIP archive, not a document"):
        read_document(path, mt.DOCX)


@pytest.mark.parametrize(
    ("method", "is_protected"),
    [("http://www.w3.org/2001/04/xmlenc#aes128-cbc", True), ("http://www.idpf.org/2008/embedding", False)],
)
def test_a_protected_book_says_so(tmp_path: Path, method: str, is_protected: bool) -> None:
    encryption = f'<encryption><EncryptedData><EncryptionMethod Algorithm="{method}"/></EncryptedData></encryption>'
    path = tmp_path / "book.epub"
    path.write_bytes(package({"META-INF/container.xml": "<container/>", "META-INF/encryption.xml": encryption}))
    with pytest.raises(Unreadable) as error:
        read_document(path, mt.EPUB)
    assert ("encrypted or protected" in str(error.value)) is is_protected
