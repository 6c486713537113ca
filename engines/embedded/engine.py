"""The embedded engine: memories in this database. Without model endpoints it needs no network."""

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from django.db import DatabaseError, transaction
from django.utils import timezone

from core.errors import EngineError, EngineRefused
from core.events import publish
from core.network import language_model
from core.times import to_ms
from documents.reader import read_document, reading_for
from engines.embedded import extraction, health, ingest, media, rated_search
from engines.embedded.fetching import Fetch, Fetcher
from store import admission, derived_memories, expiry, sessions, writes
from store.models import Memory, Session, State, owned_by
from store.port import AddResult, FlushResult, Replay, engine_call
from store.search.retrieval import retrieve
from store.table import MemoryTable
from store.types import KEPT, Message, NewExpiry, Owner, SearchRequest, SearchResult
from store.vectors import fill
from store.vectors.client import wanted_model

logger = logging.getLogger("memory_gateway.embeddings")
Clock = Callable[[], datetime]

_ROWS_AT_ONCE = 500
_EMBED_SECONDS = 5.0
"""The longest wait of a flush for the vectors of its memories."""


_MODEL_SECONDS: Final = 60.0
"""The longest time that the language model is asked about a file of a resource."""


class EmbeddedEngine(MemoryTable):
    """Implements `store.port.Engine`. Every write is one transaction with its index entries and statistics."""

    label = "embedded"

    def __init__(
        self,
        *,
        read: ingest.ReadDocument | None = None,
        fetch: Fetch | None = None,
        clock: Clock = timezone.now,
    ) -> None:
        self._read = read or read_document
        self._read_resource = read or ingest.read_with_ocr
        self._fetch = fetch or Fetcher()
        self._clock = clock

    @engine_call
    def add(
        self,
        owner: Owner,
        session_id: str,
        messages: Sequence[Message],
        *,
        expires_at: NewExpiry = KEPT,
        check: Callable[[], None] = lambda: None,
    ) -> AddResult:
        """Append messages, searchable at once. Documents are fetched and read before the transaction begins.

        Raises: `EngineRefused` for a deleted session, `Unreadable` and `EngineUnavailable` for stored files and those
        of resources.
        """
        parts = {part.first_id: part for part in ingest.parts_of(owner, session_id, messages)}
        # Skip documents that are stored already, because reading is slow. Preparing a text again is cheap.
        known = writes.known(owner, [first_id for first_id, part in parts.items() if part.item is not None])
        known |= _deleted_texts(owner, session_id, parts.values())
        drafts: list[writes.Draft] = []
        unread: list[tuple[ingest.Part, str]] = []
        read: list[ingest.Part] = []
        readings: list[tuple[ingest.Part, writes.Draft | None]] = []
        with reading_for(owner.user_pk):
            for part in (part for first_id, part in parts.items() if first_id not in known):
                try:
                    drafts.append(self._draft_of(owner, session_id, part))
                    readings.append((part, drafts[-1]))
                except EngineError as error:
                    if not ingest.may_be_text(part, session_id):
                        raise
                    unread.append((part, error.detail))
                    drafts.append(ingest.as_text(part))
                else:
                    read += [part] if part.item and part.item.uri else []
        defaults = self._append(owner, session_id, drafts, read, expires_at=expires_at, check=check)
        return AddResult(
            "accumulated",
            len(messages),
            uuid.uuid4().hex,
            ingest.kept_as_text(messages, unread),
            readings=ingest.readings(messages, readings),
            expiry_days=defaults,
        )

    @engine_call
    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        parts = ingest.parts_of(owner, session_id, [message])
        drafts = [
            writes.Draft.of(memory.memory_id, [memory]) for part in parts for memory in ingest.description_of(part)
        ]
        if drafts:
            self._append(owner, session_id, drafts, parts)
        return bool(drafts)

    def _draft_of(self, owner: Owner, session_id: str, part: ingest.Part) -> writes.Draft:
        """Read a part, without passages that the person wants never remembered.

        Recognizing text takes long: it is done for resources, not within requests.
        """
        is_resource = part.item is not None and part.item.extras.get("resource_id")
        draft = ingest.draft_of(part, self._read_resource if is_resource else self._read, self._fetch)
        if part.item is None:
            return draft
        ask_seconds = _MODEL_SECONDS if is_resource else admission.ask_seconds(owner, session_id)
        return ingest.without_refused(owner, draft, ask_seconds=ask_seconds)

    def _append(
        self,
        owner: Owner,
        session_id: str,
        drafts: Sequence[writes.Draft],
        described: Sequence[ingest.Part],
        *,
        expires_at: NewExpiry = KEPT,
        check: Callable[[], None] = lambda: None,
    ) -> dict[str, int]:
        """Append to a session, and remove the descriptions of these parts. Return the applied defaults of expiry."""
        former = [ingest.description_id(part) for part in described]
        with transaction.atomic():
            defaults = writes.note_expiry(owner, drafts, expires_at)
            session = sessions.locked(owner, session_id)
            check()
            sessions.set_expiry(session, expires_at)
            if former:
                writes.remove(owner, list(Memory.objects.filter(owned_by(owner), memory_id__in=former)))
            new = writes.append(owner, session.pk, drafts)
        stored = (memory.memory_id for draft in new for memory in draft.memories)
        return dict(defaults[memory_id] for memory_id in stored if memory_id in defaults)

    @engine_call
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Turn the session's buffer into episodes in place: each keeps its id. Raises: `EngineUnavailable`.

        If nothing is buffered in the session of a resource, return the number of its memories again, for a caller that
        repeats the call after a crash.
        """
        request_id, now, count = uuid.uuid4().hex, self._clock(), 0
        with transaction.atomic():
            session = sessions.existing(owner, session_id)
            if session is not None:
                buffered = session.memories.filter(memory_type=Memory.Type.UNPROCESSED_MESSAGE)
                count = writes.end_buffer(buffered, request_id)
                if count:
                    extraction.queue_batch(session, request_id)
                    session.flushed_at = session.searchable_at = now
                    session.save(update_fields=["flushed_at", "searchable_at"])
                    if session.kind != Session.Kind.RESOURCE:  # which has its own events
                        publish("session.flushed", owner.user_pk, **owner.scope, session_ids=[session_id])
                elif session.kind == Session.Kind.RESOURCE:
                    count = session.memories.count()
        if session is None or not count:
            return FlushResult("no_extraction", 0, request_id, None)
        try:
            fill.fill(_EMBED_SECONDS, session=session.pk)  # the background task computes the rest
        except DatabaseError:
            logger.exception("The vectors of a session could not be written. They stay pending.")
        return FlushResult("extracted", count, request_id, to_ms(now))

    @engine_call
    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answer all requests with two SQL statements. Raises: `InvalidInput`, `EngineUnavailable`."""
        if any(map(rated_search.is_rated, requests)):
            return rated_search.search(owner, requests)
        return retrieve(owner, requests)

    @engine_call
    def delete(self, owner: Owner, session_id: str) -> None:
        """Delete the session's memories and index entries; its row stays, marked as deleted, to refuse late writes.

        Searches find nothing from the start of the call. A second call completes an interrupted deletion.
        """
        session = sessions.mark_purged(owner, session_id, self._clock())
        derived_memories.forget_sessions(owner, [session_id])
        memories = Memory.objects.filter(owned_by(owner), session=session).order_by("pk")
        while batch := list(memories[:_ROWS_AT_ONCE]):
            writes.remove(owner, batch)

    def memory_ids(self, owner: Owner, session_id: str, message: Message) -> Sequence[str]:
        return [part.first_id for part in ingest.parts_of(owner, session_id, [message])]

    def replay(self, owner: Owner, session_id: str, message: Message, batch_id: str) -> Replay:
        """Read a message's documents and prepare its memories, outside a transaction. Raises: `EngineUnavailable`."""
        drafts = []
        for part in ingest.parts_of(owner, session_id, [message]):
            try:
                with reading_for(owner.user_pk):
                    draft = self._draft_of(owner, session_id, part)
            except EngineRefused:
                continue
            for memory in draft.memories:
                memory.batch_id = batch_id
                if batch_id:
                    memory.memory_type = Memory.Type.EPISODE
            drafts.append(draft)
        return Replay(batch_id, tuple(drafts))

    def save_replays(self, owner: Owner, session: Session, replays: Iterable[Replay]) -> None:
        """Save and index memories at the end of a locked session. Call inside a transaction."""
        drafts = [draft for item in replays for draft in item.drafts]
        expiry.set_defaults(owner, [memory for draft in drafts for memory in draft.memories])
        writes.append(owner, session.pk, drafts)

    queue_extraction = staticmethod(extraction.queue_missing)
    extract = staticmethod(extraction.run)
    queue_media = staticmethod(media.queue)
    read_media = staticmethod(media.run)
    health = staticmethod(health.check)

    def capabilities(self) -> Mapping[str, bool]:
        """Return the available methods. Without an embedding endpoint, `hybrid` searches by keyword and reports it."""
        has_vectors, has_llm = wanted_model() is not None, language_model.is_set()
        return {
            "keyword": True,
            "vector": has_vectors,
            "hybrid": has_vectors,
            "agentic": has_llm,
            "llm": has_llm,
            "delete": True,
        }


def _deleted_texts(owner: Owner, session_id: str, parts: Iterable[ingest.Part]) -> set[str]:
    """Return the parts (`first_id`) that were kept as text and deleted: a repeated message must not bring them back."""
    texts = {ingest.description_id(part): part.first_id for part in parts if ingest.may_be_text(part, session_id)}
    if not texts:
        return set()
    deleted = Memory.objects.filter(owned_by(owner), memory_id__in=texts).exclude(state=State.LIVE)
    return {texts[memory_id] for memory_id in deleted.values_list("memory_id", flat=True)}
