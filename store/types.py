"""Value types of memories that the store, the engines and the services share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import UUID

from core.ids import remote_name, session_name
from core.logs import redact_text
from core.persistence.file_keys import FileKey
from documents.mime_types import ContentType

Role = Literal["user", "assistant", "tool", "system"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"]
Method = Literal["keyword", "vector", "hybrid", "agentic"]
MAX_TOP_K: Final = 100
UNCOUNTED_TYPES: Final = frozenset({"profile", "unprocessed_message"})
"""Hits of these types do not count toward `top_k`."""
PARTICIPANT_CATEGORY: Final = "full_context_others"
ENVELOPE: Final = ("sender_name", "tool_calls", "tool_call_id", "is_participant", "utc_offset", "tags", "metadata")
"""The optional fields of a message, which the payloads of memories hold beside `role`."""
TAGS: Final = "tags"
METADATA: Final = "metadata"
EXTERNAL_ID: Final = "external_id"
"""The fields of a memory's payload that the caller gave. No remote gets them."""
_LABELS: Final[Mapping[str, type]] = {TAGS: list, METADATA: dict, EXTERNAL_ID: str}


def labels_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the caller gave; only those that are there."""
    return {name: value for name, kind in _LABELS.items() if isinstance(value := payload.get(name), kind) and value}


NOT_REPLACED: Final = "not_replaced"
"""The field of a memory's payload that holds a person's decision: no newer memory replaces it."""
FILE_SPAN_MS: Final = 10_000
"""Milliseconds reserved in a session for the parts of one file, as each part needs a separate time."""


class Kept(Enum):
    """The value of an `expires_at` that a call leaves as it is."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT
NewExpiry = datetime | None | Kept
"""A new time, None for never, or `KEPT`."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of memories: one user in one scope. Every query of memories is limited to an owner."""

    user_pk: UUID
    user_id: str
    app_id: str = "default"
    project_id: str = "default"

    @property
    def session_name(self) -> str:
        """The name of the user in session ids."""
        return session_name(self.user_pk, self.user_id)

    @property
    def remote_name(self) -> str:
        """The name of the user at a remote."""
        return remote_name(self.user_pk, self.user_id)

    @property
    def scope(self) -> dict[str, str]:
        """The scope, as an event names it."""
        return {"app_id": self.app_id, "project_id": self.project_id}


@dataclass(frozen=True, slots=True)
class ContentItem:
    """One part of a message: `text`, a stored or temporary `file`, or a `uri` that the engine reads itself.

    `name` is the file name that the user gave, `mime_type` the type detected from the bytes. `ingest_uri` is a one-time
    address of the file of `uri`. It may be a secret (a presigned address), so it is never stored, logged or repeated in
    a message, and it is not part of the content that comparisons and memory ids use.
    """

    type: ContentType
    text: str | None = None
    file: FileKey | Path | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    ingest_uri: str | None = field(default=None, repr=False, compare=False)

    @property
    def sha256(self) -> str:
        """The SHA-256 in the key of a message's file; empty without a file."""
        return PurePath(self.file).parent.name if self.file else ""

    def is_of_resource(self, session_kind: str) -> bool:
        """Return True for the file of a resource, in the session of that kind that holds nothing else."""
        return session_kind == "resource" and "resource_id" in self.extras

    def as_text(self) -> "ContentItem":
        """Return the name and the address as text, for a file that is not read. Secrets in the address are masked."""
        uri = self.uri or ""
        name = self.name or unquote(urlsplit(uri).path.rpartition("/")[2])
        file = f"[{self.type.upper()}: {name}] {redact_text(uri)}".rstrip()
        return ContentItem("text", text=f"{self.text}\n{file}" if self.text else file)


@dataclass(frozen=True, slots=True)
class Message:
    """A message or a document. `timestamp_ms` is Unix time in milliseconds.

    `tool_calls` are as OpenAI's API writes them: `{"id", "type", "function": {"name", "arguments"}}`. `is_participant`:
    a person other than the user wrote it, with the role `user`. It is a memory of the user nevertheless.
    `utc_offset`: the minutes from UTC where and when it was written, which decide on its day. `expires_at` is when its
    memories expire.
    """

    sender_id: str
    role: Role
    timestamp_ms: int
    content: tuple[ContentItem, ...]
    sender_name: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    tool_call_id: str | None = None
    is_participant: bool = False
    utc_offset: int = 0
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None

    @property
    def envelope(self) -> dict[str, Any]:
        """Return everything except sender, time and content, as JSON data; without absent fields."""
        return {"role": self.role} | {name: value for name in ENVELOPE if (value := getattr(self, name))}

    @property
    def call_identity(self) -> list[Any]:
        """Return what tells two messages of the same words apart: their tool calls; an empty list without any."""
        return [list(self.tool_calls), self.tool_call_id] if self.tool_calls or self.tool_call_id else []

    @property
    def category(self) -> str:
        """Return the category of the message as a whole."""
        if self.is_participant:
            return PARTICIPANT_CATEGORY
        if self.role == "assistant" and self.tool_calls:
            return "full_context_tool"
        if self.role == "tool" and self.tool_call_id:
            return "full_context_tool_result"
        return f"full_context_{self.role}"

    @property
    def text(self) -> str:
        """Return the texts of the message, and the names or addresses of its files, one per line."""
        return "\n".join(item.text or item.name or item.uri or "" for item in self.content)

    @property
    def span_ms(self) -> int:
        """Return the milliseconds of the session that this message occupies."""
        return FILE_SPAN_MS if any(item.file for item in self.content) else 1


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query over a part of a user's memories.

    `session_ids` None searches all sessions; an empty tuple is not allowed. `reader` is one of the user's agents:
    manual memories for other agents are left out. `read_from` names the reader's session: other incognito ones are
    left out. `top_k` is 1–100. `filters` is a validated filter tree (`store.filters`). `with_hidden` includes
    memories that the user hid. `min_relevance` 0 switches the floor off. `as_of`: see `store.as_of`. Words for a time
    are read as on `now` (None: now) in `zone` (an IANA name; empty: the installation's). `began_at`
    (`time.monotonic`) is when the caller began to wait.
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
    min_relevance: float | None = None
    now: datetime | None = None
    as_of: datetime | None = None
    zone: str = ""
    began_at: float | None = field(default=None, compare=False)
    read_from: tuple[str, ...] = ()


class Hit(NamedTuple):
    """A memory that was found. `score` is 0..1, comparable within one method; None if the engine gives none.

    `raw` is the record without file contents, in the remote's format also for memories of ours. `legs` explains the
    hit: score and rank per leg, and matched terms. `relevance` is the share of the question that the memory and its
    context cover, 0..1 for all methods; None if unknown. The other fields are those of the row, empty for a memory
    of the remote alone. `is_kept`: a person decided that nothing replaces it. `labels`: see `labels_of`. `row` is its
    primary key.
    """

    memory_id: str
    memory_type: MemoryType
    session_id: str | None
    text: str
    score: float | None
    created_at_ms: int
    raw: dict[str, Any]
    legs: Mapping[str, Any] = MappingProxyType({})
    relevance: float | None = None
    origin: str = ""
    role: str = ""
    sender_id: str = ""
    sender_name: str = ""
    category: str = ""
    agent_id: str = ""
    is_passage: bool = False
    is_imported: bool = False
    is_kept: bool = False
    labels: Mapping[str, Any] = MappingProxyType({})
    row: int | None = None

    @property
    def is_of_remote(self) -> bool:
        """Return True if the remote found it."""
        return "remote" in self.legs

    @property
    def sort_key(self) -> tuple[bool, float, int, str]:
        """Return a key that sorts the best hit first, newer hits before older ones, hits without a score last."""
        return self.score is None, -(self.score or 0.0), -self.created_at_ms, self.memory_id


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a request. `method` is the method used.

    `degraded` explains why it differs from the requested one, or why hits may be missing.

    `stopped_at` is the `top_k` at which the engine stopped although there may be more hits; None if there are no more,
    or none that a caller needs. `corrected` are the misspelled words of the query, with those that were searched
    instead. `is_partly_known`: the user knows only a part of what is asked for, so that few hits are enough.
    """

    hits: tuple[Hit, ...]
    method: Method
    degraded: str | None = None
    stopped_at: int | None = None
    corrected: Mapping[str, str] = field(default_factory=dict)
    is_partly_known: bool = False


class Wording(NamedTuple):
    """The parts of a memory that an override replaces."""

    text: str
    category: str
    importance: float | None


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A row of `store.models.Memory`, which describes most fields.

    `row` is its primary key. `is_session_hidden`: its whole session is deleted. `is_incognito`: only its
    session shows it. `batch_id` names its turn, `seq` its
    position in the session, `chunk_index` its position in a document.
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
    state: str
    state_since: datetime | None
    is_session_hidden: bool
    origin: str = "embedded"
    batch_id: str = ""
    seq: int = 0
    chunk_index: int | None = None
    original_text: str = ""
    sources: Sequence[str] = ()
    supersedes: Sequence[str] = ()
    is_covered: bool = False
    payload: Mapping[str, Any] = field(default_factory=dict)
    expires_at: datetime | None = None
    is_incognito: bool = False

    @property
    def is_live(self) -> bool:
        """Return True if the memory is not deleted itself; its session may be."""
        return self.state == "live"

    @property
    def envelope(self) -> Mapping[str, Any]:
        """Return the role, sender name and tool calls of the memory's message; empty for memories without one."""
        return self.payload

    @property
    def labels(self) -> dict[str, Any]:
        """Return the tags, the metadata and the external id of the memory; only those that it has."""
        return labels_of(self.payload)

    @property
    def turn(self) -> tuple[Owner, str | None, str]:
        """Return the key of the memory's turn, because two users may have equal batch ids."""
        return self.owner, self.session_id, self.batch_id


class Position(NamedTuple):
    """The end of a page of a newest-first list."""

    created_at_ms: int
    row: int


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A query for a list of memories, newest first; None is no condition.

    `limit` is 1–100, times are Unix milliseconds. `reader` is one of the user's agents: manual memories for other
    agents are left out. `is_deleted` lists the memories in the trash instead of the others, `as_of` what was current at
    that time.
    """

    session_id: str | None = None
    memory_type: MemoryType | None = None
    category: str | None = None
    agent_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    reader: str | None = None
    is_deleted: bool = False
    sender_id: str | None = None
    after: Position | None = None
    limit: int = 20
    filters: Mapping[str, Any] | None = None
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list. `following` is the position that the next page begins at, None on the last one."""

    memories: tuple[StoredMemory, ...]
    following: Position | None
