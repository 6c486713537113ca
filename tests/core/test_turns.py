"""Threads that compute take turns, and nobody's stillness holds the others up for long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from core import turns as shared
from core.turns import Turns


def at_once(turns: Turns, threads: int, *, lend: bool) -> int:
    """How many of the threads were at work together at most."""
    at_work, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.01)
        with lock:
            at_work -= 1

    def take_part() -> None:
        with turns.taken():
            if lend:
                with turns.lent():
                    work()
            else:
                work()

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(take_part) for _ in range(threads)]:
            future.result()
    return most


def test_one_thread_computes_at_a_time() -> None:
    assert at_once(Turns(timeout_seconds=10), 8, lend=False) == 1


def test_a_long_row_keeps_waiting_while_it_moves() -> None:
    assert at_once(Turns(timeout_seconds=0.3), 64, lend=False) == 1  # 64 times 10 ms


def test_while_one_waits_for_an_answer_the_others_compute() -> None:
    assert at_once(Turns(timeout_seconds=10), 8, lend=True) > 1


def test_after_waiting_the_turn_is_taken_again() -> None:
    turns = Turns(timeout_seconds=0.01)
    with turns.taken():
        with turns.lent():
            pass
        assert is_taken(turns)
    assert not is_taken(turns)


def test_a_holder_that_does_not_move_is_passed_by() -> None:
    turns = Turns(timeout_seconds=0.01)
    with turns.taken(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(at_once, turns, 1, lend=False).result(timeout=5) == 1
        assert is_taken(turns)  # who passed gave back no turn that was not theirs


def test_a_failure_gives_the_turn_back() -> None:
    turns = Turns(timeout_seconds=10)
    with pytest.raises(ValueError, match="bad"), turns.taken():
        raise ValueError("bad")
    assert not is_taken(turns)


def test_lending_without_a_turn_gives_none_away() -> None:
    turns = Turns(timeout_seconds=0.01)
    with turns.lent():
        pass
    with turns.taken():
        assert is_taken(turns)


def test_searches_of_postgresql_do_not_wait_for_each_other() -> None:
    with shared.search():
        assert is_taken(shared.searching) == (connection.vendor == "sqlite")


def is_taken(turns: Turns) -> bool:
    return turns._token.empty()
