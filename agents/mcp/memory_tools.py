"""MCP tools that search, list, update and restore memories."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.mcp.openclaw_tools import MemoryId
from agents.tools.arguments import DESCRIBED_CATEGORIES, CategoryName, StrictArguments, Text, Whole
from agents.tools.caller import Caller, cleaned, get_memory, ref_of
from agents.tools.recall import visible
from agents.tools.results import Result, failed, framed, quoted, result, without_recalled_memories
from agents.tools.store import refused_category
from core import readable
from core.rest import WHOLE
from core.shapes import shared
from core.storable import check_text
from core.times import isoformat
from engines.registry import get_engine
from memories.api import rendering
from memories.api.schemas.memories import (
    DEFAULT_PAGE_SIZE,
    Cursor,
    Importance,
    KindOfMemory,
    MemoryPage,
    OverrideText,
    PageSize,
    SenderFilter,
    SessionFilter,
    Since,
    TypeFilter,
    Until,
    position_of,
)
from memories.api.schemas.search import TOP_K, ConversationId, Query
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.scoped_hits import Scope, ScopedHit, SearchCommand
from memories.services.search_log import logged_search
from store.types import MAX_TOP_K, ListRequest, StoredMemory


class SearchArguments(StrictArguments):
    model_config = ConfigDict(json_schema_extra={"required": ["query"]})

    query: Annotated[Query, AfterValidator(check_text)] = ""
    scope: list[Scope] = Field(
        default=["all_user_memory"],
        min_length=1,
        max_length=3,
        description="Where to search: `current_chat`, `resources` (the user's files) or `all_user_memory`.",
    )
    conversation_id: Annotated[ConversationId, AfterValidator(check_text)] | None = Field(
        None, description="The conversation that `current_chat` searches."
    )
    top_k: Whole = Field(TOP_K, ge=1, le=MAX_TOP_K, description="The maximum number of results for each scope.")


class ListArguments(StrictArguments):
    session_id: SessionFilter = Field(
        None,
        description="Only memories of this session: `chat:` and the id of a conversation, or another session's id.",
    )
    category: CategoryName | None = Field(None, description=f"Only memories of this category. {DESCRIBED_CATEGORIES}.")
    memory_type: TypeFilter = Field(
        None,
        description="Only memories of this type. `episode`: a message, a passage of a file or a fact; "
        "`unprocessed_message`: a message before its flush; `profile`, `agent_case`, `agent_skill`: made by a model.",
    )
    sender_id: SenderFilter = Field(None, description="Only messages and files of this sender, such as a participant.")
    since_ms: Annotated[Since, WHOLE] = None
    until_ms: Annotated[Until, WHOLE] = None
    deleted: bool = Field(False, description="True lists the memories in the trash instead of the others.")
    limit: Annotated[PageSize, WHOLE] = Field(DEFAULT_PAGE_SIZE, description="The maximum number of memories.")
    cursor: Annotated[Cursor, AfterValidator(check_text)] = None


class UpdateArguments(StrictArguments):
    memory_id: Text = Field(description="The id of the memory, from memory_recall, memory_search or memory_list.")
    text: Annotated[OverrideText, AfterValidator(check_text)] | None = Field(
        None, description="The new text, in words that need no context. Absent: the text stays."
    )
    category: CategoryName | None = Field(
        None, description=f"The new category. Absent: the category stays. {DESCRIBED_CATEGORIES}."
    )
    importance: Importance | None = Field(
        None, description="The new importance, 1 for most important. Absent: it stays."
    )


class RestoreArguments(StrictArguments):
    memory_id: Text = Field(description="The id of the memory, from memory_forget, or memory_list with `deleted`.")


class FoundMemory(BaseModel):
    id: MemoryId
    memory_type: KindOfMemory
    session_id: str | None = Field(description="The memory's session; null for memories without one.")
    source_scope: Scope = Field(description="The most specific of the searched scopes that has it.")
    text: str = Field(description="The text.")
    score: float | None = Field(description="The score, which only ranks; null if there is none.")
    created_at: str = Field(description="When it was said or stored.")
    attachments: list[str] = Field(description="The names of files that belong to it.")


class Found(BaseModel):
    results: list[FoundMemory] = Field(description="The memories, best first.")


class Listed(MemoryPage):
    """A page of memories, with the fields of `GET /memories`."""


class Decided(BaseModel):
    action: Literal["updated", "restored"] = Field(description="The change.")
    id: MemoryId


def search(caller: Caller, arguments: SearchArguments) -> Result:
    if not arguments.query.strip():
        return failed("missing_param", "Provide query: what to look for.")
    if arguments.scope == ["current_chat"] and arguments.conversation_id is None:
        return failed("missing_param", "Provide conversation_id: the conversation that current_chat searches.")
    scopes, given = frozenset(arguments.scope), shared(SearchCommand, arguments)
    command = SearchCommand(scopes=scopes, reader=caller.agent_id or None, **given)
    all_found = logged_search(caller.owner, command, interface=caller.interface).results
    visible_ids = {hit.memory_id for hit, _ in visible(caller, [one.hit for one in all_found])}
    found = [one for one in all_found if one.hit.memory_id in visible_ids]
    if not found:
        return result("Nothing was found.", results=[])
    lines = framed(_found_line(number, one) for number, one in enumerate(found, start=1))
    results = [
        {
            "id": one.hit.memory_id,
            "memory_type": one.hit.memory_type,
            "session_id": one.hit.session_id,
            "source_scope": one.scope,
            "text": one.hit.text,
            "score": one.hit.score,
            "created_at": isoformat(readable.moment(one.hit.created_at_ms)),
            "attachments": [file.name for file in one.attachments],
        }
        for one in found
    ]
    return result(f"Found {len(found)}:\n\n{lines}", results=results)


def _found_line(number: int, found: ScopedHit) -> str:
    hit = found.hit
    files_of = "".join(f" [file: {quoted(file.name)}]" for file in found.attachments)
    return (
        f"{number}. {isoformat(readable.moment(hit.created_at_ms))} {quoted(hit.text)}{files_of} [id: {hit.memory_id}]"
    )


def list_memories(caller: Caller, arguments: ListArguments) -> Result:
    """List memories that the caller may see. Raises: `InvalidInput` for the cursor."""
    request = ListRequest(
        **shared(ListRequest, arguments),
        reader=caller.agent_id or None,
        is_deleted=arguments.deleted,
        after=position_of(arguments.cursor),
    )
    page = get_engine().list(caller.owner, request)
    listed = rendering.memory_page(caller.owner, page)
    if not page.memories:
        return result("There are no such memories.", **listed)
    following = listed["next_cursor"]
    more = f"\nThere are more: call again with the cursor {following}" if following else ""
    lines = framed(_line(number, memory) for number, memory in enumerate(page.memories, start=1))
    return result(f"{len(page.memories)} listed:\n\n{lines}{more}", **listed)


def _line(number: int, memory: StoredMemory) -> str:
    kind = memory.category or memory.memory_type
    created_at = isoformat(readable.moment(memory.created_at_ms))
    return f"{number}. [{kind}] {created_at} {quoted(memory.text)} [id: {memory.memory_id}]"


def update(caller: Caller, arguments: UpdateArguments) -> Result:
    """Override a memory. Raises: `NotFound`, `Conflict` for a deleted one and for a message not flushed yet."""
    text = None if arguments.text is None else without_recalled_memories(arguments.text)
    if text == "" or (text, arguments.category, arguments.importance) == (None, None, None):
        return failed("missing_param", "Provide text, category or importance: what to change.")
    if arguments.category is not None and (refused := refused_category(arguments.category)):
        return refused
    memory = get_memory(caller, cleaned(arguments.memory_id))
    values = OverrideValues(text, arguments.category, arguments.importance)
    decisions.override(caller.owner.user_pk, ref_of(caller, memory.memory_id), values, actor=caller.actor)
    return result(f"Memory {memory.memory_id} updated.", action="updated", id=memory.memory_id)


def restore(caller: Caller, arguments: RestoreArguments) -> Result:
    """Restore a memory from the trash. Raises: `NotFound`."""
    memory = get_memory(caller, cleaned(arguments.memory_id))
    decisions.restore(caller.owner.user_pk, ref_of(caller, memory.memory_id), actor=caller.actor)
    return result(f"Memory {memory.memory_id} restored.", action="restored", id=memory.memory_id)
