"""Check the database, the keyword index and the model endpoints."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from core.background.model_calls import backlog
from core.messages import Translatable as _
from core.network import language_model
from engines.embedded import media, media_models, reranker
from store.index import keyword
from store.models import IndexStatistics, Memory, PendingEmbedding, PendingExtraction, PendingMedia
from store.port import MODEL_ENDPOINTS, Health
from store.text.tokens import TOKENIZER_VERSION
from store.vectors import spaces
from store.vectors.client import Model, client, wanted_model

_MAX_COUNTED = 10_000
"""The most pending vectors that are counted, to keep the check fast."""


def check(timeout_seconds: float) -> Health:
    """Return the state of the engine. Never raises.

    `data` names the database; `data["ocr"]["engine"]` recognizes text in pictures, or is "off". `data["index"]` and,
    if an endpoint is set, `data["embeddings"]`, `llm`, `vision`, `transcription` and `rerank` each have a `status`:
    "ok"; for the index "rebuilding" or "rebuild_needed"; for embeddings "filling" or "reembed_needed"; for models that
    read messages or files "reading"; for an endpoint "failing", with an `error`.
    """
    data: dict[str, Any] = {"engine": "embedded", "status": "ok", "database": connection.vendor}
    data["ocr"] = {"engine": settings.MEMORY_GATEWAY_OCR}
    try:
        with _statement_timeout(timeout_seconds):
            versions, state = IndexStatistics.objects.order_by().values_list("tokenizer", flat=True), "ok"
            built_by = versions.exclude(tokenizer=TOKENIZER_VERSION).first()
            if built_by is not None:
                state = "rebuild_needed"
            elif Memory.objects.filter(keyword.PENDING).exists():
                state = "rebuilding"
            built_by = versions.first() if built_by is None else built_by
            data["index"] = {"status": state, "tokenizer": TOKENIZER_VERSION, "built_by": built_by}
            if (wanted := wanted_model()) is not None:
                data["embeddings"] = _embedding_state(wanted)
            if language_model.is_set():
                data["llm"] = _reader_state(language_model.client(), PendingExtraction.objects.all())
            for kind, reader in media_models.configured().items():
                data[kind] = _reader_state(reader, PendingMedia.objects.filter(media.IS_LIVE, kind=kind))
            if reranker.is_set():
                rater = reranker.client()
                data["rerank"] = _state(rater.endpoint.pause.recent_error(), "ok", rater.model)
    except DatabaseError:
        return Health(
            "unavailable", None, data | {"status": "unavailable"}, error=_("The memory database does not respond.")
        )
    is_failing = any(data.get(name, {}).get("status") == "failing" for name in MODEL_ENDPOINTS)
    if data["index"]["status"] == "rebuild_needed" or is_failing:
        data["status"] = "degraded"
    return Health("ok", None, data)


def _embedding_state(wanted: Model) -> dict[str, Any]:
    space = spaces.active()
    pending = PendingEmbedding.objects.order_by().values("pk")[:_MAX_COUNTED].count()
    error = client().pause.recent_error() or (space.last_error if space else "")
    status = "filling" if pending else "ok"
    if space and not spaces.is_for(space, wanted):
        status = "reembed_needed"
    dimensions = (space.dimensions if space else wanted.dimensions) or None
    return _state(error, status, space.model if space else wanted.name, dimensions=dimensions, pending=pending)


def _reader_state(reader: language_model.ChatClient | media_models.Model, pending: QuerySet[Any]) -> dict[str, Any]:
    counts = backlog(pending)
    failed = pending.filter(given_up_at__isnull=True).exclude(last_error="").order_by("-pk")
    error = reader.endpoint.pause.recent_error() or failed.values_list("last_error", flat=True).first()
    return _state(error, "reading" if counts["pending"] else "ok", reader.model, **counts)


def _state(error: str | None, status: str, model: str, **counts: int | None) -> dict[str, Any]:
    """Return the report of a model, whose status is `failing` with an error."""
    state = {"status": "failing" if error else status, "model": model, **counts}
    return state | {"error": error} if error else state


@contextmanager
def _statement_timeout(timeout_seconds: float) -> Iterator[None]:
    """Limit the time that SQL statements inside may wait for locks."""
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
