"""The wire shapes of `POST /memories/add` and `POST /memories/flush`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from accounts.api.schemas import ScopedBody
from core.ids import Name, SessionId
from core.rest import WHOLE, Body
from core.times import as_ms
from core.url_policy import MAX_URI_CHARS
from documents.mime_types import ContentType
from engines.port import FlushStatus
from memories.api.schemas.common import MAX_SAID_MS
from memories.services.add import MAX_NAME_CHARS, AddCommand, Part, Said
from memories.services.files import decode_base64
from store.types import Role

MAX_MESSAGES = 500
MAX_ITEMS = 100
MAX_ITEM_TEXT_CHARS = 1_000_000
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
_EXTENSION = r"^\.?[A-Za-z0-9]{1,8}$"

Text = Annotated[str, Field(min_length=1, max_length=MAX_ITEM_TEXT_CHARS)]


def _as_items(value: object) -> object:
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, list):
        return value
    raise ValueError('must be text, or a list of items such as {"type": "text", "text": "…"}')


def _text_or_items(schema: dict[str, Any]) -> None:
    """What `_as_items` lets in."""
    items = {name: schema.pop(name) for name in ("type", "items", "minItems", "maxItems")}
    schema["anyOf"] = [{"type": "string", "minLength": 1, "maxLength": MAX_ITEM_TEXT_CHARS}, items]


def _decoded(value: object) -> object:
    return decode_base64(value) if isinstance(value, str) else value


Base64 = Annotated[
    bytes,
    BeforeValidator(_decoded),
    WithJsonSchema({"type": "string", "contentEncoding": "base64", "pattern": _BASE64}),
]


class ContentItemIn(Body):
    """One part of a message: a text, or a file at an address (`uri`) or as `base64`. The address goes before."""

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

    type: ContentType
    text: Text | None = Field(None, description="What is said; of items of type `text` only.")
    uri: Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS, json_schema_extra={"format": "uri"})] | None = (
        Field(None, description="https://, http://, minio:// or s3://; file:// below MEMORY_GATEWAY_FILE_URI_ROOTS.")
    )
    base64: Base64 | None = Field(None, description="The file itself, without a `data:` prefix.")
    ext: Annotated[str, Field(pattern=_EXTENSION)] | None = Field(None, description="The file's ending, such as png.")
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)] | None = Field(
        None, description="The file's name: memories that speak of it are tied to it by this."
    )
    extras: dict[str, Any] | None = Field(None, description="Kept with the message as it is.")

    @model_validator(mode="after")
    def _holds_something(self) -> ContentItemIn:
        if self.type != "text" and self.text is not None:
            raise ValueError("text belongs to items of type text: send uri or base64")
        if self.text is None and self.uri is None and self.base64 is None:
            raise ValueError("text is required" if self.type == "text" else "uri or base64 is required")
        return self

    def part(self) -> Part:
        return Part(
            type=self.type,
            text=self.text,
            uri=self.uri,
            data=None if self.uri is not None else self.base64,
            ext=(self.ext or "").lstrip(".").lower(),
            name=self.name,
            extras=self.extras or {},
        )


class MessageIn(Body):
    sender_id: Name = Field(description="Who says it: your own user_id where the role is user, else your agent.")
    role: Role
    timestamp: Annotated[int, Field(gt=0, le=MAX_SAID_MS), AfterValidator(as_ms), WHOLE] = Field(
        description="Unix milliseconds. What can only be seconds (below 100000000000) is read as seconds."
    )
    content: Annotated[
        list[ContentItemIn],
        Field(min_length=1, max_length=MAX_ITEMS, json_schema_extra=_text_or_items),
        BeforeValidator(_as_items),
    ] = Field(description="Plain text, or the parts of the message.")

    def said(self) -> Said:
        return Said(self.sender_id, self.role, self.timestamp, tuple(item.part() for item in self.content))


class AddBody(ScopedBody):
    """Messages to append to a session."""

    session_id: SessionId = Field(
        description="`chat:{conversation_id}`, `resource:{user_id}:{resource_id}`, `memory_edit:{user_id}`, or any."
    )
    messages: list[MessageIn] = Field(min_length=1, max_length=MAX_MESSAGES)

    def command(self) -> AddCommand:
        return AddCommand(
            session_id=self.session_id,
            messages=tuple(message.said() for message in self.messages),
            app_id=self.app_id,
            project_id=self.project_id,
        )


class FlushBody(ScopedBody):
    session_id: SessionId = Field(description="The session whose messages are to become memories.")


class AddData(BaseModel):
    status: Literal["accumulated", "extracted"]
    message_count: int


class AddBackend(BaseModel):
    request_id: str
    data: AddData


class AddOut(BaseModel):
    session_id: str
    backend: AddBackend


class FlushData(BaseModel):
    status: FlushStatus
    memory_count: int = Field(description="How many memories this flush made.")
    searchable_at: str | None = Field(description="When they can be found; null while nobody knows.")


class FlushBackend(BaseModel):
    request_id: str
    data: FlushData


class FlushOut(BaseModel):
    session_id: str
    backend: FlushBackend
