"""Each file of the corpus gives the result that its kind requires."""

from __future__ import annotations

import re

import pytest

from core.errors import Unreadable
from documents.document import Document, split
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, sniff
from tests.documents.corpus import Sample, needs_corpus, samples

pytestmark = needs_corpus
_ALL = samples()


def _read(sample: Sample) -> Document:
    with sample.path.open("rb") as file:
        mime = sniff(file.read(HEAD_BYTES), sample.path.name, None)
    return read_document(sample.path, mime)


def _of(*kinds: str) -> pytest.MarkDecorator:
    chosen = [sample for sample in _ALL if sample.kind in kinds]
    return pytest.mark.parametrize("sample", chosen, ids=lambda sample: sample.path.name)


@_of("text")
def test_the_text_of_a_document_is_read(sample: Sample) -> None:
    document = _read(sample)
    assert sample.expect in document.text
    assert not re.search(r"\[cmt:|!\[|style_name|\[Image", document.text), "markup of the parser"
    assert any(sample.expect in passage.text for passage in split(document))


@_of("empty", "media")
def test_files_without_text_give_empty_documents(sample: Sample) -> None:
    if sample.path.suffix == ".svg":
        assert _read(sample).text == "Test SVG image"
        return
    assert _read(sample) == Document(())


@_of("limit")
def test_unreadable_files_are_rejected_with_an_explanation(sample: Sample) -> None:
    # An archive is read if the operator allows it, but not the archives in it.
    if sample.path.suffix == ".zip" and "corrupted" not in sample.path.name:
        reading = _read(sample).reading
        assert reading is not None
        assert "parts_skipped" in [note.code for note in reading.notes]
        return
    with pytest.raises(Unreadable, match=r"encrypted|damaged|of type"):
        _read(sample)


@_of("any")
def test_difficult_scripts_give_some_text(sample: Sample) -> None:
    assert _read(sample).text


@pytest.mark.parametrize("sample", [s for s in _ALL if s.mime], ids=lambda sample: sample.path.name)
def test_the_type_is_detected_with_and_without_the_name(sample: Sample) -> None:
    with sample.path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    assert sniff(head, sample.path.name, sample.mime) == sample.mime
    assert sniff(head, "unnamed", sample.mime) == sample.mime
