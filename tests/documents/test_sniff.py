"""The bytes of a file determine its type."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import mime_types as mt
from documents.mime_types import content_type_of, extension_of
from documents.sniff import TypeMismatch, sniff
from tests import bombs

_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(20)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)
_ELF = b"\x7fELF\x02\x01\x01" + bytes(57)
_MP3_FRAME = b"\xff\xfb\x90\x00" + bytes(413)  # 128 kbit/s at 44.1 kHz: 417 bytes
_PLAIN_ZIP = bombs.archive([bombs.Member("a.txt", b"hello")])

_SIGNATURES = {
    "image/png": _PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    "image/gif": b"GIF89a\x01\x00\x01\x00\x00",
    "image/webp": b"RIFF\x24\x00\x00\x00WEBPVP8 ",
    "image/bmp": b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00",
    "image/tiff": b"II*\x00\x08\x00\x00\x00\x01\x00",
    "image/heic": b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic",
    "image/avif": b"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1miaf",
    mt.SVG: b'<?xml version="1.0"?><!-- drawn --><svg xmlns="http://www.w3.org/2000/svg"/>',
    "audio/mpeg": _MP3_FRAME * 2,
    "audio/wav": b"RIFF\x24\x00\x00\x00WAVEfmt ",
    "audio/flac": b"fLaC\x00\x00\x00\x22",
    "audio/ogg": b"OggS\x00\x02" + bytes(22) + b"\x01\x1e\x01vorbis",
    "audio/mp4": b"\x00\x00\x00\x20ftypM4A \x00\x00\x00\x00M4A mp42isom\x00\x00\x00\x00",
    "audio/aac": (b"\xff\xf1\x50\x80\x02\x1f\xfc" + bytes(9)) * 2,
    "audio/amr": b"#!AMR\n\x3c" + bytes(31),
    "audio/aiff": b"FORM\x00\x00\x00\x2eAIFFCOMM",
    mt.PDF: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    mt.RTF: rb"{\rtf1\ansi hello}",
    mt.HTML: b"\xef\xbb\xbf\n<!-- saved --><!DOCTYPE html><p>hello</p>",
    mt.XML: b'<?xml version="1.0"?><a/>',
    mt.ZIP: _PLAIN_ZIP,
    mt.DOCX: bombs.docx(bombs.paragraph("hello")),
    mt.XLSX: bombs.archive(bombs.xlsx_members("")),
    mt.ODT: bombs.odf(mt.ODT, ""),
    mt.EPUB: bombs.zip_bomb_epub()[2][:2000],
    mt.DOC: _OLE + "WordDocument".encode("utf-16-le"),
    mt.XLS: _OLE + "Workbook".encode("utf-16-le"),
    mt.PPT: _OLE + "PowerPoint Document".encode("utf-16-le"),
    mt.MSG: _OLE + "__nameid_version1.0".encode("utf-16-le"),
    mt.OLE: _OLE,
    mt.OCTET_STREAM: _ELF,
    mt.PLAIN: "你好，world\n".encode(),
}


@pytest.mark.parametrize(("mime", "head"), _SIGNATURES.items(), ids=_SIGNATURES)
def test_the_type_is_detected_from_the_bytes(mime: str, head: bytes) -> None:
    assert sniff(head, "unnamed", None) == mime


@pytest.mark.parametrize(("mime", "head"), _SIGNATURES.items(), ids=_SIGNATURES)
def test_matching_name_and_declared_type_are_accepted(mime: str, head: bytes) -> None:
    if mime != mt.OCTET_STREAM:
        assert sniff(head, f"Файл 文件{extension_of(mime).upper()}", f"{mime}; charset=utf-8") == mime


_CONTRADICTIONS = {
    "program as picture": (_ELF, "cat.png"),
    "archive as picture": (_PLAIN_ZIP, "cat.png"),
    "archive as document": (_PLAIN_ZIP, "letter.docx"),
    "page as picture": (b"<html><script>alert(1)</script>", "cat.png"),
    "drawing as picture": (_SIGNATURES[mt.SVG], "cat.png"),
    "text as picture": (b"hello", "cat.jpg"),
    "text as PDF": (b"hello", "paper.pdf"),
    "page as table": (b"<!doctype html><table>", "table.csv"),
    "page as old sheet": (b"<html><table>", "table.xls"),
    "PDF as text": (_SIGNATURES[mt.PDF], "paper.txt"),
    "picture as sound": (_PNG, "song.mp3"),
    "program as text": (_ELF, "notes.txt"),
    "other document": (_SIGNATURES[mt.XLSX], "letter.docx"),
}


@pytest.mark.parametrize(("head", "name"), _CONTRADICTIONS.values(), ids=_CONTRADICTIONS)
def test_bytes_that_contradict_the_name_are_rejected(head: bytes, name: str) -> None:
    with pytest.raises(TypeMismatch, match=r"content is .* says"):
        sniff(head, name, None)


_CERTAIN = {"PDF as text": mt.PDF, "picture as sound": "image/png", "other document": mt.XLSX}


@pytest.mark.parametrize("case", sorted(_CONTRADICTIONS.keys() - _CERTAIN.keys()))
def test_bytes_that_contradict_the_declared_type_are_rejected(case: str) -> None:
    head, name = _CONTRADICTIONS[case]
    with pytest.raises(TypeMismatch):
        sniff(head, "unnamed", mt.by_name(name))


@pytest.mark.parametrize("claimed", [mt.PLAIN, "application/json", "video/mp4", mt.DOC])
@pytest.mark.parametrize("mime", [mt.PDF, mt.DOCX, mt.XLSX, mt.EPUB, "image/png", "image/jpeg", "audio/flac"])
def test_bytes_with_a_signature_decide_whatever_type_is_declared(mime: str, claimed: str) -> None:
    assert sniff(_SIGNATURES[mime], f"file{extension_of(mime)}", claimed) == mime
    assert sniff(_SIGNATURES[mime], "unnamed", claimed) == mime


@pytest.mark.parametrize("case", _CERTAIN)
def test_bytes_with_a_signature_decide_against_a_declared_type(case: str) -> None:
    head, name = _CONTRADICTIONS[case]
    assert sniff(head, "unnamed", mt.by_name(name)) == _CERTAIN[case]


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"GIF89a=1;/*<script>alert(1)</script>*/", "cat.gif"),
        (_PNG + b"tEXt<HTML>", "cat.png"),
        (b"\xff\xd8\xff\xe0<svg onload=alert(1)>", "cat.jpg"),
        (b"ID3\x03<!DOCTYPE html><script >", "song.mp3"),
        (b"%PDF-1.4\n<script>alert(1)</script>\n1 0 obj", "paper.pdf"),
        (b"<html><script>alert(1)</script>%PDF-1.4\n1 0 obj", "paper.pdf"),
        (b"<html><script>alert(1)</script>%PDF-1.4\n1 0 obj", "page.html"),
    ],
)
def test_files_of_two_types_are_rejected(head: bytes, name: str) -> None:
    with pytest.raises(TypeMismatch):
        sniff(head, name, None)


@pytest.mark.parametrize(
    ("head", "name", "claim", "mime"),
    [
        (_SIGNATURES["image/jpeg"], "cat.png", "image/png", "image/jpeg"),
        (_SIGNATURES["audio/wav"], "song.mp3", "audio/mpeg", "audio/wav"),
        (_SIGNATURES[mt.RTF], "letter.doc", mt.DOC, mt.RTF),
        (_SIGNATURES[mt.DOCX], "letter.doc", mt.DOC, mt.DOCX),
        (_SIGNATURES[mt.DOCX], "letter.docx", mt.ZIP, mt.DOCX),
        (_OLE, "locked.docx", mt.DOCX, mt.DOCX),
        (b"a;b\n1;2", "table.csv", mt.XLS, "text/csv"),
        (b"# Title\n", "README.MD", "application/octet-stream", "text/markdown"),
        (b"<div align=center>\n\n# Title", "README.md", None, "text/markdown"),
        (b"<!doctype html><p>", "saved.txt", mt.PLAIN, mt.HTML),
        (b"<p>a fragment", "part.html", None, mt.HTML),
        (b"print('hello')", "tool.py", "text/x-python", mt.PLAIN),
        (b"const a = 1", "tool.ts", "video/mp2t", mt.PLAIN),
        (b"a: 1\n", "settings.yaml", "application/yaml", mt.YAML),
        (b"\x1b[31mERROR\x1b[0m late\n", "server.log", None, mt.PLAIN),
        (b'{"a": 1}', "data.json", None, "application/json"),
        (b"From: a@example.org\nSubject: b\n\nhello", "mail.eml", None, mt.EML),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp41isom", "voice.m4a", None, "audio/mp4"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp41isom", "film.mp4", None, "video/mp4"),
        (b"\x1aE\xdf\xa3\x01", "voice", "audio/webm;codecs=opus", "audio/webm"),
        (b"junk before\r\n%PDF-1.4\n1 0 obj", "paper.pdf", None, mt.PDF),
        (b"What %PDF-1.4 means", "about.txt", None, mt.PLAIN),
        (b"BMW, GIF and ID card", "cars.txt", None, mt.PLAIN),
        ("ясно, явно и ягоды".encode("cp1251"), "notes.txt", None, mt.PLAIN),
        (b"\xff\xe3\x18\xc4" + bytes(140), "voice.mp3", None, "audio/mpeg"),
        (b"\x00\x00\x00\x18ftypheix\x00\x00\x00\x00mif1heix", "photo.heic", None, "image/heic"),
        ("你好世界，合同".encode("gbk"), "notes.txt", None, mt.PLAIN),
        ("名前,東京".encode("cp932"), "names.csv", None, "text/csv"),
        ("測試文件".encode("big5"), "notes.txt", None, mt.PLAIN),
        ("你好, hello".encode("utf-16"), "notes.txt", None, mt.PLAIN),
        ("plain, without a mark".encode("utf-16-be"), "notes.txt", None, mt.PLAIN),
        (b"", "notes.txt", None, mt.PLAIN),
        (b"", "unnamed", None, mt.PLAIN),
        (b"", "paper.pdf", None, mt.PDF),
        (b"", "unnamed", "text/csv", "text/csv"),
    ],
)
def test_name_and_declared_type_refine_the_type(head: bytes, name: str, claim: str | None, mime: str) -> None:
    assert sniff(head, name, claim) == mime


def test_a_truncated_document_is_recognized() -> None:
    whole = _SIGNATURES[mt.DOCX]
    assert sniff(whole[:300], "cut.docx", None) == mt.DOCX


def test_only_the_first_bytes_are_read() -> None:
    assert sniff(b"a" * 8192 + _ELF, "notes.txt", None) == mt.PLAIN


@pytest.mark.parametrize(
    ("mime", "name", "content_type"),
    [
        ("image/webp", "", "image"),
        (mt.SVG, "", "image"),
        ("audio/mpeg", "", "audio"),
        (mt.PDF, "a.docx", "pdf"),
        (mt.HTML, "", "html"),
        ("application/xhtml+xml", "", "html"),
        (mt.PLAIN, "", "text"),
        ("text/markdown", "", "text"),
        ("text/csv", "", "text"),
        ("application/json", "", "text"),
        ("text/xml; charset=utf-8", "", "text"),
        ("application/yaml", "", "text"),
        (mt.DOCX, "", "doc"),
        (mt.RTF, "", "doc"),
        (mt.EML, "", "doc"),
        (mt.EPUB, "", "doc"),
        (None, "report.PDF", "pdf"),
        ("", "server.log", "text"),
        (mt.OCTET_STREAM, "voice.mp3", "audio"),
        (None, "unnamed", "doc"),
    ],
)
def test_content_types(mime: str | None, name: str, content_type: str) -> None:
    assert content_type_of(mime, name) == content_type


def test_extensions_are_from_a_fixed_set() -> None:
    assert extension_of("application/PDF; a=b") == ".pdf"
    assert extension_of("text/x-../../etc") == ".txt"
    assert extension_of("../../etc/passwd") == ".bin"


def test_every_known_extension_maps_to_its_type() -> None:
    for mime in mt.EXTENSIONS:
        assert mt.by_name("x" + extension_of(mime)) == mime


_heads = st.one_of(
    st.binary(max_size=600),
    st.builds(lambda start, rest: start + rest, st.sampled_from(list(_SIGNATURES.values())), st.binary(max_size=99)),
    st.builds(lambda head, cut: head[:cut], st.sampled_from(list(_SIGNATURES.values())), st.integers(0, 200)),
    st.builds(lambda size, rest: struct.pack(">L", size) + b"ftyp" + rest, st.integers(0, 2**32 - 1), st.binary()),
)
_names = st.one_of(st.text(max_size=30), st.sampled_from([f"a{ending}" for ending in mt.BY_EXTENSION]))
_claims = st.one_of(st.none(), st.text(max_size=30), st.sampled_from([*mt.EXTENSIONS, *mt.ALIASES]))


@given(_heads, _names, _claims)
def test_any_bytes_have_a_known_type_or_contradict_their_name(head: bytes, name: str, claim: str | None) -> None:
    try:
        found = sniff(head, name, claim)
    except TypeMismatch:
        return
    assert found in mt.EXTENSIONS or found == mt.OCTET_STREAM
