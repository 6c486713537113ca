"""Request and response shapes of `/api/v1/memories`. The documents themselves are in `profiles.schemas`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, RootModel

from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery
from core.ids import Name
from profiles.api.openapi import patch_schema
from profiles.labels import Language
from profiles.prompts import AgentType
from profiles.schemas import MODELS, UserMemoryContent, WorkProfileContent

_AGENT_ID = "The agent that writes, if one does: entries without `meta` are then marked as inferred by an agent."
_MERGE_LISTS = (
    "Merge lists of named entries by `name`: change, add, and remove with `$remove`. Otherwise a list is replaced."
)
MAX_VERSION = 2**31 - 1


class _WriteBody(AuthenticatedBody):
    agent_id: Name | None = Field(None, description=_AGENT_ID)


class UserMemoryBody(_WriteBody):
    content: UserMemoryContent = Field(description="The whole document.")


class WorkMemoryBody(_WriteBody):
    content: WorkProfileContent = Field(description="The whole document.")


class _PatchBody(_WriteBody):
    merge_lists: bool = Field(False, description=_MERGE_LISTS)


class UserMemoryPatch(_PatchBody):
    content: dict[str, Any] = Field(
        description="What changes (JSON Merge Patch): `null` takes a field back to its default.",
        json_schema_extra=patch_schema(MODELS["user"]),
    )


class WorkMemoryPatch(_PatchBody):
    content: dict[str, Any] = Field(
        description="What changes (JSON Merge Patch): `null` takes a field back to its default.",
        json_schema_extra=patch_schema(MODELS["work"]),
    )


class RestoreBody(AuthenticatedBody):
    """A body with credentials only."""


class HistoryQuery(AuthenticatedQuery):
    before: int | None = Field(None, ge=1, le=MAX_VERSION, description="Only versions before this one.")
    limit: int = Field(20, ge=1, le=100, description="How many at most.")


class PromptQuery(AuthenticatedQuery):
    agent: AgentType = Field(description="`router` is told of the user, `worker` of the work.")
    max_tokens: int | None = Field(None, ge=1, le=1_000_000, description="The most that the prompt may take.")
    language: Language | None = Field(None, description="Left out: the user's own, where it is one of these.")


class UserMemory(RootModel[UserMemoryContent | None]):
    """The document; null while it is disabled."""


class WorkMemory(RootModel[WorkProfileContent | None]):
    """The document; null while it is disabled."""


class AnyMemory(RootModel[UserMemoryContent | WorkProfileContent]):
    """The document of the requested kind."""


class BothMemories(BaseModel):
    user_memory: UserMemoryContent | None
    work_memory: WorkProfileContent | None


class Change(BaseModel):
    version: int
    action: Literal["write", "patch", "restore", "disable", "enable"]
    by: str = Field(description="`key`, `operator`, `command` or `system`.")
    at: str


class History(BaseModel):
    changes: list[Change] = Field(description="Newest first.")


class Revision(Change):
    content: UserMemoryContent | WorkProfileContent | None = Field(
        description="The document as this change left it; null while it is disabled."
    )


class Prompt(BaseModel):
    agent: AgentType
    language: Language
    prompt: str = Field(description="To be put into the system prompt as it is; empty if nothing is known.")
    estimated_tokens: int
