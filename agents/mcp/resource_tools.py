"""MCP tools for the user's files."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agents.mcp import files
from agents.tools.arguments import StrictArguments, Text, Whole
from agents.tools.caller import Caller
from agents.tools.results import Result, framed, quoted, result
from core.times import isoformat


class ListArguments(StrictArguments):
    limit: Whole = Field(files.PAGE, ge=1, le=100, description="The maximum number of resources.")
    cursor: Text | None = Field(None, description="The `next_cursor` of the page before. Absent: the first page.")


class ReadArguments(StrictArguments):
    resource_id: Text = Field(description="The resource_id of the file, from memory_recall or resources_list.")
    offset: Whole = Field(0, ge=0, description="The character to begin with: 0, or the next_offset of the call before.")


class ListedResource(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    resource_id: str = Field(description="The id of the file.")
    uri: str = Field(description="Its address as an MCP resource.")
    filename: str = Field(description="Its name.")
    title: str | None = Field(description="Its title, if it was given one.")
    description: str | None = Field(description="Its description, if it was given one.")
    mime_type: str | None = Field(description="Its media type.")
    size_bytes: int | None = Field(description="Its size; null if unknown.")
    status: str = Field(description="The state of its ingestion; `extracted` if its text can be read.")
    created_at: Annotated[str, BeforeValidator(isoformat)] = Field(description="When it was uploaded.")


class Listed(BaseModel):
    resources: list[ListedResource] = Field(description="The files, newest first.")
    next_cursor: str | None = Field(description="The `cursor` of the next page; null on the last page.")


class Part(BaseModel):
    resource_id: str = Field(description="The id of the file.")
    status: str = Field(description="The state of its ingestion.")
    text: str = Field(description="This part of its text.")
    next_offset: int | None = Field(description="The `offset` of the next part; null after the last one.")


def list_resources(caller: Caller, arguments: ListArguments) -> Result:
    rows, following = files.page(caller.owner, arguments.cursor, arguments.limit)
    resources = [ListedResource.model_validate(row) for row in rows]
    if not resources:
        return result("There are no resources.", resources=[], next_cursor=None)
    lines = [
        quoted(f"{one.filename} ({one.mime_type}, {one.status}, {one.created_at})")
        + f" [resource_id: {one.resource_id}]"
        for one in resources
    ]
    more = f"\nThere are more: call again with the cursor {following}" if following else ""
    return result(framed(lines) + more, resources=[one.model_dump() for one in resources], next_cursor=following)


def read_resource(caller: Caller, arguments: ReadArguments) -> Result:
    resource = files.find(caller.owner, arguments.resource_id)
    text, total = files.part(caller.owner, resource, arguments.offset)
    end = arguments.offset + len(text)
    heading = f"{resource.filename} ({resource.uri}), characters {arguments.offset}-{end} of {total}:"
    return result(
        framed([quoted(heading), quoted(text)]),
        resource_id=resource.resource_id,
        status=resource.status,
        text=text,
        next_offset=end if end < total and text else None,
    )
