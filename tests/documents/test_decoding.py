"""Text is decoded correctly from every supported encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.decoding import clean, decode, is_text

_TEXTS = {
    "gb18030": ["你好世界,这是一个简体中文的测试文档。", "合同付款日期", "中文"],
    "gbk": ["付款方式：银行转账，期限三十天。"],
    "big5": ["這是一個繁體中文的測試文件,包含標點符號。", "合約付款"],
    "cp932": ["これは日本語のテストです。", "佐藤太郎,東京", "カタカナ"],
    "cp1251": ["Договор об оплате", "ясно, явно и ягоды"],
    "cp1252": ["Café crème à la façon naïve", "Müller", "“quoted” – text"],
    "utf-8": ["Café 你好 😀", "plain"],
    "utf-8-sig": ["with a mark"],
    "utf-16": ["hello", "你好, world and more"],
    "utf-16-le": ["without a mark, 你好"],
    "utf-16-be": ["without a mark, 你好"],
    "utf-32": ["rare"],
}


@pytest.mark.parametrize(("encoding", "text"), [(encoding, text) for encoding in _TEXTS for text in _TEXTS[encoding]])
@pytest.mark.parametrize("before", ["", "id,name\n1,"])
def test_text_in_each_encoding_is_decoded(encoding: str, text: str, before: str) -> None:
    data = (before + text).encode(encoding)
    assert decode(data) == before + text
    assert is_text(data)


def test_one_invalid_byte_does_not_change_the_rest() -> None:
    assert decode("合同付款日期在三十天之内".encode() + b"\xff" + "，请确认".encode()).startswith("合同付款日期")


def test_a_character_cut_at_the_end_is_dropped() -> None:
    assert decode("合同".encode()[:-1]) == "合"


@pytest.mark.parametrize("data", [b"\x00\x01\x02\x03", b"\x7fELF\x02\x01\x01\x00", b"\xff\xfe" + bytes(range(256))])
def test_binary_data_is_not_text(data: bytes) -> None:
    assert not is_text(data)


def test_signs_for_terminals_and_printers_divide_or_join_no_words() -> None:
    assert clean("\x1b[1;31mERROR\x1b[0m \x1b]0;title\x07disk") == "ERROR disk"
    assert clean("page one\x0cpage two\x0bline") == "page one\npage two\nline"


def test_characters_that_databases_reject_are_removed() -> None:
    assert clean("\ufeffa\x00b\x1b\ud800c\r\nd\re\tf") == "abc\nd\ne\tf"


@given(st.binary(max_size=400))
def test_any_bytes_become_storable_text(data: bytes) -> None:
    text = decode(data)
    assert "\x00" not in text
    text.encode()


@given(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc", "Cn")), min_size=1))
def test_utf8_is_always_decoded(text: str) -> None:
    data = text.encode()
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert decode(data) == clean(text)
