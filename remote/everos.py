"""EverOS as a remote: sends messages to it, and finds what it derives from them. Implements `store.port.Remote`."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import PurePath
from types import MappingProxyType

from django.utils import timezone

from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown, Unreadable
from core.limits.concurrency import Bulkhead
from core.messages import Translatable as _
from core.network.http_client import Deadline
from core.persistence import files
from core.persistence.database_errors import database_errors
from remote import flush as everos_flush
from remote import merged_search as everos_search
from remote import mirror, outbox
from remote import remote_sessions as external_sessions
from remote.client import content, failures
from remote.client.client import Client
from remote.engine_ids import AgentNames
from remote.outbox import Batch, TimedMessage
from store.admission import is_held
from store.models import PendingDeletion, Session, State
from store.port import FlushResult, Health, require_allowed_address
from store.types import ContentItem, Message, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.remote")

_CAPABILITIES_TIME = timedelta(seconds=30)
_CAPABILITIES = ("keyword", "vector", "hybrid", "agentic", "llm", "delete")
_HEALTH_SECONDS = 2.0


class EverOS:
    """Implements `store.port.Remote`. One per process.

    `remote.client` validates the answers of EverOS; this class maps them to our tables. The methods raise the
    errors of the client.
    """

    def __init__(
        self,
        client: Client,
        *,
        batch_size: int = 50,
        may_delete: bool = False,
        search_seconds: float = 3.0,
        clock: Callable[[], datetime] = timezone.now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._batch_size = batch_size
        self._may_delete = may_delete
        self._search_seconds = search_seconds
        self._clock = clock
        self._sleep = sleep
        self._writers = Bulkhead(1)
        self._capabilities: tuple[datetime, Mapping[str, bool]] | None = None

    @database_errors()
    def send(self, owner: Owner, session: Session, given: Mapping[str, Message] = MappingProxyType({})) -> None:
        """Send the next messages of a session. Those that EverOS refuses for good stay here, and a refusal is raised.

        `given` are messages by id whose one-time addresses are not stored.
        """
        with self.writing(owner, session.session_id):
            self._client_of(owner).require_closed()
            refusal = self._send_unconfirmed(owner, session, given)
            if batch := outbox.take(session, given):
                refusal = self._deliver(owner, session, batch) or refusal
            if refusal:
                raise refusal

    def _send_all(self, owner: Owner, session: Session) -> EngineRefused | None:
        """Send all that EverOS lacks of a session; return the last refusal."""
        refusal = self._send_unconfirmed(owner, session)
        while batch := outbox.take(session):
            refusal = self._deliver(owner, session, batch) or refusal
        return refusal

    def _send_unconfirmed(
        self, owner: Owner, session: Session, given: Mapping[str, Message] = MappingProxyType({})
    ) -> EngineRefused | None:
        refusal = None
        for batch in outbox.unconfirmed(session, given):
            refusal = self._deliver(owner, session, batch) or refusal
        return refusal

    def writing(self, owner: Owner, session_id: str) -> AbstractContextManager[None]:
        """Allow one writer per session at a time, as EverOS does.

        Otherwise the order of a message and a concurrent flush would be unknown, and a lost message unrecoverable.
        """
        name = (owner.user_pk, owner.app_id, owner.project_id, session_id)
        return self._writers.slot(name, self._client.timeout_seconds / 2)

    @database_errors()
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Have EverOS extract a session, and wait for its memories. What it lacks of the session is sent first.

        Raises: the refusal of a file without memories here.
        """
        with self.writing(owner, session_id):
            session = external_sessions.find(owner, session_id)
            if session is None or session.state == State.PURGED:
                return FlushResult("no_extraction", 0, "", None)
            if Session.objects.filter(is_held(), pk=session.pk).exists():
                raise EngineUnavailable(
                    _("The person has paused remembering. Memories are derived once they resume it.")
                )
            self._client_of(owner).require_closed()
            refusal = self._send_all(owner, session)
            if refusal and not session.memories.exists():
                raise refusal
            flush = everos_flush.Flush(self._client_of(owner), owner, session, clock=self._clock, sleep=self._sleep)
            answer = flush.send()
        return flush.settle(answer)

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answer the requests together with EverOS; without it if it does not answer in time, or not validly.

        Raises: `InvalidInput` for filters, `NotConfigured` if EverOS lacks the model of a method.
        """
        return everos_search.search(self._client_of(owner), owner, requests, self._batch_size, self._search_seconds)

    @database_errors()
    def delete_permanently(self, deletions: Sequence[PendingDeletion]) -> int:
        first = deletions[0]
        client = self._client.of(first.user_key)
        owner = {("agent_id" if first.is_agent else "user_id"): first.owner_id}
        scope = {"app_id": first.app_id, "project_id": first.project_id}
        if first.memory_id:
            ids = [row.memory_id for row in deletions]
            episodes = {"memory_type": "episode", "memory_ids": ids}
            return client.delete_by_ids({**scope, **owner, **episodes}, client.deadline())
        session = {"session_id": first.engine_session_id} if first.engine_session_id else {}
        return client.delete({**scope, **owner, **session}, client.deadline())

    @database_errors()
    def copy_memories(self, owner: Owner, session: Session) -> int:
        client = self._client_of(owner)
        return mirror.pull(client, owner, session, client.deadline())

    def find_sessions(self, owner: Owner) -> Iterator[int]:
        return mirror.find_sessions(self._client_of(owner), owner)

    @database_errors()
    def retry_unconfirmed(self, owner: Owner, session: Session) -> list[Message]:
        """Deliver unconfirmed messages whose calls have ended, and return those that arrived.

        Addresses that are refused now, or that EverOS cannot read, are sent as text.
        """
        arrived: list[Message] = []
        with self.writing(owner, session.session_id):
            for batch in outbox.unconfirmed(session):
                if self._deliver(owner, session, batch, has_settled=True) is None:
                    arrived += outbox.messages_at(session, [entry.timestamp_ms for entry in batch.entries])
        return arrived

    @database_errors()
    def check_flush(self, owner: Owner, session: Session) -> int:
        return everos_flush.check_flush(self._client_of(owner), owner, session, self._clock())

    @database_errors()
    def recover(self, owner: Owner, session: Session) -> int:
        return everos_flush.recover(self._client_of(owner), owner, session, self._clock())

    def health(self, timeout_seconds: float) -> Health:
        base_url = self._client.base_url
        try:
            answer, data = self._client.health(self._client.deadline(timeout_seconds))
        except EngineError as error:
            return Health("unavailable", base_url, error=failures.cause_of(error))
        if answer.status == "ok":
            return Health("ok", base_url, data)
        cause = _("The memory engine reports: %(status)s", status=answer.status[:80])
        return Health("unavailable", base_url, data, cause)

    def capabilities(self) -> Mapping[str, bool]:
        """Return what EverOS can do, cached for 30 s; all False while it is unreachable."""
        now = self._clock()
        if self._capabilities is None or now >= self._capabilities[0]:
            found = dict.fromkeys(_CAPABILITIES, False)
            try:
                deadline = self._client.deadline(_HEALTH_SECONDS)
                answer, _data = self._client.health(deadline)
            except EngineError:
                pass
            else:
                has_vectors, has_llm = answer.can("embed"), answer.can("llm")
                found |= {"keyword": True, "hybrid": True, "vector": has_vectors, "llm": has_llm}
                found["agentic"] = has_vectors and has_llm and answer.can("rerank")
                found["delete"] = self._may_delete and self._can_delete(deadline)
            self._capabilities = (now + _CAPABILITIES_TIME, found)
        return self._capabilities[1]

    def _can_delete(self, deadline: Deadline) -> bool:
        try:
            return self._client.can_delete(deadline)
        except EngineError as error:
            logger.warning("EverOS: cannot read its OpenAPI document: %s", error.detail)
            return False

    def _client_of(self, owner: Owner) -> Client:
        return self._client.of(owner.user_pk)

    def _deliver(
        self, owner: Owner, session: Session, batch: Batch, *, has_settled: bool = False
    ) -> EngineRefused | None:
        """Send a batch; if the outcome is unknown, it stays unconfirmed. Return a permanent refusal of a message.

        A refused batch is sent again in halves, so that the others arrive.

        A batch that was sent before is sent again only after the earlier call has ended, because a message that arrives
        after a flush would become a duplicate. `has_settled`: it has ended; otherwise wait first.
        """
        if not (batch.is_new or has_settled):
            self._sleep(self._client.settle_seconds)
        try:
            is_sent = self._send_or_keep_as_text(owner, session, batch)
        except OutcomeUnknown:
            external_sessions.schedule_retry(session, self._clock() + timedelta(seconds=self._client.timeout_seconds))
            raise
        except EngineError as error:
            if isinstance(error, EngineRefused) and error.is_permanent:
                return self._refuse(owner, session, batch, error)
            if batch.is_new:
                outbox.wait(session, batch)
            raise
        if is_sent:
            outbox.confirm(session, batch)
        else:
            outbox.withhold(session, batch)
        return None

    def _refuse(self, owner: Owner, session: Session, batch: Batch, refusal: EngineRefused) -> EngineRefused | None:
        """Set the messages of a batch aside that EverOS refuses, and send the others."""
        if len(batch.entries) == 1:
            logger.warning("EverOS: a message was refused: %s", refusal.detail)
            outbox.refuse(session, batch, refusal.detail)
            return refusal
        first, second = outbox.split(session, batch)
        try:
            refused = self._deliver(owner, session, first, has_settled=True)
        except EngineError:
            if batch.is_new:
                outbox.wait(session, second)  # or it would be sent before the first
            raise
        return self._deliver(owner, session, second, has_settled=True) or refused

    def _send_or_keep_as_text(self, owner: Owner, session: Session, batch: Batch) -> bool:
        """Send a batch without addresses that are refused now, and without any if EverOS cannot read one of them."""
        batch, _is_changed = _keep_as_text(session, batch, _refusal_of)
        try:
            return self._send(owner, session, batch)
        except (EngineRefused, failures.AddFailed) as error:  # EverOS stored nothing of it
            cause = error.detail
            batch, is_changed = _keep_as_text(
                session, batch, lambda item: None if item.is_of_resource(session.kind) else cause
            )
            if not is_changed:
                raise
        return self._send(owner, session, batch)

    def _send(self, owner: Owner, session: Session, batch: Batch) -> bool:
        """Send a batch, with documents as text if EverOS has no parser for them. Return False if nothing was sent."""
        with ExitStack() as copies:
            local = replace(batch, entries=tuple(_with_copies(entry, copies) for entry in batch.entries))
            try:
                return self._send_as(owner, session, local, inline_documents=False)
            except failures.Unsupported:
                if not any(content.has_documents(entry.message) for entry in batch.entries):
                    raise
                return self._send_as(owner, session, local, inline_documents=True)

    def _send_as(self, owner: Owner, session: Session, batch: Batch, *, inline_documents: bool) -> bool:
        client = self._client_of(owner)
        deadline = client.deadline()
        agents = AgentNames(owner.user_pk)
        messages: list[content.WireMessage] = []
        for entry in batch.entries:
            if entry.message.role == "system":  # EverOS refuses the role
                continue
            # EverOS assigns memories to senders, so the sender that a message claims must not be used.
            is_of_user = entry.message.role == "user"
            sender_id = owner.remote_name if is_of_user else agents.engine_id(entry.message.sender_id)
            messages += content.wire_messages(
                entry.message, sender_id, entry.timestamp_ms, inline_documents=inline_documents
            )
        has_arrived = partial(outbox.has_arrived, session, batch)
        for start in range(0, len(messages), content.MAX_MESSAGES_PER_CALL):
            payload = {
                "session_id": session.engine_session_id,
                "app_id": session.app_id,
                "project_id": session.project_id,
                "messages": messages[start : start + content.MAX_MESSAGES_PER_CALL],
                # Otherwise every add would call the LLM, and its failure would lose the messages. Versions before
                # 1.3 ignore the option.
                "defer_extraction": True,
            }
            try:
                client.add(payload, deadline, is_repeat=not batch.is_new, is_done=has_arrived)
            except EngineUnavailable as error:
                if start:  # part of the batch has arrived already
                    raise OutcomeUnknown(error.detail, retry_after_seconds=error.retry_after_seconds) from error
                raise
        return bool(messages)


def _refusal_of(item: ContentItem) -> str | None:
    """Return why the address of an item must not be sent: EverOS would read it with the rights of its host."""
    try:
        require_allowed_address(item)
    except Unreadable as error:
        return error.detail
    return None


def _keep_as_text(session: Session, batch: Batch, cause_of: Callable[[ContentItem], str | None]) -> tuple[Batch, bool]:
    """Return the batch with text instead of addresses for which there is a cause, also in the outbox; True if any.

    Raises: `Unreadable` for the file of a resource, which is nothing without its file.
    """
    is_changed = False
    messages = []
    for entry in batch.entries:
        items = list(entry.message.content)
        for index, item in enumerate(items):
            cause = cause_of(item) if item.uri and item.file is None and item.text is None else None
            if cause is None:
                continue
            if item.is_of_resource(session.kind):
                raise Unreadable(cause)
            items[index] = item.as_text()
            is_changed = True
        messages.append(replace(entry.message, content=tuple(items)))
    return (outbox.replace_messages(session, batch, messages) if is_changed else batch), is_changed


def _with_copies(entry: TimedMessage, copies: ExitStack) -> TimedMessage:
    """Return the entry with files that can be opened until `copies` ends."""
    items = tuple(
        replace(
            item,
            name=item.name or PurePath(item.file).name,
            file=copies.enter_context(files.local_copy(item.file)),
        )
        if item.file
        else item
        for item in entry.message.content
    )
    return TimedMessage(replace(entry.message, content=items), entry.timestamp_ms)
