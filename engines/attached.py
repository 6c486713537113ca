"""The embedded engine with a remote: messages are memories here, and are sent to the remote that derives further ones.

While a remote is attached, it answers the searches. An add is acknowledged when rows and outbox entries are stored, in
one transaction; the background task sends them, a flush first what its session lacks there. A remote that is away
loses and delays nothing here.
"""

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils import timezone

from accounts import controls
from core.background.tasks import enqueue
from core.errors import EngineError, EngineUnavailable
from core.ids import parse_session_id
from core.times import to_ms
from documents.reader import read_document, reading_for
from engines.embedded import ingest
from engines.embedded.engine import Clock, EmbeddedEngine
from remote import deletions, outbox, remote_sessions
from remote.everos import EverOS
from store import sessions, writes
from store.models import Memory, Session, State
from store.port import AddResult, FlushResult, FlushStatus, Health, engine_call
from store.types import KEPT, Message, NewExpiry, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.remote")

_ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Draft:
    """The memories of a part of a message; None if they are stored already."""

    part: ingest.Part
    draft: writes.Draft | None


class AttachedEngine(EmbeddedEngine):
    """Implements `store.port.Engine`. One per remote and process."""

    label = "remote"

    def __init__(self, remote: EverOS, *, read: ingest.ReadDocument | None = None, clock: Clock = timezone.now) -> None:
        super().__init__(read=read or read_document, clock=clock)
        self.remote = remote

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
        """Store messages, which are sent later. What expires is not sent, nor is what was stored before the remote.

        The file of a resource that cannot be read here is sent at once. Raises: `EngineRefused` for a deleted session;
        the errors of the remote for such a file.
        """
        named = outbox.by_id(session_id, messages)  # reads files, so before the transaction
        unread: list[tuple[ingest.Part, str]] = []
        drafts = {one: self._drafts_of(owner, session_id, message, unread) for one, message in named.items()}
        has_files = any(item.text is None for message in messages for item in message.content)
        if has_files and controls.never_of(owner.user_pk):  # the remote reads whole files
            named = {one: _without_files(message) for one, message in named.items()}
        with transaction.atomic():
            new = [one.draft for parts in drafts.values() for one in parts if one.draft is not None]
            defaults = writes.note_expiry(owner, new, expires_at)
            session = remote_sessions.claim(owner, session_id)
            check()
            sessions.set_expiry(session, expires_at)
            known = outbox.known(session, named)
            stored = _store(owner, session, {one: parts for one, parts in drafts.items() if one not in known})
            sent = {one: _without(named[one], unread) for one in stored}
            ends = session.expires_at if expires_at is KEPT else expires_at
            outbox.record(session, sent, stored, withheld=stored if ends else _expiring(drafts))
        if session.kind == Session.Kind.RESOURCE and outbox.lacks_unread(session, named):
            self.remote.send(owner, session, named)
        else:
            enqueue("retry_deliveries")
        read = [(one.part, one.draft) for parts in drafts.values() for one in parts]
        return AddResult(
            "accumulated",
            len(messages),
            uuid.uuid4().hex,
            ingest.kept_as_text(messages, unread),
            readings=ingest.readings(messages, read),
            expiry_days=dict(defaults[one] for ids in stored.values() for one in ids if one in defaults),
        )

    def _drafts_of(
        self, owner: Owner, session_id: str, message: Message, unread: list[tuple[ingest.Part, str]]
    ) -> list[_Draft]:
        """Return the memories of a message, and add the addresses to `unread` that are kept as text.

        The file of a resource that cannot be read here is left to the remote, and so are files at its addresses.
        """
        drafts = []
        kind = parse_session_id(session_id).kind
        for part in ingest.parts_of(owner, session_id, [message]):
            is_of_resource = part.item is not None and part.item.is_of_resource(kind)
            if part.item is not None and writes.known(owner, [part.first_id]):
                drafts.append(_Draft(part, None))
            elif part.item is not None and is_of_resource and part.item.file is None:
                drafts.append(_Draft(part, writes.Draft.of(part.first_id, [])))
            else:
                draft = self._read_part(owner, session_id, part, unread, is_of_resource=is_of_resource)
                drafts.append(_Draft(part, draft))
        return drafts

    def _read_part(
        self,
        owner: Owner,
        session_id: str,
        part: ingest.Part,
        unread: list[tuple[ingest.Part, str]],
        *,
        is_of_resource: bool,
    ) -> writes.Draft:
        try:
            with reading_for(owner.user_pk):
                return self._draft_of(owner, session_id, part)
        except EngineError as error:
            if is_of_resource:
                logger.info("A file is left to the remote, because it cannot be read here: %s", error.detail)
                return writes.Draft.of(part.first_id, [])
            if part.item is None or part.item.uri is None:
                raise
            unread.append((part, error.detail))
        return ingest.as_text(part)

    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        """Return False: the remote stores nothing of a file that it cannot read."""
        return False

    @engine_call
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Have the remote derive memories. If it does not, it is asked later, and the result is what is stored here.

        A remote that refuses is not asked again. Raises: the errors of the remote, if nothing of the session can be
        read here.
        """
        try:
            return self.remote.flush(owner, session_id)
        except EngineError as error:
            session = remote_sessions.find(owner, session_id)
            live = Memory.objects.filter(session=session, state=State.LIVE)
            if session is None or not live.exists():
                raise
            now = self._clock()
            count = live.filter(origin=Memory.Origin.EMBEDDED, is_covered=False).count()
            if count and isinstance(error, EngineUnavailable):
                remote_sessions.mark_flush_sent(session, now)
                enqueue("retry_deliveries")
            status: FlushStatus = "extracted" if count else "no_extraction"
            return FlushResult(status, count, uuid.uuid4().hex, to_ms(now), degraded=error.detail)

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
            session = sessions.mark_purged(owner, session_id, self._clock())
            is_queued = deletions.queue_session(owner, session)
            memories = Memory.objects.filter(session=session).order_by("pk")
            while batch := list(memories[:_ROWS_AT_ONCE]):
                writes.remove(owner, batch)
            outbox.entries(session).delete()
        if not is_queued:
            logger.info("The remote keeps its copy of a deleted session, if it has one")

    def health(self, timeout_seconds: float) -> Health:
        return self.remote.health(timeout_seconds)

    def capabilities(self) -> Mapping[str, bool]:
        return self.remote.capabilities()


def _without(message: Message, unread: Sequence[tuple[ingest.Part, str]]) -> Message:
    """Return the message with text instead of addresses that could not be read: the remote gets none of them."""
    items = [part.item for part, _cause in unread if part.message == message]
    content = tuple(item.as_text() if item in items else item for item in message.content)
    return replace(message, content=content) if items else message


def _without_files(message: Message) -> Message:
    """Return the message with the names of its files in their place."""
    content = tuple(item if item.text is not None else item.as_text() for item in message.content)
    return replace(message, content=content)


def _expiring(drafts: Mapping[str, Sequence[_Draft]]) -> set[str]:
    """Return the ids of messages with a memory that expires."""
    return {
        message_id
        for message_id, parts in drafts.items()
        if any(memory.expires_at for one in parts if one.draft is not None for memory in one.draft.memories)
    }


def _store(owner: Owner, session: Session, drafts: Mapping[str, Sequence[_Draft]]) -> dict[str, list[str]]:
    """Store messages that are not here yet; return their memory ids by message id. Call inside a transaction."""
    every = [one.draft for parts in drafts.values() for one in parts if one.draft is not None]
    new = {draft.first_id: draft for draft in writes.append(owner, session.pk, every)}
    stored = {}
    for message_id, parts in drafts.items():
        made = [new[one.draft.first_id] for one in parts if one.draft is not None and one.draft.first_id in new]
        if made or not parts or any(one.draft is not None and not one.draft.memories for one in parts):
            stored[message_id] = [memory.memory_id for draft in made for memory in draft.memories]
    return stored
