"""The rollups agree with the rows after every change, and can be recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.models import MemoryUser
from engines.embedded.engine import EmbeddedEngine
from store import rollups, writes
from store.models import DayCount, Memory, Session, SessionCount, State
from store.types import Wording
from tests.conftest import Person
from tests.store.conftest import NOON_MS, remember, text_message
from tests.store.decisions import delete, delete_session, restore, restore_session
from tests.store.rollup_state import assert_rollups_agree

HOUR = 3_600_000
CATEGORIES = ("", "full_context_user", "user_memory_fact", "self_improving_errors")

pytestmark = pytest.mark.django_db


@pytest.fixture
def engine() -> EmbeddedEngine:
    return EmbeddedEngine()


def test_changes_through_the_engine_are_counted(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    remember(engine, alice.owner, "one", "two", "three")
    engine.add(bob.owner, "chat:c1", [text_message("an answer", by="helper", role="assistant")])
    assert_rollups_agree()
    one = Memory.objects.get(text="one").memory_id
    delete(alice.owner, one)
    assert_rollups_agree()
    engine.replace(alice.owner, {one: Wording("uno", "user_memory_fact", 0.7)})
    restore(alice.owner, one)
    assert_rollups_agree()
    delete_session(alice.owner, "chat:c1")
    assert_rollups_agree()
    assert total_memories() == 1
    restore_session(alice.owner, "chat:c1")
    assert_rollups_agree()
    engine.delete(alice.owner, "chat:c1")
    assert_rollups_agree()


def test_purged_rows_are_not_counted(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(
        alice.owner,
        "chat:c1",
        [text_message("one"), text_message("two", at=NOON_MS + 1), text_message("three", at=NOON_MS + 2)],
    )
    assert total_memories() == 3
    Memory.objects.filter(text="two").update(state="purged")
    assert_rollups_agree()
    assert total_memories() == 2
    Memory.objects.filter(text="two").update(state="live")
    assert_rollups_agree()
    assert total_memories() == 3


def test_a_flush_changes_no_count(engine: EmbeddedEngine, alice: Person) -> None:
    engine.add(alice.owner, "chat:c1", [text_message("one")])
    before = list(DayCount.objects.order_by("pk").values()), list(SessionCount.objects.order_by("pk").values())
    assert engine.flush(alice.owner, "chat:c1").memory_count == 1
    after = list(DayCount.objects.order_by("pk").values()), list(SessionCount.objects.order_by("pk").values())
    assert after == before
    assert_rollups_agree()


@pytest.mark.parametrize("table", ["store_daycount", "store_sessioncount"])
def test_empty_cells_are_found_by_an_index(table: str) -> None:
    """The triggers search for empty cells at each change of a memory."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL adds changes up later")
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN DELETE FROM {table} WHERE memories <= 0")
        [(*_, plan)] = cursor.fetchall()
        cursor.execute("SELECT sql FROM sqlite_master WHERE name = 'store_memory_count_delete'")
        [(trigger,)] = cursor.fetchall()
    assert "USING INDEX" in plan
    assert f"DELETE FROM {table} WHERE memories <= 0;" in trigger


def test_removing_the_rows_of_a_user_removes_the_user_from_the_rollups(
    engine: EmbeddedEngine, alice: Person, bob: Person
) -> None:
    remember(engine, bob.owner, "one")
    before = set(DayCount.objects.values_list("owner", "agent_id"))
    engine.add(alice.owner, "chat:c1", [text_message("an answer", by="alices-agent", role="assistant")])
    writes.remove(alice.owner, list(Memory.objects.filter(user_id=alice.user_pk)))
    rollups.settle()
    assert set(DayCount.objects.values_list("owner", "agent_id")) == before


def total_memories() -> int:
    rows = DayCount.objects.filter(owner="")
    return sum(rows.values_list("memories", flat=True))


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL empties its tables without triggers")
def test_deleting_memories_after_their_counts_leaves_no_counts(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "one", "two")
    for table in (DayCount, SessionCount, Memory):
        table.objects.all().delete()
    assert not DayCount.objects.exists()
    assert not SessionCount.objects.exists()


def test_the_rollups_can_be_recomputed(engine: EmbeddedEngine, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        remember(engine, person.owner, "one", "two")
        engine.add(person.owner, "chat:c2", [text_message("an answer", by="helper", role="assistant")])
    DayCount.objects.all().delete()
    SessionCount.objects.update(memories=7)
    seen: list[tuple[str, int, int]] = []
    rollups.recount(report=lambda *progress: seen.append(progress))
    assert_rollups_agree()
    assert seen[-1][1] == seen[-1][2]


def test_settling_does_not_change_the_counts(engine: EmbeddedEngine, alice: Person) -> None:
    remember(engine, alice.owner, "one", "two", "three")
    delete(alice.owner, Memory.objects.get(text="two").memory_id)
    assert rollups.settle() is (connection.vendor == "postgresql")
    assert_rollups_agree()
    assert not DayCount.objects.exclude(delta=0).exists()
    assert rollups.settle() is False


# Strategies for random changes of rows; users, sessions and rows are chosen by number.
times = st.sampled_from([-1, 0, NOON_MS, NOON_MS + HOUR - 1, NOON_MS + 5 * HOUR, NOON_MS + 40 * 24 * HOUR])
importances = st.sampled_from([None, 0.0, 0.33, 0.34, 0.669999, 0.67, 1.0, 0.1234567])
inserts = st.tuples(
    st.just("insert"),
    st.integers(0, 1),
    st.integers(0, 2),
    st.sampled_from(CATEGORIES),
    st.sampled_from(["", "main"]),
    times,
    importances,
)
changes = st.tuples(
    st.just("change"),
    st.integers(0, 9),
    st.one_of(
        st.tuples(st.just("category"), st.sampled_from(CATEGORIES)),
        st.tuples(st.just("importance"), importances),
        st.tuples(st.just("agent_id"), st.sampled_from(["", "main", "other"])),
        st.tuples(st.just("created_at_ms"), times),
        st.tuples(st.just("origin"), st.sampled_from(["embedded", "upstream", "panel"])),
        st.tuples(st.just("memory_type"), st.sampled_from(["episode", "unprocessed_message"])),
        st.tuples(st.just("state"), st.sampled_from(State.values)),
        st.tuples(st.just("session"), st.integers(0, 2)),
    ),
)
removals = st.tuples(st.just("remove"), st.integers(0, 9))
session_changes = st.tuples(
    st.just("session"),
    st.integers(0, 1),
    st.integers(0, 1),
    st.sampled_from(State.values),
)
settlings = st.tuples(st.just("settle"))


class Rows:
    """Operations on the rows of two users with two sessions each; session number 2 means no session."""

    def __init__(self) -> None:
        self.users = [MemoryUser.objects.create(user_id=f"user{number}") for number in range(2)]
        self.sessions = [[self._session(user, number) for number in range(2)] for user in self.users]

    def _session(self, user: MemoryUser, number: int) -> Session:
        name = f"chat:{number}"
        return Session.objects.create(user=user, session_id=name, engine_session_id=name, kind="chat")

    def session_of(self, user: int, number: int) -> Session | None:
        return self.sessions[user][number] if number < 2 else None

    def insert(self, user: int, session: int, category: str, agent: str, at: int, importance: float | None) -> None:
        values = {"category": category, "agent_id": agent, "created_at_ms": at, "importance": importance}
        Memory.objects.bulk_create(
            Memory(
                user=self.users[user], session=self.session_of(user, session), memory_id=uuid4().hex,
                memory_type="episode", text="x", **values,
            )
            for _ in range(2)
        )  # fmt: skip

    def change(self, number: int, change: tuple[str, Any]) -> None:
        for memory in self._chosen(number):
            name, value = change
            if name == "session":
                value = self.session_of(self.users.index(memory.user), value)
            setattr(memory, name, value)
            memory.save()

    def remove(self, number: int) -> None:
        for memory in self._chosen(number):
            memory.delete()

    def session(self, user: int, number: int, state: str) -> None:
        Session.objects.filter(pk=self.sessions[user][number].pk).update(state=state)

    def settle(self) -> None:
        rollups.settle()

    def _chosen(self, number: int) -> Iterator[Memory]:
        rows = list(Memory.objects.order_by("pk").select_related("user"))
        yield from rows[number : number + 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(inserts, inserts, changes, removals, session_changes, settlings), max_size=20))
def test_the_rollups_agree_after_random_changes(operations: list[tuple[Any, ...]]) -> None:
    with transaction.atomic():
        rows = Rows()
        for name, *arguments in operations:
            operate: Callable[..., None] = getattr(rows, name)
            operate(*arguments)
        assert_rollups_agree()
        rollups.recount()
        assert_rollups_agree()
        transaction.set_rollback(True)


def test_the_database_still_has_its_triggers() -> None:
    """A migration that recreates a table on SQLite would lose them without an error."""
    names = {"postgresql": "SELECT tgname FROM pg_trigger", "sqlite": "SELECT name FROM sqlite_master"}
    with connection.cursor() as cursor:
        cursor.execute(names[connection.vendor])
        found = {name for (name,) in cursor.fetchall() if "_count_" in name and name.startswith("store_")}
    triggers = {f"store_memory_count_{name}" for name in ("insert", "before_update", "after_update", "delete")}
    triggers |= {f"store_session_count_{name}" for name in ("before_update", "after_update")}
    assert triggers <= found
