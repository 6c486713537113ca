"""A user's vectors in pages of 256, a byte per dimension: read in whole and compared with a question one by one.

Nothing is approximated by an index: every vector is compared. What a byte loses is given back by comparing the best
again as half-precision floats. Whoever writes holds the lock of the user's statistics, as for `pages`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.db import connection

from store.index.pages import PAGE_ROWS
from store.owned import owner_values
from store.search.snapshot import Reals, Snapshot
from store.types import Owner
from store.vectors.client import Vectors

ROWS: Final = np.dtype([("pk", "<i8"), ("scale", "<f4")])
HALF: Final = np.dtype("<f2")
RESCORED: Final = 30
"""At most so many of the best are compared again, or as many as are asked for."""
_MARGIN: Final = 3.0
"""In steps of the codes. Rounding puts a cosine off by sqrt(1 / 12) of a step, whatever the dimensions, and the
difference of two by sqrt(1 / 6) of one (standard deviations): 3 steps are 7 of those."""
_MOST: Final = 127

_OF_OWNER = "WHERE user_id = %s AND app_id = %s AND project_id = %s"
_LAST = f"SELECT number, rows, codes FROM store_vectorpage {_OF_OWNER} AND space_id = %s ORDER BY number DESC LIMIT 1"
_ROWS = f"SELECT id, rows FROM store_vectorpage {_OF_OWNER}"
_WRITE = """
    INSERT INTO store_vectorpage (user_id, app_id, project_id, space_id, number, rows, codes)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (user_id, app_id, project_id, space_id, number)
    DO UPDATE SET rows = excluded.rows, codes = excluded.codes
"""


def add(owner: Owner, space: int, pks: Sequence[int], vectors: Vectors) -> None:
    """Puts vectors of length 1 of memories (by row id) into the owner's pages."""
    rows, codes = _coded(pks, vectors)
    owned = owner_values(owner)
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [*owned, space])
        number, held, last = cursor.fetchone() or (0, b"", b"")
        page_rows = np.frombuffer(held, ROWS)
        page_codes = np.frombuffer(last, np.int8).reshape(-1, vectors.shape[1])
        while len(rows):
            if len(page_rows) >= PAGE_ROWS:
                number, page_rows, page_codes = number + 1, page_rows[:0], page_codes[:0]
            room = PAGE_ROWS - len(page_rows)
            page_rows = np.concatenate([page_rows, rows[:room]])
            page_codes = np.concatenate([page_codes, codes[:room]])
            rows, codes = rows[room:], codes[room:]
            cursor.execute(_WRITE, [*owned, space, number, page_rows.tobytes(), page_codes.tobytes()])


def remove(owner: Owner, pks: Collection[int]) -> None:
    """Takes the vectors of memories (by row id) out of the owner's pages, whatever the space."""
    gone = np.fromiter(pks, "<i8")
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, owner_values(owner))
        for page, data in cursor.fetchall():
            rows = np.frombuffer(data, ROWS)
            is_kept = ~np.isin(rows["pk"], gone)
            if not is_kept.any():
                cursor.execute("DELETE FROM store_vectorpage WHERE id = %s", [page])
            elif not is_kept.all():
                _shorten(cursor, page, rows, is_kept)


def similarities(seen: Snapshot, question: Vectors) -> Reals:
    """The cosine of each document with a question, NaN for a document without a vector."""
    found = np.full(len(seen.pks), np.nan)
    if not seen.vectors:
        return found
    rows = _rows(seen)
    # A page at a time stays in the processor's cache.
    cosines = np.concatenate([_page(codes, len(question)) @ question for _, codes in seen.vectors]) * rows["scale"]
    if len(rows) == len(found) and (rows["pk"] == seen.pks).all():
        found[:] = cosines
        return found
    places = seen.places_of(rows["pk"])
    is_live = places >= 0
    found[places[is_live]] = cosines[is_live]
    return found


def margin(seen: Snapshot) -> float:
    """Farther than this below another's, a cosine by codes cannot be the better of the two."""
    return _MARGIN * float(_rows(seen)["scale"].max(initial=0.0))


def _rows(seen: Snapshot) -> npt.NDArray[np.void]:
    """Those of all pages."""
    return np.frombuffer(b"".join([data for data, _ in seen.vectors]), ROWS)


def _page(codes: bytes, dimensions: int) -> Vectors:
    return np.frombuffer(codes, np.int8).reshape(-1, dimensions).astype(np.float32)


def exact(held: Sequence[bytes | None], by_codes: Sequence[float | None], question: Vectors) -> Reals:
    """The cosines of half-precision vectors with a question; where there is none, that `by_codes`."""
    there = [place for place, vector in enumerate(held) if vector]
    halves = np.frombuffer(b"".join(filter(None, held)), HALF).reshape(len(there), len(question))
    completed = np.array(by_codes, np.float64)
    completed[there] = halves.astype(np.float32) @ question
    return completed


def _coded(pks: Iterable[int], vectors: Vectors) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    scales = np.abs(vectors).max(axis=1) / _MOST
    rows = np.empty(len(vectors), ROWS)
    rows["pk"], rows["scale"] = np.fromiter(pks, np.int64), scales
    return rows, np.rint(vectors / scales[:, None]).astype(np.int8)


def _shorten(cursor: Any, page: int, rows: npt.NDArray[np.void], is_kept: npt.NDArray[np.bool_]) -> None:
    cursor.execute("SELECT codes FROM store_vectorpage WHERE id = %s", [page])
    codes = np.frombuffer(cursor.fetchone()[0], np.int8).reshape(len(rows), -1)
    cursor.execute(
        "UPDATE store_vectorpage SET rows = %s, codes = %s WHERE id = %s",
        [rows[is_kept].tobytes(), codes[is_kept].tobytes(), page],
    )
