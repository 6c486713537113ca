"""MCP tool that adds messages to a session."""

from typing import Annotated, Literal

from django.utils import timezone
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.tools.arguments import StrictArguments, check_text
from agents.tools.caller import DEFAULT_AGENT, Caller
from agents.tools.results import Result, failed, result, without_recalled_memories
from core.errors import EngineError
from core.ids import SessionId
from core.messages import Message as _
from core.times import to_ms
from memories.api.schemas.messages import MAX_MESSAGES, Text, Timestamp
from memories.services.add import AddCommand, NewContentItem, NewMessage, add, flush
from store.types import Role


def _own_text(text: str) -> str:
    own = without_recalled_memories(text)
    if not own:
        raise ValueError(_("must contain text besides recalled memories"))
    return own


class SessionMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role = Field(description="Who wrote it: the user, you (`assistant`) or a `tool`.")
    content: Annotated[Text, AfterValidator(check_text), AfterValidator(_own_text)] = Field(description="The text.")
    timestamp: Timestamp | None = Field(
        None,
        description="When it was written, in Unix milliseconds. Absent: now. A message that the session already has at "
        "this time is not stored again.",
    )


class AddArguments(StrictArguments):
    session_id: SessionId = Field(
        description="The session: `chat:` and the id of the conversation, or an id of your own. It is created if it "
        "does not exist.",
        examples=["chat:c_456"],
    )
    messages: list[SessionMessage] = Field(
        [], max_length=MAX_MESSAGES, description="The messages, oldest first. May be absent with `flush`."
    )
    flush: bool = Field(
        False, description="True turns all messages of the session into memories: the conversation ends."
    )


class Added(BaseModel):
    session_id: str = Field(description="The id of the session.")
    message_count: int = Field(description="The number of messages in the call.")
    status: Literal["accumulated", "extracted", "no_extraction"] = Field(
        description="`accumulated`: the messages wait for a flush. `extracted`: they are memories. `no_extraction`: "
        "there was nothing to flush."
    )
    memory_count: int | None = Field(description="The number of memories that a flush made; null without a flush.")


def add_messages(caller: Caller, arguments: AddArguments) -> Result:
    """Add messages and flush the session. Raises: the errors of `memories.services.add`."""
    session_id, count = arguments.session_id, len(arguments.messages)
    if not count and not arguments.flush:
        return failed("missing_param", "Provide messages to add, or flush: true.")
    status: str = "accumulated"
    if count:
        now = to_ms(timezone.now())  # the engines put messages of one time one after the other
        senders = {"user": caller.owner.user_id}
        messages = tuple(
            NewMessage(
                senders.get(message.role, caller.agent_id or DEFAULT_AGENT),
                message.role,
                now if message.timestamp is None else message.timestamp,
                (NewContentItem("text", text=message.content),),
            )
            for message in arguments.messages
        )
        status = add(caller.owner, AddCommand(session_id, messages)).status
    added = f"Added {count} {'message' if count == 1 else 'messages'} to {session_id}"
    if not arguments.flush:
        return result(f"{added}.", session_id=session_id, message_count=count, status=status, memory_count=None)
    try:
        flushed = flush(caller.owner, session_id)
    except EngineError as error:
        if not count:
            raise
        text = f"{added}, but the flush failed: {error.detail} Call session_add again with flush and without messages."
        return failed(error.code, text)
    text = f"{added} and flushed it: {flushed.memory_count} new memories."
    values = {"status": flushed.status, "memory_count": flushed.memory_count}
    return result(text, session_id=session_id, message_count=count, **values)
