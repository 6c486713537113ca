"""Which of the machine's cores this process computes on.

The interpreter's lock lets one thread compute at a time, and a request hands it on dozens of times. Where the next
thread waits on another core, that core has to be woken and to fetch what it works on: with eight requests at once a
third of the processor's time went there. Linux alone lets us say so; elsewhere nothing happens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WHERE = Path("/proc/thread-self/stat")
_given: set[int] = set()
"""The cores that this process may use, once it stays on one of them."""


def stay_on_one() -> None:
    """This thread, and those that it starts from now on, stay on the core where it runs; others that have no such wish
    make room there. Where that is not possible everything stays as it is."""
    if sys.platform != "linux":
        return
    try:
        allowed, core = os.sched_getaffinity(0), _current()
        if core in allowed:
            os.sched_setaffinity(0, {core})
            _given.update(allowed)
    except OSError:
        return


@contextmanager
def all_given() -> Iterator[None]:
    """Around the start of another process, which has a lock of its own and may run wherever this one was allowed to."""
    if sys.platform != "linux" or not _given:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _given)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def _current() -> int:
    """The core that this thread ran on last: field 39 of proc(5)."""
    return int(_WHERE.read_text().rpartition(")")[2].split()[36])
