"""Damaged in any place, a real file gives text or a sentence, and nothing else."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.errors import Unreadable
from documents import mime_types as mt
from documents.chunks import split
from documents.limits import Limits
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff
from tests.documents.corpus import needs_corpus, samples

pytestmark = needs_corpus
_SEED = 20260610


def _mutants(count: int, seed: int) -> Iterator[tuple[str, str, bytes]]:
    """Name, type and content of files with a few bytes changed, cut out, doubled or moved."""
    source = random.Random(seed)
    chosen = [sample for sample in samples() if (sample.mime or mt.MSG) in mt.DOCUMENTS]
    for _ in range(count):
        sample = source.choice(chosen)
        content = bytearray(sample.path.read_bytes())
        for _ in range(source.randint(1, 12)):
            _mutate(content, source)
        yield sample.path.name, sample.mime or mt.MSG, bytes(content)


def _mutate(content: bytearray, source: random.Random) -> None:
    place = source.randrange(len(content)) if content else 0
    end = place + source.choice([1, 4, 64, 1024])
    match source.randrange(4):
        case 0:
            content[place:end] = source.randbytes(end - place)
        case 1:
            del content[place:end]
        case 2:
            content[place:place] = content[place:end] * source.choice([1, 50])
        case _:
            content[place : place + 4] = source.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"])


def _survives(folder: Path, number: int, mutant: tuple[str, str, bytes], limits: Limits) -> None:
    name, mime, content = mutant
    path = folder / str(number)
    path.write_bytes(content)
    with contextlib.suppress(TypeMismatch):
        sniff(content[:HEAD_BYTES], name, None)
    with contextlib.suppress(Unreadable):
        split(read_document(path, mime, limits=limits))
    path.unlink()


def _fuzz(folder: Path, count: int, seed: int, limits: Limits) -> None:
    with ThreadPoolExecutor(2) as pool:
        for survived in [
            pool.submit(_survives, folder, number, mutant, limits)
            for number, mutant in enumerate(_mutants(count, seed))
        ]:
            survived.result()


def test_damaged_files_give_text_or_a_sentence(tmp_path: Path) -> None:
    _fuzz(tmp_path, 40, _SEED, Limits(seconds=4))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_damaged_files_give_text_or_a_sentence(tmp_path: Path, seed: int) -> None:
    _fuzz(tmp_path, 200, seed, Limits())
