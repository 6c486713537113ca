"""The EverOS engine: stores and finds memories in EverOS, behind `engines.port`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from django.db import transaction
from django.utils import timezone

from core import turns
from core.errors import EngineError, EngineRefused, EngineUnavailable, OutcomeUnknown
from engines import file_uris
from engines.everos import backfill
from engines.everos import flush as everos_flush
from engines.everos import search as everos_search
from engines.everos.client import content, failures, wire
from engines.everos.client.client import Client
from engines.everos.client.concurrency import run_bounded
from engines.everos.client.queries import Payload
from engines.everos.client.resilience import PerKeyLimit
from engines.measuring import measured
from engines.port import AddResult, FlushResult, Health
from store import sessions, storage
from store.errors import database_errors
from store.external import journal
from store.external import sessions as external_sessions
from store.external.engine_ids import AgentNames
from store.external.journal import Batch
from store.models import Memory, Session
from store.table import MemoryTable
from store.types import Message, Owner, SearchRequest, SearchResult

logger = logging.getLogger("memory_gateway.upstream")

CALLS_PER_SEARCH = 8
# Threads start on demand. There are enough that calls waiting for a slot of their user do not block other users.
_THREADS = 64 * CALLS_PER_SEARCH
_ROWS_AT_ONCE = 500
_STAGED_AT_ONCE = 200
_CAPABILITIES_TIME = timedelta(seconds=30)
_DEGRADED = "The memory service has no embedding model, so only keywords were compared."
_HEALTH_SECONDS = 2.0


class EverOSEngine(MemoryTable):
    """One per process. `engines.everos.client` checks the answers of EverOS; this class maps them to our tables."""

    label = "upstream"
    is_external = True

    def __init__(
        self,
        client: Client,
        *,
        batch_size: int = 50,
        clock: Callable[[], datetime] = timezone.now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._batch_size = batch_size
        self._clock = clock
        self._sleep = sleep
        self._writers = PerKeyLimit(1)
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="upstream")
        self._capabilities: tuple[datetime, Mapping[str, bool]] | None = None

    @measured
    @database_errors()
    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        self._client_of(owner).require_closed()
        with self._exclusive_session(owner, session_id):
            session, batches = journal.record_messages(owner, session_id, messages)
            status, request_id = "accumulated", ""
            for batch in batches:
                status, request_id = self._deliver(owner, session, batch)
        return AddResult(status, len(messages), request_id)

    @measured
    @database_errors()
    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        with self._exclusive_session(owner, session_id):
            session = external_sessions.find(owner, session_id)
            if session is None or session.deleted_at is not None:
                return FlushResult("no_extraction", 0, "", None)
            self._client_of(owner).require_closed()
            for batch in journal.unconfirmed(session):
                self._deliver(owner, session, batch)
            sent = self._send_flush(owner, session)
        return everos_flush.settle(sent)

    @measured
    @database_errors()
    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        try:
            return self._search(owner, requests)
        except failures.NotConfigured:
            if any(request.method != "hybrid" for request in requests):
                raise
            results = self._search(owner, [replace(request, method="keyword") for request in requests])
            return [replace(result, degraded=_DEGRADED) for result in results]

    @measured
    @database_errors()
    def delete(self, owner: Owner, session_id: str) -> None:
        """Delete our copy of a session and hide it for good.

        EverOS cannot delete (`capabilities()["delete"]` is False), so it keeps its own copy.
        """
        with transaction.atomic():
            sessions.lock_decisions(owner)
            session = external_sessions.mark_deleted(owner, session_id, self._clock())
            memories = Memory.objects.filter(session=session)
            while indexed := list(memories.filter(is_indexed=True).order_by("pk")[:_ROWS_AT_ONCE]):
                storage.remove(owner, indexed)
            memories.delete()
        logger.info("upstream: a deleted session stays in EverOS, which has no deletion")

    @database_errors()
    def stage(self, owner: Owner, staging: Session, messages: Sequence[Message], waiting: Sequence[Message]) -> int:
        """Send messages to EverOS through a staging session, and return about how many calls it took.

        `messages` are extracted in batches; `waiting` are only added. A second call resumes an interrupted first one.
        Raises: the errors of `add` and `flush`, and `EngineRefused` if EverOS extracts nothing.
        """
        calls = 0
        if external_sessions.is_flush_open(staging):
            self._flush_staged(owner, staging)
        for start in range(0, len(messages), _STAGED_AT_ONCE):
            part = messages[start : start + _STAGED_AT_ONCE]
            self._record_and_deliver(owner, staging, part)
            if journal.is_buffered(staging, part):
                self._flush_staged(owner, staging)
                calls += 4
        if waiting:
            self._record_and_deliver(owner, staging, waiting)
            calls += 1
        return calls

    @database_errors()
    def copy_memories(self, owner: Owner, session: Session) -> int:
        """Copy the memories of a session that our table lacks, and return how many.

        Raises: the errors of the list call.
        """
        return backfill.memories(self._client_of(owner), owner, session)

    def find_sessions(self, owner: Owner) -> Iterator[int]:
        """Register the owner's sessions that only EverOS knows, and yield after each page how many were new.

        Raises: the errors of the list call.
        """
        return backfill.sessions(self._client_of(owner), owner)

    @database_errors()
    def resend(self, owner: Owner, session: Session) -> list[Message]:
        """Deliver unconfirmed messages whose calls have ended, and return those that arrived.

        A message that EverOS refuses permanently is dropped: its caller already received the error. Raises:
        `EngineUnavailable`.
        """
        arrived: list[Message] = []
        with self._exclusive_session(owner, session.session_id):
            for batch in journal.unconfirmed(session):
                try:
                    self._deliver(owner, session, batch, has_settled=True)
                except EngineRefused as error:
                    logger.warning("upstream: a message whose outcome was open is refused: %s", error.detail)
                else:
                    arrived += [entry.message for entry in batch.entries]
        return arrived

    @database_errors()
    def look_again(self, owner: Owner, session: Session) -> int:
        """Copy what EverOS shows by now of an unconfirmed flush, and return how many memories are new.

        Raises: the errors of the list call.
        """
        return everos_flush.look_again(self._client_of(owner), owner, session, self._clock())

    @database_errors()
    def recover(self, owner: Owner, session: Session) -> int:
        """Copy what EverOS lists of a session that was settled as having no memories, and return how many there are.

        Raises: the errors of the list call.
        """
        return everos_flush.recover(self._client_of(owner), owner, session, self._clock())

    def _record_and_deliver(self, owner: Owner, staging: Session, messages: Sequence[Message]) -> None:
        with transaction.atomic():
            batches = journal.append(staging, messages)
        for batch in batches:
            self._deliver(owner, staging, batch)

    def _flush_staged(self, owner: Owner, staging: Session) -> None:
        flushed = everos_flush.settle(self._send_flush(owner, staging))
        if flushed.status == "no_extraction":
            raise EngineRefused("The memory service made nothing of what was said in this session.")
        if flushed.searchable_at_ms is None:
            raise OutcomeUnknown("The memory service has not shown yet what it made.", retry_after_seconds=5)

    def health(self, timeout_seconds: float) -> Health:
        base_url = self._client.base_url
        try:
            answer, data = self._client.health(self._client.deadline(timeout_seconds))
        except EngineError as error:
            return Health("unavailable", base_url, error=failures.cause_of(error))
        if answer.status != "ok":
            return Health("unavailable", base_url, data, f"The memory service says of itself: {answer.status[:80]}")
        return Health("ok", base_url, data)

    def capabilities(self) -> Mapping[str, bool]:
        """Return what EverOS can do, cached for 30 s; all False while it is unreachable."""
        now = self._clock()
        if self._capabilities is None or now >= self._capabilities[0]:
            self._capabilities = (now + _CAPABILITIES_TIME, self._query_capabilities())
        return self._capabilities[1]

    def _query_capabilities(self) -> Mapping[str, bool]:
        try:
            answer, _ = self._client.health(self._client.deadline(_HEALTH_SECONDS))
        except EngineError:
            return dict.fromkeys(("keyword", "vector", "hybrid", "agentic", "llm", "delete"), False)
        has_vectors, has_llm = answer.can("embed"), answer.can("llm")
        return {
            "keyword": True,
            "vector": has_vectors,
            "hybrid": True,
            "agentic": has_vectors and has_llm and answer.can("rerank"),
            "llm": has_llm,
            "delete": False,
        }

    def _exclusive_session(self, owner: Owner, session_id: str) -> AbstractContextManager[None]:
        """Allow one writer per session at a time, as EverOS does.

        The order of a message and a concurrent flush would be unknown, so a lost message could not be sent again.
        """
        name = (owner.user_pk, owner.app_id, owner.project_id, session_id)
        return self._writers.slot(name, self._client.deadline().half())

    def _send_flush(self, owner: Owner, session: Session) -> everos_flush.Sent:
        return everos_flush.send(self._client_of(owner), owner, session, clock=self._clock, sleep=self._sleep)

    def _client_of(self, owner: Owner) -> Client:
        return self._client.of(owner.user_pk)

    def _deliver(self, owner: Owner, session: Session, batch: Batch, *, has_settled: bool = False) -> tuple[str, str]:
        """Send a batch, and keep it as unconfirmed if its outcome is unknown.

        `has_settled`: no earlier call with it can still be running. Otherwise wait for that call to end first: a
        message that arrives after a flush would become a duplicate.
        """
        if not (batch.is_new or has_settled):
            self._sleep(self._client.settle_seconds)
        try:
            answer = self._send(owner, session, batch)
        except OutcomeUnknown:
            external_sessions.schedule_retry(session, self._clock() + timedelta(seconds=self._client.timeout_seconds))
            raise
        except EngineError as error:
            if batch.is_new or error.is_permanent:
                journal.drop(session, batch)
            raise
        if answer is None:
            journal.drop(session, batch)
            return "accumulated", ""
        journal.confirm(session, batch)
        return answer

    def _send(self, owner: Owner, session: Session, batch: Batch) -> tuple[str, str] | None:
        """Send a batch, with documents as text if EverOS has no parser for them. Return None if it was empty."""
        for item in chain.from_iterable(entry.message.content for entry in batch.entries):
            file_uris.require_allowed(item)  # EverOS would read any file of its host
        try:
            return self._send_as(owner, session, batch, inline_documents=False)
        except failures.Unsupported:
            if not any(content.has_documents(entry.message) for entry in batch.entries):
                raise
            return self._send_as(owner, session, batch, inline_documents=True)

    def _send_as(
        self, owner: Owner, session: Session, batch: Batch, *, inline_documents: bool
    ) -> tuple[str, str] | None:
        client = self._client_of(owner)
        deadline = client.deadline()
        messages = _wire_messages(owner, batch, inline_documents=inline_documents)
        if not messages:
            return None
        status, request_id = "accumulated", ""
        has_arrived = partial(journal.has_arrived, session, batch)
        for start in range(0, len(messages), content.MAX_MESSAGES_PER_CALL):
            part = messages[start : start + content.MAX_MESSAGES_PER_CALL]
            payload = _add_payload(session, part)
            try:
                answer = client.add(payload, deadline, is_repeat=not batch.is_new, is_done=has_arrived)
            except EngineUnavailable as error:
                if start:  # part of the batch has arrived already
                    raise OutcomeUnknown(error.detail, retry_after_seconds=error.retry_after_seconds) from error
                raise
            status, request_id = answer.status, answer.request_id
        return status, request_id

    def _search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        client = self._client_of(owner)
        client.require_closed()
        deadline = client.deadline()

        def ask(payloads: Sequence[Payload]) -> list[wire.Records]:
            calls = [partial(client.search, payload, deadline) for payload in payloads]
            with turns.searching.lent():
                return run_bounded(self._executor, calls, CALLS_PER_SEARCH)

        return everos_search.search(ask, owner, requests, self._batch_size)


def _wire_messages(owner: Owner, batch: Batch, *, inline_documents: bool) -> list[content.WireMessage]:
    """Return the messages in EverOS's shape, filed under the caller's user id and agents.

    EverOS files memories by sender, so a sender that the message claims must not count.
    """
    agents = AgentNames.of(owner.user_pk)
    return [
        message
        for entry in batch.entries
        for message in content.wire_messages(
            entry.message,
            owner.user_id if entry.message.role == "user" else agents.engine_id(entry.message.sender_id),
            entry.timestamp_ms,
            inline_documents=inline_documents,
        )
    ]


def _add_payload(session: Session, messages: Sequence[content.WireMessage]) -> dict[str, Any]:
    """Return the body of an add call that defers extraction to the flush.

    Otherwise every add would call the LLM, and a failure there loses the messages. Versions before 1.3 ignore the
    option.
    """
    return {
        "session_id": session.engine_session_id,
        "app_id": session.app_id,
        "project_id": session.project_id,
        "messages": messages,
        "defer_extraction": True,
    }
