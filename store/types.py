"""Value types of memories that the store, the engines and the services share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from documents.mime_types import ContentType

Role = Literal["user", "assistant", "tool"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"]
Method = Literal["keyword", "vector", "hybrid", "agentic"]
MAX_TOP_K: Final = 100
UNCOUNTED_TYPES: Final = frozenset({"profile", "unprocessed_message"})
"""Hits of these types do not count toward `top_k`."""
FILE_SPAN_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memories: one user in one scope. Every call carries it; nothing is ever looked up without."""

    user_pk: UUID
    user_id: str
    app_id: str = "default"
    project_id: str = "default"


@dataclass(frozen=True, slots=True)
class ContentItem:
    """One part of a message: `text`, a local `file`, or a `uri` that the engine reads itself.

    `name` is the file name as the user gave it, `mime_type` what the bytes were found to be. `ingest_uri` is where the
    file of `uri` can be read this once. It may be a secret (a presigned address), so it is never kept, logged or
    repeated in a sentence, and it is no part of what the message says.
    """

    type: ContentType
    text: str | None = None
    file: Path | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    ingest_uri: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """What was said, or a document that was given. `timestamp_ms` is Unix time in milliseconds."""

    sender_id: str
    role: Role
    timestamp_ms: int
    content: tuple[ContentItem, ...]

    @property
    def span_ms(self) -> int:
        """Milliseconds of the session that belong to this message alone: each piece of a file needs its own time."""
        return FILE_SPAN_MS if any(item.file for item in self.content) else 1


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question to one part of a user's memories.

    `session_ids` None asks all of the user's memory; an empty tuple is never sent (nothing asked, nothing found).
    `reader` is one of the user's agents: what was written down for another of them is left out.
    `top_k` is 1–100. `filters` is the checked filter tree of the contract. `with_hidden` ranks among the rest what the
    user hid, for those who ask why it is missing: it says nothing of how an engine answers otherwise.
    """

    query: str
    method: Method = "hybrid"
    top_k: int = 8
    session_ids: tuple[str, ...] | None = None
    agent_id: str | None = None
    reader: str | None = None
    radius: float | None = None
    include_profile: bool = False
    enable_llm_rerank: bool = False
    filters: Mapping[str, Any] | None = None
    with_hidden: bool = False


class Hit(NamedTuple):
    """A memory that was found. `score` is 0..1 within one method, None where the engine gives none.

    `raw` is the engine's own record, in EverOS's shape under both engines. `legs` says why it came:
    score and rank per leg, matched terms.
    """

    memory_id: str
    memory_type: MemoryType
    session_id: str | None
    text: str
    score: float | None
    created_at_ms: int
    raw: dict[str, Any]
    legs: Mapping[str, Any] = MappingProxyType({})

    @property
    def sort_key(self) -> tuple[bool, float, int, str]:
        """Sort the best hit first, hits without a score last, newer before older."""
        return self.score is None, -(self.score or 0.0), -self.created_at_ms, self.memory_id


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`method` is what was really done; `degraded` says in a sentence why it differs from what was asked.

    `stopped_at` is the `top_k` at which the engine stopped though there may be more; None: it found no more, or what it
    left out can never be missed.
    """

    hits: tuple[Hit, ...]
    method: Method
    degraded: str | None = None
    stopped_at: int | None = None


class Wording(NamedTuple):
    """The parts of a memory that an override replaces."""

    text: str
    category: str
    importance: float | None


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as our own table has it: authoritative under the embedded engine, a mirror under an upstream.

    `row` is its key in that table. `hidden_at`: deleted by its user. `is_session_hidden`: its whole session is.
    `batch_id` names the turn that it came with, `seq` its place in the session, `chunk_index` its place in a document;
    `payload` is the engine's own record.
    """

    owner: Owner
    row: int
    memory_id: str
    memory_type: MemoryType
    session_id: str | None
    category: str
    sender_id: str
    agent_id: str
    text: str
    importance: float | None
    created_at_ms: int
    hidden_at: datetime | None
    is_session_hidden: bool
    origin: str = "embedded"
    batch_id: str = ""
    seq: int = 0
    chunk_index: int | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def turn(self) -> tuple[Owner, str | None, str]:
        """What its turn is known by: names come from engines and archives, and two people's may be the same."""
        return self.owner, self.session_id, self.batch_id


class Position(NamedTuple):
    """Where a page of a newest-first list ended."""

    created_at_ms: int
    row: int


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Which memories to list, newest first; None is no condition. `limit` is 1–100, times are Unix milliseconds."""

    session_id: str | None = None
    memory_type: MemoryType | None = None
    category: str | None = None
    agent_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    after: Position | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class ListPage:
    """`following` is where the next page begins, None on the last one."""

    memories: tuple[StoredMemory, ...]
    following: Position | None
