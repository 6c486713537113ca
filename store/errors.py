"""The database's troubles in the words of the engine's port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import InterfaceError, OperationalError

from core.errors import EngineUnavailable

RETRY_AFTER_SECONDS = 1


@contextmanager
def database_errors() -> Iterator[None]:
    """A database that is locked, full or away is a temporary trouble. Errors: `EngineUnavailable`."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise EngineUnavailable(
            "The memory database is busy or cannot be reached; try again.", retry_after_seconds=RETRY_AFTER_SECONDS
        ) from error
