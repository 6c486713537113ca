"""Compare the keyword index with the memories, and write the entries again that differ, beside searches and writes.

An owner's memories are compared without a lock, and replaced some at a time, each with its entry in one transaction: a
search finds a memory by its former entry or by the new one. The entries of another version all differ. Until none is
left, the owner's statistics name this version with "…", and searches say that they may lack memories.

Not chosen: an empty index that is filled again, in which searches find less meanwhile.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, Sum

from store.index import VENDORS, fact_pages, keyword
from store.index.keyword import Prepared
from store.index.schema import mark_of
from store.models import IndexStatistics, Memory, owned_by, owner_columns
from store.text.tokens import TOKENIZER_VERSION
from store.types import Owner

_COMPARED_ROWS: Final = 5000
_WRITTEN_ROWS: Final = 200
_PAUSE_SECONDS: Final = 0.1
_NO_ENTRY: Final[Mapping[str, int]] = {}


class _Part(NamedTuple):
    """Some of an owner's memories: those whose entry differs (by row id), and by row id what the index holds."""

    size: int
    wrong: list[int]
    held: Mapping[int, Mapping[str, int]]
    prepared: Prepared


def rewrite(owner: Owner) -> Iterator[int]:
    """Write the entries of an owner again that differ, yielding the number of memories of each step.

    May be stopped and begun again.
    """
    statistics, is_done = IndexStatistics.objects.filter(owned_by(owner)), False
    while not is_done:
        # In each round: what another version writes meanwhile makes the entries those of several.
        statistics.exclude(tokenizer=TOKENIZER_VERSION).update(tokenizer=keyword.rewriting_by_this())
        is_done = True
        for part in _parts(owner):
            for start in range(0, len(part.wrong), _WRITTEN_ROWS):
                is_done &= _replace(owner, part, part.wrong[start : start + _WRITTEN_ROWS])
            yield part.size
        is_done &= _end(owner)
        if not is_done:
            time.sleep(_PAUSE_SECONDS)


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the index of some owners with their memories, and the totals of all; yield the differences."""
    indexed = Memory.objects.filter(is_indexed=True)
    with connection.cursor() as cursor:
        found = VENDORS[connection.vendor].indexed(cursor)
    expected = set(indexed.filter(token_count__gt=0).values_list("pk", flat=True))
    if missing := len(expected - found):
        yield f"{missing:,} memories are missing"
    empty = set(indexed.filter(token_count=0).values_list("pk", flat=True))
    if surplus := len(found - expected - empty):
        yield f"{surplus:,} entries are orphaned"
    counted = IndexStatistics.objects.aggregate(documents=Sum("documents"), tokens=Sum("tokens"))
    are = indexed.aggregate(documents=Count("pk"), tokens=Sum("token_count"))
    for name, number in are.items():
        if (counted[name] or 0) != (number or 0):
            yield f"the statistics count {counted[name] or 0:,} {name} instead of {number or 0:,}"
    for owner in owners:
        if wrong := sum(len(part.wrong) for part in _parts(owner)):
            yield f"{wrong:,} memories of {owner.user_id} have other words"


def remove_orphaned() -> int:
    """Remove the entries of memories that do not exist; return how many there were."""
    vendor = VENDORS[connection.vendor]
    with connection.cursor() as cursor:
        found = vendor.indexed(cursor)
        found.difference_update(Memory.objects.values_list("pk", flat=True).iterator())
        orphaned = sorted(found)
        for start in range(0, len(orphaned), _COMPARED_ROWS):
            with transaction.atomic():
                held = vendor.entries(cursor, "", orphaned[start : start + _COMPARED_ROWS])
                vendor.remove(cursor, "", list(keyword.packed_of(held).items()))
    return len(orphaned)


def _parts(owner: Owner) -> Iterator[_Part]:
    """Compare all of an owner's memories with their entries, some at a time."""
    vendor, mark, prefix = VENDORS[connection.vendor], mark_of(TOKENIZER_VERSION), keyword.prefix_of(owner)
    after, memories = 0, Memory.objects.filter(owned_by(owner)).order_by("pk")
    while rows := list(memories.filter(pk__gt=after)[:_COMPARED_ROWS]):
        after, prepared = rows[-1].pk, Prepared(rows)
        fresh = {
            row.pk: {
                mark + token: count for token, count in vendor.counts_of(prefix, prepared.entry_of(row).packed).items()
            }
            for row in rows
            if row.is_indexed
        }
        with connection.cursor() as cursor:
            held = vendor.entries(cursor, keyword.owner_prefix(owner), [row.pk for row in rows])
        wrong = [row.pk for row in rows if held.get(row.pk, _NO_ENTRY) != fresh.get(row.pk, _NO_ENTRY)]
        yield _Part(len(rows), wrong, held, prepared)


def _replace(owner: Owner, part: _Part, pks: Sequence[int]) -> bool:
    """Write the entries of some memories again, also in the facts.

    Return False if one changed after the comparison, or changes now: a writer may wait for the lock of all writers
    while it holds a memory, or for a memory while it holds that lock, so this waits for no memory.
    """
    vendor = VENDORS[connection.vendor]
    with transaction.atomic(), connection.cursor() as cursor:
        list(IndexStatistics.objects.select_for_update().filter(owned_by(owner)))  # the lock of all writers
        free = Memory.objects.select_for_update(skip_locked=True, no_key=True).filter(owned_by(owner), pk__in=pks)
        rows = [row for row in free if part.prepared.is_of(row)]
        former = keyword.packed_of({row.pk: part.held[row.pk] for row in rows if row.pk in part.held})
        vendor.remove(cursor, keyword.owner_prefix(owner), list(former.items()))
        indexed = [row for row in rows if row.is_indexed]
        entries = [part.prepared.entry_of(row) for row in indexed]
        packed = [(row.pk, entry.packed) for row, entry in zip(indexed, entries, strict=True)]
        vendor.add(cursor, keyword.prefix_of(owner), packed)
        for row, entry in zip(indexed, entries, strict=True):
            row.token_count = entry.length
        Memory.objects.bulk_update(indexed, ["token_count"])
        fact_pages.update(owner, [row.pk for row in indexed])
    return len(rows) == len(pks)


def _end(owner: Owner) -> bool:
    """Count the entries of an owner, all of this version now; return False if another version wrote meanwhile."""
    with transaction.atomic():
        statistics = IndexStatistics.objects.select_for_update().filter(owned_by(owner)).first()
        own = {TOKENIZER_VERSION, keyword.rewriting_by_this()}
        if statistics is not None and statistics.tokenizer not in own:
            return False
        indexed = Memory.objects.filter(owned_by(owner), is_indexed=True).order_by()
        counted = indexed.aggregate(documents=Count("pk"), tokens=Sum("token_count"))
        if not counted["documents"]:
            IndexStatistics.objects.filter(owned_by(owner)).delete()
            return True
        values = {**counted, "tokenizer": TOKENIZER_VERSION}
        IndexStatistics.objects.update_or_create(**owner_columns(owner), defaults=values)
        return True
