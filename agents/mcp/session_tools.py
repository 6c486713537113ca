"""MCP tool that adds messages to a session."""

from typing import Annotated, Any, Literal

from django.utils import timezone
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from accounts.api.schemas import MomentOrDay
from agents.tools.arguments import StrictArguments
from agents.tools.caller import DEFAULT_AGENT, Caller
from agents.tools.results import Result, failed, result
from core.errors import EngineError
from core.ids import DisplayName, NewSessionId, UserId
from core.messages import Translatable as _
from core.storable import check_text
from core.times import to_ms
from memories.api.schemas.messages import (
    MAX_CALLS,
    MAX_MESSAGES,
    MAX_PARTICIPANTS,
    CallId,
    Participant,
    SkippedMessage,
    Text,
    Timestamp,
    ToolCall,
    given_expiry,
    text_of_calls,
)
from memories.services.add import AddCommand, NewContentItem, NewMessage, add, flush
from store.admission import answer_of
from store.types import Role


def _check_calls(calls: list[ToolCall]) -> list[ToolCall]:
    for call in calls:
        check_text(call.id + call.function.name + call.function.arguments)
    return calls


class SessionMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role = Field(description="Who wrote it: the user, you (`assistant`), a `tool`, or the `system`.")
    tool_calls: Annotated[list[ToolCall], AfterValidator(_check_calls)] | None = Field(
        None, max_length=MAX_CALLS, description="The tools that you called with this message."
    )
    tool_call_id: Annotated[CallId, AfterValidator(check_text)] | None = Field(
        None, description="For role `tool`: the id of the call that it answers."
    )
    content: Annotated[Text, AfterValidator(check_text)] | None = Field(
        None, validate_default=True, description="The text. May be absent if there are `tool_calls`."
    )
    sender_id: UserId | None = Field(
        None, description="In a group chat: the participant who wrote it. Absent: the user."
    )
    sender_name: DisplayName | None = Field(None, description="The writer's name.")
    timestamp: Timestamp | None = Field(
        None,
        description="When it was written, in Unix milliseconds. Absent: now.",
    )

    @field_validator("content")
    @classmethod
    def _require_content(cls, content: str | None, info: ValidationInfo) -> str | None:
        if content is None and not info.data.get("tool_calls"):
            raise ValueError(_("is required, unless there are tool_calls"))
        return content

    @field_validator("sender_id")
    @classmethod
    def _require_person(cls, sender_id: str | None, info: ValidationInfo) -> str | None:
        if sender_id is not None and info.data.get("role") != "user":
            raise ValueError(_("belongs to messages with role user"))
        return sender_id

    def to_message(self, caller: Caller, now_ms: int) -> NewMessage:
        sender_id = caller.owner.user_id if self.role == "user" else caller.agent_id or DEFAULT_AGENT
        calls = self.tool_calls or []
        text = text_of_calls(calls) if self.content is None else self.content
        return NewMessage(
            self.sender_id or sender_id,
            self.role,
            now_ms if self.timestamp is None else self.timestamp,
            (NewContentItem("text", text=text),),
            self.sender_name,
            tuple(call.model_dump() for call in calls),
            self.tool_call_id,
            has_time=self.timestamp is not None,
        )


class AddArguments(StrictArguments):
    session_id: NewSessionId = Field(
        description="The session: `chat:` and the id of the conversation, or an id of your own.",
        examples=["chat:c_456"],
    )
    messages: list[SessionMessage] = Field(
        [], max_length=MAX_MESSAGES, description="The messages, oldest first. May be absent with `flush`."
    )
    participants: list[Participant] = Field(
        [], max_length=MAX_PARTICIPANTS, description="The other people of a group chat."
    )
    expires_at: MomentOrDay | None = Field(
        None, description="When the session expires with its memories: a time, or the last day. Absent: as before."
    )
    flush: bool = Field(
        False, description="True turns all messages of the session into memories: the conversation ends."
    )


class Added(BaseModel):
    session_id: str = Field(description="The id of the session.")
    message_count: int = Field(description="The number of messages in the call.")
    status: Literal["accumulated", "extracted", "no_extraction"] = Field(
        description="`accumulated`: waiting for a flush. `extracted`: memories. `no_extraction`: nothing to flush."
    )
    memory_count: int | None = Field(description="The number of new memories; null without a flush.")
    stored: int = Field(description="The number of messages that were not skipped.")
    skipped: list[SkippedMessage] = Field(description="The messages that the session has already, or that are empty.")
    redacted: dict[str, int] = Field(description="The number of values that were masked in texts, by kind.")
    refused: dict[str, int] | None = Field(None, description="How many the person's controls refused, by reason.")
    paused: bool | None = Field(None, description="True while the person pauses remembering.")


def add_messages(caller: Caller, arguments: AddArguments) -> Result:
    """Add messages and flush the session. Raises: the errors of `memories.services.add`."""
    session_id, count = arguments.session_id, len(arguments.messages)
    if not count and not arguments.flush:
        return failed("missing_param", "Provide messages to add, or flush: true.")
    status, stored, skipped = "accumulated", 0, list[dict[str, Any]]()
    redacted: dict[str, int] = {}
    refusal: dict[str, Any] = {}
    if count:
        now = to_ms(timezone.now())  # the engines put messages of one time one after the other
        messages = tuple(message.to_message(caller, now) for message in arguments.messages)
        participants = {person.id: person.name for person in arguments.participants}
        expires_at = given_expiry(arguments, caller.owner.user_pk)
        command = AddCommand(session_id, messages, participants, expires_at=expires_at)
        outcome = add(caller.owner, command)
        status, stored, redacted = outcome.status, outcome.stored, dict(outcome.redacted)
        skipped = [{"index": one.message, "id": one.memory_id} for one in outcome.skipped]
        refusal = answer_of(outcome.refused, is_paused=outcome.is_paused)
    added = f"Added {stored} {'message' if stored == 1 else 'messages'} to {session_id}"
    added += f", skipped {len(skipped)} that it has already or that are empty" if skipped else ""
    added += ", refused the others, because the person does not want to be remembered" if "refused" in refusal else ""
    about = {
        "session_id": session_id,
        "message_count": count,
        "stored": stored,
        "skipped": skipped,
        "redacted": redacted,
        **refusal,
    }
    if not arguments.flush:
        return result(f"{added}.", status=status, memory_count=None, **about)
    try:
        flushed = flush(caller.owner, session_id)
    except EngineError as error:
        if not count:
            raise
        text = f"{added}, but the flush failed: {error.detail} Call session_add again with flush and without messages."
        return failed(error.code, text)
    new = f"{flushed.memory_count} new {'memory' if flushed.memory_count == 1 else 'memories'}"
    text = f"{added} and flushed it: {new}."
    if flushed.degraded:
        text = f"{added}. They can be found; memories are derived from them later: {flushed.degraded}"
    values: dict[str, Any] = {"status": flushed.status, "memory_count": flushed.memory_count}
    if flushed.is_paused:
        text, values["paused"] = f"{added}. Remembering is paused, so nothing was flushed.", True
    return result(text, **about | values)
