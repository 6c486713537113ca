"""The embedded engine: memories in this database, found by keyword; no other service, no network."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from core.times import to_ms
from documents.reader import read_document
from engines.embedded import agentic, extraction_fill, ingest, replay
from engines.embedded.fetching import Fetch, Fetcher
from engines.embedded.health import check
from engines.embedded.llm import client as llm
from engines.measuring import measured
from engines.port import AddResult, FlushResult, Health, Replay
from store import derived_memories, sessions, storage
from store.errors import database_errors
from store.models import Memory, Session, owned_by
from store.search.search import search
from store.table import MemoryTable
from store.types import Message, Owner, SearchRequest, SearchResult
from store.vectors import fill
from store.vectors.client import wanted_model

logger = logging.getLogger("memory_gateway.embeddings")
Clock = Callable[[], datetime]

_BATCH_ROWS = 500
EMBED_SECONDS = 5.0
"""A flush waits no longer for the vectors of what it made."""


class EmbeddedEngine(MemoryTable):
    """Implements `engines.port.Engine`. Every write is one transaction with its index entries and statistics."""

    label = "embedded"
    is_external = False

    def __init__(
        self,
        *,
        read: ingest.ReadDocument = read_document,
        fetch: Fetch | None = None,
        clock: Clock = timezone.now,
    ) -> None:
        self._read = read
        self._fetch = fetch or Fetcher()
        self._clock = clock

    @measured
    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        """Buffers messages, searchable at once. Documents are fetched and read before the transaction begins.

        Errors: `EngineRefused` for a deleted session, `Unreadable`, `EngineUnavailable`.
        """
        with database_errors():
            parts = {part.first_id: part for part in ingest.parts_of(owner, session_id, messages)}
            # What is here already need not be read again; what was said costs nothing to prepare.
            known = storage.known(owner, [first_id for first_id, part in parts.items() if part.item is not None])
            drafts = [
                storage.Draft.of(first_id, ingest.rows_of(part, self._read, self._fetch))
                for first_id, part in parts.items()
                if first_id not in known
            ]
            with transaction.atomic(), connection.cursor() as cursor:
                storage.append(cursor, owner, sessions.lock(cursor, owner, session_id), drafts)
        return AddResult("accumulated", len(messages), _request_id())

    @measured
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Turns the session's buffer into episodes in place: each keeps its id. Errors: `EngineUnavailable`.

        A resource's session answers again what it answered before: who asks after a crash learns what became of it.
        """
        request_id = _request_id()
        now = self._clock()
        with database_errors(), transaction.atomic():
            session = sessions.live(owner, session_id)
            count = _flush(session, request_id, now) if session else 0
        if not count:
            return FlushResult("no_extraction", 0, request_id, None)
        if session:
            _embed(session)
        return FlushResult("extracted", count, request_id, to_ms(now))

    @measured
    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answer all requests with two statements. Raises: `InvalidInput`, `EngineUnavailable`."""
        with database_errors():
            if any(request.method == "agentic" for request in requests) and llm.is_set():
                return agentic.search(owner, requests)
            return search(owner, requests)

    @measured
    def delete(self, owner: Owner, session_id: str) -> None:
        """Removes the session's memories and index entries; a mark stays, so that late writes are refused.

        From the mark on nothing is found; if the removal is cut short, the same call ends it.
        """
        with database_errors():
            session = sessions.mark_deleted(owner, session_id, self._clock())
            derived_memories.forget_sessions(owner, [session_id])
            memories = Memory.objects.filter(owned_by(owner), session=session).order_by("pk")
            while batch := list(memories[:_BATCH_ROWS]):
                storage.remove(owner, batch)

    def memory_ids(self, owner: Owner, session_id: str, message: Message) -> Sequence[str]:
        """Return the first memory id of each part of a message."""
        return [part.first_id for part in ingest.parts_of(owner, session_id, [message])]

    def replay(self, owner: Owner, session_id: str, message: Message, batch_id: str) -> Replay:
        """Read a message's documents and prepare its memories, outside a transaction. Raises: `EngineUnavailable`."""
        return replay.prepare(owner, session_id, message, batch_id, read=self._read, fetch=self._fetch)

    def save_replays(self, owner: Owner, session: Session, replays: Iterable[Replay]) -> None:
        replay.save(owner, session, replays)

    def adopt(self, owner: Owner, memories: Sequence[Memory]) -> None:
        replay.adopt(owner, memories)

    def queue_extraction(self, user_pk: uuid.UUID | None = None) -> None:
        extraction_fill.owe_unread(user_pk)

    def extract(
        self, seconds: float, *, clock: Clock = timezone.now, should_end: Callable[[], bool] = lambda: False
    ) -> int:
        return extraction_fill.fill(seconds, clock=clock, should_end=should_end)

    def health(self, timeout_seconds: float) -> Health:
        """Whether the database answers and the index is of this version. Never raises."""
        return check(timeout_seconds)

    def capabilities(self) -> Mapping[str, bool]:
        """Vectors need an endpoint: without one `hybrid` is answered by keyword alone, and says so."""
        has_vectors, has_llm = wanted_model() is not None, llm.is_set()
        return {
            "keyword": True,
            "vector": has_vectors,
            "hybrid": has_vectors,
            "agentic": has_llm,
            "llm": has_llm,
            "delete": True,
        }


def _embed(session: Session) -> None:
    """Gives the session's memories their vectors, if that is quick; what is left comes in the background."""
    try:
        fill.fill(EMBED_SECONDS, session=session.pk)
    except DatabaseError:
        logger.exception("The vectors of a session were not written; they are still owed")


def _flush(session: Session, request_id: str, now: datetime) -> int:
    """How many memories came of it."""
    buffered = session.memories.filter(memory_type=Memory.Type.UNPROCESSED_MESSAGE)
    count = buffered.update(memory_type=Memory.Type.EPISODE, batch_id=request_id)
    if count:
        extraction_fill.owe(session, request_id)
        session.flushed_at = session.searchable_at = now
        session.save(update_fields=["flushed_at", "searchable_at"])
    elif session.kind == Session.Kind.RESOURCE:
        count = session.memories.count()
    return count


def _request_id() -> str:
    return uuid.uuid4().hex
