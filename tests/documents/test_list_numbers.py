"""Automatic numbers of headings, clauses and lists are part of the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from documents import mime_types as mt
from documents.list_numbers import formatted, with_numbers
from documents.reader import read_document
from tests.documents.office_files import docx, levels, open_document, paragraph


def _texts(tmp_path: Path, data: bytes, mime: str) -> list[str]:
    path = tmp_path / "file"
    path.write_bytes(data)
    return [line for block in read_document(path, mime).blocks for line in block.text.split("\n")]


def _numbered(text: str, level: int, number: int = 1) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def _list(key: int, content: str) -> str:
    return f'<w:abstractNum w:abstractNumId="{key}">{content}</w:abstractNum>'


def _use(number: int, key: int, override: str = "") -> str:
    return f'<w:num w:numId="{number}"><w:abstractNumId w:val="{key}"/>{override}</w:num>'


_CLAUSES = levels(("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"))


def test_clauses_of_word_have_their_numbers(tmp_path: Path) -> None:
    body = (
        _numbered("Parties", 0)
        + _numbered("Rent", 0)
        + _numbered("Due date", 1)
        + _numbered("Deposit", 1)
        + _numbered("amount", 2)
        + _numbered("return", 2)
        + paragraph("Without a number")
        + _numbered("Pets", 0)
        + _numbered("Cats", 1)
    )
    assert _texts(tmp_path, docx(body, _list(0, _CLAUSES) + _use(1, 0)), mt.DOCX) == [
        *("1. Parties", "2. Rent", "2.1 Due date", "2.2 Deposit", "(a) amount", "(b) return"),
        *("Without a number", "3. Pets", "3.1 Cats"),
    ]


def test_styles_of_word_give_numbers_and_lists_start_again(tmp_path: Path) -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Clause"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr>'
        "</w:style>"
        '<w:style w:type="paragraph" w:styleId="Sub"><w:basedOn w:val="Clause"/></w:style>'
    )
    override = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    body = (
        paragraph("First", '<w:pStyle w:val="Clause"/>')
        + paragraph("Second", '<w:pStyle w:val="Sub"/>')
        + paragraph("None", '<w:pStyle w:val="Clause"/><w:numPr><w:numId w:val="0"/></w:numPr>')
        + _numbered("Again", 0, 2)
        + _numbered("Bullet", 0, 3)
        + "<w:tbl><w:tr><w:tc>"
        + _numbered("in a cell", 0, 2)
        + "</w:tc></w:tr></w:tbl>"
    )
    numbering = (
        _list(0, levels(("chineseCountingThousand", "第%1条")))
        + _list(1, levels(("bullet", "·")))
        + _use(1, 0)
        + _use(2, 0, override)
        + _use(3, 1)
    )
    assert _texts(tmp_path, docx(body, numbering, styles), mt.DOCX) == [
        *("第一条 First", "第二条 Second", "None", "第一条 Again", "Bullet", "第二条 in a cell"),
    ]


def test_outline_levels_and_styles_of_other_languages_are_headings_in_word(tmp_path: Path) -> None:
    style = '<w:style w:type="paragraph" w:styleId="{}"><w:name w:val="{}"/><w:basedOn w:val="{}"/></w:style>'
    styles = style.format("a3", "標題 1", "a1") + style.format("Section", "Abschnitt", "U1")
    styles += style.format("U1", "Überschrift 1", "a1") + style.format("a1", "Normal", "")
    headings = [
        paragraph("By level", '<w:pStyle w:val="a1"/><w:outlineLvl w:val="1"/>'),
        paragraph("By name", '<w:pStyle w:val="a3"/>'),
        paragraph("By base", '<w:pStyle w:val="Section"/>'),
    ]
    body = "".join(heading + paragraph("Text.", '<w:pStyle w:val="a1"/>') for heading in headings)
    body += paragraph("No heading", '<w:outlineLvl w:val="9"/>')
    path = tmp_path / "outline.docx"
    path.write_bytes(docx(body, styles=styles))
    blocks = read_document(path, mt.DOCX).blocks
    names = ["By level", "By name", "By base"]
    assert [block.text for block in blocks if block.kind == "heading"] == names
    assert [block.heading for block in blocks if block.kind != "heading"] == [*names, "By base"]


def test_moved_text_is_where_it_was_moved_to(tmp_path: Path) -> None:
    moved = '<w:p><w:{0} w:id="3" w:author="A"><w:r><w:t>{1}</w:t></w:r></w:{0}></w:p>'
    body = moved.format("moveFrom", "Old place.") + _numbered("Between", 0) + moved.format("moveTo", "New place.")
    texts = _texts(tmp_path, docx(body, _list(0, _CLAUSES) + _use(1, 0)), mt.DOCX)
    assert texts == ["1. Between", "New place."]


def test_lists_and_headings_of_open_document_have_their_numbers(tmp_path: Path) -> None:
    styles = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
        'style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix="" '
        'text:display-levels="2"/></text:list-style>'
        '<text:outline-style style:name="O"><text:outline-level-style text:level="1" style:num-format="I"/>'
        "</text:outline-style>"
    )
    item = "<text:list-item>{}</text:list-item>"
    text = "<text:p>{}</text:p>"
    inner = f"<text:list>{item.format(text.format('Due date'))}{item.format(text.format('Deposit'))}</text:list>"
    content = (
        '<text:h text:outline-level="1">Lease</text:h><text:list text:style-name="L">'
        + item.format(text.format("Parties"))
        + item.format(text.format("Rent") + text.format("more of it") + inner)
        + '</text:list><text:list text:style-name="L" text:continue-numbering="true">'
        + "<text:list-header><text:p>By consent</text:p></text:list-header>"
        + item.format(text.format("Pets"))
        + '</text:list><text:h text:outline-level="1">Annex</text:h>'
    )
    assert _texts(tmp_path, open_document(content, styles), mt.ODT) == [
        *(
            "I Lease",
            "1. Parties",
            "2. Rent",
            "more of it",
            "2.1 Due date",
            "2.2 Deposit",
            "By consent",
            "3. Pets",
            "II Annex",
        ),
    ]


def test_numbers_of_rtf_are_kept_and_bullets_are_not(tmp_path: Path) -> None:
    data = (
        rb"{\rtf1\ansi {\listtext\pard\plain\f0 4.2\tab}{\pard\ls1 Deposit clause\par}"
        rb"{\listtext\pard\plain \'b7\tab}{\pard a bullet\par}{\pntext\pard (b)\tab}{\pard old list\par}}"
    )
    assert _texts(tmp_path, data, mt.RTF) == ["4.2 Deposit clause", "a bullet", "(b) old list"]


def test_letters_of_old_macs_are_read_in_rtf(tmp_path: Path) -> None:
    assert _texts(tmp_path, rb"{\rtf1\mac Caf\'8e\par}", mt.RTF) == ["Café"]
    assert _texts(tmp_path, rb"{\rtf1\pc Caf\'82\par}", mt.RTF) == ["Café"]


def test_breaks_of_pages_divide_words_in_word(tmp_path: Path) -> None:
    runs = '<w:p><w:r><w:t>one</w:t><w:br w:type="page"/><w:t>two</w:t><w:cr/><w:t>three</w:t></w:r></w:p>'
    assert _texts(tmp_path, docx(runs), mt.DOCX) == ["one", "two", "three"]


def test_characters_of_two_numbers_and_ends_of_pages_are_read_in_rtf(tmp_path: Path) -> None:
    data = rb"{\rtf1\ansi Moon \u-10179?\u-8704? and \u55357\'3f\u56832\'3f\page next\par}"
    assert _texts(tmp_path, data, mt.RTF) == ["Moon \N{GRINNING FACE} and \N{GRINNING FACE}", "next"]


def test_comments_and_notes_of_rtf_are_read_without_their_data(tmp_path: Path) -> None:
    data = (
        rb"{\rtf1\ansi {\header Cellar plan\par}The valve{\*\atnid AM}"
        rb"\chatn{\*\annotation{\*\atndate 123}\pard check it} is"
        rb"{\footnote a pump} {\f0 \deleted\revauthdel1 not \{so\} }open.}"
    )
    assert _texts(tmp_path, data, mt.RTF) == ["Cellar plan", "The valve is open.", "check it", "a pump"]


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (4, "lowerRoman", "iv"),
        (1999, "I", "MCMXCIX"),
        (28, "a", "bb"),
        (3, "upperLetter", "C"),
        (7, "decimalZero", "07"),
        (21, "chineseCounting", "二十一"),
        (10, "一, 二, 三, ...", "十"),
        (105, "chineseCounting", "一〇五"),
        (0, "a", "0"),
        (5, "unknown", "5"),
    ],
)
def test_numbers_are_written_as_office_programs_do(number: int, kind: str, text: str) -> None:
    assert formatted(number, kind) == text


def test_damaged_parts_stay_as_they_are() -> None:
    data = docx("<w:p", _list(0, _CLAUSES))
    assert with_numbers(data, mt.DOCX) == data
