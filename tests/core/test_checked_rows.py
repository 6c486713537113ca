"""Every way of writing a row checks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from core.errors import InvalidInput
from core.persistence import sql
from core.persistence.checked_rows import check_row, repair_row
from store.models import Memory
from tests.conftest import Person

pytestmark = pytest.mark.django_db
BAD: dict[str, Any] = {
    "text": "a\0b",
    "category": "x" * 41,
    "payload": {"a": ["\ud800"]},
    "created_at_ms": 10**16,
    "importance": float("nan"),
    "seq": 2**31,
}
FIELDS = {"payload": "payload.a.0"}


def row_of(person: Person, **values: Any) -> Memory:
    fields = {"memory_id": "m", "memory_type": "episode", "text": "tea", "created_at_ms": 0, **values}
    return Memory(user_id=person.user_pk, **fields)


def insert(row: Memory) -> None:
    with connection.cursor() as cursor:
        sql.insert(cursor, [row])


def change(write: Callable[[Memory], object]) -> Callable[[Memory], object]:
    """Return a write of a row that is stored already."""

    def write_again(row: Memory) -> None:
        row.pk = Memory.objects.create(**{**fields_of(row), "memory_id": "old", **GOOD}).pk
        write(row)

    return write_again


GOOD = {"text": "tea", "category": "", "payload": {}, "created_at_ms": 0, "importance": None, "seq": 0}


def fields_of(row: Memory) -> dict[str, Any]:
    return {"user_id": row.user_id, "memory_type": row.memory_type}


WRITES: dict[str, Callable[[Memory], object]] = {
    "save": lambda row: row.save(),
    "bulk_create": lambda row: Memory.objects.bulk_create([row]),
    "insert": insert,
    "update_fields": change(lambda row: row.save(update_fields=list(BAD))),
    "bulk_update": change(lambda row: Memory.objects.bulk_update([row], list(BAD))),
    "update": change(lambda row: Memory.objects.filter(pk=row.pk).update(**{name: getattr(row, name) for name in BAD})),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", BAD)
def test_a_row_that_cannot_be_stored_is_refused_by_its_field(alice: Person, name: str, write: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        WRITES[write](row_of(alice, **{name: BAD[name]}))
    assert [error.field for error in caught.value.errors] == [FIELDS.get(name, name)]


def test_a_repaired_row_is_stored_and_its_changes_are_named(alice: Person) -> None:
    row = row_of(alice, **BAD)
    assert {change.field for change in repair_row(row)} == {*(BAD.keys() - {"payload"}), "payload.a.0"}
    check_row(row)
    row.save()
    assert Memory.objects.get().text == "a\ufffdb"
