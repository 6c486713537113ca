"""Real files, damaged at random places, give text or an error message."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.errors import Unreadable
from documents import mime_types as mt
from documents.document import Limits, split
from documents.reader import read_document
from documents.sniff import HEAD_BYTES, TypeMismatch, sniff
from tests.documents.corpus import needs_corpus, samples

pytestmark = [pytest.mark.slow, needs_corpus]
_SEED = 20260610


def _mutants(count: int, seed: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, type and content of files with bytes changed, removed or repeated."""
    rng = random.Random(seed)
    chosen = [sample for sample in samples() if (sample.mime or mt.MSG) in mt.DOCUMENTS]
    for _ in range(count):
        sample = rng.choice(chosen)
        content = bytearray(sample.path.read_bytes())
        for _ in range(rng.randint(1, 12)):
            _mutate(content, rng)
        yield sample.path.name, sample.mime or mt.MSG, bytes(content)


def _mutate(content: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(content)) if content else 0
    end = start + rng.choice([1, 4, 64, 1024])
    match rng.randrange(4):
        case 0:
            content[start:end] = rng.randbytes(end - start)
        case 1:
            del content[start:end]
        case 2:
            content[start:start] = content[start:end] * rng.choice([1, 50])
        case _:
            content[start : start + 4] = rng.choice([b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"])


def _read_mutant(folder: Path, number: int, mutant: tuple[str, str, bytes], limits: Limits) -> None:
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
        for future in [
            pool.submit(_read_mutant, folder, number, mutant, limits)
            for number, mutant in enumerate(_mutants(count, seed))
        ]:
            future.result()


def test_damaged_files_give_text_or_an_error(tmp_path: Path) -> None:
    _fuzz(tmp_path, 40, _SEED, Limits(seconds=4))


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_damaged_files_give_text_or_an_error(tmp_path: Path, seed: int) -> None:
    _fuzz(tmp_path, 200, seed, Limits())
