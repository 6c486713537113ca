"""Replacements of the ingestion tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.background import tasks

NAMES = ("ingest_document", "ingest_text", "ingest_externally")


@contextmanager
def ingesting_by(work: Callable[..., object], slots: int = 1) -> Iterator[None]:
    """Run `work` instead of ingestions inside the block, and wait for it at the end."""
    registered = dict(tasks._tasks)
    for name in NAMES:
        tasks.task(name, queue="ingestion", slots=slots)(work)
    try:
        yield
        assert tasks.wait_until_idle(10)
    finally:
        tasks._tasks.update(registered)
