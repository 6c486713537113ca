"""The encoding of a text is recognized: 20 encodings, ten texts in each of their languages, in three lengths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from documents.decoding import codec_of, decode, decode_as, detect, label_in
from tests.documents.encoded_texts import ENCODINGS, LABELS, TEXTS

_LENGTHS = (40, 120, 1_000)


def _cases() -> Iterator[tuple[str, int, str]]:
    for encoding, language in ENCODINGS.items():
        for text in TEXTS[language]:
            for length in _LENGTHS:
                yield encoding, length, _first(text, encoding, length)


def _first(text: str, encoding: str, length: int) -> str:
    """Return the beginning of a text that has at most this number of bytes."""
    while len(text.encode(encoding)) > length:
        text = text[:-1]
    return text


def test_nearly_all_texts_are_decoded_and_the_others_are_doubtful() -> None:
    cases = list(_cases())
    assert len(cases) == 600
    found = [(case, detect(case[2].encode(case[0]))) for case in cases]
    wrong = [(case, one) for case, one in found if decode_as(case[2].encode(case[0]), one) != case[2]]
    assert len(wrong) <= 6, wrong
    assert [case for case, one in wrong if not one.is_doubtful] == []
    assert sum(one.is_doubtful for _, one in found) <= 60


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_most_texts_of_each_encoding_are_decoded_at_each_length(encoding: str) -> None:
    for length in _LENGTHS:
        texts = [_first(text, encoding, length) for text in TEXTS[ENCODINGS[encoding]]]
        assert sum(decode(text.encode(encoding)) == text for text in texts) >= 9


@pytest.mark.parametrize(("encoding", "length", "text"), [case for case in _cases() if case[1] == 40][::7])
@pytest.mark.parametrize("before", [b"id,name\n" * 9_000, b"GET /index.html 200\n" * 50])
def test_lines_of_ascii_do_not_hide_the_encoding(encoding: str, length: int, text: str, before: bytes) -> None:
    if not encoding.startswith("utf-16"):
        assert decode(before + text.encode(encoding)).endswith(decode(text.encode(encoding)))


@pytest.mark.parametrize(("codec", "label"), [(codec, label) for codec in LABELS for label in LABELS[codec].split()])
def test_labels_mean_what_they_mean_to_browsers(codec: str, label: str) -> None:
    assert codec_of(label) == codec_of(f" {label.upper()} ") == codec


@pytest.mark.parametrize("label", ["", "rot13", "base64", "idna", "punycode", "unicode_escape", "utf-7", "zlib", "x"])
def test_a_label_chooses_no_codec_that_is_not_a_text_encoding(label: str) -> None:
    assert codec_of(label) is None
    text = "Zażółć gęślą jaźń w Łodzi"
    assert decode(text.encode("cp1250"), declared=label) == text


@pytest.mark.parametrize(
    ("text", "encoding", "label"),
    [
        ("朱镕基在苏州办公室", "gbk", "gb2312"),
        ("“Smart quotes” cost €5", "cp1252", "iso-8859-1"),
        ("①会議は大阪の事務所で", "cp932", "x-sjis"),
        ("뷁 부산 사무실", "cp949", "ks_c_5601-1987"),
        ("Łódź", "iso8859-2", "ISO-8859-2"),
        ("İzmir", "cp1254", "iso-8859-9"),
        ("会議は大阪", "iso2022_jp", "ISO-2022-JP"),
        ("苏州办公室", "hz", "hz-gb-2312"),
        ("苏州办公室", "utf-16-le", "utf-16"),
    ],
)
def test_a_declared_encoding_comes_before_a_guess(text: str, encoding: str, label: str) -> None:
    found = detect(text.encode(encoding), declared=label)
    assert decode_as(text.encode(encoding), found) == text
    assert found.certainty == 1


def test_one_invalid_byte_does_not_refute_a_declared_encoding() -> None:
    data = "회의는 부산 사무실에서 열립니다. ".encode("cp949") * 3
    found = detect(data + b"\xff\n" + data, declared="euc-kr")
    assert found.name == "cp949"
    assert 0.9 < found.certainty < 1


@pytest.mark.parametrize(
    "text", ["valve code is 4711 größer", "größer", "Größe", "Tür", "Café", "Señor Núñez", "São Paulo"]
)
def test_a_few_letters_are_guessed_as_the_commonest_encoding(text: str) -> None:
    assert decode(text.encode("cp1252")) == text


def test_chinese_of_common_characters_is_no_other_chinese_of_rare_ones() -> None:
    assert decode("会议纪要和房屋租赁.txt".encode("gbk")) == "会议纪要和房屋租赁.txt"


def test_a_wrong_label_is_ignored() -> None:
    assert detect("合同".encode(), declared="gbk").name == "utf-8"
    assert detect("Zażółć gęślą jaźń w Łodzi".encode("cp1250"), declared="utf-8").name == "cp1250"
    assert detect(b"The meeting is in Sheffield", declared="utf-16le").name == "utf-8"


def test_escape_codes_of_a_terminal_are_no_japanese() -> None:
    assert detect(b"\x1b[31mred\x1b[0m and \x1b(B").name == "utf-8"


@pytest.mark.parametrize(
    ("markup", "label"),
    [
        (b"<?xml version='1.0' encoding='koi8-r'?><a/>", "koi8-r"),
        (b'\n<?xml version = "1.0" standalone=\'yes\' encoding = "ISO-8859-2" ?><a/>', "ISO-8859-2"),
        (b"<meta charset=gbk>", "gbk"),
        (b"<META HTTP-EQUIV='Content-Type' CONTENT='text/html; Charset=\"euc-kr\"'>", "euc-kr"),
        (b"<html><!--" + b"x" * 20_000 + b"--><meta charset='koi8-r'>", "koi8-r"),
        (b"<!-- <meta charset=gbk> --><meta charset=big5>", "big5"),
        (b"<script>'<meta charset=gbk>'</script><meta charset=big5>", "big5"),
        (b'<meta name=description content="text; charset=gbk">', None),
        (b"<p>charset=gbk", None),
        (b"", None),
    ],
)
def test_markup_names_its_encoding(markup: bytes, label: str | None) -> None:
    assert label_in(markup, "text/html") == label
