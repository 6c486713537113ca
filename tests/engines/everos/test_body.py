"""Files travel inside JSON without ever being in memory whole."""

from __future__ import annotations

import base64
import tracemalloc
from pathlib import Path

import orjson
import pytest

from core.errors import EngineRefused
from engines.everos.client.body import Body, FileContent


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 3 * 64 * 1024 - 1, 3 * 64 * 1024, 3 * 64 * 1024 + 1])
def test_a_body_is_the_json_it_stands_for(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(index % 251 for index in range(size)))
    body = Body({"a": [FileContent(path), "文", FileContent(path)], "b": 1})
    for _ in range(2):
        sent = b"".join(body)
        assert len(sent) == len(body)
        packed = base64.b64encode(path.read_bytes()).decode()
        assert orjson.loads(sent) == {"a": [packed, "文", packed], "b": 1}


def test_a_large_file_is_never_in_memory_whole(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(25 * 2**20))
    tracemalloc.start()
    try:
        assert sum(len(piece) for piece in Body({"base64": FileContent(path)})) > 33 * 2**20
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**20


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(EngineRefused, match="missing"):
        FileContent(tmp_path / "gone")
