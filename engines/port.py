"""The engine interface: how the gateway stores and finds memories.

`engines.embedded` (this database) and `engines.everos` (EverOS over HTTP) implement `Engine`. Code above imports this
module and `engines.registry` only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from store.models import Memory, Session
from store.storage import Draft
from store.types import ListPage, ListRequest, Message, Owner, SearchRequest, SearchResult, StoredMemory, Wording

FlushStatus = Literal["extracted", "no_extraction"]


@dataclass(frozen=True, slots=True)
class AddResult:
    """`status` is the engine's own word ("accumulated", "extracted"), `request_id` the engine's trace id."""

    status: str
    message_count: int
    request_id: str


@dataclass(frozen=True, slots=True)
class FlushResult:
    """`searchable_at_ms` is when the new memories can be found (None: not known yet)."""

    status: FlushStatus
    memory_count: int
    request_id: str
    searchable_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Health:
    """`status` is "ok" or "unavailable"; `data` is the engine's own answer, `error` a cause a person understands."""

    status: Literal["ok", "unavailable"]
    base_url: str | None
    data: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


class Engine(Protocol):
    """The calls of every engine. All raise `EngineUnavailable`, `EngineRefused` and their subclasses, nothing else."""

    label: str
    """"embedded" or "upstream", for pages and metrics."""
    is_external: bool
    """True if memories are kept outside this database: outcomes can be unknown and are confirmed later, documents are
    read there, and messages become memories under new ids."""

    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        """Append to the session's buffer. The same (session, sender, role, time, content) is one message."""

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Turn the session's buffer into memories."""

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answer several queries of one user together, in their order."""

    def delete(self, owner: Owner, session_id: str) -> None:
        """Delete a session permanently, as far as the engine can. Later writes to it are refused."""

    def list(self, owner: Owner, request: ListRequest) -> ListPage:
        """Return the owner's active memories, newest first."""

    def find(
        self, user_pk: UUID, memory_id: str, *, app_id: str | None = None, project_id: str | None = None
    ) -> Sequence[StoredMemory]:
        """Return the user's memories of that id, hidden ones too: one for each scope that has it."""

    # The next three use this database only, so they can run in the transaction of the decision.

    def hide(self, owner: Owner, memory_ids: Collection[str], at: datetime | None) -> None:
        """Leave memories out of every answer until they are shown again (`at` None)."""

    def hide_sessions(self, owner: Owner, session_ids: Collection[str], at: datetime | None) -> Set[str]:
        """Do the same for whole sessions. Return the ids of those that exist."""

    def replace(self, owner: Owner, wordings: Mapping[str, Wording]) -> None:
        """Give memories, by memory id, another wording and index it in place of the old one.

        Raises: KeyError for a memory that the owner does not have.
        """

    def health(self, timeout_seconds: float) -> Health:
        """Return whether the engine can be reached. Never raises, never exceeds the timeout."""

    def capabilities(self) -> Mapping[str, bool]:
        """Return what works now: `keyword`, `vector`, `hybrid`, `agentic`, `llm`, `delete`."""


class ExternalEngine(Engine, Protocol):
    """An engine outside this database. What it is sent is journalled first and confirmed afterwards."""

    def find_sessions(self, owner: Owner) -> Iterator[int]:
        """Record sessions of the owner that the engine had before the gateway. Yield counts as it goes."""

    def copy_memories(self, owner: Owner, session: Session) -> int:
        """Copy what the engine made of a session and the store lacks. Return how many memories were copied."""

    def resend(self, owner: Owner, session: Session) -> Sequence[Message]:
        """Send unconfirmed messages again. Return those that are confirmed now. Raises: `EngineUnavailable`."""

    def look_again(self, owner: Owner, session: Session) -> int:
        """Copy what the engine shows by now of a flush whose outcome is unknown. Return how many memories."""

    def recover(self, owner: Owner, session: Session) -> int:
        """Copy what the engine lists of a session that was settled as having no memories. Return how many it has."""

    def stage(self, owner: Owner, staging: Session, messages: Sequence[Message], waiting: Sequence[Message]) -> int:
        """Add and flush `messages` in a staging session, then add `waiting`. Return about how many calls it took.

        Raises: `EngineRefused` if the engine makes nothing of the messages.
        """


@dataclass(frozen=True, slots=True)
class Replay:
    """A message as unsaved memories. `batch_id` is its flush, empty for none.

    `is_whole` is False if something was left out, as pictures, sounds and unreadable files are.
    """

    batch_id: str
    drafts: tuple[Draft, ...]
    is_whole: bool

    @property
    def memories(self) -> Sequence[Memory]:
        return [memory for draft in self.drafts for memory in draft.memories]


class LocalEngine(Engine, Protocol):
    """The engine of this database. Moves between engines replay messages into it."""

    def memory_ids(self, owner: Owner, session_id: str, message: Message) -> Sequence[str]:
        """Return the first memory id of each part of a message."""

    def replay(self, owner: Owner, session_id: str, message: Message, batch_id: str) -> Replay:
        """Read a message's documents and prepare its memories, outside a transaction. Raises: `EngineUnavailable`."""

    def save_replays(self, owner: Owner, session: Session, replays: Iterable[Replay]) -> None:
        """Save and index memories at the end of a locked session. Call inside a transaction."""

    def adopt(self, owner: Owner, memories: Sequence[Memory]) -> None:
        """Make copies of an external engine's memories local under their ids. Call inside a transaction."""

    def queue_extraction(self, user_pk: UUID | None = None) -> None:
        """Queue every flushed message that no memory was derived from for extraction."""

    def extract(
        self, seconds: float, *, clock: Callable[[], datetime] = ..., should_end: Callable[[], bool] = ...
    ) -> int:
        """Extract pending messages for about `seconds`. Return how many answers of the model were used."""
