"""Tasks: declared by Django's Tasks interface, and started in threads by the default backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings
from django_tasks import task, task_backends
from django_tasks.exceptions import InvalidTaskError

from core.background import tasks
from core.background.tasks import PROCESS, Round, enqueue, in_threads, start

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10
seen: list[tuple[str, int]] = []
may_end = threading.Event()


@task(queue_name="jobs")
def note(name: str, number: int) -> None:
    seen.append((name, number))


@task(queue_name="jobs")
def slow(number: int = 0) -> None:
    seen.append(("slow", number))
    assert may_end.wait(SECONDS)


@task(queue_name="ingestion")
def quick(number: int) -> None:
    seen.append(("quick", number))
    may_end.set()


@task(queue_name="jobs")
def broken(number: int) -> None:
    raise ZeroDivisionError


@task(queue_name="extraction")
def look_once(run: Round = PROCESS) -> None:
    seen.append(("look", run.should_end()))


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """Declare the tasks of this file alone."""
    former = dict(tasks._declared)
    tasks._declared.clear()
    seen.clear()
    may_end.clear()
    for one in (note, slow, quick, broken):
        in_threads(1)(one)
    yield
    may_end.set()
    assert tasks.wait_until_idle(SECONDS)
    tasks._declared.clear()
    tasks._declared.update(former)
    tasks.limit_to(tasks.QUEUES)


@pytest.fixture
def working() -> Iterator[None]:
    tasks.begin()
    yield
    may_end.set()
    assert tasks.end(SECONDS)


def finish(*results: Any) -> None:
    assert all(tasks.wait(result, SECONDS) for result in results)


def eventually(condition: Callable[[], bool]) -> bool:
    return any(condition() or threading.Event().wait(0.01) for _ in range(500))


def test_a_task_receives_its_ids() -> None:
    finish(start("note", name="a", number=1))
    assert seen == [("a", 1)]


def test_the_same_ids_are_not_started_twice_and_tasks_do_not_wait_for_each_other() -> None:
    first, same, other = (start("slow", number=number) for number in (1, 1, 2))
    assert not tasks.wait(first, 0)
    finish(start("quick", number=1), first, same, other)
    assert sorted(seen) == [("quick", 1), ("slow", 1), ("slow", 2)]


def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    finish(start("broken", number=1))
    assert "Task broken failed: (('number', 1),)" in caplog.text


def test_an_unknown_task_is_an_error() -> None:
    with pytest.raises(KeyError):
        enqueue("nonsense")


def test_a_task_of_no_known_queue_is_refused() -> None:
    with pytest.raises(InvalidTaskError):
        note.using(queue_name="nonsense")


def test_the_default_round_does_not_end() -> None:
    assert not Round().should_end()


def test_a_repeated_task_runs_only_where_a_worker_does_and_only_with_work() -> None:
    has_work = True
    in_threads(repeat_when=lambda: has_work)(look_once)
    tasks.look("extraction")
    assert tasks.wait_until_idle(SECONDS)
    assert seen == []
    tasks.begin()
    tasks.look("jobs")
    tasks.look("extraction")
    assert tasks.wait_until_idle(SECONDS)
    has_work = False
    tasks.look("extraction")
    assert tasks.end(SECONDS)
    assert seen == [("look", False)]


def test_what_is_enqueued_while_a_repeated_task_runs_is_looked_for_after_it(working: None) -> None:
    in_threads(repeat_when=lambda: True)(slow)
    enqueue("slow")
    assert eventually(lambda: seen == [("slow", 0)])
    for _ in range(3):
        enqueue("slow")
    may_end.set()
    assert tasks.wait_until_idle(SECONDS)
    assert seen == [("slow", 0)] * 2


def test_one_task_whose_check_fails_does_not_keep_others_from_starting(
    working: None, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> bool:
        raise ZeroDivisionError

    in_threads(repeat_when=fail)(note.using(queue_name="extraction"))
    in_threads(repeat_when=lambda: True)(look_once)
    tasks.look("extraction")
    assert tasks.wait_until_idle(SECONDS)
    assert seen == [("look", False)]
    assert "Task note could not start" in caplog.text


def test_a_process_runs_only_the_tasks_of_its_queues() -> None:
    tasks.limit_to(["ingestion"])
    finish(start("note", name="a", number=1), start("quick", number=1))
    assert seen == [("quick", 1)]


def test_after_a_close_no_waiting_task_starts() -> None:
    running = start("slow", number=1)
    assert eventually(lambda: bool(seen))
    waiting = start("slow", number=2)
    tasks.close()
    late = start("slow", number=3)
    assert [tasks.wait(result, 0.05) for result in (running, waiting, late)] == [False, True, True]
    assert not tasks.wait_until_idle(0.05)
    may_end.set()
    finish(running)
    assert seen == [("slow", 1)]


def test_any_backend_of_the_interface_can_run_the_tasks() -> None:
    backends = "django_tasks.backends"
    with override_settings(TASKS={"default": {"BACKEND": f"{backends}.immediate.ImmediateBackend", "QUEUES": []}}):
        finish(start("note", name="a", number=1))
        assert seen == [("a", 1)]
    with override_settings(TASKS={"default": {"BACKEND": f"{backends}.dummy.DummyBackend", "QUEUES": []}}):
        enqueue("note", name="b", number="2")
        assert [result.kwargs for result in task_backends["default"].results] == [{"name": "b", "number": "2"}]
        assert seen == [("a", 1)]
        in_threads(repeat_when=lambda: True)(look_once)
        tasks.begin()
        tasks.look("extraction")  # a worker finds in its own threads what another backend lost
        assert tasks.end(SECONDS)
    assert seen == [("a", 1), ("look", False)]
