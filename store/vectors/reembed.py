"""All vectors made anew, by another model or with other dimensions, while the old ones go on serving.

The new ones are made beside the old; then one transaction switches, and the old ones go. It may be stopped at any point
and started again: what was made stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from store.errors import database_errors
from store.models import Embedding, EmbeddingSpace, Memory
from store.vectors import scripts
from store.vectors import spaces as vectors_spaces
from store.vectors.client import CALL_SECONDS, MAX_CHARS, MAX_INPUTS, EmbeddingClient, Model
from store.vectors.fill import write

BATCH: Final = 100
_READ_ROWS: Final = 1000
_DELETED_AT_ONCE: Final = 2000
_CHARS_PER_TOKEN: Final = 4
_FOREIGN_CHARS_PER_TOKEN: Final = 1.3


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done: from which vectors to which, for how many memories, and about what it takes.

    `tokens` is an estimate from the characters; `calls` are those of `MAX_INPUTS` texts, of which equal ones are asked
    for once, so that it may be less.
    """

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
    """Reads all memories that lack a vector; calls nothing."""
    space, current = _space_of(wanted), vectors_spaces.active()
    lacking = characters = tokens = 0
    for text in _lacking(space).values_list("text", flat=True).iterator(_READ_ROWS):
        size = min(len(text), MAX_CHARS)
        lacking, characters = lacking + 1, characters + size
        tokens += 1 + int(size / (_FOREIGN_CHARS_PER_TOKEN if scripts.is_foreign(text) else _CHARS_PER_TOKEN))
    return Plan(
        current=str(current) if current else None,
        wanted=f"{wanted.name} ({wanted.dimensions or 'its own dimensions'})",
        memories=_all().count(),
        lacking=lacking,
        characters=characters,
        tokens=tokens,
        calls=-(-lacking // MAX_INPUTS),
    )


def run(wanted: Model, source: EmbeddingClient, *, seconds: float = CALL_SECONDS) -> Iterator[int]:
    """Makes what is lacking, yielding after each batch how many memories it held, then switches.

    Errors: `EndpointError`, `EngineUnavailable`.
    """
    with database_errors():
        space = _space_of(wanted) or EmbeddingSpace.objects.create(**vectors_spaces.fields_of(wanted))
    vectors_spaces.settle(space, source, seconds)
    last = 0
    while batch := _batch_after(space, last):
        with database_errors():
            write(space, batch, source, seconds)
        last = batch[-1].pk
        yield len(batch)
    with database_errors():
        _switch(space)
        _clear_away(space)


def _switch(space: EmbeddingSpace) -> None:
    """Searches use the new vectors from here on; what came meanwhile is owed to them."""
    with transaction.atomic():
        EmbeddingSpace.objects.filter(is_active=True).exclude(pk=space.pk).update(is_active=False)
        EmbeddingSpace.objects.filter(pk=space.pk).update(is_active=True)
        vectors_spaces.owe_all()


def _clear_away(space: EmbeddingSpace) -> None:
    """The vectors of all other spaces, a part at a time so that writers need not wait long."""
    for old in EmbeddingSpace.objects.exclude(pk=space.pk):
        for table in ("store_vectorpage", "store_embedding"):
            _delete_all(table, old.pk)
        old.delete()


def _delete_all(table: str, space: int) -> None:
    some = f"SELECT id FROM {table} WHERE space_id = %s LIMIT {_DELETED_AT_ONCE}"
    with connection.cursor() as cursor:
        while True:
            cursor.execute(f"DELETE FROM {table} WHERE id IN ({some})", [space])
            if cursor.rowcount < 1:
                return


def _space_of(wanted: Model) -> EmbeddingSpace | None:
    spaces = EmbeddingSpace.objects.filter(model=wanted.name).order_by("-is_active", "pk")
    return next((space for space in spaces if vectors_spaces.is_of(space, wanted)), None)


def _all() -> QuerySet[Memory]:
    return Memory.objects.filter(is_indexed=True)


def _lacking(space: EmbeddingSpace | None) -> QuerySet[Memory]:
    if space is None:
        return _all()
    return _all().filter(~Exists(Embedding.objects.filter(memory=OuterRef("pk"), space=space)))


def _batch_after(space: EmbeddingSpace, last: int) -> list[Memory]:
    with database_errors():
        return list(_lacking(space).filter(pk__gt=last).select_related("user").order_by("pk")[:BATCH])
