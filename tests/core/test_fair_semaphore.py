"""`FairSemaphore`: users take turns."""

from __future__ import annotations

import threading

from core.limits.concurrency import FairSemaphore

SECONDS = 10


class Work:
    """Threads that take a slot and hold it until they are released."""

    def __init__(self, slots: FairSemaphore) -> None:
        self._slots = slots
        self._changed = threading.Condition()
        self.started: list[str] = []
        self._ended: set[str] = set()

    def start(self, name: str) -> None:
        threading.Thread(target=self._hold, args=(name,), daemon=True).start()

    def _hold(self, name: str) -> None:
        with self._slots.slot(name[0]), self._changed:
            self.started.append(name)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: name in self._ended, SECONDS)

    def end(self, name: str) -> None:
        with self._changed:
            self._ended.add(name)
            self._changed.notify_all()

    def wait_for(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(self.started) == set(names), SECONDS), self.started

    def wait_for_count(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.started) == count, SECONDS), self.started


def test_one_user_cannot_hold_all_slots_and_users_take_turns() -> None:
    work = Work(FairSemaphore(2))
    work.start("a1")
    work.wait_for("a1")
    for name in ("a2", "a3"):
        work.start(name)
    work.start("b1")
    work.wait_for("a1", "b1")
    work.end("b1")
    work.start("c1")
    work.wait_for("a1", "b1", "c1")
    work.end("a1")
    work.wait_for_count(4)
    assert work.started[3] in {"a2", "a3"}
    for name in ("a2", "a3", "c1"):
        work.end(name)
    work.wait_for("a1", "a2", "a3", "b1", "c1")


def test_a_single_slot_serves_one_user_after_another() -> None:
    work = Work(FairSemaphore(1))
    for name in ("a1", "b1"):
        work.start(name)
    work.wait_for_count(1)
    for name in ("a1", "b1"):
        work.end(name)
    work.wait_for("a1", "b1")
