"""Tags and metadata of memories, as rows that filters look up: derived from `payload`, only for memories that have any.

A value is bytes: a letter for its type, and bytes that sort as the values of that type do. Objects and lists in the
metadata are rows too, so that `exists` finds them; the items of a list are rows of the list's name.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from django.db.backends.utils import CursorWrapper
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from core.persistence.sql import slots
from store.filters import Condition
from store.index.keyword import IndexEntry, owner_prefix
from store.models import Attribute, Memory, owned_by, owner_columns
from store.types import METADATA, TAGS, Owner

_HAS_ANY: Final = {"payload__has_any_keys": [TAGS, METADATA]}
_WHOLE_CHARS: Final = 128
"""A longer text is stored as its beginning and a digest, because an index has short entries."""
_NAME_CHARS: Final = 320
_BATCH_ROWS: Final = 500
_FEW_VALUES: Final = 4
_EMPTY: Final = b"o"
_SIGN: Final = 1 << 63
_ALL_BITS: Final = (1 << 64) - 1


def encoded(value: Any) -> bytes:
    """Return a text, number, boolean or None as the value of an attribute; objects and lists are all equal."""
    if value is None:
        return b"0"
    if isinstance(value, bool):
        return b"b1" if value else b"b0"
    if isinstance(value, int | float):
        bits = int.from_bytes(struct.pack(">d", float(value) or 0.0), "big")  # -0.0 equals 0.0
        return b"n" + (bits ^ (_ALL_BITS if bits & _SIGN else _SIGN)).to_bytes(8, "big")
    if isinstance(value, str):
        text = value.encode()
        if len(value) > _WHOLE_CHARS:
            text = value[:_WHOLE_CHARS].encode() + b"\xff" + hashlib.sha256(text).digest()
        return b"s" + text
    return _EMPTY


def name_of(path: Iterable[str]) -> str:
    """Return the name of the attributes of a metadata key, as filters write it."""
    return ".".join((METADATA, *path))[:_NAME_CHARS]


def attributes_of(payload: Mapping[str, Any]) -> set[tuple[str, bytes]]:
    """Return the names and values of a memory's tags and metadata."""
    tags = payload.get(TAGS)
    found = {(TAGS, encoded(tag)) for tag in tags} if isinstance(tags, list | tuple) else set()
    metadata = payload.get(METADATA)
    return found | set(_values((), metadata)) if isinstance(metadata, Mapping) else found


def _values(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, bytes]]:
    if path:
        yield name_of(path), encoded(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _values((*path, str(key)), item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping):
                yield from _values(path, item)
            else:
                yield name_of(path), encoded(item)


def add(_cursor: CursorWrapper, owner: Owner, entries: Mapping[Memory, IndexEntry]) -> None:
    """Add the attributes of saved memories of an owner. Harmless if they are there."""
    _insert(owner, entries)


def write(owner: Owner, memories: Collection[Memory]) -> None:
    """Write the attributes of memories again whose `payload` was saved. Call inside the transaction that changes it."""
    Attribute.objects.filter(memory__in=[memory.pk for memory in memories]).delete()
    _insert(owner, memories)


def _insert(owner: Owner, memories: Iterable[Memory]) -> None:
    prefix = owner_prefix(owner)
    rows = (
        Attribute(memory_id=memory.pk, owner=prefix, name=name, value=value)
        for memory in memories
        if memory.payload
        for name, value in sorted(attributes_of(memory.payload))
    )
    while batch := list(islice(rows, _BATCH_ROWS)):
        Attribute.objects.bulk_create(batch, ignore_conflicts=True)


def matching(owner: Owner, condition: Condition, among: Collection[int] | None = None) -> QuerySet[Attribute]:
    """Return the attributes of an owner that meet a condition on tags or metadata.

    `among`: only those of some memories (row ids) of the owner, which are looked up one by one: by the index of values
    if there are few to compare with, otherwise by that of memories.
    """
    found = Attribute.objects.filter(name=condition.field[:_NAME_CHARS])
    if among is None or _has_few_values(condition):
        found = found.filter(owner=owner_prefix(owner))
    if among is not None:
        # The ORM would resolve each number, which takes longer than looking it up.
        listed = f'"{Attribute._meta.db_table}"."memory_id" IN ({slots(among)})'  # noqa: SLF001
        found = found.filter(RawSQL(listed, list(among), BooleanField()))  # noqa: S611 - numbers as parameters
    if condition.operator == "exists":
        return found
    if condition.operator in {"any", "in"}:
        return found.filter(value__in=sorted(map(encoded, condition.value)))
    value = encoded(condition.value)
    if condition.operator == "eq":
        return found.filter(value=value)
    of_type = {"value__gte": value[:1], "value__lt": bytes([value[0] + 1])}
    return found.filter(**of_type).filter(**{f"value__{condition.operator}": value})


def _has_few_values(condition: Condition) -> bool:
    number = len(condition.value) if condition.operator in {"any", "in"} else 1
    return condition.operator in {"eq", "any", "in"} and number <= _FEW_VALUES


def holding_tag(tag: str) -> QuerySet[Attribute, Any]:
    """Return the row ids of the memories of all users that have a tag. For operators."""
    return Attribute.objects.filter(name=TAGS, value=encoded(tag)).values_list("memory", flat=True)


def rebuild(owner: Owner) -> int:
    """Write the attributes of all of an owner's memories again; return the number of memories that have any."""
    _of(owner).delete()
    memories = list(Memory.objects.filter(owned_by(owner), **_HAS_ANY).only("payload"))
    _insert(owner, memories)
    return len(memories)


def differences(owners: Sequence[Owner]) -> Iterator[str]:
    """Compare the attributes of some owners with their memories; yield the differences."""
    for owner in owners:
        prefix = owner_prefix(owner)
        rows = _of(owner).values_list("memory_id", "owner", "name", "value")
        held = {(pk, of, name, bytes(value)) for pk, of, name, value in rows}
        memories = Memory.objects.filter(owned_by(owner), **_HAS_ANY).only("payload")
        fresh = {(memory.pk, prefix, *one) for memory in memories for one in attributes_of(memory.payload)}
        if wrong := {one[0] for one in held ^ fresh}:
            yield f"{len(wrong):,} memories of {owner.user_id} have other tags or metadata"


def _of(owner: Owner) -> QuerySet[Attribute]:
    """Return the attributes of an owner's memories, whatever they say of the owner."""
    columns = {f"memory__{name}": value for name, value in owner_columns(owner).items()}
    return Attribute.objects.filter(**columns)
