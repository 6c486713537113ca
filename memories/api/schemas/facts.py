"""Request and response shapes of `POST /memories` and `POST /memories/bulk`."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from accounts.api.schemas import AuthenticatedBody, IsPaused, Moment, MomentOrDay, Refused, ScopedBody, Time
from core.ids import Name, NewSessionId
from core.labels import ExternalId, Metadata, Tags
from core.rest import Body, Problem
from memories.api.schemas.memories import Importance, MemoryId, MemoryOut
from memories.services.manual import DEFAULT_IMPORTANCE, MAX_TEXT_CHARS, NewFact
from store.categories import CATEGORIES, Category
from store.expiry import ending_of

MAX_FACTS = 500
_CLEARED: Final = frozenset({"tags", "metadata", "expires_at"})
"""The fields whose null clears what an older memory has."""


class _Fact(BaseModel):
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)] = Field(
        description="The text to remember. Store one thing at a time, in words that need no context.",
        examples=["I prefer short answers."],
    )
    category: Category | None = Field(None, description=f"The kind of memory. Absent: `{CATEGORIES[0]}`.")
    importance: Importance | None = Field(
        None, description=f"How important it is, 1 for the highest. Absent: {DEFAULT_IMPORTANCE}."
    )
    tags: Tags | None = Field(None, description="Words to find it by, each once.", examples=[["style"]])
    metadata: Metadata | None = Field(
        None,
        description="Data of your own: at most 16 KiB of JSON, 3 levels deep. Filters compare it; no remote gets it.",
        examples=[{"source": "settings"}],
    )
    external_id: ExternalId | None = Field(
        None,
        description="Your id of this fact. The same id again changes the memory; one that a person deleted is refused "
        "(409 `deleted_by_person`).",
        examples=["crm-17"],
    )
    created_at: Moment | None = Field(None, description="When it was said. Absent: now.", examples=[None])
    expires_at: MomentOrDay | None = Field(
        None,
        description="When it ends: a time, or the last day in the person's time zone. Null: never. Absent: never, or "
        "as a memory of the same text or `external_id` has it.",
        examples=[None],
    )
    agent_id: Name | None = Field(
        None, description="The agent that stores it, and which alone finds it then. Absent: none.", examples=[None]
    )
    session_id: NewSessionId | None = Field(
        None, description="The session that it belongs to. Absent: `memory_edit:{user_id}`.", examples=[None]
    )

    def fact(self, user_pk: UUID) -> NewFact:
        """Return the fact of a user. Raises: `InvalidInput` for an `expires_at` that has passed."""
        given = {name for name in self.model_fields_set if name in _CLEARED or getattr(self, name) is not None}
        return NewFact(
            text=self.text,
            category=self.category or CATEGORIES[0],
            importance=DEFAULT_IMPORTANCE if self.importance is None else self.importance,
            agent_id=self.agent_id or "",
            session_id=self.session_id or "",
            tags=self.tags or (),
            metadata=self.metadata or {},
            external_id=self.external_id or "",
            created_at=self.created_at,
            expires_at=ending_of(self.expires_at, user_pk),
            given=given,
        )


class FactBody(_Fact, ScopedBody):
    """A fact to store."""


class FactItem(_Fact, Body):
    """A fact of a bulk request."""

    app_id: Name | None = Field(None, description="The application of its scope. Absent: `default`.")
    project_id: Name | None = Field(None, description="The project of its scope. Absent: `default`.")


class _FactItems:
    """Marks a list of plain JSON that the schema describes as `FactItem`s: each is parsed by itself."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.list_schema(
            core_schema.dict_schema(core_schema.str_schema()), min_length=1, max_length=MAX_FACTS
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        items = TypeAdapter(Annotated[list[FactItem], Field(min_length=1, max_length=MAX_FACTS)])
        return handler(items.core_schema)


class BulkBody(AuthenticatedBody):
    """Facts to store, each by itself."""

    memories: Annotated[list[dict[str, Any]], _FactItems] = Field(
        description="The facts. Each has its own result; none waits for another.",
        examples=[[{"text": "The customer pays by invoice.", "external_id": "crm-18"}]],
    )


_ACTION = (
    "`created`, `updated` (an older memory of the same `external_id`, or of the same text), `unchanged`, or "
    "`refused` by the person's controls."
)
ActionName = Annotated[
    Literal["created", "updated", "unchanged", "refused"], Field(description=_ACTION, examples=["created"])
]
Redacted = Annotated[
    dict[str, int] | None,
    Field(description="The number of values that were masked, by kind. Absent if there are none."),
]


class SimilarMemory(BaseModel):
    """An older memory with similar words, which the new one may replace."""

    id: MemoryId
    text: str = Field(description="The beginning of its text.", examples=["I like short answers."])
    created_at: Time = Field(description="When it was said.")


class FactOut(BaseModel):
    """A stored fact."""

    memory: MemoryOut | None = Field(description="The memory as it is now; null if it was refused.")
    action: ActionName
    similar: list[SimilarMemory] = Field(
        description="Other notes with similar words, the nearest first; at most three.", examples=[[]]
    )
    replaces: list[str] = Field(
        description="The ids of older memories that this one replaces by rule: searches show it before them.",
        examples=[[]],
    )
    stored: int = Field(description="1, or 0 if it was refused.", examples=[1])
    refused: Refused = None
    paused: IsPaused = None
    redacted: Redacted = None


EXAMPLE: Final = {
    "id": "613144a3-5245-5052-80e6-47a15e6817f1",
    "memory_type": "episode",
    "session_id": "memory_edit:u_123",
    "app_id": "default",
    "project_id": "default",
    "text": "I prefer short answers.",
    "category": "user_memory_fact",
    "importance": DEFAULT_IMPORTANCE,
    "sender_id": "u_123",
    "sender_name": None,
    "role": None,
    "tool_calls": None,
    "tool_call_id": None,
    "agent_id": "",
    "timestamp_ms": 1781172177000,
    "override_id": None,
    "deleted_at": None,
    "tags": ["style"],
    "metadata": {"source": "settings"},
    "external_id": "crm-17",
}
"""The memory of the example request."""


class BulkResult(BaseModel):
    """The result of one fact."""

    index: int = Field(description="Its position in the request, from 0.", examples=[0])
    status: int = Field(description="The HTTP status that it would have alone.", examples=[201])
    id: MemoryId | None = Field(None, description="The id of the memory. Absent for an error.")
    action: ActionName | None = Field(
        None,
        description="The effect: created, updated, left as it was or refused. Absent for an error.",
        examples=["created"],
    )
    refused: Refused = None
    paused: IsPaused = None
    redacted: Redacted = None
    code: str | None = Field(None, description="The error for programs. Absent without one.", examples=[None])
    detail: str | None = Field(None, description="The error and its remedy. Absent without an error.", examples=[None])
    errors: list[Problem.FieldProblem] | None = Field(
        None, description="The invalid fields of the fact. Absent without an error.", examples=[None]
    )


class BulkOut(BaseModel):
    """The results of facts, in their order."""

    results: list[BulkResult] = Field(description="One for each fact.")
    stored: int = Field(description="The number of facts that were neither refused nor had an error.", examples=[1])
    paused: IsPaused = None
