"""Request bodies contain files as Base64 without loading them into memory."""

from __future__ import annotations

import base64
import tracemalloc
from pathlib import Path

import orjson
import pytest

from core.errors import EngineRefused
from remote.client.content import Body, FileContent


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 3 * 64 * 1024 - 1, 3 * 64 * 1024, 3 * 64 * 1024 + 1])
def test_a_body_is_the_json_of_its_payload(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(index % 251 for index in range(size)))
    body = Body({"a": [FileContent(path), "文", FileContent(path)], "b": 1})
    for _ in range(2):
        sent = b"".join(body)
        assert len(sent) == len(body)
        encoded = base64.b64encode(path.read_bytes()).decode()
        assert orjson.loads(sent) == {"a": [encoded, "文", encoded], "b": 1}


def test_a_large_file_is_not_loaded_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(25 * 2**20))
    tracemalloc.start()
    try:
        assert sum(len(piece) for piece in Body({"base64": FileContent(path)})) > 33 * 2**20
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 2**20


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(EngineRefused, match="missing"):
        FileContent(tmp_path / "gone")
