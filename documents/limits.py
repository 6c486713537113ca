"""Resource limits for reading a document."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one document: resources of the parser, size of the input, size of the result."""

    seconds: float = 30.0
    memory_bytes: int = 512 * MIB  # resident
    text_bytes: int = 5_000_000  # of the text in UTF-8; more is cut off
    blocks: int = 100_000  # more are cut off
    zip_members: int = 2_000
    zip_bytes: int = 200 * MIB  # of all members together, inflated
    zip_ratio: int = 200  # of one member, inflated to packed
    pdf_pages: int = 2_000
    table_cells: int = 500_000


DEFAULT = Limits()
