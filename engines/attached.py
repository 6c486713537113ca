"""The embedded engine with a remote: messages are memories here, and are sent to the remote that derives further ones.

While a remote is attached, it answers the searches. Rows and their outbox entries are written in one transaction, then
the messages are sent.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from core.errors import EngineError
from core.ids import parse_session_id
from documents.reader import read_document, reading_for
from engines.embedded import ingest
from engines.embedded.engine import Clock, EmbeddedEngine
from remote import deletions, outbox
from remote import sessions as external_sessions
from remote.everos import Delivered, EverOS
from remote.outbox import Batch
from store import sessions, storage
from store.models import Memory, Session
from store.port import AddResult, FlushResult, Health, KeptAsText, engine_call
from store.types import Message, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.upstream")

_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Draft:
    """The memories of a part of a message; None if they are stored already."""

    part: ingest.Part
    draft: storage.Draft | None


class AttachedEngine(EmbeddedEngine):
    """Implements `store.port.Engine`. One per remote and process."""

    label = "upstream"
    is_external = True

    def __init__(self, remote: EverOS, *, read: ingest.ReadDocument | None = None, clock: Clock = timezone.now) -> None:
        super().__init__(read=read or read_document, clock=clock)
        self.remote = remote

    @engine_call
    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        """Store messages and send them. A message that was stored before a remote was attached is not sent.

        Raises: `EngineRefused` for a deleted session and for what the remote refuses, of which no row stays.
        """
        self.remote.require_available(owner)
        outbox.require_sendable(messages)
        with self.remote.writing(owner, session_id):
            session, batches = self._record(owner, session_id, messages)
            delivered, kept = Delivered("accumulated", ""), []
            for batch in batches:
                delivered = self.remote.deliver(owner, session, batch)
                given = {entry.timestamp_ms: entry.message for entry in batch.entries}
                kept += [(given[one.timestamp_ms], one) for one in delivered.kept_as_text]
        places = [
            KeptAsText(position, one.item, one.cause)
            for position, message in enumerate(messages)
            for given_message, one in kept
            if given_message == message
        ]
        return AddResult(delivered.status, len(messages), delivered.request_id, places)

    def _record(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> tuple[Session, list[Batch]]:
        """Store the messages with their outbox entries; return the batches to send: new ones, and unconfirmed ones."""
        named = outbox.by_id(session_id, messages)  # reads files, so before the transaction
        drafts = {message_id: self._drafts_of(owner, session_id, one) for message_id, one in named.items()}
        with transaction.atomic():
            session = external_sessions.claim(owner, session_id)
            known, batches = outbox.recorded(session, named)
            stored = _store(owner, session, {one: parts for one, parts in drafts.items() if one not in known})
            if stored:
                batches.append(outbox.record(session, {one: named[one] for one in stored}, stored))
        return session, batches

    def _drafts_of(self, owner: Owner, session_id: str, message: Message) -> list[_Draft]:
        """Return the memories of a message. What cannot be read here is left to the remote.

        Files at addresses are read by the remote alone.
        """
        drafts = []
        for part in ingest.parts_of(owner, session_id, [message]):
            item = part.item
            if item is not None and storage.known(owner, [part.first_id]):
                drafts.append(_Draft(part, None))
                continue
            is_addressed = item is not None and item.file is None and item.type not in {"image", "audio"}
            draft = self._unread(part, session_id) if is_addressed else self._read_part(owner, part, session_id)
            drafts.append(_Draft(part, draft))
        return drafts

    def _read_part(self, owner: Owner, part: ingest.Part, session_id: str) -> storage.Draft:
        try:
            with reading_for(owner.user_pk):
                return ingest.draft_of(part, self._read, self._fetch)
        except EngineError as error:
            logger.info("A file is left to the remote, because it cannot be read here: %s", error.detail)
        return self._unread(part, session_id)

    @staticmethod
    def _unread(part: ingest.Part, session_id: str) -> storage.Draft:
        """Return the name and address of a file in a message; nothing for the file of a resource."""
        kind = parse_session_id(session_id).kind
        is_of_resource = part.item is not None and part.item.is_of_resource(kind)
        return storage.Draft.of(part.first_id, []) if is_of_resource else ingest.as_text(part)

    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        """Return False: the remote stores nothing of a file that it cannot read."""
        return False

    @engine_call
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        return self.remote.flush(owner, session_id)

    @engine_call
    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        return self.remote.search(owner, requests)

    @engine_call
    def delete(self, owner: Owner, session_id: str) -> None:
        """Delete our rows of a session and hide it permanently.

        The remote keeps its copy until `delete_permanently`, forever if it cannot delete or the settings do not allow
        it.
        """
        with transaction.atomic():
            session = sessions.mark_deleted(owner, session_id, self._clock())
            is_queued = deletions.queue_session(owner, session)
            memories = Memory.objects.filter(session=session)
            while indexed := list(memories.filter(is_indexed=True).order_by("pk")[:_ROWS_AT_ONCE]):
                storage.remove(owner, indexed)
            memories.delete()
            outbox.entries(session).delete()
        if not is_queued:
            logger.info("EverOS keeps its copy of a deleted session, if it has one")

    def health(self, timeout_seconds: float) -> Health:
        return self.remote.health(timeout_seconds)

    def capabilities(self) -> Mapping[str, bool]:
        return self.remote.capabilities()


def _store(owner: Owner, session: Session, drafts: Mapping[str, Sequence[_Draft]]) -> dict[str, list[str]]:
    """Store messages that are not here yet; return their memory ids by message id. Call inside a transaction."""
    every = [one.draft for parts in drafts.values() for one in parts if one.draft is not None]
    new = {draft.first_id: draft for draft in storage.append(owner, session.pk, every)}
    stored = {}
    for message_id, parts in drafts.items():
        made = [new[one.draft.first_id] for one in parts if one.draft is not None and one.draft.first_id in new]
        if made or not parts or any(one.draft is not None and not one.draft.memories for one in parts):
            stored[message_id] = [memory.memory_id for draft in made for memory in draft.memories]
    return stored
