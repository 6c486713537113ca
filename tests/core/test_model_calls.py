"""Calls of models in parallel: a slot takes the next item when it is free."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from core.background.model_calls import in_parallel

SECONDS = 10


def taking(items: list[str]) -> Callable[[int], Sequence[str]]:
    """Return a function that takes items from the front of the list."""

    def take(limit: int) -> list[str]:
        taken = items[:limit]
        del items[:limit]
        return taken

    return take


def never() -> bool:
    return False


def test_a_slow_call_does_not_delay_others_that_come_meanwhile() -> None:
    may_end, items, done = threading.Event(), ["slow", "a", "b"], []

    def call(item: str) -> str:
        assert item != "slow" or may_end.wait(SECONDS)
        return item.upper()

    for item, result in in_parallel(taking(items), call, 2, never):
        done.append((item, result))
        if item == "a":
            items.append("c")
        if item == "c":
            may_end.set()
    assert done == [("a", "A"), ("b", "B"), ("c", "C"), ("slow", "SLOW")]


def test_no_more_calls_are_made_at_once_than_there_are_slots() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call(_item: str) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    assert len(list(in_parallel(taking(list("abcdefgh")), call, 3, never))) == 8
    assert most == 3


def test_calls_in_progress_are_abandoned_at_a_stop() -> None:
    is_stopping, may_end = threading.Event(), threading.Event()

    def call(item: str) -> str:
        assert item != "slow" or may_end.wait(SECONDS)
        return item

    done = []
    for item, _ in in_parallel(taking(["slow", "a", "b"]), call, 2, is_stopping.is_set):
        done.append(item)
        is_stopping.set()
    assert done == ["a"]
    may_end.set()


def test_an_error_of_a_call_is_raised() -> None:
    def call(_item: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(in_parallel(taking(["a"]), call, 2, never))


def test_an_error_of_a_call_costs_no_other_its_result() -> None:
    done: list[str] = []

    def call(item: str) -> str:
        assert item != "bad"
        threading.Event().wait(0.1)
        return item

    results = in_parallel(taking(["bad", "a", "b", "later"]), call, 3, never)
    with pytest.raises(AssertionError):
        done.extend(item for item, _ in results)
    assert sorted(done) == ["a", "b"]
