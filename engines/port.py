"""The engine interface: how the gateway stores and finds memories.

`engines.embedded` (this database) and `engines.everos` (EverOS over HTTP) implement `Engine`. Code above imports this
module and `engines.registry` only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

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
    """Errors of every call: `EngineUnavailable`, `EngineRefused` and their children, nothing else."""

    name: str

    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        """Appends to the session's buffer; the same (session, sender, role, time, content) is one message."""

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        """Turns the session's buffer into memories."""

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Answers several questions of one user together, in their order."""

    def delete(self, owner: Owner, session_id: str) -> None:
        """Forgets a session for good as far as the engine can; late writes to it are refused."""

    def list(self, owner: Owner, request: ListRequest) -> ListPage:
        """The owner's live memories, newest first."""

    def find(
        self, user_pk: UUID, memory_id: str, *, app_id: str | None = None, project_id: str | None = None
    ) -> Sequence[StoredMemory]:
        """The user's memories of that id, hidden ones too: one for each scope that has it."""

    # The next three call nothing outside this database, so that they can share the transaction of whoever decides.

    def hide(self, owner: Owner, memory_ids: Collection[str], at: datetime | None) -> None:
        """Leave memories out of every answer until they are shown again (`at` None)."""

    def hide_sessions(self, owner: Owner, session_ids: Collection[str], at: datetime | None) -> Set[str]:
        """Do the same for whole sessions. Return the ids of those that exist."""

    def replace(self, owner: Owner, wordings: Mapping[str, Wording]) -> None:
        """Give memories, by memory id, another wording and index it in place of the old one.

        Raises: KeyError for a memory that the owner does not have.
        """

    def health(self, timeout_seconds: float) -> Health:
        """Whether the engine can be reached; never raises, never takes longer than the timeout."""

    def capabilities(self) -> Mapping[str, bool]:
        """What works now: `keyword`, `vector`, `hybrid`, `agentic`, `llm`, `delete`."""
