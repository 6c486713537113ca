"""Arguments and answers of OpenClaw's tools as MCP publishes them.

OpenClaw's tools ignore unknown arguments, which MCP refuses.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from agents.tools import arguments
from agents.tools.arguments import DEFAULT_IMPORTANCE, MAX_LIMIT, StrictArguments, Text, Whole
from agents.tools.time_arguments import AsOf, Since, Until
from memories.api.schemas.memories import Importance

MemoryId = Annotated[str, Field(description="The id of the memory.")]
CopyIds = Annotated[
    list[str], Field(description="The ids of its copies, which were changed with it; absent if there are none.")
]
Score = Annotated[float, Field(description="The relevance to the query, 0 to 1.")]


class RecallArguments(arguments.RecallArguments, StrictArguments):
    limit: Whole = Field(MAX_LIMIT, ge=1, le=MAX_LIMIT, description="The maximum number of memories.")
    since: Since = None
    until: Until = None
    as_of: AsOf = None


class StoreArguments(arguments.StoreArguments, StrictArguments):
    importance: Importance = Field(DEFAULT_IMPORTANCE, description="How important it is, 1 for most important.")


class ForgetArguments(arguments.ForgetArguments, StrictArguments):
    memory_id: Text = Field("", description="The id of the memory, from memory_recall.")


class Candidate(BaseModel):
    id: MemoryId
    text: str = Field(description="The text.")
    category: str = Field(description="The category, or the memory's type if it has none.")
    score: Score


class SimilarMemory(BaseModel):
    id: MemoryId
    text: str = Field(description="The first 200 characters of the text.")
    created_at: str = Field(description="When it was stored.")


class Stored(BaseModel):
    action: Literal["created", "updated", "refused"] = Field(
        description="`updated` if a memory has the same text; `refused` by the person's controls."
    )
    id: MemoryId | None
    similar: list[SimilarMemory] = Field(
        [], description="Older memories that this one may replace: update or forget them by their ids."
    )
    redacted: dict[str, int] = Field(
        {}, description="The number of values that were masked in the text, by kind; absent if there are none."
    )
    stored: int = Field(1, description="0 if it was refused.")
    refused: dict[str, int] = Field({}, description="How many the person's controls refused, by reason.")
    paused: bool = Field(False, description="True while the person pauses remembering.")


class Forgotten(BaseModel):
    action: Literal["deleted", "not_found", "candidates"] = Field("deleted", description="The outcome.")
    id: MemoryId = ""
    copies: CopyIds = []
    rows: int = Field(1, description="The number of memories that a query deleted.")
    candidates: list[Candidate] = Field([], description="The memories that the query may mean; none was deleted.")
    found: int = Field(0, description="0 if no memory matches the query.")
