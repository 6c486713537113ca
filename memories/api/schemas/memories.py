"""Request and response shapes of stored memories, the trash and sessions."""

from typing import Annotated, Any, Literal

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from accounts.api.schemas import (
    AppId,
    AuthenticatedBody,
    AuthenticatedQuery,
    ChatId,
    MomentOrDay,
    NextCursor,
    ProjectId,
    RemoteView,
    ScopedBody,
    ScopedQuery,
    Time,
)
from core import pagination
from core.errors import InvalidInput
from core.ids import Name, SessionId, UserId
from core.labels import Metadata, Tags
from core.messages import Translatable as _
from core.shapes import shared
from memories.api.schemas.messages import ToolCall
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from store.categories import Category
from store.filters import MAX_MS
from store.types import METADATA, TAGS, ListRequest, MemoryType, Position, Role

MAX_TEXT_CHARS = 100_000
MAX_REASON_CHARS = 1000
_SCOPE = "Required only if the id exists in several scopes."
_APP_ID = f"The memory's application. {_SCOPE}"
_PROJECT_ID = f"The memory's project. {_SCOPE}"
_REASON = "Why it is deleted, for the trash and the history."
_MEMORY_TYPE = (
    "The memory's type: `episode` (a message, a passage of a file or a fact), `unprocessed_message` (a message before "
    "its flush), or `profile`, `agent_case` and `agent_skill` (made by a model)."
)
_COPIES = "Copies are memories of the same text, sender and role, which searches show as one."
_DECIDED = "`deleted`, or `restored` after a restoration."

Reason = Annotated[str, Field(max_length=MAX_REASON_CHARS)]

# The parameters of tools too, which say some of them in other words.
Importance = Annotated[float, Field(ge=0, le=1)]
Milliseconds = Annotated[int, Field(ge=0, le=MAX_MS)]
PageSize = Annotated[int, Field(ge=1, le=100)]
DEFAULT_PAGE_SIZE = 20
SessionFilter = Annotated[
    SessionId | None, Field(description="Only memories of this session.", examples=["chat:c_456"])
]
TypeFilter = Annotated[MemoryType | None, Field(description="Only memories of this type.")]
SenderFilter = Annotated[UserId | None, Field(description="Only messages and files of this sender.")]
Since = Annotated[Milliseconds | None, Field(description="Only memories since this time, in Unix ms.")]
Until = Annotated[Milliseconds | None, Field(description="Only memories before this time, in Unix ms.")]
Cursor = Annotated[
    str | None,
    Field(max_length=200, description="The `next_cursor` of the page before. Absent: the first page."),
]

MemoryId = Annotated[str, Field(description="The id of the memory.", examples=["613144a3-5245-5052-80e6-47a15e6817f1"])]
KindOfMemory = Annotated[MemoryType, Field(description=_MEMORY_TYPE, examples=["episode"])]
SessionKey = Annotated[
    str | None, Field(description="The memory's session; null for memories without one.", examples=["chat:c_456"])
]
TombstoneId = Annotated[
    str, Field(description="The id of the deletion.", examples=["t_3dac2a628a8ba05130fbc728ba767c0c"])
]
CopyIds = Annotated[
    list[str] | None,
    Field(description="The ids of its copies that are in the same state. Absent unless `copies` is true."),
]
CopyCount = Annotated[int | None, Field(description="The number of these copies. Absent unless `copies` is true.")]
OverrideId = Annotated[
    str, Field(description="The id of the override.", examples=["o_ddbaee472c597a5f32000746dc22019b"])
]


MemoryTags = Annotated[list[str] | None, Field(description="The tags. Absent without any.", examples=[None])]
MemoryMetadata = Annotated[
    dict[str, Any] | None,
    Field(description="The metadata that your application gave. Absent without any.", examples=[None]),
]


ExternalIdOut = Annotated[
    str | None, Field(description="The id that your application gave it. Absent without one.", examples=[None])
]


def _read_filters(value: object) -> object:
    """Return the object that a parameter of the address holds as JSON. Raises: ValueError."""
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        raise ValueError(_('must be an object as JSON, such as {"tags": ["style"]}')) from None


JsonFilters = Annotated[
    dict[str, Any] | None,
    BeforeValidator(_read_filters),
    WithJsonSchema({"type": "string", "contentMediaType": "application/json"}),
    Field(
        description="Conditions that memories must meet, as JSON: the `filters` of `POST /memories/search`, such as "
        '`{"tags": ["style"]}`.',
    ),
]


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(_("must contain text; to remove the memory, delete it"))
    return text


OverrideText = Annotated[
    str,
    Field(min_length=1, max_length=MAX_TEXT_CHARS, json_schema_extra={"pattern": r"\S"}),
    AfterValidator(_check_not_blank),
]


AsOf = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=64,
        description="Answer as of this time: an ISO 8601 time, `2026-06-30` (the end of the day where the caller "
        "is) or words such as `last month`. Of what is current or superseded now, what was stored by then and current "
        "then, in the words of then. Texts that were deleted, corrected or have expired since do not come back. Tags "
        "and metadata are those of today.",
    ),
]


def position_of(cursor: str | None) -> Position | None:
    """Return the position that a page of memories begins at. Raises: `InvalidInput`."""
    return None if cursor is None else Position(*pagination.decode_numbers(cursor))


class PageQuery(ScopedQuery):
    """A page of a newest-first list."""

    limit: PageSize = Field(DEFAULT_PAGE_SIZE, description="The size of a page.")
    cursor: Cursor = None


class MemoryQuery(AuthenticatedQuery):
    """The scope of a memory, needed only if several of the caller's scopes have the same id."""

    app_id: Name | None = Field(None, description=_APP_ID)
    project_id: Name | None = Field(None, description=_PROJECT_ID)

    def memory_ref(self, memory_id: str) -> MemoryRef:
        return MemoryRef(memory_id, None, self.app_id, self.project_id)


class MemoryAtQuery(MemoryQuery):
    """The session and scope of a memory, and a time."""

    session_id: SessionId | None = Field(
        None, description="The memory's session, to check that it is the right one. Required for an incognito one."
    )
    as_of: AsOf = None


class MemoryBody(AuthenticatedBody):
    """The session and scope of a memory, to tell equal ids apart."""

    session_id: SessionId | None = Field(None, description="The memory's session, to check that it is the right one.")
    app_id: Name | None = Field(None, description=_APP_ID)
    project_id: Name | None = Field(None, description=_PROJECT_ID)

    def memory_ref(self, memory_id: str) -> MemoryRef:
        return MemoryRef(memory_id, self.session_id, self.app_id, self.project_id)


class MemoryRestoreBody(MemoryBody):
    """The session and scope of a memory, and when it expires after it is restored."""

    expires_at: MomentOrDay | None = Field(
        None,
        description="When it expires again, a time or the last day; null for never. Required for a memory that has "
        "expired. Absent: as before.",
        examples=[None],
    )


class DeletionQuery(AuthenticatedQuery):
    """The choice to delete the copies of the memory with it."""

    copies: bool = Field(False, description=f"True deletes its copies too. {_COPIES}")


class UndoQuery(MemoryQuery):
    """The scope of a memory, and the choice to undo the overrides of its copies with its own."""

    copies: bool = Field(
        False, description=f"True undoes the overrides of its copies too that had the same original text. {_COPIES}"
    )


class OverrideBody(MemoryBody):
    """The parts of a memory to override: one of `override_text`, `category`, `importance`; or what else changes."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["override_text"], "properties": {"override_text": {"type": "string"}}},
                {"required": ["category"], "properties": {"category": {"type": "string"}}},
                {"required": ["importance"], "properties": {"importance": {"type": "number"}}},
                {"required": ["expires_at"], "properties": {"expires_at": {"type": ["string", "null"]}}},
                {"required": ["tags"], "properties": {"tags": {"type": ["array", "null"]}}},
                {"required": ["metadata"], "properties": {"metadata": {"type": ["object", "null"]}}},
            ]
        }
    )

    override_text: OverrideText | None = Field(
        None,
        description="The new text. Absent: the text stays.",
        examples=["I prefer short answers with sources."],
    )
    category: Category | None = Field(None, description="The new category. Absent: the category stays.")
    importance: Importance | None = Field(
        None, description="The new importance, 1 for the highest. Absent: the importance stays."
    )
    expires_at: MomentOrDay | None = Field(
        None,
        description="When it expires, a time or the last day; null for never. Absent: as before. It is no override, "
        "and no undo ends it.",
    )
    tags: Tags | None = Field(
        None, description="The new tags, in the place of the former; null for none. Absent: as before. No undo ends it."
    )
    metadata: Metadata | None = Field(
        None, description="The new metadata, in the place of the former; null for none. Absent: as before."
    )
    copies: bool = Field(False, description=f"True overrides its copies too. {_COPIES}")

    def override_values(self) -> OverrideValues | None:
        """Return the values to override, None if only others change. Raises: `InvalidInput` for no change."""
        if self.override_text is None and self.category is None and self.importance is None:
            if not self.model_fields_set.isdisjoint({"expires_at", TAGS, METADATA}):
                return None
            raise InvalidInput.of_field(
                "override_text", _("is required, unless category, importance, expires_at, tags or metadata is given")
            )
        return OverrideValues(self.override_text, self.category, self.importance)

    def labels(self) -> dict[str, Any]:
        """Return the tags and metadata that are given, by their names in a payload."""
        return {name: getattr(self, name) for name in (TAGS, METADATA) if name in self.model_fields_set}


class DeletionBody(MemoryBody):
    """The session and scope of the memory, and why it is deleted."""

    reason: Reason | None = Field(None, description=_REASON, examples=["outdated"])


class SenderDeletionBody(ScopedBody):
    """The sender whose messages are deleted, and why."""

    sender_id: UserId = Field(description="The sender, such as a participant of a group chat.", examples=["u_123"])
    session_id: SessionId | None = Field(
        None,
        description="Only messages of this session. Absent: of all sessions of the scope.",
        examples=["chat:c_456"],
    )
    reason: Reason | None = Field(None, description=_REASON, examples=["asked to be forgotten"])


class MemoryListQuery(PageQuery):
    """The conditions of a list of memories."""

    session_id: SessionFilter = None
    memory_type: TypeFilter = None
    category: Category | None = Field(None, description="Only memories of this category.")
    agent_id: Name | None = Field(None, description="Only memories of this agent.")
    sender_id: SenderFilter = None
    since_ms: Since = None
    until_ms: Until = None
    filters: JsonFilters = None
    as_of: AsOf = None

    def request(self) -> ListRequest:
        return ListRequest(**shared(ListRequest, self) | {"as_of": None}, after=position_of(self.cursor))


class OverrideOut(BaseModel):
    """An override of a memory."""

    memory_id: MemoryId
    override_id: OverrideId | None = Field(description="The id of the override; null if only the expiry was set.")
    status: Literal["active", "undone"] = Field(
        description="`active`, or `undone` after it was undone.", examples=["active"]
    )
    copies: CopyIds = None
    copies_count: CopyCount = None


class Deleted(BaseModel):
    """A deletion of a memory."""

    memory_id: MemoryId
    tombstone_id: TombstoneId
    status: Literal["deleted", "restored"] = Field(description=_DECIDED, examples=["deleted"])
    copies: CopyIds = None
    copies_count: CopyCount = None


class Restored(BaseModel):
    """A restored memory."""

    memory_id: MemoryId
    tombstone_id: TombstoneId | None = Field(
        description="The deletion that was undone; null if a newer memory had superseded this one."
    )
    status: Literal["restored"] = Field(description=_DECIDED, examples=["restored"])
    copies: list[str] | None = Field(
        None, description="The ids of the copies that were deleted and are restored with it. Absent if there are none."
    )
    copies_count: int | None = Field(None, description="The number of these copies. Absent if there are none.")


class SenderDeleted(BaseModel):
    """A deletion of the messages of a sender."""

    sender_id: str = Field(description="The sender.", examples=["u_123"])
    deleted_count: int = Field(description="The number of memories that this request moved to the trash.", examples=[1])


class MemoryOut(BaseModel):
    """A memory. An override changes its `text`, `category` and `importance`."""

    id: MemoryId
    memory_type: KindOfMemory
    session_id: SessionKey
    app_id: AppId
    project_id: ProjectId
    text: str = Field(description="The text.", examples=["I prefer short answers."])
    category: str = Field(description="The category; empty if unknown.", examples=["user_memory_preference"])
    importance: float | None = Field(description="The importance from 0 to 1; null if unknown.", examples=[None])
    sender_id: str = Field(description="The sender of the message or the uploader of the file.", examples=["u_123"])
    sender_name: str | None = Field(description="The sender's name; null if unknown.", examples=["Ann"])
    role: Role | None = Field(description="The sender's role; null for memories that no message is.", examples=["user"])
    tool_calls: list[ToolCall] | None = Field(
        description="The tools that the agent called with the message; null for none.", examples=[None]
    )
    tool_call_id: str | None = Field(
        description="The id of the call that the message answers; null for none.", examples=[None]
    )
    agent_id: str = Field(description="The agent that sent or stored it; empty if none did.", examples=[""])
    timestamp_ms: int = Field(description="When it was sent, in Unix milliseconds.", examples=[1781172177000])
    override_id: OverrideId | None = Field(
        description="The id of the active override; null without one.", examples=[None]
    )
    deleted_at: Time | None = Field(
        description="When the memory was deleted; null if it was not, or only with its session.", examples=[None]
    )
    tags: MemoryTags = None
    metadata: MemoryMetadata = None
    external_id: ExternalIdOut = None
    expires_at: Time | None = Field(None, description="When it ends. Absent if it does not.", examples=[None])
    state: Literal["live", "trashed", "superseded", "expired"] | None = Field(
        None, description="Its own state, apart from that of its session.", examples=["live"]
    )


class MemoryPage(BaseModel):
    """A page of memories."""

    memories: list[MemoryOut] = Field(description="The memories, newest first.")
    next_cursor: NextCursor


class HistoryEvent(BaseModel):
    """A decision about a memory. Fields that do not apply to the action are absent."""

    at: Time = Field(description="When it happened.")
    action: Literal["original", "override", "override_undo", "delete", "expire", "restore", "superseded"] = Field(
        description="What happened. `original` is the text before the first override.", examples=["delete"]
    )
    by: str = Field(
        description="The kind of actor: `key`, `token`, `operator`, `person`, `command`, `system` or `engine`; empty "
        "if unknown.",
        examples=["key"],
    )
    override_id: str | None = Field(None, description="The id of the override.")
    tombstone_id: TombstoneId | None = Field(None, description="The id of the deletion.")
    text: str | None = Field(None, description="The text from then on.")
    category: str | None = Field(None, description="The category from then on.")
    importance: float | None = Field(None, description="The importance from then on.")
    reason: str | None = Field(
        None, description="The reason of the deletion or edit; may be empty.", examples=["outdated"]
    )
    superseded_by: str | None = Field(None, description="The id of the newer derived memory that replaced this one.")


class MemoryDetail(BaseModel):
    """A memory and its history."""

    memory: MemoryOut = Field(description="The memory as it is now.")
    history: list[HistoryEvent] = Field(description="The decisions about the memory, oldest first.")


class TrashItem(BaseModel):
    """A deletion that can be undone."""

    tombstone_id: TombstoneId
    kind: Literal["memory", "session"] = Field(description="The deleted item.", examples=["memory"])
    memory_id: MemoryId | None = Field(description="The id of the memory; null for sessions.")
    session_id: SessionKey
    memory_type: MemoryType | None = Field(description="The memory's type; null for sessions.", examples=["episode"])
    text: str | None = Field(description="The memory's text; null for sessions.", examples=["I prefer short answers."])
    reason: str = Field(description="The reason of the deletion; may be empty.", examples=["outdated"])
    deleted_at: Time = Field(description="When it was deleted. It is purged some days later; ask the operator.")
    state: Literal["trashed", "expired"] | None = Field(
        None, description="`expired`: its time passed.", examples=["trashed"]
    )
    expires_at: Time | None = Field(
        None, description="When it expired, or would have. Absent without a time.", examples=[None]
    )


class TrashPage(BaseModel):
    """A page of the trash."""

    trash: list[TrashItem] = Field(description="The deletions, newest first.")
    next_cursor: NextCursor


class SessionBody(ScopedBody):
    """The scope of the session."""


class SessionRestoreBody(SessionBody):
    """The scope of the session, and when it expires after it is restored."""

    expires_at: MomentOrDay | None = Field(
        None,
        description="When it expires again, a time or the last day; null for never. Required for one that has expired. "
        "Absent: as before.",
        examples=[None],
    )


class SessionDeletionBody(SessionBody):
    """The scope of the session, and why it is deleted."""

    reason: Reason | None = Field(None, description=_REASON, examples=["finished"])


class SessionListQuery(PageQuery):
    """The conditions of a list of sessions."""

    deleted: bool = Field(False, description="True lists the sessions in the trash instead of the others.")


class SessionDecided(BaseModel):
    """A deletion of a session."""

    session_id: ChatId
    tombstone_id: TombstoneId = Field(examples=["t_a24276f6a9d017fca7b6e9e0952f7e95"])
    status: Literal["deleted", "restored"] = Field(description=_DECIDED, examples=["deleted"])


class SessionItem(BaseModel):
    """A session."""

    session_id: ChatId
    kind: Literal["chat", "resource", "memory_edit", "other"] = Field(
        description="The kind, by the form of the id.", examples=["chat"]
    )
    memories: int = Field(description="The number of memories, without deleted ones.", examples=[1])
    pending: int = Field(description="The number of messages that wait for a flush.", examples=[0])
    created_at: Time = Field(description="When the session began.")
    flushed_at: Time | None = Field(description="When the session was last flushed; null for never.")
    searchable_at: Time | None = Field(description="When the memories of the last flush can be found; null if unknown.")
    deleted_at: Time | None = Field(description="When the session was deleted; null if it was not.", examples=[None])
    expires_at: Time | None = Field(None, description="When it ends. Absent if it does not.", examples=[None])
    state: Literal["live", "trashed", "expired"] | None = Field(
        None, description="`expired`: its time passed.", examples=["live"]
    )
    remote: RemoteView = Field(description="How far the session is at the remote.")


class SessionPage(BaseModel):
    """A page of sessions."""

    sessions: list[SessionItem] = Field(description="The sessions, newest first.")
    next_cursor: NextCursor
