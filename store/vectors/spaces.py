"""Which vectors are in use: the active space, and whether it is the one that the settings ask for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from core.sql import rows, run, slots
from store.models import EmbeddingSpace
from store.vectors import scripts
from store.vectors.client import EmbeddingClient, Model

_BATCH_ROWS: Final = 500
_SERVING: Final = """
    SELECT id, model, dimensions, sends_dimensions, COALESCE(knows_other_scripts, FALSE)
    FROM store_embeddingspace WHERE is_active
"""
IS_SERVING: Final = """
    is_active AND id = %s AND model = %s AND dimensions = %s AND sends_dimensions = %s
    AND COALESCE(knows_other_scripts, FALSE) = %s
"""
"""Of a `Serving`: which row of `store_embeddingspace` it is, if it still says so."""
_LACKING: Final = """
    SELECT m.id FROM store_memory m CROSS JOIN store_embeddingspace s
    WHERE s.is_active AND {which} AND NOT EXISTS (
        SELECT 1 FROM store_embedding e WHERE e.memory_id = m.id AND e.space_id = s.id
    )
"""
_OWE: Final = f"INSERT INTO store_owedembedding (memory_id) {_LACKING} ON CONFLICT DO NOTHING"
_NOT_OWED: Final = "NOT EXISTS (SELECT 1 FROM store_owedembedding o WHERE o.memory_id = m.id)"


class Serving(NamedTuple):
    """The active space as far as a question depends on it; read by plain SQL, because every question waits for it."""

    pk: int
    model: str
    dimensions: int
    sends_dimensions: bool
    knows_other_scripts: bool


_last_serving: Serving | None = None


def serving() -> Serving | None:
    """The space that searches use. One statement."""
    global _last_serving  # noqa: PLW0603
    _last_serving = next((Serving(*row) for row in rows(_SERVING, ())), None)
    return _last_serving


def last_serving() -> Serving | None:
    """The same as this process saw it last: another may have changed it since, so whoever uses it has to look."""
    return _last_serving


def active() -> EmbeddingSpace | None:
    """The same with all that is known of it."""
    return EmbeddingSpace.objects.filter(is_active=True).first()


def model_of(space: EmbeddingSpace | Serving) -> Model:
    return Model(space.model, space.dimensions, bool(space.sends_dimensions))


def is_of(space: EmbeddingSpace, wanted: Model) -> bool:
    """Whether a space holds the vectors that the settings ask for."""
    return space.model == wanted.name and wanted.dimensions in {0, space.dimensions}


def begun(wanted: Model) -> EmbeddingSpace:
    """The active space; the first one is made here, and every memory owed to it."""
    space = active()
    if space is not None:
        return space
    with transaction.atomic():
        space, _ = EmbeddingSpace.objects.get_or_create(is_active=True, defaults=fields_of(wanted))
        owe_all()
    return space


def fields_of(wanted: Model) -> dict[str, object]:
    return {
        "model": wanted.name,
        "dimensions": wanted.dimensions,
        "sends_dimensions": wanted.sends_dimensions,
    }


def settle(space: EmbeddingSpace, client: EmbeddingClient, seconds: float) -> None:
    """Tries the model once: how many dimensions it has and which scripts it knows. Errors: `EndpointError`."""
    if space.knows_other_scripts is not None:
        return
    vectors = client.embed(model_of(space), scripts.TRIAL, seconds)
    space.dimensions, space.knows_other_scripts = vectors.shape[1], scripts.passes(vectors)
    space.save(update_fields=["dimensions", "knows_other_scripts"])


def note(space: EmbeddingSpace, error: str, now: datetime | None) -> None:
    """Keeps what went wrong for `/health`, or that nothing does any more (an empty error)."""
    if space.last_error != error:
        space.last_error, space.failed_at = error[:300], now
        space.save(update_fields=["last_error", "failed_at"])


def owe(cursor: CursorWrapper, pks: Collection[int]) -> None:
    """Notes that memories (by row id) lack a vector in the active space, if there is one."""
    wanted = list(pks)
    for start in range(0, len(wanted), _BATCH_ROWS):
        batch = wanted[start : start + _BATCH_ROWS]
        run(cursor, _OWE.format(which=f"m.id IN ({slots(batch)})"), batch)


def owe_all() -> None:
    """The same for all memories that lack one."""
    with connection.cursor() as cursor:
        cursor.execute(_OWE.format(which="m.is_indexed"))


def is_anything_lacking() -> bool:
    """Whether a memory without a vector in the active space is not noted as owed one."""
    with connection.cursor() as cursor:
        cursor.execute(_LACKING.format(which=f"m.is_indexed AND {_NOT_OWED}") + " LIMIT 1")
        return cursor.fetchone() is not None
