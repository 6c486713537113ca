"""Replacements of the ingestion tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from core.background import tasks
from resources import tasks as resource_tasks

NAMES = ("ingest_document", "ingest_text", "ingest_externally")


@contextmanager
def ingesting_by(work: Callable[..., object], slots: int = 1) -> Iterator[None]:
    """Run `work` instead of ingestions inside the block, and wait for it at the end."""
    declared, try_ingest = dict(tasks._declared), resource_tasks.try_ingest
    for name in NAMES:
        tasks.in_threads(slots)(declared[name].task)
    resource_tasks.try_ingest = work
    try:
        yield
        assert tasks.wait_until_idle(10)
    finally:
        resource_tasks.try_ingest = try_ingest
        tasks._declared.update(declared)
