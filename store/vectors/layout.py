"""The binary layout of stored vectors.

Pages of another layout are not read; they are written again from the vectors (`store.vectors.vector_pages.update`).
"""

import zlib
from typing import Final

import numpy as np

ROWS: Final = np.dtype([("pk", "<i8"), ("scale", "<f4")])
CODES: Final = np.dtype("i1")
HALF: Final = np.dtype("<f2")
LAYOUT: Final = zlib.crc32(repr((ROWS.descr, CODES.str)).encode())
"""The number of the layout of a page, stored with it."""

MAX_TOKENS: Final = 128
"""The most tokens of a memory whose vectors are stored."""
REDUCED_DIMENSIONS: Final = 96
TOKEN_LAYOUT: Final = zlib.crc32(repr((CODES.str, MAX_TOKENS, REDUCED_DIMENSIONS)).encode())
"""The number of the layout of the vectors of a memory's tokens, stored with them."""
