"""Reading with a limit: nothing that comes from outside is believed about its own size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

CHUNK_BYTES = 256 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class LimitExceeded(Exception):
    """More bytes came than were allowed."""


def chunks(source: Readable, limit_bytes: int) -> Iterator[bytes]:
    """Yields the source in pieces. Errors: `LimitExceeded` as soon as more than `limit_bytes` came."""
    total = 0
    while chunk := source.read(CHUNK_BYTES):
        total += len(chunk)
        if total > limit_bytes:
            raise LimitExceeded(f"more than {limit_bytes} bytes")
        yield chunk
