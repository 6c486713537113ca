"""Hostile documents stay within the limits of time and memory, and give text or an error message."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from core.errors import Unreadable
from documents.child import PROJECT, resident_bytes
from documents.document import Limits, split
from documents.reader import read_document
from tests.bombs import MAKERS, MIB

pytestmark = pytest.mark.slow

_EXPECTED_ERRORS = {
    "zip_bomb_docx": "too large after decompression",
    "lying_zip_bomb_docx": "too large after decompression",
    "zip_bomb_xlsx": "too large after decompression",
    "zip_bomb_odt": "too large after decompression",
    "zip_bomb_epub": "too large after decompression",
    "overlapping_members_docx": "is damaged",
    "many_members_docx": "more than 2,000 parts",
    "encrypted_member_docx": "is encrypted",
    "billion_laughs_docx": "declares XML entities",
    "billion_laughs_utf16_docx": "declares XML entities",
    "billion_laughs_epub": "declares XML entities",
    "external_entity_docx": "declares XML entities",
    "shared_string_xlsx": "more than 512 MB",
    "many_pages_pdf": "too many pages",
    "truncated_docx": "is damaged",
}
_ENDLESS = {"deep_inline_html", "recursive_pages_pdf", "multiplying_forms_pdf"}
"""Bombs that no check can tell from real documents: only the time limit ends them."""
_SLACK_SECONDS = 4


def _outcome(name: str, folder: Path, limits: Limits) -> str:
    """Return the text of the document, or the error message."""
    _, mime, content = MAKERS[name]()
    path = folder / "bomb"
    path.write_bytes(content)
    del content
    before, start = resident_bytes(os.getpid()), time.monotonic()
    try:
        document = read_document(path, mime, limits=limits)
    except Unreadable as refusal:
        return refusal.detail
    finally:
        assert resident_bytes(os.getpid()) - before < 100 * MIB
        assert time.monotonic() - start < limits.seconds + _SLACK_SECONDS
    assert len(split(document)) <= 10_000
    return document.text


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - _ENDLESS))
def test_a_bomb_gives_text_or_an_error(name: str, tmp_path: Path) -> None:
    outcome = _outcome(name, tmp_path, Limits())
    assert len(outcome) <= 5_000_000
    assert _EXPECTED_ERRORS.get(name, "") in outcome
    assert "root:" not in outcome


@pytest.mark.parametrize("name", sorted(_ENDLESS))
def test_endless_documents_end_at_the_time_limit(name: str, tmp_path: Path) -> None:
    assert "took longer than 0.8 seconds" in _outcome(name, tmp_path, Limits(seconds=0.8))


@pytest.mark.torture
@pytest.mark.parametrize("name", sorted(_ENDLESS))
def test_endless_documents_end_at_the_default_time_limit(name: str, tmp_path: Path) -> None:
    assert "root:" not in _outcome(name, tmp_path, Limits())


def test_text_next_to_hostile_file_names_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    assert _outcome("hostile_names_docx", tmp_path, Limits()) == "survivor"
    assert [path.name for path in tmp_path.iterdir()] == ["bomb"]
    assert not Path("/var/mg-escaped").exists()


_MEASURE = """
import resource, sys
from pathlib import Path
import orjson
from core.errors import Unreadable
from documents.reader import read_document
for path in sys.argv[2:]:
    try:
        read_document(Path(path), sys.argv[1])
    except Unreadable:
        pass
own_peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
peaks = [int(own_peak), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
sys.stdout.buffer.write(orjson.dumps(peaks))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
@pytest.mark.parametrize("names", [("shared_string_xlsx", "zip_bomb_xlsx"), ("huge_text_pdf",)])
def test_the_memory_of_reader_and_child_process_is_limited(names: tuple[str, ...], tmp_path: Path) -> None:
    paths = [tmp_path / name for name in names]
    for path in paths:
        _, mime, content = MAKERS[path.name]()
        path.write_bytes(content)
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, mime, *map(str, paths)], cwd=PROJECT, capture_output=True, check=True
    )
    parent_kb, child_kb = orjson.loads(measured.stdout)
    assert parent_kb < 60 * 1024
    assert child_kb < 600 * 1024
