"""The registry of tasks: `enqueue` starts them and wakes periodic ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from core import tasks
from core.tasks import Round, Series, enqueue, periodic, task

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the tasks that a test registers."""
    monkeypatch.setattr(tasks, "_pools", {})
    monkeypatch.setattr(tasks, "_series_of", {})
    yield
    assert tasks.wait_until_idle(SECONDS)


def test_a_task_receives_its_ids() -> None:
    received: list[tuple[str, int]] = []

    @task("note", slots=1)
    def note(name: str, number: int) -> None:
        received.append((name, number))

    enqueue("note", "alice", name="a", number=1).result(SECONDS)
    assert received == [("a", 1)]


def test_the_same_ids_are_not_started_twice_and_tasks_do_not_wait_for_each_other() -> None:
    may_end = threading.Event()

    @task("slow", slots=1)
    def slow(number: int) -> None:
        assert may_end.wait(SECONDS)

    @task("quick", slots=1)
    def quick(number: int) -> None:
        may_end.set()

    first, same, other = (enqueue("slow", "alice", number=number) for number in (1, 1, 2))
    assert first is same
    assert first is not other
    enqueue("quick", "alice", number=1).result(SECONDS)
    first.result(SECONDS)
    other.result(SECONDS)


def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @task("broken", slots=1)
    def broken(number: int) -> None:
        raise ZeroDivisionError

    enqueue("broken", number=1).result(SECONDS)
    assert "Task broken failed: (('number', 1),)" in caplog.text


def test_a_periodic_task_is_woken() -> None:
    series = Series("both", lease=timedelta(seconds=1))
    periodic("first", series=series)(lambda _round: None)
    periodic("second", series=series)(lambda _round: None)
    periodic("alone")(lambda _round: None)
    assert [one.name for one in tasks.all_series()] == ["both", "alone"]
    assert enqueue("second").done()
    assert series.wake.is_set()


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(KeyError):
        enqueue("nonsense")


def test_the_default_round_keeps_the_lease_and_does_not_end() -> None:
    assert Round().renew()
    assert not Round().should_end()
