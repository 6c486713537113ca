"""The engine in trouble: a locked database, a crash between any two statements, several writers at once."""

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
from store.index import rebuild
from store.models import IndexStatistics, IndexVersion, Memory, Session
from store.types import SearchRequest
from tests.conftest import Person, make_person
from tests.store.conftest import NOON_MS, ask, remember, said, texts
from tests.store.index_state import assert_consistent, entries_of

Lock = Callable[[], AbstractContextManager[None]]
CALLS: dict[str, Callable[[EmbeddedEngine, Person], Any]] = {
    "add": lambda engine, person: engine.add(
        person.owner, "chat:c2", [said("new payment"), said("付款", at=NOON_MS + 1)]
    ),
    "flush": lambda engine, person: engine.flush(person.owner, "chat:open"),
    "delete": lambda engine, person: engine.delete(person.owner, "chat:c1"),
    "search": lambda engine, person: engine.search(person.owner, [SearchRequest("payment")]),
    "rebuild": lambda _engine, _person: (rebuild.empty(), list(rebuild.fill(batch_rows=2))),
}


def fill(engine: EmbeddedEngine, person: Person) -> None:
    remember(engine, person.owner, "payment a", "payment b", "付款 c")
    engine.add(person.owner, "chat:open", [said("open payment")])


def state(person: Person) -> object:
    """All that the engine keeps of a person."""
    return (
        entries_of(person.owner),
        list(
            Memory.objects.order_by("pk").values_list("pk", "text", "memory_type", "is_indexed", "token_count", "seq")
        ),
        list(Session.objects.order_by("pk").values_list("session_id", "flushed_at", "deleted_at")),
        list(IndexStatistics.objects.order_by("pk").values_list("documents", "tokens")),
    )


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("error", [Crash, OperationalError])
@pytest.mark.parametrize("name", ["add", "flush", "delete"])
def test_a_crash_between_any_two_statements_leaves_all_or_nothing(
    engine: EmbeddedEngine, transactional_db: None, name: str, error: type[BaseException]
) -> None:
    person = make_person("alice")
    fill(engine, person)
    untouched = state(person)
    seen = EngineUnavailable if error is OperationalError else error
    for statements in range(1, 40):
        before = state(person)
        try:
            with broken_after(statements, error):
                CALLS[name](engine, person)
            break
        except seen:
            connection.close()
            # A deletion begins with the mark, from which on nothing is found; the rows follow.
            is_gone = name == "delete" and not ask(engine, person.owner, "payment", session_ids=("chat:c1",))
            assert is_gone or state(person) == before
            assert_consistent(person.owner)
    else:
        pytest.fail("the call never ended")
    assert statements > 3
    assert_consistent(person.owner)
    assert state(person) != untouched


def test_a_rebuild_that_crashes_anywhere_can_be_ended(engine: EmbeddedEngine, transactional_db: None) -> None:
    person = make_person("alice")
    fill(engine, person)
    wanted = state(person)
    for statements in range(1, 40):
        try:
            with broken_after(statements, Crash):
                CALLS["rebuild"](engine, person)
            break
        except Crash:
            connection.close()
            assert_consistent(person.owner)
        list(rebuild.fill())
        assert state(person) == wanted
    else:
        pytest.fail("the rebuild never ended")


@contextmanager
def broken_after(statements: int, error: type[BaseException]) -> Iterator[None]:
    """The database connection breaks at its n-th statement."""
    left = statements

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise error("the connection broke")
        return run(sql, params, many, context)

    with connection.execute_wrapper(execute):
        yield


@pytest.fixture
def impatient(transactional_db: Any) -> Iterator[None]:
    """Our connection waits 0.2 seconds for locks, not twenty."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET lock_timeout = '200ms'")
        else:
            cursor.execute("PRAGMA busy_timeout = 200")
    yield
    connection.close()


@pytest.fixture
def lock(transactional_db: Any) -> Lock:
    """Another process holds the whole database as long as the context lasts."""
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
        other.execute("LOCK TABLE store_session, store_memory, store_keywords, store_indexversion")
        yield
        other.rollback()


@pytest.mark.parametrize("name", [*CALLS, "health"])
def test_a_locked_database_is_a_clean_no_or_no_trouble_at_all(
    engine: EmbeddedEngine, impatient: None, lock: Lock, name: str
) -> None:
    person = make_person("alice")
    fill(engine, person)
    before = state(person)
    call = CALLS.get(name, lambda engine, _person: engine.health(0.2))
    with lock():
        is_refused = connection.vendor == "postgresql" or name not in {"search", "health"}
        if name == "health":
            assert call(engine, person).status == ("unavailable" if is_refused else "ok")
        elif is_refused:
            with pytest.raises(EngineUnavailable) as refused:
                call(engine, person)
            assert refused.value.retry_after_seconds == 1
        else:
            call(engine, person)
    assert state(person) == before
    call(engine, person)
    assert_consistent(person.owner)


def test_a_writer_waits_for_another(engine: EmbeddedEngine, transactional_db: None, lock: Lock) -> None:
    person = make_person("alice")
    released = threading.Event()
    with lock() as _:
        thread = threading.Thread(target=lambda: (CALLS["add"](engine, person), released.set(), connection.close()))
        thread.start()
        assert not released.wait(0.3)
    thread.join(10)
    assert released.is_set()
    assert texts(ask(engine, person.owner, "付款")) == ["付款"]


def test_writers_at_once_lose_nothing_and_double_nothing(engine: EmbeddedEngine, transactional_db: None) -> None:
    person = make_person("alice")
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for at in range(8):
                engine.add(person.owner, "chat:c1", [said(f"shared {at}", at=NOON_MS + at), said(f"own {number} {at}")])
        except BaseException as error:  # noqa: BLE001  reported by the test's own thread
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert Memory.objects.count() == 8 + 4 * 8
    assert sorted(Memory.objects.values_list("seq", flat=True)) == list(range(40))
    assert IndexVersion.objects.count() == 1
    assert_consistent(person.owner)


def test_two_who_delete_one_session_at_once_take_it_out_once(engine: EmbeddedEngine, transactional_db: None) -> None:
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
    assert texts(ask(engine, person.owner, "payment")) == ["payment"]
