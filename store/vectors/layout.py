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
