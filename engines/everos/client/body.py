"""Request bodies: JSON with files encoded as base64 while they are sent, so that no file is held in memory."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from core.errors import Unreadable

_PIECE_BYTES = 3 * 64 * 1024  # base64 packs three bytes into four characters


class FileContent:
    """A file in a payload, sent as base64. Raises: `Unreadable` if the file is gone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size_bytes = path.stat().st_size
        except FileNotFoundError:
            raise Unreadable("The stored file is missing: upload it again.") from None

    def __len__(self) -> int:
        """Return the length of the base64 text in characters."""
        return 4 * -(-self.size_bytes // 3)

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield base64.b64encode(piece)


class Body:
    """A payload as JSON with a known length, which can be read repeatedly for retries."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        files: dict[bytes, FileContent] = {}

        def placeholder(value: Any) -> str:
            if not isinstance(value, FileContent):
                raise TypeError(f"{type(value).__name__} is not JSON serializable")
            mark = secrets.token_hex(16)
            files[mark.encode()] = value
            return mark

        self._parts = list(_split(orjson.dumps(payload, default=placeholder), files))

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __iter__(self) -> Iterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            else:
                yield from part


def _split(json: bytes, files: Mapping[bytes, FileContent]) -> Iterator[bytes | FileContent]:
    """Yield the JSON text and the files in place of their markers, in order."""
    for mark, file in files.items():
        before, _, json = json.partition(mark)
        yield before
        yield file
    yield json
