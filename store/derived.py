"""The stores that are derived from memories: each can be made again from the rows.

Guarantees: `add` and `remove` write in the transaction of the memory, so a reader sees both or none; what another
version wrote is not read, and searches say so until it is made again, beside them. `differences` names a store that
disagrees with the rows.

Ours, because a search reads one user's part of all stores in one statement. Not chosen: triggers, which know no tokens,
and a search server, outside the transaction. It costs a write to each store per memory.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from django.db import DatabaseError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, Model, OuterRef, Sum

from core.persistence import database_errors
from core.persistence.sql import temporary_data_on_disk
from store import attributes, rollups
from store.index import fact_pages, keyword, rewriting
from store.index.keyword import IndexEntry
from store.models import FactPage, IndexStatistics, Memory, TokenVectors, VectorPage
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner
from store.vectors import fill as vectors
from store.vectors import layout as vector_layout
from store.vectors import token_vectors, vector_pages

BATCH_ROWS: Final = 500
_SAMPLED_OWNERS: Final = 200
_SAMPLED_MEMORIES: Final = 20_000
"""Together; of an owner with more, whose comparison would fill the memory, only the totals are compared."""
_SCOPE: Final = ("user_id", "app_id", "project_id")
_OWNER: Final = ("user_id", "user__user_id", "app_id", "project_id")
Add = Callable[[CursorWrapper, Owner, Mapping[Memory, IndexEntry]], None]
Remove = Callable[[CursorWrapper, Owner, Mapping[int, IndexEntry]], None]


class Version(NamedTuple):
    """The version of a store: what a column of its rows says of all that this version wrote."""

    rows: type[Model]
    column: str
    value: str | int
    of_memory: str = ""
    """The lookup of the memory, for rows without an owner."""

    def outdated(self) -> list[Owner]:
        """Return the owners of whom another version wrote rows."""
        others = self.rows._default_manager.exclude(**{self.column: self.value})  # noqa: SLF001  Django documents it
        owner = [self.of_memory + name for name in _OWNER]
        return [Owner(*one) for one in others.order_by().values_list(*owner).distinct()]


@dataclass(frozen=True, slots=True)
class Derived:
    """A store that is derived from memories.

    `add` and `remove` are called in the transaction that writes the rows. Without a `version`, a migration makes the
    store again whenever it changes. `rebuild` makes it again from the rows of some owners, or of all, and yields the
    number of memories of each step; it may be stopped and begun again. `differences` compares it with the rows of some
    owners, and its totals with those of all.
    """

    name: str
    version: Version | None
    add: Add
    remove: Remove
    rebuild: Callable[[Collection[Owner] | None], Iterator[int]]
    differences: Callable[[Sequence[Owner]], Iterator[str]]

    def outdated(self) -> list[Owner]:
        """Return the owners of whom another version wrote a part of it."""
        return self.version.outdated() if self.version else []


def add(owner: Owner, entries: Mapping[Memory, IndexEntry]) -> None:
    """Add saved memories of an owner to all stores. Call inside the transaction that writes their rows, after that."""
    if entries:
        with connection.cursor() as cursor:
            for store in STORES:
                store.add(cursor, owner, entries)


def remove(owner: Owner, entries: Mapping[int, IndexEntry]) -> None:
    """Remove memories, by row id with the entries that they had. Call inside the transaction that changes the rows."""
    if entries:
        with connection.cursor() as cursor:
            for store in STORES:
                store.remove(cursor, owner, entries)


def sample() -> list[Owner]:
    """Return some owners by chance, whose memories are few enough to compare each."""
    of_some = IndexStatistics.objects.filter(documents__range=(1, _SAMPLED_MEMORIES)).select_related("user")
    chosen: list[Owner] = []
    left = _SAMPLED_MEMORIES
    for one in of_some.order_by("?")[:_SAMPLED_OWNERS]:
        if one.documents <= left:
            chosen.append(one.owner)
            left -= one.documents
    return chosen


# --- memories that wait for the keyword index ----------------------------------------------------------------------


def pending_count() -> int:
    """Return how many memories are not yet in the keyword index."""
    return Memory.objects.filter(keyword.PENDING).count()


def unread_count() -> int:
    """Return how many memories searches by word do not find: pending ones, and those that another version wrote."""
    others = IndexStatistics.objects.exclude(tokenizer=TOKENIZER_VERSION).aggregate(documents=Sum("documents"))
    return pending_count() + (others["documents"] or 0)


def fill(batch_rows: int = BATCH_ROWS) -> Iterator[int]:
    """Index all pending memories, yielding the size of each batch. Raises: `EngineUnavailable`."""
    pending = Memory.objects.filter(keyword.PENDING).select_related("user").order_by("pk")[:batch_rows]
    while True:
        with database_errors.database_errors():
            batch = list(pending.all())
            if not batch:
                return
            _index(batch)
        yield len(batch)


def _index(memories: list[Memory]) -> None:
    prepared = keyword.Prepared(memories)
    by_owner: defaultdict[Owner, dict[Memory, IndexEntry]] = defaultdict(dict)
    with transaction.atomic():
        # Looked up again under the lock: some may have been deleted, changed, or indexed by another process.
        keys = [memory.pk for memory in memories]
        locked = Memory.objects.select_for_update(of=("self",)).filter(keyword.PENDING, pk__in=keys)
        for memory in locked.select_related("user"):
            entry = prepared.entry_of(memory)
            memory.is_indexed, memory.token_count = True, entry.length
            by_owner[Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)][memory] = entry
        for owner, entries in by_owner.items():
            add(owner, entries)
        changed = [memory for entries in by_owner.values() for memory in entries]
        Memory.objects.bulk_update(changed, ["is_indexed", "token_count"])


# --- rebuilds ---------------------------------------------------------------------------------------------------------


def empty_keywords() -> None:
    """Empty the keyword index, and with it the facts of what it holds."""
    with database_errors.database_errors(), temporary_data_on_disk(), transaction.atomic():
        keyword.empty()
        fact_pages.empty()
        Memory.objects.filter(is_indexed=True).update(is_indexed=False, token_count=0)


def _rebuild_keywords(owners: Collection[Owner] | None = None) -> Iterator[int]:
    with database_errors.database_errors():
        try:
            if owners is None:
                rewriting.remove_orphaned()
        except DatabaseError as error:
            if not database_errors.is_index_damaged(error):
                raise
            empty_keywords()
            yield from fill()
        for owner in _owners() if owners is None else owners:
            yield from rewriting.rewrite(owner)


def _rebuild_vectors(owners: Collection[Owner] | None = None) -> Iterator[int]:
    yield from _of_each(vector_pages.rebuild, owners)
    vectors.mark_missing_pending()


def _rebuild_tokens(owners: Collection[Owner] | None = None) -> Iterator[int]:
    """Delete them; the background work on vectors makes them again."""
    yield from _of_each(token_vectors.empty, owners)
    vectors.mark_missing_pending()


def _rebuild_counts(_owners: Collection[Owner] | None = None) -> Iterator[int]:
    with database_errors.database_errors():
        yield from rollups.mend()


def _of_each(rebuild: Callable[[Owner], int], owners: Collection[Owner] | None = None) -> Iterator[int]:
    with database_errors.database_errors():
        for owner in _owners() if owners is None else owners:
            yield rebuild(owner)


def _owners() -> list[Owner]:
    """Return the owners of all memories in the stores, also of those that the statistics lack."""
    counted = IndexStatistics.objects.filter(**{name: OuterRef(name) for name in _SCOPE})
    lacking = Memory.objects.filter(~Exists(counted), is_indexed=True).order_by().values_list(*_OWNER).distinct()
    return [Owner(*one) for one in (*IndexStatistics.objects.order_by("pk").values_list(*_OWNER), *lacking)]


def _kept_elsewhere(_cursor: CursorWrapper, _owner: Owner, _entries: Collection[object]) -> None:
    """Do nothing: vectors keep the tokens, triggers the counts; attributes go with the row, whose payload has them."""


STORES: Final = (
    # First: its statistics are the lock of all who write for an owner.
    Derived(
        "keywords",
        Version(IndexStatistics, "tokenizer", TOKENIZER_VERSION),
        keyword.add,
        keyword.remove,
        _rebuild_keywords,
        rewriting.differences,
    ),
    Derived(
        "facts",
        Version(FactPage, "layout", fact_pages.LAYOUT),
        fact_pages.add,
        fact_pages.remove,
        partial(_of_each, fact_pages.rebuild),
        fact_pages.differences,
    ),
    Derived(
        "vectors",
        Version(VectorPage, "layout", vector_layout.LAYOUT),
        vectors.add,
        vectors.remove,
        _rebuild_vectors,
        vectors.differences,
    ),
    Derived(
        "tokens",
        Version(TokenVectors, "layout", vector_layout.TOKEN_LAYOUT, of_memory="memory__"),
        _kept_elsewhere,
        _kept_elsewhere,
        _rebuild_tokens,
        token_vectors.differences,
    ),
    Derived(
        "attributes",
        None,
        attributes.add,
        _kept_elsewhere,
        partial(_of_each, attributes.rebuild),
        attributes.differences,
    ),
    Derived("counts", None, _kept_elsewhere, _kept_elsewhere, _rebuild_counts, rollups.differences),
)
BY_NAME: Final = {store.name: store for store in STORES}
