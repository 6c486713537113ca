"""Request and response schemas of `POST /memories/add` and `POST /memories/flush`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    WrapValidator,
    field_validator,
    model_validator,
)

from accounts.api.schemas import ChatId, IsPaused, MomentOrDay, Refused, ScopedBody, Time
from core.ids import DisplayName, Name, NewSessionId, SessionId, UserId
from core.labels import Metadata, Tags
from core.messages import Translatable as _
from core.messages import joined
from core.network.url_policy import MAX_URI_CHARS
from core.rest import WHOLE, Body, Problem, invalid_input
from core.storable import MAX_GIVEN_JSON_BYTES, check_json
from core.times import as_ms, to_ms
from core.zones import MAX_CHARS as MAX_ZONE_CHARS
from documents.mime_types import ContentType
from memories.api.schemas import dialects
from memories.services.add import MAX_NAME_CHARS, AddCommand, NewContentItem, NewMessage
from memories.services.files import decode_base64
from store.expiry import ending_of
from store.filters import MAX_MS
from store.port import FlushStatus
from store.types import KEPT, NewExpiry, Owner, Role

MAX_MESSAGES = 500
MAX_ITEMS = 100
MAX_ITEM_TEXT_CHARS = 1_000_000
MAX_PARTICIPANTS = 100
MAX_CALLS = 100
MAX_ARGUMENTS_CHARS = 100_000
DEFAULT_SENDER = "assistant"
MAX_TIMESTAMP_MS = MAX_MS - 24 * 3600 * 1000  # messages with equal times move to the next free milliseconds
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
_EXTENSION = r"^\.?[A-Za-z0-9]{1,8}$"

TimeZone = Annotated[str, Field(max_length=MAX_ZONE_CHARS)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_ITEM_TEXT_CHARS)]
Timestamp = Annotated[
    int, Field(gt=0, le=MAX_TIMESTAMP_MS), AfterValidator(as_ms), WHOLE, BeforeValidator(dialects.read_time)
]
"""Unix milliseconds, seconds below 100000000000, or a text with a time zone."""


def _as_items(value: object) -> object:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, list):
        return value
    raise ValueError(_('must be text, or a list of items such as {"type": "text", "text": "…"}'))


def _text_or_items(schema: dict[str, Any]) -> None:
    """Describe the values that `_as_items` and `_read_item` accept."""
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

    _place: str = PrivateAttr("uri")
    _warning: str = PrivateAttr("")

    def to_content_item(self, place: str) -> NewContentItem:
        """Return the item. `place` is that of the part in the request."""
        return NewContentItem(
            type=self.type,
            text=self.text,
            uri=self.uri,
            data=None if self.uri is not None else self.base64,
            ext=(self.ext or "").lstrip(".").lower(),
            name=self.name,
            extras=self.extras or {},
            place=f"{place}.{self._place}",
            warning=self._warning,
        )


class DialectPart(BaseModel):
    """A part as OpenAI's or Anthropic's API writes it, such as `image_url`. Of an unknown one the name is stored."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="The kind of part.", examples=["image_url"])


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


class _CallPart(DialectPart):
    call: ToolCall


class _AnswerPart(DialectPart):
    call_id: CallId | None
    items: list[ContentItemIn | DialectPart]


def _read_item(value: object, _handler: object) -> ContentItemIn | DialectPart:
    """Return an item of ours, or a part that becomes a call, an answer or nothing. Raises: as pydantic."""
    part = dialects.read_part(value)
    if isinstance(part, dialects.Thought):
        return DialectPart(type="thinking")
    if isinstance(part, dialects.Call):
        function = {"name": part.name, "arguments": part.arguments}
        return _CallPart(type="call", call=ToolCall.model_validate({"id": part.id, "function": function}))
    if isinstance(part, dialects.Answer):
        items = _ITEMS.validate_python(_as_items(part.content))
        return _AnswerPart(type="answer", call_id=_CALL_ID.validate_python(part.call_id), items=items)
    try:
        item = ContentItemIn.model_validate(part.values)
    except ValidationError as error:
        if not part.place:
            raise
        raise ValueError(joined(": ", [part.place, invalid_input(error).errors[0].message])) from None
    item._place, item._warning = part.place or "uri", part.warning  # noqa: SLF001 - of a class of this module
    return item


Item = Annotated[ContentItemIn | DialectPart, WrapValidator(_read_item)]
_ITEMS = TypeAdapter(Annotated[list[Item], Field(max_length=MAX_ITEMS)])
_CALL_ID = TypeAdapter(CallId | None)


class Participant(Body):
    """A person other than the caller who speaks in a group chat."""

    id: UserId = Field(
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

    sender_id: UserId | None = Field(
        None,
        description="The sender. For role `user`: the caller's user id, or the id of one of `participants`. Otherwise "
        "the agent's id. Absent: the caller, or the `agent_id` of the request.",
        examples=["u_123"],
    )
    sender_name: DisplayName | None = Field(
        None,
        description="The sender's name, also as `name`. It is shown, and questions that name it prefer the message.",
        examples=["Ann"],
    )
    role: Role = Field(description="The sender's role. `developer` is `system`.", examples=["user"])
    timestamp: Timestamp | None = Field(
        None,
        description="When it was sent, in Unix milliseconds. Values below 100000000000 are read as seconds. Absent: "
        "now, each message a millisecond after the one before it.",
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
    tags: Tags | None = Field(None, description="Words to find its memories by, each once.")
    metadata: Metadata | None = Field(
        None,
        description="Data of your own: at most 16 KiB of JSON, 3 levels deep. Filters compare it; no remote gets it.",
    )
    expires_at: MomentOrDay | None = Field(
        None, description="When its memory expires: a time, or the last day. Absent: never, or with its session."
    )
    content: Annotated[
        list[Item],
        Field(max_length=MAX_ITEMS, json_schema_extra=_text_or_items),
        BeforeValidator(_as_items),
    ] = Field(
        [],
        validate_default=True,
        description="The text, or the parts of the message, which may be OpenAI's or Anthropic's. It may be empty if "
        "there are `tool_calls`, which then are the text.",
        examples=["I prefer short answers."],
    )

    @field_validator("content")
    @classmethod
    def _require_content(cls, content: list[Item], info: ValidationInfo) -> list[Item]:
        if not content and not info.data.get("tool_calls"):
            raise ValueError(_("is required, unless there are tool_calls"))
        return content

    @model_validator(mode="before")
    @classmethod
    def _read_dialect(cls, value: object) -> object:
        return dialects.read_message(value) if isinstance(value, Mapping) else value

    @property
    def thoughts(self) -> int:
        """Return the number of parts in which a model reasons."""
        return sum(1 for item in self.content if isinstance(item, DialectPart) and item.type == "thinking")

    def to_messages(self, index: int, sent: "Sent") -> Iterator[NewMessage]:
        """Yield the message, and those of the tools whose answers are among its parts, in their order."""
        pending: list[ContentItemIn | DialectPart] = []
        places: list[str] = []
        answers = [item for item in self.content if isinstance(item, _AnswerPart)]
        for number, item in enumerate(self.content):
            place = f"messages.{index}.content.{number}"
            if not isinstance(item, _AnswerPart):
                pending.append(item)
                places.append(place)
                continue
            if pending:
                yield self._message(index, sent, pending, places)
                pending, places = [], []
            parts = [part for part in item.items if isinstance(part, ContentItemIn)]
            content = tuple(part.to_content_item(place) for part in parts)
            yield replace(sent.message(index, None, "tool", self.timestamp), parts=content, tool_call_id=item.call_id)
        if pending or not answers:
            yield self._message(index, sent, pending, places)

    def _message(
        self, index: int, sent: "Sent", items: Sequence[ContentItemIn | DialectPart], places: Sequence[str]
    ) -> NewMessage:
        calls = [*(self.tool_calls or []), *(item.call for item in items if isinstance(item, _CallPart))]
        parts = [
            item.to_content_item(place)
            for item, place in zip(items, places, strict=True)
            if isinstance(item, ContentItemIn)
        ]
        if not parts and calls:
            parts = [NewContentItem("text", text=text_of_calls(calls))]
        return replace(
            sent.message(index, self.sender_id, self.role, self.timestamp),
            parts=tuple(parts),
            sender_name=self.sender_name,
            tool_calls=tuple(call.model_dump() for call in calls),
            tool_call_id=self.tool_call_id,
            tags=tuple(self.tags or ()),
            metadata=self.metadata or {},
            expires_at=sent.ending_of(self.expires_at, index),
        )


@dataclass(frozen=True, slots=True)
class Sent:
    """The sender and the agent of a request, for messages that name no sender."""

    owner: Owner
    agent_id: str
    zone: str

    def ending_of(self, expires_at: date | None, index: int) -> datetime | None:
        """Return when a message expires. Raises: as `expiry.ending_of`."""
        return ending_of(expires_at, self.owner.user_pk, self.zone, field=f"messages.{index}.expires_at")

    def message(self, index: int, sender_id: str | None, role: Role, timestamp: int | None) -> NewMessage:
        """Return a message without content, of time 0 if it has none."""
        sender = sender_id or (self.owner.user_id if role == "user" else self.agent_id)
        return NewMessage(sender, role, timestamp or 0, (), has_time=timestamp is not None, index=index)


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
    agent_id: Name | None = Field(
        None,
        description="The sender of messages of other roles than `user` that name none. Absent: `assistant`.",
        examples=["assistant"],
    )
    timezone: TimeZone | None = Field(
        None,
        description="The time zone in which the messages were written, which decides on their days: an IANA name, an "
        "offset or a city. Absent: that of the caller's profile or of the installation.",
        examples=["Asia/Shanghai"],
    )

    expires_at: MomentOrDay | None = Field(
        None,
        description="When the session expires with all its memories: a time, or the last day. Absent: as before; null: "
        "never.",
    )
    incognito: bool = Field(
        False,
        description="True in the first add of a session makes it incognito for good: no model and no remote gets "
        "it, and it is purged when it is deleted, flushed with `end`, or has no message for two hours.",
    )

    def command(self, owner: Owner) -> AddCommand:
        """Return the call for its caller. Raises: `InvalidInput` for an `expires_at` that has passed."""
        participants = {person.id: person.name for person in self.participants}
        zone, now = self.timezone or "", to_ms(datetime.now(UTC))
        sent = Sent(owner, self.agent_id or DEFAULT_SENDER, zone)
        given = [new for index, message in enumerate(self.messages) for new in message.to_messages(index, sent)]
        messages = tuple(
            new if new.has_time else replace(new, timestamp_ms=now + number) for number, new in enumerate(given)
        )
        thoughts = sum(message.thoughts for message in self.messages)
        return AddCommand(
            self.session_id,
            messages,
            participants,
            zone,
            thoughts,
            given_expiry(self, owner.user_pk, zone),
            self.incognito,
        )


def given_expiry(body: Any, user_pk: UUID, requested_zone: str = "") -> NewExpiry:
    """Return the `expires_at` of a body, `KEPT` if it has none. Raises: as `ending_of`."""
    return ending_of(body.expires_at, user_pk, requested_zone) if "expires_at" in body.model_fields_set else KEPT


class FlushBody(ScopedBody):
    """A session to flush."""

    session_id: SessionId = Field(description="The id of the session.", examples=["chat:c_456"])
    end: bool = Field(False, description="True ends an incognito session, which is purged then. Others stay.")


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
    stored: int = Field(description="The number of messages that were neither skipped nor refused.", examples=[1])
    skipped: list[SkippedMessage] = Field(
        description="The messages that were not stored: a transcript that is sent again, or messages without content.",
        examples=[[]],
    )
    redacted: dict[str, int] | None = Field(
        None,
        description="The number of values that were masked in texts, by kind: `card`, `secret`, `email`, `phone`. "
        "Absent if there are none.",
    )
    thoughts: int | None = Field(
        None,
        description="The number of parts in which a model reasons, which are not stored. Absent if there are none.",
    )
    expiry_days: dict[str, int] | None = Field(
        None,
        description="The defaults of expiry that were applied to messages without a time: the days, by category, or "
        "`tag:` and a tag. Absent if there are none.",
    )
    refused: Refused = None
    paused: IsPaused = None
    warnings: list[Problem.FieldProblem] | None = Field(
        None,
        description="The addresses that were kept as text and not read, and why, parts of unknown types, and an "
        "unknown `timezone`; absent if there are none.",
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
    stored: int | None = Field(None, description="0 during a pause; absent otherwise.", examples=[None])
    paused: IsPaused = None
