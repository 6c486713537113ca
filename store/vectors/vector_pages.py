"""Vectors of one user and scope in pages of 256, quantized to a byte per dimension. A search compares all of them.

There is no approximate index. The best results are compared again by their half-precision vectors, which corrects the
error of quantization. A writer holds the lock on the user's index statistics, as for `store.index.fact_pages`.

A page of another layout is never read. It is written again from the vectors by the next write of its owner, by `update`
in the background, and by `manage.py rebuild`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.db import connection, transaction

from store.index.fact_pages import PAGE_ROWS
from store.models import Embedding, EmbeddingSpace, IndexStatistics, VectorPage, owned_by, owner_values
from store.search.snapshot import Reals, Snapshot, places_of
from store.types import Owner
from store.vectors.client import Vectors
from store.vectors.layout import CODES, HALF, LAYOUT, ROWS

RESCORED: Final = 30
"""The most results that are compared again, unless more are requested."""
_MARGIN: Final = 3.0
"""The margin of error of cosines by codes, in quantization steps. The standard deviation of the rounding error is
sqrt(1 / 12) of a step for a cosine and sqrt(1 / 6) for the difference of two, so 3 steps are 7 standard deviations."""
_MAX_CODE: Final = 127

_OF_OWNER = "WHERE user_id = %s AND app_id = %s AND project_id = %s"
_LAST = f"""
    SELECT number, rows, codes, layout FROM store_vectorpage {_OF_OWNER} AND space_id = %s ORDER BY number DESC LIMIT 1
"""
_ROWS = f"SELECT id, rows, space_id, layout FROM store_vectorpage {_OF_OWNER}"
_WRITE = f"""
    INSERT INTO store_vectorpage (user_id, app_id, project_id, space_id, number, rows, codes, layout)
    VALUES (%s, %s, %s, %s, %s, %s, %s, {LAYOUT})
    ON CONFLICT (user_id, app_id, project_id, space_id, number)
    DO UPDATE SET rows = excluded.rows, codes = excluded.codes, layout = excluded.layout
"""


def add(owner: Owner, space: int, pks: Sequence[int], vectors: Vectors) -> None:
    """Add vectors of length 1 of memories (by row id) to the owner's pages."""
    rows, codes = _quantize(pks, vectors)
    owned = owner_values(owner)
    with connection.cursor() as cursor:
        cursor.execute(_LAST, [*owned, space])
        number, held, last, layout = cursor.fetchone() or (0, b"", b"", LAYOUT)
        if layout != LAYOUT:
            _rewrite(owner, space, besides=pks)
            cursor.execute(_LAST, [*owned, space])
            number, held, last, _layout = cursor.fetchone() or (0, b"", b"", LAYOUT)
        page_rows = np.frombuffer(held, ROWS)
        page_codes = np.frombuffer(last, CODES).reshape(-1, vectors.shape[1])
        while len(rows):
            if len(page_rows) >= PAGE_ROWS:
                number, page_rows, page_codes = number + 1, page_rows[:0], page_codes[:0]
            room = PAGE_ROWS - len(page_rows)
            page_rows = np.concatenate([page_rows, rows[:room]])
            page_codes = np.concatenate([page_codes, codes[:room]])
            rows, codes = rows[room:], codes[room:]
            cursor.execute(_WRITE, [*owned, space, number, page_rows.tobytes(), page_codes.tobytes()])


def remove(owner: Owner, pks: Collection[int]) -> None:
    """Remove the vectors of memories (by row id) from the owner's pages, whatever the space."""
    removed = np.fromiter(pks, "<i8")
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, owner_values(owner))
        found = cursor.fetchall()
        if outdated := {space for _page, _data, space, layout in found if layout != LAYOUT}:
            for space in outdated:
                _rewrite(owner, space, besides=pks)
            cursor.execute(_ROWS, owner_values(owner))
            found = cursor.fetchall()
        for page, data, _space, _layout in found:
            rows = np.frombuffer(data, ROWS)
            is_kept = ~np.isin(rows["pk"], removed)
            if not is_kept.any():
                cursor.execute("DELETE FROM store_vectorpage WHERE id = %s", [page])
            elif not is_kept.all():
                _shrink_page(cursor, page, rows, is_kept)


def update() -> int:
    """Write all pages of another layout again; return the number of owners and spaces that had one."""
    outdated = VectorPage.objects.exclude(layout=LAYOUT).select_related("user").defer("rows", "codes")
    found = dict.fromkeys((page.owner, page.space_id) for page in outdated)
    for owner, space in found:
        with transaction.atomic():
            list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))
            _rewrite(owner, space)
    return len(found)


def rebuild(owner: Owner) -> int:
    """Write an owner's pages of all spaces again from the vectors; return their number. Writers wait."""
    with transaction.atomic():
        list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))
        return sum(_rewrite(owner, space) for space in EmbeddingSpace.objects.values_list("pk", flat=True))


def count() -> int | None:
    """Return the number of vectors in all pages, None if some have another layout."""
    if VectorPage.objects.exclude(layout=LAYOUT).exists():
        return None
    of_layout = VectorPage.objects.filter(layout=LAYOUT).values_list("rows", flat=True)
    return sum(len(rows) // ROWS.itemsize for rows in of_layout.iterator())


def differing(owner: Owner) -> int:
    """Return how many of an owner's vectors are not in the pages as they are stored, or only there."""
    wrong = 0
    for space in EmbeddingSpace.objects.values_list("pk", flat=True):
        held: dict[int, bytes] = {}
        for page in VectorPage.objects.filter(owned_by(owner), space=space, layout=LAYOUT):
            rows = np.frombuffer(page.rows, ROWS)
            codes = np.frombuffer(page.codes, CODES).reshape(len(rows), -1)
            held |= {int(row["pk"]): row.tobytes() + code.tobytes() for row, code in zip(rows, codes, strict=True)}
        fresh: dict[int, bytes] = {}
        for batch in _batches(owner, space, ()):
            vectors = np.stack([np.frombuffer(vector, HALF).astype(np.float32) for _pk, vector in batch])
            for row, code in zip(*_quantize([pk for pk, _vector in batch], vectors), strict=True):
                fresh[int(row["pk"])] = row.tobytes() + code.tobytes()
        wrong += sum(held.get(pk) != fresh.get(pk) for pk in held.keys() | fresh.keys())
    return wrong


def _rewrite(owner: Owner, space: int, besides: Collection[int] = ()) -> int:
    """Write an owner's pages of a space again from the vectors, without those of some memories (by row id).

    Return the number of vectors.
    """
    VectorPage.objects.filter(owned_by(owner), space=space).delete()
    count = 0
    for batch in _batches(owner, space, besides):
        count += len(batch)
        vectors = [np.frombuffer(vector, HALF).astype(np.float32) for _pk, vector in batch]
        add(owner, space, [pk for pk, _vector in batch], np.stack(vectors))
    return count


def _batches(owner: Owner, space: int, besides: Collection[int]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the vectors of an owner's memories, by row id and as many at a time as a page holds."""
    of_owner = Embedding.objects.filter(
        space=space, memory__user=owner.user_pk, memory__app_id=owner.app_id, memory__project_id=owner.project_id
    )
    stored = of_owner.order_by("memory").values_list("memory_id", "vector").iterator()
    usable = ((pk, bytes(vector)) for pk, vector in stored if vector and pk not in besides)
    while batch := list(islice(usable, PAGE_ROWS)):
        yield batch


def similarities(snapshot: Snapshot, query: Vectors) -> Reals:
    """Return the cosine of each document with a query, NaN for a document without a vector."""
    found = np.full(len(snapshot.pks), np.nan)
    if not snapshot.vectors:
        return found
    rows = _rows(snapshot)
    # Page by page, because a page fits into the processor's cache.
    cosines = (
        np.concatenate(
            [
                np.frombuffer(codes, CODES).reshape(-1, len(query)).astype(np.float32) @ query
                for _, codes in snapshot.vectors
            ]
        )
        * rows["scale"]
    )
    if len(rows) == len(found) and (rows["pk"] == snapshot.pks).all():
        found[:] = cosines
        return found
    places = places_of(snapshot.pks, rows["pk"])
    is_live = places >= 0
    found[places[is_live]] = cosines[is_live]
    return found


def margin(snapshot: Snapshot) -> float:
    """Return the margin: a vector whose cosine by codes is lower than another's by more cannot be the better one."""
    return _MARGIN * float(_rows(snapshot)["scale"].max(initial=0.0))


def _rows(snapshot: Snapshot) -> npt.NDArray[np.void]:
    """Return the row ids and scales of all pages."""
    return np.frombuffer(b"".join([data for data, _ in snapshot.vectors]), ROWS)


def exact(vectors: Sequence[bytes | None], by_codes: Sequence[float | None], query: Vectors) -> Reals:
    """Return the cosines of half-precision vectors with a query; for a missing vector, the one in `by_codes`."""
    present = [place for place, vector in enumerate(vectors) if vector]
    halves = np.frombuffer(b"".join(filter(None, vectors)), HALF).reshape(len(present), len(query))
    completed = np.array(by_codes, np.float64)
    completed[present] = halves.astype(np.float32) @ query
    return completed


def _quantize(pks: Iterable[int], vectors: Vectors) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int8]]:
    scales = np.abs(vectors).max(axis=1) / _MAX_CODE
    rows = np.empty(len(vectors), ROWS)
    rows["pk"], rows["scale"] = np.fromiter(pks, np.int64), scales
    return rows, np.rint(vectors / scales[:, None]).astype(CODES)


def _shrink_page(cursor: Any, page: int, rows: npt.NDArray[np.void], is_kept: npt.NDArray[np.bool_]) -> None:
    cursor.execute("SELECT codes FROM store_vectorpage WHERE id = %s", [page])
    codes = np.frombuffer(cursor.fetchone()[0], CODES).reshape(len(rows), -1)
    cursor.execute(
        "UPDATE store_vectorpage SET rows = %s, codes = %s WHERE id = %s",
        [rows[is_kept].tobytes(), codes[is_kept].tobytes(), page],
    )
