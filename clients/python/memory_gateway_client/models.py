"""The gateway's answers, and the messages that it takes.

The project's tests compare every field with the gateway's OpenAPI document. Fields that a newer gateway adds are
ignored. Texts such as `status` are `str`, because a newer gateway may have more values.
"""

import time
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from memory_gateway_client.errors import FieldProblem

Category = Literal[
    "user_memory_fact",
    "user_memory_preference",
    "user_memory_decision",
    "self_improving_learnings",
    "self_improving_errors",
    "self_improving_feature_requests",
    "full_context_user",
    "full_context_assistant",
    "full_context_system",
    "full_context_tool",
    "full_context_tool_result",
    "full_context_others",
]
ContentType = Literal["text", "image", "audio", "pdf", "html", "doc"]
DeliveryStatus = Literal["pending", "delivered", "failed"]
EventType = Literal[
    "resource.created",
    "resource.extracted",
    "resource.empty",
    "resource.failed",
    "resource.deleted",
    "resource.restored",
    "remote.refused",
    "session.flushed",
    "session.deleted",
    "session.restored",
    "memory.added",
    "memory.deleted",
    "memory.restored",
    "memory.overridden",
    "memory.override_undone",
]
Kind = Literal["user", "work"]
MemoryType = Literal["episode", "profile", "agent_case", "agent_skill", "unprocessed_message"]
Method = Literal["keyword", "vector", "hybrid", "agentic"]
Role = Literal["user", "assistant", "tool", "system"]
Scope = Literal["current_chat", "resources", "all_user_memory"]


class Model(BaseModel):
    """Base class of all models."""

    model_config = ConfigDict(frozen=True)


class Versioned(Model):  # noqa: PLW1641  pydantic gives frozen models a hash of their fields
    """Base class of models whose version an answer names."""

    _etag: str = PrivateAttr("")

    @property
    def etag(self) -> str:
        """The version, for `if_match` of a change. Empty for an item of a list."""
        return self._etag

    def __eq__(self, other: object) -> bool:
        """Compare the fields: an item of a list has no version."""
        return isinstance(other, type(self)) and self.model_dump() == other.model_dump()

    def of_version(self, etag: str) -> Self:
        """Set the version, and return the model."""
        self._etag = etag
        return self


# --- messages --------------------------------------------------------------------------------------------------------


class ContentItem(Model):
    """A part of a message: a text, or a file at `uri` or as `base64`."""

    type: ContentType
    text: str | None = None
    uri: str | None = None
    base64: str | None = None
    ext: str | None = None
    name: str | None = None
    extras: dict[str, Any] | None = None


class CalledFunction(Model):
    """A tool and its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(Model):
    """A call of a tool by an agent. The tool's answer names its `id` as `tool_call_id`."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


class Participant(Model):
    """A person other than the user who speaks in a group chat."""

    id: str
    name: str | None = None


class Message(Model):
    """A message of a session.

    `sender_id` is the id of the user or of a participant if the role is `user`, else the agent's. `content` may be
    empty if there are `tool_calls`. `timestamp` is in Unix milliseconds. The same message with the same timestamp is
    stored once.
    """

    sender_id: str
    role: Role
    content: str | list[ContentItem] | None = None
    sender_name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    timestamp: int = Field(default_factory=lambda: int(time.time() * 1000))


class AddedMessages(Model):
    """`status` is `accumulated` if the messages wait for a flush."""

    status: str
    message_count: int


class AddBackend(Model):
    """The engine's answer to added messages."""

    request_id: str
    data: AddedMessages


class Added(Model):
    """The answer to `sessions.add`. `warnings` names addresses that were kept as text and not read."""

    session_id: str
    backend: AddBackend
    warnings: list[FieldProblem] | None = None


class FlushedMessages(Model):
    """`status` is `extracted`, or `no_extraction` if no message waited."""

    status: str
    memory_count: int
    searchable_at: datetime | None


class FlushBackend(Model):
    """The engine's answer to a flush."""

    request_id: str
    data: FlushedMessages


class Flushed(Model):
    """The answer to `sessions.flush`. `degraded` says why a remote did not derive memories yet."""

    session_id: str
    backend: FlushBackend
    degraded: str | None = None


class RemoteState(Model):
    """The state of a session or file at a remote: `off`, `pending`, `sent`, `derived`, or `refused` with `detail`."""

    state: str
    since: datetime | None
    detail: str | None


class Session(Versioned):
    """A session. `memories` and `pending` are counts; `pending` messages wait for a flush."""

    session_id: str
    kind: str
    memories: int
    pending: int
    created_at: datetime
    flushed_at: datetime | None
    searchable_at: datetime | None
    deleted_at: datetime | None
    remote: RemoteState


class SessionDecision(Model):
    """A session that was deleted or restored."""

    session_id: str
    tombstone_id: str
    status: str


# --- memories --------------------------------------------------------------------------------------------------------


class Memory(Model):
    """A stored memory. `override_id` is set if a person or program replaced its text."""

    id: str
    memory_type: str
    session_id: str | None
    app_id: str
    project_id: str
    text: str
    category: str
    importance: float | None
    sender_id: str
    sender_name: str | None
    role: str | None
    tool_calls: list[ToolCall] | None
    tool_call_id: str | None
    agent_id: str
    timestamp_ms: int
    override_id: str | None
    deleted_at: datetime | None


class RestoredMemory(Model):
    """A memory that was restored. `tombstone_id` is None if a newer memory had superseded it."""

    memory_id: str
    tombstone_id: str | None
    status: str


class SenderDeletion(Model):
    """The number of a sender's memories that were moved to the trash."""

    sender_id: str
    deleted_count: int


class MemoryEvent(Model):
    """A decision on a memory, or its original text."""

    at: datetime
    action: str
    by: str
    override_id: str | None = None
    tombstone_id: str | None = None
    text: str | None = None
    category: str | None = None
    importance: float | None = None
    reason: str | None = None
    superseded_by: str | None = None


class MemoryDetail(Versioned):
    """A memory with its history."""

    memory: Memory
    history: list[MemoryEvent]


class Attachment(Model):
    """A file that belongs to a search result."""

    type: str
    name: str
    internal_uri: str


class Neighbor(Model):
    """A memory before or after a search result."""

    id: str
    sender_id: str
    text: str
    timestamp_ms: int


class Context(Model):
    """The memories around a search result."""

    before: list[Neighbor]
    after: list[Neighbor]


class Explanation(Model):
    """The ranks and matched terms of a search result, by leg."""

    legs: dict[str, Any]
    override_id: str | None


class Place(Model):
    """The place of a passage in its file: page, box on the page as fractions, or seconds of a recording."""

    page: int | None
    heading: str | None
    box: list[float] | None
    second: float | None
    until_second: float | None


class SearchResult(Model):
    """A memory that a search found. Scores compare within one answer only."""

    id: str
    memory_type: str
    session_id: str | None
    text: str
    score: float | None
    source_scope: str
    resource_id: str | None
    resource_uri: str | None
    attachments: list[Attachment]
    place: Place | None
    raw: dict[str, Any]
    explain: Explanation | None = None
    context: Context | None = None


class ScopeReport(Model):
    """Statistics of one search scope. `degraded` says why another method ran."""

    asked: int
    sessions: int | None
    found: int
    hidden: int
    replaced: int
    degraded: str | None
    exhausted: bool
    ms: float


class SearchReport(Model):
    """The method that ran, and the statistics of each search scope. `hint` says how to find more."""

    method: str
    scopes: dict[str, ScopeReport]
    hint: str | None = None


class SearchAnswer(Model):
    """The results, best first."""

    results: list[SearchResult]
    meta: SearchReport


class MemoryDecision(Model):
    """A memory that was deleted or restored."""

    memory_id: str
    tombstone_id: str
    status: str


class Override(Versioned):
    """A replacement of a memory's text, category or importance."""

    memory_id: str
    override_id: str
    status: str


class TrashItem(Model):
    """A deleted memory or session."""

    tombstone_id: str
    kind: str
    memory_id: str | None
    session_id: str | None
    memory_type: str | None
    text: str | None
    reason: str
    deleted_at: datetime


# --- resources -------------------------------------------------------------------------------------------------------


class Resource(Versioned):
    """A file. `status` is `extracted`, `ingesting`, `empty`, `failed` or, in the trash, `deleted`."""

    resource_id: str
    user_id: str
    filename: str
    content_type: str
    mime_type: str | None
    uri: str
    session_id: str
    status: str
    title: str | None
    description: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    error_message: str | None
    size_bytes: int | None
    sha256: str | None
    app_id: str
    project_id: str
    remote: RemoteState


class ResourceStatus(Model):
    """The answer to an upload, a deletion or a restoration."""

    resource_id: str
    session_id: str
    uri: str
    status: str


class RegisteredResource(ResourceStatus):
    """The answer to a registration. `warnings` names fields that were ignored."""

    warnings: list[FieldProblem] | None = None


# --- profiles --------------------------------------------------------------------------------------------------------


class Profile(Model):
    """A profile document, null while an operator has disabled it. Send `etag` as `if_match` with a change."""

    content: dict[str, Any] | None
    etag: str


class Profiles(Model):
    """Both profile documents."""

    user_memory: dict[str, Any] | None
    work_memory: dict[str, Any] | None


class ProfileChange(Model):
    """A change of a profile document. Each made a version."""

    version: int
    action: str
    by: str
    agent_id: str | None
    at: datetime


class ProfileVersion(ProfileChange):
    """A profile document as it was after a change."""

    content: dict[str, Any] | None


class Prompt(Model):
    """A text for the system prompt."""

    agent: str
    language: str
    prompt: str
    estimated_tokens: int


# --- users and keys --------------------------------------------------------------------------------------------------


class NewUser(Model):
    """A created user with the first API key, which is shown only once."""

    user_id: str
    user_key: str
    created_at: datetime


class Key(Model):
    """An API key without its plaintext."""

    key_id: UUID
    label: str
    created_at: datetime
    expires_at: datetime | None
    prefix: str
    revoked_at: datetime | None
    last_used_at: datetime | None
    is_live: bool
    is_current: bool


class NewKey(Model):
    """A created API key. `user_key` is shown only once."""

    key_id: UUID
    label: str
    created_at: datetime
    expires_at: datetime | None
    user_key: str


class RotatedKey(NewKey):
    """A created API key, and the end of the one before."""

    previous_key_id: UUID
    previous_expires_at: datetime


class RevokedKey(Model):
    """An API key that ended."""

    key_id: UUID
    status: str


# --- webhooks --------------------------------------------------------------------------------------------------------


class Webhook(Model):
    """An address that gets the user's events, without its secret."""

    webhook_id: UUID
    url: str
    events: list[str]
    is_enabled: bool
    created_at: datetime
    previous_secret_expires_at: datetime | None


class NewWebhook(Webhook):
    """A webhook with a new secret, which is shown only once."""

    secret: str


class DeletedWebhook(Model):
    """A webhook that was deleted."""

    webhook_id: UUID
    status: str


class WebhookDelivery(Model):
    """An event for a webhook: `pending`, `delivered` or `failed`."""

    delivery_id: str
    event: str
    sequence: int | None
    status: str
    attempts: int
    status_code: int | None
    error: str | None
    created_at: datetime
    last_tried_at: datetime | None
    next_try_at: datetime | None


# --- erasure ---------------------------------------------------------------------------------------------------------


class Eraser(Model):
    """The caller that erased a user."""

    kind: str
    name: str


class ErasedFiles(Model):
    """The number and size of erased files."""

    count: int
    bytes: int


class RemoteDeletions(Model):
    """The deletions that the remote was asked for: accepted ones, the entries that it counted, and pending ones."""

    accepted: int
    entries: int
    pending: int


class RemoteResidue(Model):
    """Data that remotes held. They keep what `deletions` does not name as accepted."""

    base_urls: list[str]
    user_id: str
    agents: str
    sessions: list[str]
    withdrawn: int
    sent: int
    memories: int
    deletions: RemoteDeletions | None


class ErasureReceipt(Model):
    """The receipt of an erasure. Keep it: nothing else names the user."""

    receipt_id: str
    user_id: str
    begun_at: datetime
    erased_at: datetime
    by: Eraser
    removed: dict[str, int]
    files: ErasedFiles
    remote: RemoteResidue | None
    residue: list[str]


# --- health ----------------------------------------------------------------------------------------------------------


class ApiHealth(Model):
    """The state of the gateway's process."""

    status: str


class EngineHealth(Model):
    """The state of the memory engine. `base_url` is null for the embedded engine.

    `outbox` counts the messages that wait for EverOS (`waiting`, `oldest_seconds`) and that it `refused`.
    """

    status: str
    base_url: str | None
    data: dict[str, Any] | None = None
    error: str | None = None
    outbox: dict[str, int] | None = None


class Health(Model):
    """The state of the gateway: `ok` or `degraded`."""

    status: str
    api: ApiHealth
    backend: EngineHealth
    problems: list[str] | None = None
