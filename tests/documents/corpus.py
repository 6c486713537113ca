"""Real files of many kinds, where the folder beside the project holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import SHARED

CORPUS = SHARED / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus (../shared/corpus) is not on this machine")

_MANIFEST_ERRORS = {"tika/testPPT.pptx": "Black Panther"}
"""Its manifest expects words that stand in no part of the file; these do."""


@dataclass(frozen=True)
class Sample:
    """A file with what must happen to it: see the corpus's own description of `kind`."""

    path: Path
    mime: str | None
    kind: str
    expect: str


def samples() -> list[Sample]:
    manifest = CORPUS / "MANIFEST.jsonl"
    if not manifest.exists():
        return []
    lines = [json.loads(line) for line in manifest.read_text().splitlines()]
    return [
        Sample(CORPUS / line["file"], line["mime"], line["kind"], _MANIFEST_ERRORS.get(line["file"], line["expect"]))
        for line in lines
    ]
