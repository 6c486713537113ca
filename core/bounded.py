"""Size-limited reading of untrusted input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

CHUNK_BYTES = 256 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class LimitExceeded(Exception):
    """The input exceeds the allowed size."""


def chunks(source: Readable, limit_bytes: int) -> Iterator[bytes]:
    """Yield the source in chunks.

    Raises: `LimitExceeded` as soon as more than `limit_bytes` have been read.
    """
    total = 0
    while chunk := source.read(CHUNK_BYTES):
        total += len(chunk)
        if total > limit_bytes:
            raise LimitExceeded(f"more than {limit_bytes} bytes")
        yield chunk
