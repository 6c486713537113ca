"""The engine interface: how the gateway stores and finds memories.

`engines.embedded` (this database) and `engines.attached` (and a remote) implement `Engine`. Code above imports this
module and `engines.registry` only.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, TypeVar
from uuid import UUID

from core import monitoring
from core.errors import FieldError, GatewayError, Unreadable
from core.messages import Translatable as _
from core.network.url_policy import AddressPolicy, BadAddress, check_uri
from core.persistence.database_errors import database_errors
from documents.reading import Reading
from store.models import Memory, PendingDeletion, Session
from store.types import (
    KEPT,
    ContentItem,
    ListPage,
    ListRequest,
    Message,
    NewExpiry,
    Owner,
    SearchRequest,
    SearchResult,
    StoredMemory,
    Wording,
)
from store.writes import Draft

FlushStatus = Literal["extracted", "no_extraction"]
MODEL_ENDPOINTS = ("embeddings", "llm", "vision", "transcription", "rerank")
"""The parts of the embedded engine's report about endpoints of models."""
HEALTH_TIMEOUT_SECONDS = 2.0
"""The timeout of health checks by background tasks."""


class KeptAsText(NamedTuple):
    """An address in a message that was not read: the item is stored as text. Positions count from 0."""

    message: int
    item: int
    cause: str


class FileReading(NamedTuple):
    """The report on the reading of a file in a message. Positions count from 0."""

    message: int
    item: int
    name: str
    reading: Reading


class Skipped(NamedTuple):
    """A message that was not stored, by its position from 0: it repeats a memory, or has no content (None)."""

    message: int
    memory_id: str | None


@dataclass(frozen=True, slots=True)
class AddResult:
    """The result of an add. `status` is "accumulated" or "extracted", `request_id` the engine's trace id.

    `redacted` counts the values that were masked in texts, by kind, `thoughts` the parts that are not stored because a
    model reasons there. `warnings` are the parts that lost something, `kept_as_text` those that the engine could not
    read. `readings` has the files that were read now. `refused` counts the messages that the person's controls refuse
    in whole or in part, by reason; `left_out` are those refused in whole. `is_paused`: a pause lasts. `expiry_days` are
    the applied defaults of expiry, by name.
    """

    status: str
    message_count: int
    request_id: str
    kept_as_text: Sequence[KeptAsText] = ()
    skipped: Sequence[Skipped] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    thoughts: int = 0
    warnings: Sequence[FieldError] = ()
    readings: Sequence[FileReading] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0
    is_paused: bool = False
    expiry_days: Mapping[str, int] = field(default_factory=dict)

    @property
    def stored(self) -> int:
        """Return the number of messages that were neither skipped nor refused."""
        return self.message_count - len(self.skipped) - self.left_out


@dataclass(frozen=True, slots=True)
class FlushResult:
    """The result of a flush. `searchable_at_ms` (Unix time) is when search finds the memories; None: not yet known.

    `degraded`: why no remote was asked or answered; then the memories are the messages. `is_paused`: nothing was done,
    because the person paused conversations.
    """

    status: FlushStatus
    memory_count: int
    request_id: str
    searchable_at_ms: int | None
    degraded: str | None = None
    is_paused: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """The state of an engine. `data` is the engine's own report, `error` the cause in words for operators."""

    status: Literal["ok", "unavailable"]
    base_url: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


class Engine(Protocol):
    """The methods of every engine.

    They raise `EngineError`s only; `search` also `InvalidInput`. `store.table.MemoryTable` has `list`, `find` and
    `replace` for all engines; `engine_call` decorates `add`, `describe`, `flush`, `search` and
    `delete`.
    """

    label: str
    """"embedded" or "remote", for pages and metrics."""

    def add(
        self,
        owner: Owner,
        session_id: str,
        messages: Sequence[Message],
        *,
        expires_at: NewExpiry = KEPT,
        check: Callable[[], None] = lambda: None,
    ) -> AddResult:
        """Append messages to the session's buffer. Equal (session, sender, role, time, content) is one message.

        `check` is called in the transaction that stores them, and may raise.
        `expires_at` is when the session expires. An address that cannot be read is kept as text, unless it is the file
        of a resource's session. Raises: `EngineRefused` for a deleted session.
        """

    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        """Store title and description of a file that cannot be read. A later `add` of the message replaces them.

        Return False if the file has neither, or the engine stores nothing without the file.
        """

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Turn the session's buffer into memories; none for an unknown session."""

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answer several queries of one user together, in their order, without hidden memories.

        Raises: `InvalidInput` for filters, and for a method that the engine lacks.
        """

    def delete(self, owner: Owner, session_id: str) -> None:
        """Delete a session permanently, as far as the engine can. Later writes to it are refused.

        What a remote has to delete itself is recorded as pending (`remote.deletions`).
        """

    def list(self, owner: Owner, request: ListRequest) -> ListPage:
        """Return a page of the owner's memories, newest first: live ones, or those in the trash."""

    def find(
        self, user_pk: UUID, memory_id: str, *, app_id: str | None = None, project_id: str | None = None
    ) -> Sequence[StoredMemory]:
        """Return the user's memories with that id, hidden ones too: at most one per scope."""

    def replace(self, owner: Owner, wordings: Mapping[str, Wording]) -> None:
        """Replace the wording of memories, given by memory id, in rows and index, in the transaction of the decision.

        Raises: KeyError for a memory that the owner does not have.
        """

    def health(self, timeout_seconds: float) -> Health:
        """Return the state of the engine. Never raises, never exceeds the timeout."""

    def capabilities(self) -> Mapping[str, bool]:
        """Return what is available now: the search methods, `llm` (a language model) and `delete` (for good)."""


class Remote(Protocol):
    """A service outside this database that derives memories. Messages are recorded in the outbox and then sent."""

    def health(self, timeout_seconds: float) -> Health:
        """Return the state of the remote. Never raises, never exceeds the timeout."""

    def capabilities(self) -> Mapping[str, bool]:
        """Return what the remote can do now: the search methods, `llm` (a language model) and `delete` (for good)."""

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Have the remote derive memories from a session, and wait for them; none for an unknown session."""

    def send(self, owner: Owner, session: Session) -> None:
        """Send the next messages of a session that wait. Raises: `EngineUnavailable`, `EngineRefused`."""

    def find_sessions(self, owner: Owner) -> Iterator[int]:
        """Record the owner's sessions that only the remote has; yield the number of new ones after each call."""

    def copy_memories(self, owner: Owner, session: Session) -> int:
        """Copy the engine's memories of a session that the store lacks, for a backfill; return their number."""

    def retry_unconfirmed(self, owner: Owner, session: Session) -> Sequence[Message]:
        """Send unconfirmed messages again; return those that are confirmed now. Raises: `EngineUnavailable`."""

    def check_flush(self, owner: Owner, session: Session) -> int:
        """Copy new memories of an unconfirmed flush and end it if it is complete; return the number of copies."""

    def recover(self, owner: Owner, session: Session) -> int:
        """Copy the memories that a flush reported as without result may have made; return how many there are."""

    def delete_permanently(self, deletions: Sequence[PendingDeletion]) -> int:
        """Delete permanently what the rows name: memories of one owner, or one session or agent.

        Return the number of entries that the engine counts. A repeated call is harmless. Raises: `EngineUnavailable`,
        also while the engine is making memories of the session, and `EngineRefused`.
        """


@dataclass(frozen=True, slots=True)
class Replay:
    """The unsaved memories of a message. `batch_id` is its flush, empty if it was not flushed."""

    batch_id: str
    drafts: tuple[Draft, ...]

    @property
    def reading(self) -> Reading | None:
        """Return what was read of the message's first file."""
        return next((draft.reading for draft in self.drafts if draft.reading), None)

    @property
    def memories(self) -> Sequence[Memory]:
        return [memory for draft in self.drafts for memory in draft.memories]


def require_allowed_address(item: ContentItem) -> None:
    """Check the address that an engine reads the item from, at the moment of use.

    Rows of the journal, of resources and of imported archives may contain addresses that requests could not bring now:
    settings change, and older versions accepted others. Raises: `Unreadable`.
    """
    uri = item.ingest_uri or item.uri
    if uri is None or item.file is not None:
        return
    try:
        check_uri(uri, AddressPolicy.from_settings())
    except BadAddress as error:
        raise Unreadable(_("The address %(cause)s.", cause=error.message)) from None


_P = ParamSpec("_P")
_R = TypeVar("_R")


_Engine = TypeVar("_Engine", bound=Engine)


def engine_call(method: Callable[Concatenate[_Engine, _P], _R]) -> Callable[Concatenate[_Engine, _P], _R]:
    """Count and time the calls of a method in the metrics. Raises: `EngineUnavailable` if the database fails.

    The outcome label is `ok` or the code of the error.
    """
    call = method.__name__

    @wraps(method)
    def measured(self: _Engine, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        started_at, outcome = time.perf_counter(), "ok"
        try:
            with monitoring.span(f"{self.label} {call}"), database_errors():
                return method(self, *args, **kwargs)
        except GatewayError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            monitoring.count_engine_call(self.label, call, outcome, time.perf_counter() - started_at)

    return measured
