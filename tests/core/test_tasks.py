"""The registry of tasks: `enqueue` starts them and wakes periodic ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from core.background import tasks
from core.background.tasks import Round, Series, enqueue, periodic, task

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the tasks that a test registers."""
    monkeypatch.setattr(tasks, "_tasks", {})
    monkeypatch.setattr(tasks, "_series_of", {})
    yield
    assert tasks.wait_until_idle(SECONDS)


def test_a_task_receives_its_ids() -> None:
    received: list[tuple[str, int]] = []

    @task("note", queue="jobs", slots=1)
    def note(name: str, number: int) -> None:
        received.append((name, number))

    enqueue("note", "alice", name="a", number=1).result(SECONDS)
    assert received == [("a", 1)]


def test_the_same_ids_are_not_started_twice_and_tasks_do_not_wait_for_each_other() -> None:
    may_end = threading.Event()

    @task("slow", queue="jobs", slots=1)
    def slow(number: int) -> None:
        assert may_end.wait(SECONDS)

    @task("quick", queue="jobs", slots=1)
    def quick(number: int) -> None:
        may_end.set()

    first, same, other = (enqueue("slow", "alice", number=number) for number in (1, 1, 2))
    assert first is same
    assert first is not other
    enqueue("quick", "alice", number=1).result(SECONDS)
    first.result(SECONDS)
    other.result(SECONDS)


def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @task("broken", queue="jobs", slots=1)
    def broken(number: int) -> None:
        raise ZeroDivisionError

    enqueue("broken", number=1).result(SECONDS)
    assert "Task broken failed: (('number', 1),)" in caplog.text


def test_a_periodic_task_is_woken() -> None:
    series = Series("both", "jobs", lease=timedelta(seconds=1))
    periodic("first", series=series)(lambda _round: None)
    periodic("second", series=series)(lambda _round: None)
    periodic("alone")(lambda _round: None)
    assert [one.name for one in tasks.all_series()] == ["both", "alone"]
    assert enqueue("second").done()
    assert series.wake.is_set()


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(KeyError):
        enqueue("nonsense")


def test_the_default_round_does_not_end() -> None:
    assert not Round().should_end()


@pytest.fixture
def limited() -> Iterator[None]:
    yield
    tasks.limit_to(tasks.QUEUES)


def test_a_process_runs_only_the_tasks_of_its_queues(limited: None) -> None:
    done: list[str] = []
    task("extract_one", queue="extraction", slots=1)(lambda: done.append("extraction"))
    task("ingest_one", queue="ingestion", slots=1)(lambda: done.append("ingestion"))
    periodic("run_jobs", queue="jobs")(lambda _round: None)
    periodic("write_log")(lambda _round: None)
    tasks.limit_to(["ingestion"])
    for name in ("extract_one", "ingest_one", "run_jobs"):
        enqueue(name).result(SECONDS)
    assert done == ["ingestion"]
    assert [one.wake.is_set() for one in tasks.all_series()] == [False, False]
    assert [one.name for one in tasks.all_series() if tasks.runs(one.queue)] == ["write_log"]


def test_waking_a_queue_wakes_its_series_only() -> None:
    for name, queue in (("a", "jobs"), ("b", "jobs"), ("c", "webhooks")):
        periodic(name, queue=queue)(lambda _round: None)  # type: ignore[arg-type]
    tasks.wake("jobs")
    assert [one.wake.is_set() for one in tasks.all_series()] == [True, True, False]


def test_after_a_close_no_waiting_task_starts() -> None:
    may_end, done = threading.Event(), []

    @task("slow", queue="jobs", slots=1)
    def slow(number: int) -> None:
        assert may_end.wait(SECONDS)
        done.append(number)

    running = enqueue("slow", "alice", number=1)
    waiting = enqueue("slow", "alice", number=2)
    tasks.close()
    late = enqueue("slow", "alice", number=3)
    assert waiting.cancelled()
    assert late.cancelled()
    assert not tasks.wait_until_idle(0.05)
    may_end.set()
    running.result(SECONDS)
    assert done == [1]
