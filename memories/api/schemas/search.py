"""The wire shapes of `POST /memories/search`."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from accounts.api.schemas import ScopedBody
from core.ids import MAX_SESSION_ID_CHARS, Name, check_session_id
from core.rest import WHOLE
from documents.mime_types import ContentType
from memories.api.filters import FilterTree
from memories.services.search import Scope, SearchCommand
from store.neighbours import MAX_NEIGHBOURS
from store.types import MAX_TOP_K, MemoryType, Method

DEFAULT_TOP_K = 20
MAX_QUERY_CHARS = 8192
_COMMAND_FIELDS = frozenset(field.name for field in fields(SearchCommand))
_MAX_CHAT_CHARS = MAX_SESSION_ID_CHARS - len("chat:")


def _check_conversation_id(value: str) -> str:
    try:
        check_session_id(f"chat:{value}" if value else "")
    except ValueError:
        raise ValueError(f"must be 1 to {_MAX_CHAT_CHARS} characters without control characters") from None
    return value


ConversationId = Annotated[
    str,
    AfterValidator(_check_conversation_id),
    Field(json_schema_extra={"pattern": rf"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]{{1,{_MAX_CHAT_CHARS}}}$"}),
]


def _check_top_k(value: int) -> int:
    if value == -1:
        return DEFAULT_TOP_K
    if 1 <= value <= MAX_TOP_K:
        return value
    raise ValueError(f"must be 1 to 100, or -1 for the default of {DEFAULT_TOP_K}")


class SearchBody(ScopedBody):
    """A question to the caller's memories."""

    query: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARS)] = Field(
        description="The question, in any language."
    )
    conversation_id: ConversationId | None = Field(
        None, description="The chat that scope `current_chat` searches; without it that scope finds nothing."
    )
    scope: list[Scope] = Field(
        default=["current_chat", "resources"],
        min_length=1,
        max_length=100,
        description="Where to search: the session `chat:{conversation_id}`, the caller's extracted resources, or all "
        "of the caller's memory.",
    )
    agent_id: Name | None = Field(None, description="Search the memories of this agent of the caller's.")
    method: Method = Field("hybrid", description="`vector` and `agentic` need their endpoints to be set up.")
    top_k: Annotated[int, AfterValidator(_check_top_k), WHOLE] = Field(
        8,
        json_schema_extra={"anyOf": [{"const": -1}, {"minimum": 1, "maximum": 100}]},
        description=f"At most so many results of each scope, 1 to 100; -1 means {DEFAULT_TOP_K}. "
        "Profiles and unprocessed messages do not count.",
    )
    radius: float | None = Field(
        None, ge=0, le=1, description="The least similarity of what vectors find; keywords have none and are not cut."
    )
    include_profile: bool = Field(True, description="Also return the caller's profile.")
    enable_llm_rerank: bool = Field(True, description="Let an LLM sort the results where one is set up.")
    filters: Annotated[dict[str, Any], FilterTree] | None = Field(
        None, description="Conditions that narrow the search; they can never widen it."
    )
    context: Annotated[int, Field(ge=0, le=MAX_NEIGHBOURS), WHOLE] = Field(
        0,
        description="With each result, so many memories that stand before and after it in its session: the turns of a "
        "chat, the passages of a document.",
    )
    explain: bool = Field(False, description="Say of each result why it was found.")

    def command(self) -> SearchCommand:
        values = {name: value for name, value in self if name in _COMMAND_FIELDS}
        return SearchCommand(scopes=frozenset(self.scope), **values)


class AttachmentOut(BaseModel):
    """A file that a memory speaks of, and where it really lies."""

    type: ContentType
    name: str
    internal_uri: str


class Explanation(BaseModel):
    """Why a result was found, and why it says what it says."""

    legs: dict[str, Any] = Field(description="Score, rank and matched terms of each leg of the method.")
    override_id: str | None = Field(description="The correction that it carries.")


class NeighbourOut(BaseModel):
    """A memory beside a result."""

    id: str
    sender_id: str
    text: str
    timestamp_ms: int


class ContextOut(BaseModel):
    """What stands beside a result in its session, in order. What the caller deleted is left out."""

    before: list[NeighbourOut]
    after: list[NeighbourOut]


class SearchResultOut(BaseModel):
    """A memory. `raw` is the engine's own record without file contents; `score` compares within one method only."""

    id: str
    memory_type: MemoryType
    session_id: str | None
    text: str
    score: float | None
    source_scope: Scope
    resource_id: str | None
    resource_uri: str | None
    attachments: list[AttachmentOut]
    raw: dict[str, Any]
    explain: Explanation | None = Field(None, description="Absent unless `explain` was asked for.")
    context: ContextOut | None = Field(None, description="Absent unless `context` was asked for.")


class ScopeMeta(BaseModel):
    """What became of one scope."""

    asked: int = Field(description="How many results were asked for; 0: the scope had nothing to search.")
    sessions: int | None = Field(description="How many sessions were searched; null: all of the caller's.")
    found: int = Field(description="How many the engine found, before scopes were merged.")
    hidden: int = Field(
        description="How many of them the caller had deleted; the embedded engine leaves those out before it counts."
    )
    replaced: int = Field(description="How many carry a text that the caller had corrected.")
    degraded: str | None = Field(description="Why the method differs from the one asked for.")
    exhausted: bool = Field(
        description="So many were left out that fewer than `top_k` remain, though the engine was asked for 100."
    )
    ms: float = Field(description="Milliseconds until the engine answered; scopes are asked together.")


class SearchMeta(BaseModel):
    method: Method = Field(description="The method that was really used.")
    scopes: dict[Scope, ScopeMeta]


class SearchOut(BaseModel):
    results: list[SearchResultOut]
    meta: SearchMeta
