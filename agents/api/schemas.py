"""Request and response shapes of `POST /tools/invoke`, which are OpenClaw's."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agents.tools.arguments import ForgetArguments, RecallArguments, StoreArguments
from core.rest import Problem

_TOOLS: list[JsonValue] = ["memory_recall", "memory_store", "memory_forget"]


class ToolArguments(RecallArguments, StoreArguments, ForgetArguments):
    """The arguments of all tools. Each tool ignores those of the others, with a warning.

    `memory_recall` takes `query`, `limit` and `max_tokens`, `memory_store` takes `text`, `importance` and `category`,
    `memory_forget` takes `memoryId` or `query`.
    """

    model_config = ConfigDict(json_schema_extra={"required": [], "examples": [{"text": "Ana is allergic to nuts."}]})


class _ToolArgumentsSchema:
    """Describe a field as `ToolArguments`. The tool itself parses it."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(ToolArguments.__pydantic_core_schema__)


class ToolInvocation(BaseModel):
    """A call of a tool. Fields without a meaning here, such as OpenClaw's `dryRun`, are ignored with a warning."""

    model_config = ConfigDict(strict=True)

    tool: str = Field(
        validation_alias=AliasChoices("tool", "name"),
        description="The tool; `name` is accepted instead.",
        json_schema_extra={"enum": _TOOLS},
        examples=["memory_store"],
    )
    args: Annotated[dict[str, Any] | None, _ToolArgumentsSchema()] = Field(
        default_factory=dict, description="The arguments of the tool. Numbers are brought into their range."
    )
    agent_id: str | None = Field(
        None, alias="agentId", description="The agent. Absent: the one that `sessionKey` names, else `main`."
    )
    session_key: str | None = Field(
        None,
        alias="sessionKey",
        description="OpenClaw's session, such as `agent:main:telegram:7`. Stored memories belong to it.",
    )


class ToolText(BaseModel):
    """A text for the language model."""

    type: Literal["text"] = Field(description="Always `text`.", examples=["text"])
    text: str = Field(
        description="The result in words.",
        examples=['Stored: "Ana is allergic to nuts." [id: 613144a3-5245-5052-80e6-47a15e6817f1]'],
    )


class ToolResult(BaseModel):
    """The result of a tool."""

    content: list[ToolText] = Field(description="The result for the language model: one text.")
    details: dict[str, Any] = Field(
        description="The result for programs, by tool. `error` is a code, such as `missing_param`.",
        examples=[{"action": "created", "id": "613144a3-5245-5052-80e6-47a15e6817f1"}],
    )


class ToolAnswer(BaseModel):
    """The answer to a call."""

    ok: Literal[True] = Field(description="Always true.", examples=[True])
    result: ToolResult = Field(description="The result of the tool.")
    warnings: list[Problem.FieldProblem] | None = Field(
        None,
        description="The fields and arguments that were ignored; absent if there are none.",
    )


class ToolProblem(BaseModel):
    """An error in OpenClaw's shape."""

    class ToolError(BaseModel):
        """The kind of the error and a sentence."""

        type: str = Field(description="The error for programs, such as `invalid_request`.", examples=["tool_error"])
        message: str = Field(description="What happened and what to do.", examples=["The memory is in the trash."])

    ok: Literal[False] = Field(description="Always false.", examples=[False])
    error: ToolError = Field(description="The error.")
