"""The engine under failures: a locked database, a crash between any two statements, concurrent writers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from core.errors import EngineUnavailable
from engines.embedded.engine import EmbeddedEngine
from store import derived
from store.models import IndexStatistics, Memory, Session
from store.types import SearchRequest
from tests.conftest import Person, make_person
from tests.store.conftest import NOON_MS, remember, search, text_message, texts
from tests.store.index_state import assert_consistent, entries_of

Lock = Callable[[], AbstractContextManager[None]]
CALLS: dict[str, Callable[[EmbeddedEngine, Person], Any]] = {
    "add": lambda engine, person: engine.add(
        person.owner, "chat:c2", [text_message("new payment"), text_message("付款", at=NOON_MS + 1)]
    ),
    "flush": lambda engine, person: engine.flush(person.owner, "chat:open"),
    "delete": lambda engine, person: engine.delete(person.owner, "chat:c1"),
    "search": lambda engine, person: engine.search(person.owner, [SearchRequest("payment")]),
    "rebuild": lambda _engine, _person: (derived.empty_keywords(), list(derived.fill(batch_rows=2))),
}


def add_sample_memories(engine: EmbeddedEngine, person: Person) -> None:
    remember(engine, person.owner, "payment a", "payment b", "付款 c")
    engine.add(person.owner, "chat:open", [text_message("open payment")])


def state(person: Person) -> object:
    """Return everything that the engine stores of a user."""
    return (
        entries_of(person.owner),
        list(
            Memory.objects.order_by("pk").values_list("pk", "text", "memory_type", "is_indexed", "token_count", "seq")
        ),
        list(Session.objects.order_by("pk").values_list("session_id", "flushed_at", "state")),
        list(IndexStatistics.objects.order_by("pk").values_list("documents", "tokens")),
    )


class Crash(BaseException):
    """Simulates the end of the process."""


@pytest.mark.parametrize("error", [Crash, OperationalError])
@pytest.mark.parametrize("name", ["add", "flush", "delete"])
def test_a_crash_between_any_two_statements_keeps_the_call_atomic(
    engine: EmbeddedEngine, transactional_db: None, name: str, error: type[BaseException]
) -> None:
    person = make_person("alice")
    add_sample_memories(engine, person)
    initial = state(person)
    expected_error = EngineUnavailable if error is OperationalError else error
    for statements in range(1, 40):
        before = state(person)
        try:
            with failing_at_statement(statements, error):
                CALLS[name](engine, person)
            break
        except expected_error:
            connection.close()
            # A deletion first marks the session, which hides its memories, and then removes the rows.
            is_deleted = name == "delete" and not search(engine, person.owner, "payment", session_ids=("chat:c1",))
            assert is_deleted or state(person) == before
            assert_consistent(person.owner)
    else:
        pytest.fail("the call never ended")
    assert statements > 3
    assert_consistent(person.owner)
    assert state(person) != initial


def test_a_rebuild_that_crashes_at_any_statement_can_be_resumed(engine: EmbeddedEngine, transactional_db: None) -> None:
    person = make_person("alice")
    add_sample_memories(engine, person)
    expected = state(person)
    for statements in range(1, 40):
        try:
            with failing_at_statement(statements, Crash):
                CALLS["rebuild"](engine, person)
            break
        except Crash:
            connection.close()
            assert_consistent(person.owner)
        list(derived.fill())
        assert state(person) == expected
    else:
        pytest.fail("the rebuild never ended")


@contextmanager
def failing_at_statement(statements: int, error: type[BaseException]) -> Iterator[None]:
    """Make the database connection fail at its n-th statement."""
    remaining = statements

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            raise error("the connection broke")
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield


@pytest.fixture
def short_lock_timeout(transactional_db: Any) -> Iterator[None]:
    """Make the connection wait 0.2 seconds for locks, not twenty."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET lock_timeout = '200ms'")
        else:
            cursor.execute("PRAGMA busy_timeout = 200")
    yield
    connection.close()


@pytest.fixture
def lock(transactional_db: Any) -> Lock:
    """Return a context manager during which another connection locks the database."""
    return _postgresql_lock if connection.vendor == "postgresql" else _sqlite_lock


@contextmanager
def _sqlite_lock() -> Iterator[None]:
    other = sqlite3.connect(Path(str(connection.settings_dict["NAME"])), isolation_level=None, check_same_thread=False)
    try:
        other.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        other.rollback()
        other.close()


@contextmanager
def _postgresql_lock() -> Iterator[None]:
    settings = connection.settings_dict
    with psycopg.connect(
        host=settings["HOST"],
        port=settings["PORT"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        dbname=settings["NAME"],
    ) as other:
        other.execute("LOCK TABLE store_session, store_memory, store_keywords, store_indexstatistics")
        yield
        other.rollback()


@pytest.mark.parametrize("name", [*CALLS, "health"])
def test_a_locked_database_is_reported_or_does_not_matter(
    engine: EmbeddedEngine, short_lock_timeout: None, lock: Lock, name: str
) -> None:
    person = make_person("alice")
    add_sample_memories(engine, person)
    before = state(person)
    call = CALLS.get(name, lambda engine, _person: engine.health(0.2))
    with lock():
        is_refused = connection.vendor == "postgresql" or name not in {"search", "health"}
        if name == "health":
            assert call(engine, person).status == ("unavailable" if is_refused else "ok")
        elif is_refused:
            with pytest.raises(EngineUnavailable) as caught:
                call(engine, person)
            assert caught.value.retry_after_seconds == 1
        else:
            call(engine, person)
    assert state(person) == before
    call(engine, person)
    assert_consistent(person.owner)


def test_a_writer_waits_for_the_lock(engine: EmbeddedEngine, transactional_db: None, lock: Lock) -> None:
    person = make_person("alice")
    released = threading.Event()
    with lock() as _:
        thread = threading.Thread(target=lambda: (CALLS["add"](engine, person), released.set(), connection.close()))
        thread.start()
        assert not released.wait(0.3)
    thread.join(10)
    assert released.is_set()
    assert texts(search(engine, person.owner, "付款")) == ["付款"]


@pytest.mark.parametrize("writers", [4, pytest.param(32, marks=pytest.mark.torture)])
def test_concurrent_writers_lose_and_duplicate_nothing(
    engine: EmbeddedEngine, transactional_db: None, writers: int
) -> None:
    person = make_person("alice")
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for at in range(8):
                engine.add(
                    person.owner,
                    "chat:c1",
                    [text_message(f"shared {at}", at=NOON_MS + at), text_message(f"own {number} {at}")],
                )
        except BaseException as error:  # noqa: BLE001  reported by the test's own thread
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert Memory.objects.count() == 8 + writers * 8
    assert sorted(Memory.objects.values_list("seq", flat=True)) == list(range(8 + writers * 8))
    assert_consistent(person.owner)


def test_concurrent_deletions_of_a_session_remove_it_once(engine: EmbeddedEngine, transactional_db: None) -> None:
    person = make_person("alice")
    remember(engine, person.owner, *[f"payment {number}" for number in range(40)])
    remember(engine, person.owner, "payment", session="chat:kept")
    threads = [
        threading.Thread(target=lambda: (engine.delete(person.owner, "chat:c1"), connection.close())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert_consistent(person.owner)
    assert texts(search(engine, person.owner, "payment")) == ["payment"]
