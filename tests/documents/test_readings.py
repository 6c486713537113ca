"""Each document says what was read of it, and what was left out or is doubtful."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from documents import mime_types as mt
from documents import ocr as text_recognition
from documents.document import DEFAULT_LIMITS
from documents.ocr_child import _mean
from documents.reader import read_document
from documents.reading import MAX_NAMES, Note, Reading, lost_words, notes_of, sentence
from documents.rows import paragraphs
from documents.text_child import read as read_text
from documents.text_kinds import READERS
from engines.embedded.ingest import read_with_ocr
from tests.documents import small_files


def test_a_text_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\n\ntwo")
    assert read_document(path, mt.PLAIN).reading == Reading("text", 6, encoding="utf-8", certainty=1)


def test_a_text_that_is_too_long_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\n\ntwo")
    reading = read_document(path, mt.PLAIN, limits=replace(DEFAULT_LIMITS, text_bytes=4)).reading
    assert reading == Reading("text", 3, notes=(Note("text_cut", 4),), encoding="utf-8", certainty=1)
    assert reading.is_partial
    assert read_document(path, mt.PLAIN, limits=replace(DEFAULT_LIMITS, blocks=1)).reading == Reading(
        "text", 3, notes=(Note("blocks_cut", 1),), encoding="utf-8", certainty=1
    )


def test_the_length_of_a_text_is_a_setting(tmp_path: Path, settings: Any) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("one\n\ntwo")
    assert read_with_ocr(path, mt.PLAIN).text == "one\n\ntwo"
    settings.MEMORY_GATEWAY_MAX_TEXT_BYTES = 4
    reading = read_with_ocr(path, mt.PLAIN).reading
    assert reading is not None
    assert reading.notes == (Note("text_cut", 4),)


def test_a_page_without_text_is_named() -> None:
    reading = small_files.read("pdf-blankmix.pdf").reading
    assert reading == Reading("xberg", 55, 3, 2, (Note("pages_without_text", 1, ("2",)),))
    assert reading.is_partial


def test_a_document_that_is_too_long_says_so() -> None:
    reading = small_files.read("pdf-footer.pdf", replace(DEFAULT_LIMITS, text_bytes=100)).reading
    assert reading is not None
    assert Note("text_cut", 100) in reading.notes


@pytest.mark.parametrize(
    "name", ["docx-textbox.docx", "docx-fields.docx", "pdf-headings.pdf", "xlsx-cells.xlsx", "rtf-all.rtf"]
)
def test_a_whole_document_has_nothing_to_note(name: str) -> None:
    reading = small_files.read(name).reading
    assert reading is not None
    assert (reading.notes, reading.is_partial, reading.characters > 0) == ((), False, True)


def test_lost_words_are_noted_above_two_per_cent() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    assert lost_words(text, [text.removesuffix(" word99").removesuffix(" word98")]) is None
    assert lost_words(text, [text.partition(" word97")[0]]) == Note("words_lost", 3)
    assert lost_words("same same", ["same"]) == Note("words_lost", 1), "a word is counted as often as it occurs"
    assert lost_words("会議は大阪で", ["会議は"]) == Note("words_lost", 3), "characters count where there are no spaces"
    assert lost_words("Ｆｕｌｌ ﬁle", ["full", "FILE"]) is None, "the form of letters does not count"
    assert lost_words("", []) is None


def test_a_note_keeps_the_first_names() -> None:
    note = Note.of("pages_without_text", range(1, 101))
    assert (note.count, len(note.names)) == (100, MAX_NAMES)
    said = str(sentence(_stored(note)))
    assert said.endswith("100 (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20…).")


def test_notes_survive_their_storage() -> None:
    notes = (Note("text_cut", 5_000_000), Note.of("parts_skipped", ["a.zip"]))
    assert notes_of(Reading("xberg").noting(*notes).as_json()["notes"]) == notes
    assert str(sentence(_stored(notes[0]))) == "The text is longer than 5,000,000 bytes: the rest was not read."


def _stored(note: Note) -> dict[str, object]:
    stored: dict[str, object] = Reading("xberg").noting(note).as_json()["notes"][0]
    return stored


@pytest.mark.parametrize(("lines", "score"), [([], None), ([("ab", None, 1.0), ("abcdef", None, 0.5)], 0.625)])
def test_the_score_of_a_page_is_that_of_its_characters(lines: list[tuple[str, None, float]], score: float) -> None:
    assert _mean(lines) == score  # type: ignore[arg-type]


@pytest.fixture
def recognized(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Reading | None]:
    """Return a function that reads a picture whose pages have these answers of the recognition."""

    def read(*answers: dict[str, object]) -> Reading | None:
        monkeypatch.setattr(text_recognition, "_answers", lambda *_args: iter(answers))
        path = tmp_path / "scan.png"
        Image.new("L", (20, 20)).save(path)
        return read_document(path, "image/png", ocr=text_recognition.Ocr("rapidocr", tmp_path / "ocr")).reading

    return read


def test_pages_that_are_badly_recognized_are_doubtful(recognized: Callable[..., Reading | None]) -> None:
    line = ["harbor", [0.1, 0.1, 0.5, 0.2]]
    good = {"page": 1, "of": 2, "lines": [line], "score": 0.97}
    bad = {"page": 2, "of": 2, "lines": [line], "score": 0.41}
    reading = recognized(good, bad)
    assert reading == Reading("rapidocr", 12, 2, 2, (Note("recognition_doubtful", 1, ("2",)),), certainty=0.69)
    assert not reading.is_partial


def test_pages_that_cannot_be_recognized_are_skipped(recognized: Callable[..., Reading | None]) -> None:
    reading = recognized({"page": 1, "of": 1, "lines": [], "failed": True})
    assert reading == Reading("rapidocr", 0, 1, 0, (Note("pages_skipped", 1, ("1",)),))


def test_a_text_in_a_doubtful_encoding_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes("Grüße".encode("cp1252"))
    reading = read_document(path, mt.PLAIN).reading
    assert reading is not None
    assert (reading.certainty or 1) < 0.5
    assert reading.notes == (Note("encoding_doubtful", 1, (str(reading.encoding),)),)
    assert not reading.is_partial
    assert read_document(path, f"{mt.PLAIN}; charset=latin1").reading == Reading(
        "text", 5, encoding="cp1252", certainty=1
    )


@pytest.mark.parametrize(
    ("name", "mime", "parser"),
    [
        ("a.html", mt.HTML, "html"),
        ("a.md", mt.MARKDOWN, "markdown"),
        ("a.json", mt.JSON, "json"),
        ("a.svg", mt.SVG, "svg"),
        ("a.csv", mt.CSV, "csv"),
        ("a.ipynb", mt.NOTEBOOK, "notebook"),
    ],
)
def test_a_text_with_a_grammar_says_its_parser_and_what_was_cut(
    tmp_path: Path, name: str, mime: str, parser: str
) -> None:
    path = tmp_path / name
    path.write_text("one two\n\nthree four\n\nfive")
    reading = read_document(path, mime).reading
    assert reading is not None
    assert (reading.parser, reading.encoding, reading.certainty, reading.notes) == (parser, "utf-8", 1, ())
    document = read_document(path, mime, limits=replace(DEFAULT_LIMITS, text_bytes=6))
    assert document.truncated
    assert document.reading is not None
    assert document.reading.notes == (Note("text_cut", 6),)


def test_a_text_whose_words_are_lost_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("documents.text_child.signal.setitimer", lambda *_: None)
    monkeypatch.setitem(READERS, mt.MARKDOWN, lambda text: paragraphs(text.partition("\n")[0]))
    answer = read_text(b"One\n\nTwo words, see [there](https://example.org/a/b).", mt.MARKDOWN, None, DEFAULT_LIMITS)
    assert answer["notes"] == [{"code": "words_lost", "count": 4, "names": ()}]
