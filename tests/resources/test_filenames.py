from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.filenames import MAX_CHARS, clean

HOSTILE = [
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "/etc/passwd",
    "C:\\boot.ini",
    "\\\\host\\share\\x",
    "a/../../b",
    "..",
    ".",
    "",
    " ",
    "...",
    "\x00",
    "a\x00.txt",
    "a\nb.txt",
    "\r\nSet-Cookie: x",
    "\u202e",
    "x\u2028y",
    "\ud800",
    "a" * 5000,
    "." * 300,
    "a." + "b" * 300,
    "con",
    "~",
    "-rf",
    "$(id)",
    "`id`",
    "%2e%2e%2f",
    "\u202egpj.exe",
    "／etc／passwd",
    "․․/x",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_becomes_a_harmless_one(name: str) -> None:
    assert_harmless(clean(name, "text/plain"))


@given(st.text(max_size=600))
def test_any_name_becomes_a_harmless_one(name: str) -> None:
    assert_harmless(clean(name))


@given(st.text(max_size=600))
def test_cleaning_twice_is_cleaning_once(name: str) -> None:
    assert clean(clean(name)) == clean(name)


@pytest.mark.parametrize(
    "name", ["合同.pdf", "Résumé (final).docx", "مستند.txt", "👩‍💻 notes.md", ".bashrc", "no extension", "ºÏÍ¬.txt"]
)
def test_an_honest_name_stays_as_it_is(name: str) -> None:
    assert clean(name) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("长" * 300 + ".pdf", "长" * 251 + ".pdf"),
        ("x" * 300, "x" * 255),
        ("x." + "y" * 300, "x." + "y" * 253),
    ],
)
def test_a_long_name_keeps_its_ending(name: str, expected: str) -> None:
    assert clean(name) == expected


def test_no_name_gets_the_ending_of_its_type() -> None:
    assert clean("", "application/pdf") == "unnamed.pdf"
    assert clean("") == "unnamed"


def assert_harmless(name: str) -> None:
    assert 1 <= len(name) <= MAX_CHARS
    assert name.strip(". ")
    assert not set(name) & set("/\\")
    assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in name)
    assert not any(
        unicodedata.bidirectional(char) in {"LRO", "RLO", "LRE", "RLE", "PDF", "LRI", "RLI", "PDI"} for char in name
    )
    assert name.encode()
