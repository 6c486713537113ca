"""Request and response shapes of `/api/v1/memories`. The documents themselves are in `profiles.schemas`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from accounts.api.schemas import AuthenticatedBody, AuthenticatedQuery, Time
from core.ids import Name
from profiles.labels import Language
from profiles.merge import REMOVE
from profiles.prompts import AgentType
from profiles.schemas import MODELS, Kind, UserMemoryContent, WorkProfileContent
from profiles.services import MAX_VERSION

_AGENT_ID = "The agent that writes. Entries without `meta` are then marked as inferred by an agent, else as the user's."
_DOCUMENT = "The whole document. Absent fields take their defaults."
_PATCH = "The changes as a JSON Merge Patch: absent fields stay, and `null` resets a field to its default."
_REMOVE = "True removes the entry of this name. Requires `merge_lists`."
_NAMED = ("type", "description", "additionalProperties")
KindOfDocument = Annotated[
    Kind,
    Field(description="The document: `user` (personal facts) or `work` (working style).", examples=["user"]),
]
Version = Annotated[int, Field(description="The number of the version. The first one is 1.", examples=[1])]


def _patch_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a document's patch: any part of it, null for a default, and entries to remove.

    The schema has no references, because it is embedded in another schema.
    """
    schema = model.model_json_schema()
    return _object(schema, schema["$defs"])


def _object(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    fields = {
        name: field if name in required else _field(field, definitions) for name, field in schema["properties"].items()
    }
    if "name" in fields:
        fields[REMOVE] = {"type": "boolean", "description": _REMOVE}
    return {**{key: schema[key] for key in _NAMED if key in schema}, "properties": fields, "required": required}


def _field(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the field's schema with null allowed and without its default."""
    known = {key: value for key, value in field.items() if key not in {"default", "title", "description", "examples"}}
    if "$ref" in known:
        known = _object(definitions[known["$ref"].rpartition("/")[2]], definitions)
    if "$ref" in known.get("items", {}):
        known = {**known, "items": _object(definitions[known["items"]["$ref"].rpartition("/")[2]], definitions)}
    alternatives = known.get("anyOf", [known])
    either = [item for item in alternatives if item != {"type": "null"}] + [{"type": "null"}]
    return {"description": field["description"], "anyOf": either}


class _WriteBody(AuthenticatedBody):
    agent_id: Name | None = Field(None, description=_AGENT_ID)


class UserMemoryBody(_WriteBody):
    """A new user document."""

    content: UserMemoryContent = Field(description=_DOCUMENT)


class WorkMemoryBody(_WriteBody):
    """A new work document."""

    content: WorkProfileContent = Field(description=_DOCUMENT)


class _PatchBody(_WriteBody):
    merge_lists: bool = Field(
        False, description="True merges lists of named entries by `name`. False replaces each list in `content`."
    )


class UserMemoryPatch(_PatchBody):
    """Changes of the user document."""

    content: dict[str, Any] = Field(description=_PATCH, json_schema_extra=_patch_schema(MODELS["user"]))


class WorkMemoryPatch(_PatchBody):
    """Changes of the work document."""

    content: dict[str, Any] = Field(description=_PATCH, json_schema_extra=_patch_schema(MODELS["work"]))


class RestoreBody(AuthenticatedBody):
    """An empty object, or credentials."""


class HistoryQuery(AuthenticatedQuery):
    """A page of a document's history."""

    before: int | None = Field(None, ge=1, le=MAX_VERSION, description="Only versions before this one.")
    limit: int = Field(20, ge=1, le=100, description="The size of a page.")


class PromptQuery(AuthenticatedQuery):
    """The agent that reads the prompt, and its limits."""

    agent: AgentType = Field(
        description="The agent: `router` gets the `user` document, `worker` the `work` document.", examples=["router"]
    )
    max_tokens: int | None = Field(
        None, ge=1, le=1_000_000, description="The maximum length, in estimated tokens. Absent: no maximum."
    )
    language: Language | None = Field(
        None, description="The language of the prompt. Absent: the user's own if it is supported, else English."
    )


class UserMemory(RootModel[UserMemoryContent | None]):
    """The user document; null while an operator has disabled it."""


class WorkMemory(RootModel[WorkProfileContent | None]):
    """The work document; null while an operator has disabled it."""


class AnyMemory(RootModel[UserMemoryContent | WorkProfileContent]):
    """The document of the requested kind."""


class BothMemories(BaseModel):
    """Both documents of the user."""

    user_memory: UserMemoryContent | None = Field(description="The user document; null while it is disabled.")
    work_memory: WorkProfileContent | None = Field(description="The work document; null while it is disabled.")


class Change(BaseModel):
    """A change of a document."""

    version: Version
    action: Literal["write", "patch", "restore", "disable", "enable"] = Field(
        description="The change.", examples=["write"]
    )
    by: str = Field(description="Who did it: `key`, `operator`, `command` or `system`.", examples=["key"])
    agent_id: str | None = Field(description="The agent that did it, if the request named one.", examples=[None])
    at: Time = Field(description="When it was done.")


class History(BaseModel):
    """The history of a document."""

    changes: list[Change] = Field(description="The changes, newest first.")


class Revision(Change):
    """A version of a document."""

    content: UserMemoryContent | WorkProfileContent | None = Field(
        description="The document after this change; null while it was disabled."
    )


class Prompt(BaseModel):
    """A part of a system prompt."""

    agent: AgentType = Field(description="The requested agent.", examples=["router"])
    language: Language = Field(description="The language of the prompt.", examples=["en"])
    prompt: str = Field(
        description="The text for the system prompt; empty if the document is empty or disabled.",
        examples=["<!-- USER_MEMORY_START -->\n…\nOccupation: architect\n<!-- USER_MEMORY_END -->"],
    )
    estimated_tokens: int = Field(description="The estimated length in tokens.", examples=[77])
