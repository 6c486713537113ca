"""Each small text file gives its text, under its heading."""

from __future__ import annotations

import pytest

from documents.document import Document
from documents.reading import Note
from tests.documents import small_files

_JAPANESE = "大阪の事務所で開かれます"
_RUSSIAN = "Встреча состоится в следующий вторник в три часа дня в офисе в Новосибирске."

_TEXTS = {
    "big5.txt": "會議將於下週二下午三點在臺北辦公室舉行。押金在合約結束後退還。",
    "cp1250.txt": "odbędzie się w przyszły wtorek o godzinie trzeciej w biurze w Łodzi. Zażółć gęślą jaźń.",
    "cp1251.txt": _RUSSIAN,
    "cp1252.txt": "“Smart quotes” – Zoë paid €1,200 for the café in Málaga.",
    "cp1254.txt": "Toplantı gelecek salı günü saat üçte İzmir ofisinde yapılacak. Işık, ğ, ş ve İ harfleri.",
    "cp1256.txt": "في مكتب القاهرة",
    "cp866.txt": _RUSSIAN,
    "euc-jp.txt": _JAPANESE,
    "euc-kr.txt": "부산 사무실에서",
    "gb18030-short.txt": "苏州",
    "gb18030-traditional.txt": "會議將於下週二下午三點在臺北辦公室舉行",
    "gb18030.txt": "会议将于下周二下午三点在苏州办公室举行。",
    "iso-2022-jp.txt": _JAPANESE,
    "iso8859-2.txt": "w biurze w Łodzi. Zażółć gęślą jaźń.",
    "koi8-r.txt": _RUSSIAN,
    "sjis.txt": _JAPANESE,
    "sjis-halfkana.txt": "ｱｲｳｴｵ ﾃﾞｰﾀ 会議",
    "utf16be-nobom-ru.txt": _RUSSIAN,
    "utf16le-nobom-en.txt": "The meeting is in Sheffield.",
    "utf16le-nobom-zh.txt": "在苏州办公室举行",
    "mostly-utf8.log": "café Zürich",
    "xml-declared-latin2.xml": "odbędzie się w Łodzi",
    "xhtml-declared.html": "odbędzie się",
    "html-httpequiv.html": "부산 사무실에서",
    "html-charset-latin1-is-1252.html": "“Smart quotes” cost €5",
    "html-charset-gb2312-is-gbk.html": "朱镕基在苏州办公室",
    "html-charset-sjis-name.html": "①会議は大阪の事務所で",
    "html-charset-ks.html": "부산 사무실에서",
    "html-boiler.html": "The valve & the pump are in the cellar room — below.",
    "html-meta-and-br.html": "Rue de la Paix 5\n75002 Paris",
    "htm-as-txt.txt": "the valve",
    "data.json": "title: Kesselhaus\ntext: Straße nach Zürich: 会议 in 苏州",
    "nb.ipynb": 'The boiler is in the "cellar" of Zürich.',
    "semicolon.csv": 'Müller, Anna | Köln | likes "tea"; no milk\nBauer | Graz | line one line two',
    "cells.tsv": "name | city\nAnna | Graz",
    "conf.yaml": "place: cellar\n  note: Häuser",
    "sub.srt": "The valve is in the\ncellar of the house.",
    "conf.toml": 'valve = "cellar"',
    "code.py": '"""Open the valve."""',
    "script.sh": "echo valve",
    "x.sql": "select valve from cellar;",
    "x.js": "const valve=1",
    "x.vcf": "FN:Änne Müller",
    "empty.txt": "",
}


def _read(name: str, sent: str | None = None) -> Document:
    return small_files.read(name, sent=sent)


@pytest.mark.parametrize(("name", "text"), _TEXTS.items(), ids=_TEXTS)
def test_the_text_is_read(name: str, text: str) -> None:
    assert text in _read(name).text


def test_the_encoding_that_a_part_declares_is_used() -> None:
    document = _read("plain-charset-in-ctype.txt", "text/plain; charset=koi8-r")
    assert _RUSSIAN in document.text
    assert document.reading is not None
    assert (document.reading.encoding, document.reading.certainty, document.reading.notes) == ("koi8-r", 1, ())


def test_a_text_of_rare_characters_is_doubtful_if_it_is_wrong() -> None:
    document = _read("gb18030-rare.txt")
    assert document.reading is not None
    assert (
        "龘龗" in document.text or Note.of("encoding_doubtful", [document.reading.encoding]) in document.reading.notes
    )
    assert not document.reading.is_partial


@pytest.mark.parametrize(
    ("name", "text", "heading"),
    [
        ("md-headings.md", "Cats are fine in the flat.", "Pets"),
        ("md-headings.md", "The deposit is 1200 euro.", "Deposit"),
        ("md-headings.md", "Quiet after ten.", "Noise"),
        ("md-headings.md", "After code: the boiler is in the cellar.", "Noise"),
        ("md-code.md", "The boiler is in the cellar.", "Install"),
        ("md-code.md", "Never open the valve.", "Safety"),
        ("md-code.md", "Hot water text.", "Next"),
        ("rst.rst", "Cats are fine in the flat.", "Pets"),
        ("x.tex", "Cats are fine.\\end{document}", "Pets"),
        ("nb.ipynb", "valve pressure is 12", "Boiler study"),
        ("sub.srt", "The valve is in the\ncellar of the house.", "00:00:01"),
        ("html-boiler.html", "Never open the valve while hot.", "Safety"),
        ("html-div-lost.html", "Keeping a quokka needs the written consent of the landlord.", "Lease"),
        ("html-div-lost.html", "Three months", "Lease"),
        ("html-div-start.html", "The valve is here", "Cellar"),
        ("pic.svg", "The valve is here", "Cellar plan"),
    ],
)
def test_a_text_is_under_its_heading(name: str, text: str, heading: str) -> None:
    assert [block.heading for block in _read(name).blocks if block.text == text] == [heading]


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("html-boiler.html", "scripttext"),
        ("html-boiler.html", "commenttext"),
        ("html-boiler.html", "color:red"),
        ("html-boiler.html", "Products"),
        ("html-boiler.html", "footertext"),
        ("html-div-start.html", "<div"),
        ("nb.ipynb", "iVBORw0KGgo"),
        ("data.json", "\\u"),
    ],
)
def test_what_is_no_text_is_left_out(name: str, absent: str) -> None:
    assert absent not in _read(name).text
