"""Clients at work beside a test."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def at_work(client: Callable[[random.Random], None], number: int, stop: threading.Event) -> Iterator[None]:
    """So many threads run `client`, each with its own chances, which the seed repeats; `stop` is set at the end."""
    clients = [threading.Thread(target=client, args=(random.Random(seed),)) for seed in range(number)]
    for one in clients:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in clients:
            one.join()
