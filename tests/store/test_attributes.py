"""Tags and metadata of memories as rows for filters: they agree with the rows, and a purge leaves none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import transaction

from engines.embedded.engine import EmbeddedEngine
from store import attributes, derived, writes
from store.attributes import attributes_of, encoded
from store.filters import Condition
from store.models import Attribute, Memory, Session
from tests.conftest import Person
from tests.store.conftest import remember

pytestmark = pytest.mark.django_db

METADATA = {"source": "crm", "size": 3, "place": {"city": "Köln", "tags": ["a", None]}, "empty": [], "ok": True}


def insert(person: Person, count: int, payload: dict[str, Any]) -> list[Memory]:
    session, _ = Session.objects.get_or_create(
        user_id=person.owner.user_pk, session_id="chat:a", engine_session_id="chat:a", kind="chat"
    )
    memories = [
        Memory(
            memory_id=f"m{number}",
            session=session,
            memory_type="episode",
            text=f"Note {number}",
            payload=payload,
            created_at_ms=1_781_172_177_000 + number,
            seq=number,
        )
        for number in range(count)
    ]
    with transaction.atomic():
        writes.insert(person.owner, memories)
    return memories


def names(memory: Memory) -> set[str]:
    return set(Attribute.objects.filter(memory=memory).values_list("name", flat=True))


@pytest.mark.parametrize(
    "ordered",
    [
        [-1e300, -5, -1, -0.5, 0, 0.25, 1, 2, 10, 1e9, 2**53],
        ["", "2026-01-02", "2026-01-10", "a", "b", "ä", "一"],
        [False, True],
    ],
)
def test_values_sort_as_they_do(ordered: Sequence[Any]) -> None:
    shuffled = random.Random(1).sample(ordered, len(ordered))
    assert sorted(shuffled, key=encoded) == list(ordered)


def test_values_of_two_types_never_equal() -> None:
    values: list[Any] = [None, False, 0, "0", "", {}, "false", "n"]
    assert len({encoded(value) for value in values}) == len(values)
    assert encoded(-0.0) == encoded(0) == encoded(0.0)
    assert encoded("a" * 500) != encoded("a" * 499 + "b")
    assert len(encoded("一" * 16_000)) < 500


def test_nested_values_and_items_of_lists_have_rows() -> None:
    found = attributes_of({"metadata": METADATA, "tags": ["x", "y"], "role": "user"})
    assert found == {
        ("tags", encoded("x")),
        ("tags", encoded("y")),
        ("metadata.source", encoded("crm")),
        ("metadata.size", encoded(3)),
        ("metadata.place", encoded({})),
        ("metadata.place.city", encoded("Köln")),
        ("metadata.place.tags", encoded([])),
        ("metadata.place.tags", encoded("a")),
        ("metadata.place.tags", encoded(None)),
        ("metadata.empty", encoded([])),
        ("metadata.ok", encoded(True)),
    }


@pytest.mark.parametrize("count", [1, 250])  # many are written by COPY on PostgreSQL
def test_they_are_written_with_the_rows_and_go_with_them(alice: Person, count: int) -> None:
    memories = insert(alice, count, {"tags": ["x"], "metadata": {"n": 1}})
    assert names(memories[-1]) == {"tags", "metadata.n"}
    assert list(attributes.differences([alice.owner])) == []
    writes.remove(alice.owner, memories)
    assert not Attribute.objects.exists()


def test_a_memory_without_any_has_no_row(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "I like tea")
    assert Memory.objects.count() == 1
    assert not Attribute.objects.exists()


def test_a_changed_payload_changes_them(alice: Person) -> None:
    [memory] = insert(alice, 1, {"tags": ["x"]})
    memory.payload = {"metadata": {"n": 1}}
    with transaction.atomic():
        writes.save(alice.owner, [memory], ["payload"])
    assert names(memory) == {"metadata.n"}


def test_differences_are_found_and_a_rebuild_mends_them(alice: Person, bob: Person) -> None:
    [memory] = insert(alice, 1, {"tags": ["x"], "metadata": {"n": 1}})
    [other] = insert(bob, 1, {"tags": ["x"]})
    Attribute.objects.filter(memory=memory, name="tags").delete()
    Attribute.objects.create(memory=memory, owner="", name="tags", value=b"other owner")
    owners = [alice.owner, bob.owner]
    [found] = derived.BY_NAME["attributes"].differences(owners)
    assert "1 memories of alice" in found
    list(derived.BY_NAME["attributes"].rebuild(None))
    assert list(attributes.differences(owners)) == []
    assert names(memory) == {"tags", "metadata.n"}
    assert names(other) == {"tags"}
    assert not Attribute.objects.filter(owner="").exists()


@pytest.mark.parametrize(
    "condition",
    [
        Condition("metadata.place", "eq", 3),
        Condition("metadata.place", "in", frozenset({1, 3})),
        Condition("metadata.place", "in", frozenset(range(1, 40, 2))),
        Condition("metadata.place", "gte", 3),
        Condition("metadata.place", "exists", value=True),
        Condition("tags", "any", frozenset({"odd"})),
    ],
)
def test_some_memories_are_looked_up_as_all_are(alice: Person, bob: Person, condition: Condition) -> None:
    for person in (alice, bob):
        memories = insert(person, 6, {})
        for place, memory in enumerate(memories):
            memory.payload = {"metadata": {"place": place}, "tags": ["odd"] if place % 2 else []}
        attributes.write(person.owner, memories)
    rows = list(Memory.objects.filter(user=alice.user_pk).order_by("pk").values_list("pk", flat=True))
    found = {one.memory_id for one in attributes.matching(alice.owner, condition)}
    assert found
    assert found <= set(rows)
    some = rows[2:5]
    assert {one.memory_id for one in attributes.matching(alice.owner, condition, some)} == found & set(some)
