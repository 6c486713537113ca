"""Re-embed all memories with another model or other dimensions, while searches use the old vectors.

New vectors are stored in a separate space; then one transaction switches, and the old ones are deleted. The run may be
stopped at any point and started again: it keeps the vectors that it has stored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from core.persistence.database_errors import database_errors
from store.models import Embedding, EmbeddingSpace, Memory
from store.vectors import spaces as vectors_spaces
from store.vectors.client import CALL_SECONDS, MAX_CHARS, MAX_INPUTS, Embedder, Model
from store.vectors.fill import write

BATCH: Final = 100
_READ_ROWS: Final = 1000
_DELETE_ROWS: Final = 2000
_CHARS_PER_TOKEN: Final = 4
_FOREIGN_CHARS_PER_TOKEN: Final = 1.3


@dataclass(frozen=True, slots=True)
class Plan:
    """The estimated effort of re-embedding: spaces, and numbers of memories, characters, tokens and calls."""

    current: str | None
    wanted: str
    memories: int
    lacking: int
    characters: int
    tokens: int
    calls: int

    def cost(self, price_per_million_tokens: float) -> float:
        return self.tokens * price_per_million_tokens / 1_000_000


def plan(wanted: Model) -> Plan:
    """Return the plan, from all memories without a vector in the new space. Does not call the endpoint."""
    space, current = _space_of(wanted), vectors_spaces.active()
    lacking = characters = tokens = 0
    for text in _lacking(space).values_list("text", flat=True).iterator(_READ_ROWS):
        size = min(len(text), MAX_CHARS)
        lacking, characters = lacking + 1, characters + size
        tokens += 1 + int(size / (_FOREIGN_CHARS_PER_TOKEN if vectors_spaces.is_foreign(text) else _CHARS_PER_TOKEN))
    return Plan(
        current=str(current) if current else None,
        wanted=f"{wanted.name} ({wanted.dimensions or 'its own dimensions'})",
        memories=_all().count(),
        lacking=lacking,
        characters=characters,
        tokens=tokens,
        calls=-(-lacking // MAX_INPUTS),
    )


def run(wanted: Model, source: Embedder, *, seconds: float = CALL_SECONDS) -> Iterator[int]:
    """Compute the missing vectors, yield the size of each finished batch, then switch.

    Raises: `EndpointError`, `EngineUnavailable`.
    """
    with database_errors():
        space = _space_of(wanted) or EmbeddingSpace.objects.create(**vectors_spaces.fields_of(wanted))
    vectors_spaces.probe(space, source, seconds)
    last = 0
    while batch := _batch_after(space, last):
        with database_errors():
            write(space, batch, source, seconds)
        last = batch[-1].pk
        yield len(batch)
    with database_errors():
        with transaction.atomic():
            EmbeddingSpace.objects.filter(is_active=True).exclude(pk=space.pk).update(is_active=False)
            EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
            vectors_spaces.mark_all_pending()  # memories without a vector in the new space
        for old in EmbeddingSpace.objects.exclude(pk=space.pk):
            for table in ("store_vectorpage", "store_tokenvectors", "store_embedding"):
                _delete_all(table, old.pk)
            old.delete()


def _delete_all(table: str, space: int) -> None:
    """Delete the rows of a space in small batches, so that writers wait only briefly."""
    batch = f"SELECT id FROM {table} WHERE space_id = %s LIMIT {_DELETE_ROWS}"
    with connection.cursor() as cursor:
        while True:
            cursor.execute(f"DELETE FROM {table} WHERE id IN ({batch})", [space])
            if cursor.rowcount < 1:
                return


def _space_of(wanted: Model) -> EmbeddingSpace | None:
    spaces = EmbeddingSpace.objects.filter(model=wanted.name).order_by("-is_active", "pk")
    return next((space for space in spaces if vectors_spaces.is_for(space, wanted)), None)


def _all() -> QuerySet[Memory]:
    return Memory.objects.filter(is_indexed=True)


def _lacking(space: EmbeddingSpace | None) -> QuerySet[Memory]:
    if space is None:
        return _all()
    return _all().filter(~Exists(Embedding.objects.filter(memory=OuterRef("pk"), space=space)))


def _batch_after(space: EmbeddingSpace, last: int) -> list[Memory]:
    with database_errors():
        return list(_lacking(space).filter(pk__gt=last).select_related("user").order_by("pk")[:BATCH])
