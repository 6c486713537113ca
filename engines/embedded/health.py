"""Whether the embedded engine can work: the database answers in time, and the index fits the tokens of this version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection, transaction

from engines.embedded import extraction_health
from engines.embedded.llm import client as llm
from engines.port import Health
from store.index import keyword
from store.models import Memory, OwedEmbedding
from store.text.tokens import TOKENIZER_VERSION
from store.vectors import spaces
from store.vectors.client import Model, client, wanted_model

_MOST_COUNTED = 10_000
"""Of more that is owed, `/health` says this."""


def check(timeout_seconds: float) -> Health:
    """Never raises. `data` names the database and the state of the index: "ok", "rebuilding" or "rebuild_needed"; where
    an embedding endpoint is set, also that of the vectors: "ok", "filling", "reembed_needed" or "failing", and why;
    where an LLM endpoint is set, also what it has still to read: "ok", "reading" or "failing", and why."""
    data: dict[str, Any] = {"engine": "embedded", "status": "ok", "database": connection.vendor}
    try:
        with _at_most(timeout_seconds):
            data["index"] = _index_state()
            if (wanted := wanted_model()) is not None:
                data["embeddings"] = _embedding_state(wanted)
            if llm.is_set():
                data["llm"] = extraction_health.state()
    except DatabaseError:
        return Health(
            "unavailable", None, data | {"status": "unavailable"}, error="The memory database does not answer."
        )
    is_failing = any(data.get(name, {}).get("status") == "failing" for name in ("embeddings", "llm"))
    if data["index"]["status"] == "rebuild_needed" or is_failing:
        data["status"] = "degraded"
    return Health("ok", None, data)


def _index_state() -> dict[str, Any]:
    built_by = keyword.version()
    if built_by is not None and built_by != TOKENIZER_VERSION:
        state = "rebuild_needed"
    else:
        state = "rebuilding" if Memory.objects.filter(keyword.OWED).exists() else "ok"
    return {"status": state, "tokenizer": TOKENIZER_VERSION, "built_by": built_by}


def _embedding_state(wanted: Model) -> dict[str, Any]:
    space = spaces.active()
    owed = OwedEmbedding.objects.order_by().values("pk")[:_MOST_COUNTED].count()
    error = client().endpoint.pause.error or (space.last_error if space else "")
    status = "filling" if owed else "ok"
    if space and not spaces.is_of(space, wanted):
        status = "reembed_needed"
    state: dict[str, Any] = {
        "status": "failing" if error else status,
        "model": space.model if space else wanted.name,
        "dimensions": (space.dimensions if space else wanted.dimensions) or None,
        "owed": owed,
    }
    return state | {"error": error} if error else state


@contextmanager
def _at_most(timeout_seconds: float) -> Iterator[None]:
    """Bounds how long the statements inside may wait for others."""
    milliseconds = max(int(timeout_seconds * 1000), 1)
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = %s", [milliseconds])
            yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        before = cursor.fetchone()[0]
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {before}")
