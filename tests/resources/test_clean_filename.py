from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.services.receiving import MAX_FILENAME_CHARS, clean_filename

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
def test_hostile_names_become_harmless(name: str) -> None:
    assert_harmless(clean_filename(name, "text/plain"))


@given(st.text(max_size=600))
def test_any_name_becomes_harmless(name: str) -> None:
    assert_harmless(clean_filename(name))


@given(st.text(max_size=600))
def test_cleaning_is_idempotent(name: str) -> None:
    assert clean_filename(clean_filename(name)) == clean_filename(name)


@pytest.mark.parametrize(
    "name", ["合同.pdf", "Résumé (final).docx", "مستند.txt", "👩‍💻 notes.md", ".bashrc", "no extension", "ºÏÍ¬.txt"]
)
def test_harmless_names_are_unchanged(name: str) -> None:
    assert clean_filename(name) == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("长" * 300 + ".pdf", "长" * 251 + ".pdf"),
        ("x" * 300, "x" * 255),
        ("x." + "y" * 300, "x." + "y" * 253),
    ],
)
def test_a_long_name_keeps_its_extension(name: str, expected: str) -> None:
    assert clean_filename(name) == expected


def test_an_empty_name_gets_the_extension_of_its_type() -> None:
    assert clean_filename("", "application/pdf") == "unnamed.pdf"
    assert clean_filename("") == "unnamed"


def assert_harmless(name: str) -> None:
    assert 1 <= len(name) <= MAX_FILENAME_CHARS
    assert name.strip(". ")
    assert not set(name) & set("/\\")
    assert not any(unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} for char in name)
    assert not any(
        unicodedata.bidirectional(char) in {"LRO", "RLO", "LRE", "RLE", "PDF", "LRI", "RLI", "PDI"} for char in name
    )
    assert name.encode()
