"""Request and response schemas of `POST /memories/add` and `POST /memories/flush`."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from accounts.api.schemas import ChatId, ScopedBody, Time
from core.ids import DisplayName, Name, NewSessionId, SessionId
from core.labels import Metadata, Tags
from core.messages import Translatable as _
from core.network.url_policy import MAX_URI_CHARS
from core.rest import WHOLE, Body, Problem
from core.storable import MAX_GIVEN_JSON_BYTES, check_json
from core.times import as_ms
from core.zones import MAX_CHARS as MAX_ZONE_CHARS
from documents.mime_types import ContentType
from memories.services.add import MAX_NAME_CHARS, AddCommand, NewContentItem, NewMessage
from memories.services.files import decode_base64
from store.filters import MAX_MS
from store.port import FlushStatus
from store.types import Role

MAX_MESSAGES = 500
MAX_ITEMS = 100
MAX_ITEM_TEXT_CHARS = 1_000_000
MAX_PARTICIPANTS = 100
MAX_CALLS = 100
MAX_ARGUMENTS_CHARS = 100_000
MAX_TIMESTAMP_MS = MAX_MS - 24 * 3600 * 1000  # messages with equal times move to the next free milliseconds
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
_EXTENSION = r"^\.?[A-Za-z0-9]{1,8}$"

TimeZone = Annotated[str, Field(max_length=MAX_ZONE_CHARS)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_ITEM_TEXT_CHARS)]
Timestamp = Annotated[int, Field(gt=0, le=MAX_TIMESTAMP_MS), AfterValidator(as_ms), WHOLE]
"""Unix milliseconds, or seconds below 100000000000."""


def _as_items(value: object) -> object:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, list):
        return value
    raise ValueError(_('must be text, or a list of items such as {"type": "text", "text": "…"}'))


def _text_or_items(schema: dict[str, Any]) -> None:
    """Describe the values that `_as_items` accepts."""
    items = {name: schema.pop(name) for name in ("type", "items", "maxItems")}
    schema["anyOf"] = [{"type": "string", "maxLength": MAX_ITEM_TEXT_CHARS}, items, {"type": "null"}]


def _checked_extras(value: dict[str, Any]) -> dict[str, Any]:
    check_json(value, max_bytes=MAX_GIVEN_JSON_BYTES)
    return value


def _decoded(value: object) -> object:
    return decode_base64(value) if isinstance(value, str) else value


Base64 = Annotated[
    bytes,
    BeforeValidator(_decoded),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "pattern": _BASE64}),
]


class ContentItemIn(Body):
    """One part of a message: a text, or a file at an address (`uri`) or as `base64`. `uri` overrides `base64`."""

    model_config = {
        "json_schema_extra": {
            "anyOf": [
                {"required": ["text"], "properties": {"type": {"const": "text"}, "text": {"type": "string"}}},
                {"required": ["uri"], "properties": {"uri": {"type": "string"}}},
                {"required": ["base64"], "properties": {"base64": {"type": "string"}}},
            ],
            "if": {"required": ["text"], "properties": {"text": {"type": "string"}}},
            "then": {"properties": {"type": {"const": "text"}}},
        }
    }

    type: ContentType = Field(description="The kind of content.", examples=["text"])
    text: Text | None = Field(
        None, description="The text. Required for type `text` without a file, refused for other types."
    )
    uri: Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS, json_schema_extra={"format": "uri"})] | None = (
        Field(
            None,
            description="The file's address: `https://`, `http://`, or, in buckets and folders that the operator "
            "allows, `minio://`, `s3://` and `file://`. One that is not allowed or cannot be read is kept as text.",
        )
    )
    base64: Base64 | None = Field(None, description="The file's bytes, without a `data:` prefix.")
    ext: Annotated[str, Field(pattern=_EXTENSION)] | None = Field(
        None, description="The file name's extension, such as `png`. Absent: that of `name` or `uri`."
    )
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)] | None = Field(
        None, description="The file's name. Memories that mention it return the file as an attachment."
    )
    extras: Annotated[dict[str, Any], AfterValidator(_checked_extras)] | None = Field(
        None, description="Data of your own, at most 64 KiB of JSON, stored with the message."
    )

    @model_validator(mode="after")
    def _require_content(self) -> Self:
        if self.type != "text" and self.text is not None:
            raise ValueError(_("text belongs to items of type text: send uri or base64"))
        if self.text is None and self.uri is None and self.base64 is None:
            raise ValueError(_("text is required") if self.type == "text" else _("uri or base64 is required"))
        return self

    def to_content_item(self) -> NewContentItem:
        return NewContentItem(
            type=self.type,
            text=self.text,
            uri=self.uri,
            data=None if self.uri is not None else self.base64,
            ext=(self.ext or "").lstrip(".").lower(),
            name=self.name,
            extras=self.extras or {},
        )


CallId = Annotated[str, Field(min_length=1, max_length=255)]


class CalledFunction(Body):
    """A tool and its arguments."""

    name: str = Field(min_length=1, max_length=255, description="The tool's name.", examples=["find_trains"])
    arguments: str = Field(
        max_length=MAX_ARGUMENTS_CHARS, description="The arguments as JSON text.", examples=['{"to": "Rome"}']
    )


class ToolCall(Body):
    """A call of a tool by an agent, as OpenAI's API writes it."""

    id: CallId = Field(description="The id, which the tool's answer names as `tool_call_id`.", examples=["call_1"])
    type: Literal["function"] = Field("function", description="The kind of tool.", examples=["function"])
    function: CalledFunction = Field(description="The called tool.")


def text_of_calls(calls: Iterable[ToolCall]) -> str:
    """Return the text of a message that has only tool calls."""
    return "\n".join(f"{call.function.name}({call.function.arguments})" for call in calls)


class Participant(Body):
    """A person other than the caller who speaks in a group chat."""

    id: Name = Field(
        description="The person's id in your application. It may equal a user's id: that user gets nothing.",
        examples=["bob"],
    )
    name: DisplayName | None = Field(
        None, description="The person's name, for messages without `sender_name`.", examples=["Bob"]
    )


class MessageIn(Body):
    """A message of a session."""

    model_config = {
        "json_schema_extra": {
            # Not `anyOf`: generators of clients would make a union of it.
            "if": {"required": ["tool_calls"], "properties": {"tool_calls": {"type": "array", "minItems": 1}}},
            "else": {
                "required": ["content"],
                "properties": {"content": {"type": ["string", "array"], "minLength": 1, "minItems": 1}},
            },
        }
    }

    sender_id: Name = Field(
        description="The sender. For role `user`: the caller's user id, or the id of one of `participants`. Otherwise "
        "the agent's id.",
        examples=["u_123"],
    )
    sender_name: DisplayName | None = Field(
        None,
        description="The sender's name. It is shown, and questions that name it prefer the message.",
        examples=["Ann"],
    )
    role: Role = Field(description="The sender's role.", examples=["user"])
    timestamp: Timestamp = Field(
        description="When it was sent, in Unix milliseconds. Values below 100000000000 are read as seconds.",
        examples=[1781172177000],
    )
    tool_calls: list[ToolCall] | None = Field(
        None,
        max_length=MAX_CALLS,
        description="The tools that the agent called with this message.",
        examples=[None],
    )
    tool_call_id: CallId | None = Field(
        None, description="For role `tool`: the id of the call that this message answers."
    )
    tags: Tags = Field([], description="Words to find its memories by, each once.", examples=[[]])
    metadata: Metadata = Field(
        {},
        description="Data of your own: at most 16 KiB of JSON, 3 levels deep. Filters compare it; no remote gets it.",
        examples=[{}],
    )
    content: Annotated[
        list[ContentItemIn],
        Field(max_length=MAX_ITEMS, json_schema_extra=_text_or_items),
        BeforeValidator(_as_items),
    ] = Field(
        [],
        validate_default=True,
        description="The text, or the parts of the message. It may be empty if there are `tool_calls`, which then are "
        "the text.",
        examples=["I prefer short answers."],
    )

    @field_validator("content")
    @classmethod
    def _require_content(cls, content: list[ContentItemIn], info: ValidationInfo) -> list[ContentItemIn]:
        if not content and not info.data.get("tool_calls"):
            raise ValueError(_("is required, unless there are tool_calls"))
        return content

    def to_message(self) -> NewMessage:
        calls = self.tool_calls or []
        parts = [item.to_content_item() for item in self.content]
        if not parts:
            parts = [NewContentItem("text", text=text_of_calls(calls))]
        return NewMessage(
            self.sender_id,
            self.role,
            self.timestamp,
            tuple(parts),
            self.sender_name,
            tuple(call.model_dump() for call in calls),
            self.tool_call_id,
            tags=tuple(self.tags),
            metadata=self.metadata,
        )


class AddBody(ScopedBody):
    """Messages to append to a session."""

    session_id: NewSessionId = Field(
        description="The session: `chat:{conversation_id}`, `resource:{user_id}:{resource_id}`, "
        "`memory_edit:{user_id}` or an id of your own. It is created if it does not exist.",
        examples=["chat:c_456"],
    )
    messages: list[MessageIn] = Field(
        min_length=1,
        max_length=MAX_MESSAGES,
        description="The messages. A message that the session already has is not stored again.",
    )

    participants: list[Participant] = Field(
        [],
        max_length=MAX_PARTICIPANTS,
        description="The other people of a group chat, whose messages with role `user` are in this request. Their "
        "messages are the caller's memories.",
    )
    timezone: TimeZone | None = Field(
        None,
        description="The time zone in which the messages were written, which decides on their days: an IANA name, an "
        "offset or a city. Absent: that of the caller's profile or of the installation.",
        examples=["Asia/Shanghai"],
    )

    def command(self) -> AddCommand:
        participants = {person.id: person.name for person in self.participants}
        messages = tuple(message.to_message() for message in self.messages)
        return AddCommand(self.session_id, messages, participants, self.timezone or "")


class FlushBody(ScopedBody):
    """A session to flush."""

    session_id: SessionId = Field(description="The id of the session.", examples=["chat:c_456"])


RequestId = Annotated[
    str, Field(description="The memory engine's id of the call.", examples=["58fe644aaf58432ba46913bfd7fbe79b"])
]


class AddData(BaseModel):
    """The engine's result of adding messages."""

    status: Literal["accumulated", "extracted"] = Field(
        description="`accumulated`: the messages wait for a flush. `extracted`: they are memories already.",
        examples=["accumulated"],
    )
    message_count: int = Field(description="The number of messages in the request.", examples=[1])


class AddBackend(BaseModel):
    """The engine's answer to added messages."""

    request_id: RequestId
    data: AddData = Field(description="The engine's result.")


class SkippedMessage(BaseModel):
    """A message that was not stored."""

    index: int = Field(description="Its position in the request, from 0.", examples=[0])
    id: str | None = Field(description="The memory that it repeats; null for a message without visible content.")


class AddOut(BaseModel):
    """The session and the memory engine's answer."""

    session_id: ChatId
    backend: AddBackend = Field(description="The memory engine's answer.")
    stored: int = Field(description="The number of messages that were not skipped.", examples=[1])
    skipped: list[SkippedMessage] = Field(
        description="The messages that were not stored: a transcript that is sent again, or messages without content.",
        examples=[[]],
    )
    redacted: dict[str, int] | None = Field(
        None,
        description="The number of values that were masked in texts, by kind: `card`, `secret`, `email`, `phone`. "
        "Absent if there are none.",
    )
    warnings: list[Problem.FieldProblem] | None = Field(
        None,
        description="The addresses that were kept as text and not read, and why, and an unknown `timezone`; absent if "
        "there are none.",
    )


class FlushData(BaseModel):
    """The engine's result of a flush."""

    status: FlushStatus = Field(
        description="`extracted`, or `no_extraction` if the session had no messages to turn into memories.",
        examples=["extracted"],
    )
    memory_count: int = Field(description="The number of memories that this flush made.", examples=[1])
    searchable_at: Time | None = Field(description="When the memories can be found; null if unknown.")


class FlushBackend(BaseModel):
    """The engine's answer to a flush."""

    request_id: RequestId
    data: FlushData = Field(description="The engine's result.")


class FlushOut(BaseModel):
    """The session and the memory engine's answer."""

    session_id: ChatId
    backend: FlushBackend = Field(description="The memory engine's answer.")
    degraded: str | None = Field(
        None,
        description="Why the remote did not derive memories yet; absent if it did. The messages are found meanwhile.",
    )
