"""Plain statements for those who wait: what is done around them takes longer than the statements themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from django.db.backends.utils import CursorWrapper


def run(cursor: CursorWrapper, statement: str, values: Sequence[Any]) -> None:
    """Executes a statement that marks its values by %s.

    For SQLite Django looks through each statement for such marks, which takes longer than to execute a short one; named
    ones it fills in at once.
    """
    named, names = _named(statement)
    cursor.execute(named, dict(zip(names, values, strict=True)))


@lru_cache(maxsize=256)
def _named(statement: str) -> tuple[str, Sequence[str]]:
    """The statement with names in the place of its marks, and the names in their order."""
    first, *rest = statement.split("%s")
    names = [f"v{number}" for number in range(len(rest))]
    return first + "".join(f"%({name})s{piece}" for name, piece in zip(names, rest, strict=True)), names
