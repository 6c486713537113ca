"""The corpus of real files of many types, from `../shared/corpus`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import SHARED

CORPUS = SHARED / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.exists(), reason="the corpus (../shared/corpus) is not on this machine")

_CORRECTIONS = {"tika/testPPT.pptx": "Black Panther"}
"""Expected texts that replace those of the manifest, which the files do not contain."""


@dataclass(frozen=True)
class Sample:
    """A file with its expected result. The corpus documents the values of `kind`."""

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
        Sample(CORPUS / line["file"], line["mime"], line["kind"], _CORRECTIONS.get(line["file"], line["expect"]))
        for line in lines
    ]
