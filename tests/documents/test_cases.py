"""Each small file gives its text, or the refusal says why. Others are in the tests of their kinds."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import Unreadable
from documents.sniff import TypeMismatch
from tests.documents import small_files

_MAIL = ("Der Kessel steht im Keller für alle", "größere Änderung", "valve code is 4711", "harbour crane")
_DECK = ("Slide title 2", "wolverine3", "marmot2", "Grouped ferret", "Sales weasel", "Hidden slide lynx")
_COLUMNS = ("harbour crane that stood beside", "keeper repaired the copper lamp")

_TEXTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("mail.eml", "mail-noext", "mail-noext2"), _MAIL),
    **dict.fromkeys(("pptx-deck.pptx", "deck.pptm", "deck.ppsx", "deck.potx"), _DECK),
    **dict.fromkeys(("pdf-columns.pdf", "pdf-junk-before.pdf", "pdf-truncated.pdf"), _COLUMNS),
    **dict.fromkeys(("docx-as.docm", "docx-as.dotx"), ("Template quoll text.",)),
    **dict.fromkeys(("docx-noext.docx", "docx-imagefirst.docx"), ("No extension quoll.",)),
    "code.ts": ('export const valve = "cellar";',),
    "page.php": ('echo "valve"', "cellar"),
    "x.ics": ("Valve inspection in the cellar",),
    "docx-tracked.docx": ("The rent is twelve hundred euro.", "Moved sentence target."),
    "docx-fields.docx": ("complex link possum", "3 November 2026", "hyper glider", "smart tag taipan", "R&D <tag> 5>3"),
    "docx-sdt.docx": ("Block control platypus", "inline kookaburra", "row control emu", "cell control koala"),
    "docx-textbox.docx": ("Text box wallaby sentence.",),
    "docx-textbox-sdt.docx": ("Quoted box echidna.",),
    "docx-vml.docx": ("VML box cassowary.",),
    "epub-spine.epub": ("Tawny owl text", "Div text siskin", "Quote linnet"),
    "odt-template.ott": ("Template text shrike",),
    "rtf-all.rtf": ("Привет world € price", "link pika", "Foot rtf pika"),
    "rtf-gbk-mixed.rtf": ("Hello 苏州办公室 café",),
    "rtf-sjis.rtf": ("大阪の事務所",),
    "xlsx-300.xlsx": ("g2 | person299 | Graz",),
    "pdf-cjk.pdf": ("会議は大阪の事務所で", "会议在苏州办公室", "會議在臺北辦公室"),
    "pdf-cjk-lines.pdf": ("房东退还给租客",),
    "pdf-dup.pdf": ("Shadowed heading text",),
    "pdf-fakebold.pdf": ("股票代码：300218", "Date 27 March 2012"),
    "pdf-form.pdf": ("n: Wilhelmina Quokka", "city: Graz"),
    "pdf-headings.pdf": ("quokka needs consent", "second bullet numbat", "Copper pipe"),
    "pdf-hyphen-para.pdf": ("extraordinary expenses", "maintenance"),
    "pdf-invisible.pdf": ("OCR layer text wombat",),
    "pdf-japanese.pdf": ("大阪の事務所で開かれます", "返されます"),
    "pdf-kern.pdf": ("The tower of the company",),
    "pdf-korean.pdf": ("부산 사무실에서 열립니다", "계약이 끝나면"),
    "pdf-ligature.pdf": ("The final office floor plan is effective.",),
    "pdf-russian.pdf": ("в офисе в Новосибирске",),
    "pdf-softhyphen.pdf": ("extraordinary notice",),
    "pdf-super.pdf": ("Energy costs rose", "See the footnote about the mill."),
    "pdf-table.pdf": ("Copper pipe | 12 | 3.40",),
    "pdf-hindi.pdf": ("मंगलवार को दोपहर तीन बजे",),
    "pdf-thai.pdf": ("วันอังคารหน้าเวลาบ่ายสามโมง",),
    "notes.zip": ("the valve is in the cellar",),
    "n-255.txt": ("long name valve",),
    "n-300.txt": ("longer name valve 300",),
    "n-cjk255.txt": ("cjk name valve",),
    "n-con.txt": ("con name valve",),
    "n-dot.txt": ("dot name valve",),
    "n-dots.txt": ("dots name valve",),
    "n-emoji.txt": ("emoji name valve",),
    "n-none.txt": ("none name valve",),
    "n-path.txt": ("path name valve",),
    "n-rtl.txt": ("rtl name valve",),
    "n-space.txt": ("space name valve",),
    "n-upper.TXT": ("upper name valve",),
    "n-win.txt": ("win name valve",),
}
_ABSENT: dict[str, str] = {
    "docx-tracked.docx": "Moved sentence origin",
    "docx-fields.docx": "HYPERLINK",
    "epub-spine.epub": "owltext",
    "mail.eml": "=?utf-8",
    "pdf-dup.pdf": "heading text\nShadowed",
    "rtf-all.rtf": "hidden",
}
_REFUSED: dict[str, tuple[type[Exception], str]] = {
    "notes.txt.gz": (Unreadable, "contain no text that can be read"),
    "pdf-named.doc": (TypeMismatch, "content is application/pdf"),
    "pdf-named.txt": (TypeMismatch, "content is application/pdf"),
    "pdf-pw.pdf": (Unreadable, "protected by a password"),
}
_WITHOUT_TEXT = (
    *("scan.png", "scan-72dpi.png", "scan-180.pdf", "scan-rot90.pdf", "scan-columns.pdf", "scan-skew.pdf"),
    *("scan-ja.pdf", "scan-ko.pdf", "scan-zh.pdf"),
)


@pytest.mark.parametrize(("name", "texts"), _TEXTS.items(), ids=_TEXTS)
def test_the_text_is_read(name: str, texts: tuple[str, ...]) -> None:
    found = small_files.read(name).text
    assert [text for text in texts if text not in found] == []
    if name in _ABSENT:
        assert _ABSENT[name] not in found


@pytest.mark.parametrize(("name", "refusal"), _REFUSED.items(), ids=_REFUSED)
def test_a_refusal_says_why(name: str, refusal: tuple[type[Exception], str]) -> None:
    error, words = refusal
    with pytest.raises(error, match=words):
        small_files.read(name)


@pytest.mark.parametrize("name", _WITHOUT_TEXT)
def test_scans_say_that_they_are_not_read_without_recognition(name: str) -> None:
    document = small_files.read(name)
    assert document.text == ""
    if name.endswith(".pdf"):
        assert document.reading is not None
        assert document.reading.is_partial


def test_every_small_file_has_a_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for name in small_files.NAMES if f'"{name}"' not in tests] == []
