from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from contextvars import ContextVar
from itertools import count

import pytest

from core.limits.concurrency import before_external_call
from memory_gateway.server import thread_pool
from memory_gateway.server.thread_pool import MAX_WAITING, Pool


def test_a_result_and_an_exception_come_back_to_the_loop() -> None:
    async def main() -> None:
        pool = Pool(2, "test", share=1)
        assert await pool.run(lambda: 6 * 7, "alice") == 42
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 / 0, "alice")

    asyncio.run(main())


def test_no_more_threads_than_allowed_and_no_more_than_needed() -> None:
    async def main() -> None:
        pool = Pool(3, "test", share=1)
        names = {await pool.run(lambda: threading.current_thread().name, "alice") for _ in range(5)}
        assert names == {"test-1"}
        at_once = await asyncio.gather(*(pool.run(_name_after_a_while, caller) for caller in range(9)))
        assert set(at_once) == {"test-1", "test-2", "test-3"}

    asyncio.run(main())


def test_one_caller_gets_its_share_of_the_threads_and_the_rest_in_turn() -> None:
    async def main() -> None:
        pool = Pool(4, "test", share=2)
        at_once = await asyncio.gather(*(pool.run(_name_after_a_while, "alice") for _ in range(9)))
        assert len(at_once) == 9
        assert set(at_once) == {"test-1", "test-2"}

    asyncio.run(main())


def test_a_caller_whose_work_hangs_holds_up_no_other_user() -> None:
    async def main() -> None:
        pool, hangs = Pool(4, "test", share=2), threading.Event()
        stuck = [pool.run(hangs.wait, "alice") for _ in range(50)]
        for caller in ("bob", "charlie"):
            assert await asyncio.wait_for(pool.run(lambda: "done", caller), 5) == "done"
        hangs.set()
        assert all(await asyncio.gather(*stuck))
        assert not pool._queue.running

    asyncio.run(main())


def test_slow_calls_leave_the_share_up_to_half_of_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 0.05)

    async def main() -> None:
        pool, may_end, running = Pool(8, "test", share=1), threading.Event(), threading.Semaphore(0)

        def wait() -> bool:
            running.release()
            return may_end.wait(30)

        calls = [pool.run(wait, "alice") for _ in range(6)]
        await asyncio.to_thread(lambda: [running.acquire(timeout=30) for _ in range(4)])
        await asyncio.sleep(0.3)
        assert not running.acquire(blocking=False)
        assert await asyncio.wait_for(pool.run(lambda: "done", "bob"), 5) == "done"
        may_end.set()
        assert await asyncio.gather(*calls) == [True] * 6
        assert (pool._queue.running, +pool._outside, pool._timers) == (0, Counter(), {})

    asyncio.run(main())


def test_calls_that_compute_stay_in_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 0.01)
    ticks = count()
    steps = [1]

    async def main() -> None:
        pool = Pool(8, "test", share=1, read_clock=lambda _clock: next(ticks) * steps[0])
        may_end, running = threading.Event(), threading.Semaphore(0)

        def compute() -> bool:
            running.release()
            return may_end.wait(30)

        calls = [pool.run(compute, "alice") for _ in range(4)]
        await asyncio.to_thread(running.acquire, timeout=30)
        seen = next(ticks)
        while next(ticks) < seen + 30:  # the pool has looked at the clock many times
            await asyncio.sleep(0.01)
        assert not running.acquire(blocking=False)
        assert await asyncio.wait_for(pool.run(lambda: "done", "bob"), 5) == "done"
        steps[0] = 0  # from now on it waits
        assert await asyncio.to_thread(lambda: all(running.acquire(timeout=30) for _ in range(3)))
        may_end.set()
        assert await asyncio.gather(*calls) == [True] * 4

    asyncio.run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="needs the CPU clock of another thread")
def test_the_clock_tells_a_call_that_computes_from_one_that_waits() -> None:
    has_computed = threading.Event()
    computed: list[float] = []

    def read(clock: int) -> float:
        seconds = time.clock_gettime(clock)
        computed.append(seconds)
        return seconds

    def compute() -> None:
        until = time.monotonic() + 30
        while max(computed) < min(computed) + 0.1 and time.monotonic() < until:
            pass
        has_computed.set()

    async def main() -> None:
        pool = Pool(8, "test", share=1, read_clock=read)
        await pool.run(compute, "alice")
        seen = len(computed)
        await pool.run(lambda: time.sleep(0.3), "alice")  # in the same thread
        assert has_computed.is_set()
        assert seen > 1
        assert max(computed[seen:]) - computed[seen] < 0.1 < max(computed) - computed[0]

    asyncio.run(main())


def test_calls_that_wait_for_another_service_leave_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "SLOW_SECONDS", 30)

    async def main() -> None:
        pool, may_end, running = Pool(40, "test", share=1), threading.Event(), threading.Semaphore(0)

        def ask() -> bool:
            for _ in range(2):  # a call may ask several times
                before_external_call.get()()
            running.release()
            return may_end.wait(30)

        calls = [pool.run(ask, "alice") for _ in range(MAX_WAITING + 3)]
        await asyncio.to_thread(lambda: [running.acquire(timeout=30) for _ in range(1 + MAX_WAITING)])
        await asyncio.sleep(0.2)
        assert not running.acquire(blocking=False)
        may_end.set()
        assert await asyncio.gather(*calls) == [True] * (MAX_WAITING + 3)
        assert (pool._queue.running, +pool._outside, pool._timers) == (0, Counter(), {})

    asyncio.run(main())


def _name_after_a_while() -> str:
    time.sleep(0.02)
    return threading.current_thread().name


def test_the_context_of_the_caller_is_seen_and_not_changed() -> None:
    variable: ContextVar[str] = ContextVar("variable", default="")

    def read_and_set() -> str:
        seen = variable.get()
        variable.set("changed in the thread")
        return seen

    async def main() -> None:
        pool = Pool(1, "test", share=1)
        variable.set("caller")
        assert await pool.run(read_and_set, "alice") == "caller"
        assert variable.get() == "caller"

    asyncio.run(main())


def test_work_that_was_given_up_while_it_waited_is_not_done() -> None:
    done: list[str] = []

    async def main() -> None:
        pool = Pool(1, "test", share=1)
        first = pool.run(lambda: time.sleep(0.05), "alice")
        second = pool.run(lambda: done.append("second"), "alice")
        second.cancel()
        await first
        await pool.run(lambda: done.append("third"), "alice")

    asyncio.run(main())
    assert done == ["third"]


def test_threads_do_not_hold_the_process() -> None:
    async def main() -> None:
        assert await Pool(1, "test", share=1).run(lambda: threading.current_thread().daemon, "alice")

    asyncio.run(main())
