"""MCP tools that search, list, update and restore memories."""

from typing import Annotated, Final, Literal

from django.db import transaction
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.mcp.openclaw_tools import CopyIds, MemoryId
from agents.tools import budget
from agents.tools.arguments import (
    MAX_TOKENS_FIELD,
    CategoryName,
    StrictArguments,
    Text,
    Whole,
)
from agents.tools.budget import Entry
from agents.tools.caller import Caller, cleaned, get_memory, ref_of
from agents.tools.found import visible
from agents.tools.results import Result, and_copies, failed, framed, quoted, result
from agents.tools.store import refused_category
from agents.tools.time_arguments import AsOf, Expires, Since, Until, as_of_time, bounds_ms, end_of, time_filter
from core import pagination, readable
from core.errors import InvalidInput, NotFound
from core.messages import Translatable as _
from core.persistence import replica
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
    OverrideText,
    PageSize,
    SenderFilter,
    SessionFilter,
    TypeFilter,
    position_of,
)
from memories.api.schemas.memories import Since as SinceMs
from memories.api.schemas.memories import Until as UntilMs
from memories.api.schemas.search import TOP_K, ConversationId, Query
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.hygiene import own_text
from memories.services.lookup import memory_at
from memories.services.scoped_hits import Scope, ScopedHit, SearchCommand
from memories.services.search_log import logged_search
from store.admission import Offer, require
from store.types import KEPT, MAX_TOP_K, ListRequest, Position, StoredMemory

GET_CHARS: Final = 4000
"""The characters of a memory that one call returns."""
_MAX_FILES: Final = 3
_MAX_FILE_NAME: Final = 80


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
    max_tokens: Whole = MAX_TOKENS_FIELD
    since: Since = None
    until: Until = None
    as_of: AsOf = None


class ListArguments(StrictArguments):
    session_id: SessionFilter = Field(
        None,
        description="Only memories of this session: `chat:` and the id of a conversation, or another session's id.",
    )
    category: CategoryName | None = Field(
        None, description="Only memories of this category, as memory_store describes them."
    )
    memory_type: TypeFilter = Field(
        None,
        description="Only memories of this type. `episode`: a message, a passage of a file or a fact; "
        "`unprocessed_message`: a message before its flush; `profile`, `agent_case`, `agent_skill`: made by a model.",
    )
    sender_id: SenderFilter = Field(None, description="Only messages and files of this sender, such as a participant.")
    since: Since = None
    until: Until = None
    since_ms: Annotated[SinceMs, WHOLE] = None
    until_ms: Annotated[UntilMs, WHOLE] = None
    as_of: AsOf = None
    deleted: bool = Field(False, description="True lists the memories in the trash instead of the others.")
    limit: Annotated[PageSize, WHOLE] = Field(DEFAULT_PAGE_SIZE, description="The maximum number of memories.")
    cursor: Annotated[Cursor, AfterValidator(check_text)] = None
    max_tokens: Whole = MAX_TOKENS_FIELD


class GetArguments(StrictArguments):
    memory_id: Text = Field(description="The id of the memory, from memory_recall, memory_search or memory_list.")
    session_id: SessionFilter = Field(None, description="The memory's session. Required for an incognito one.")
    offset: Whole = Field(0, ge=0, description="The character to begin with: 0, or the next offset of the call before.")
    as_of: AsOf = None


class UpdateArguments(StrictArguments):
    memory_id: Text = Field(description="The id of the memory, from memory_recall, memory_search or memory_list.")
    text: Annotated[OverrideText, AfterValidator(check_text)] | None = Field(
        None, description="The new text, in words that need no context. Absent: the text stays."
    )
    category: CategoryName | None = Field(
        None, description="The new category, as memory_store describes them. Absent: the category stays."
    )
    importance: Importance | None = Field(
        None, description="The new importance, 1 for most important. Absent: it stays."
    )
    expires_at: Expires = None


class RestoreArguments(StrictArguments):
    memory_id: Text = Field(description="The id of the memory, from memory_forget, or memory_list with `deleted`.")
    expires_at: Expires = None


class Decided(BaseModel):
    action: Literal["updated", "restored"] = Field(description="The change.")
    id: MemoryId
    copies: CopyIds = []


def search(caller: Caller, arguments: SearchArguments) -> Result:
    if not arguments.query.strip():
        return failed("missing_param", "Provide query: what to look for.")
    if arguments.scope == ["current_chat"] and arguments.conversation_id is None:
        return failed("missing_param", "Provide conversation_id: the conversation that current_chat searches.")
    scopes = frozenset(arguments.scope)
    given = shared(SearchCommand, arguments) | {"as_of": as_of_time(caller, arguments.as_of)}
    chosen = time_filter(arguments.since, arguments.until)
    command = SearchCommand(scopes=scopes, reader=caller.agent_id or None, filters=chosen, **given)
    all_found = logged_search(caller.owner, command, interface=caller.interface).results
    visible_ids = {hit.memory_id for hit, _ in visible(caller, [one.hit for one in all_found])}
    found = [one for one in all_found if one.hit.memory_id in visible_ids]
    if not found:
        return result("Nothing was found.", results=[])
    listed = budget.listed([_found(one) for one in found], query=arguments.query, max_tokens=arguments.max_tokens)
    text = f"Found {len(found)}:\n\n{listed.text}{budget.left_out(len(found) - listed.shown)}"
    return result(text, results=[{"id": one.hit.memory_id, "text": one.hit.text} for one in found])


def _found(found: ScopedHit) -> Entry:
    hit, named = found.hit, found.attachments[:_MAX_FILES]
    files_of = "".join(f"[file: {quoted(file.name[:_MAX_FILE_NAME])}] " for file in named)
    return Entry(hit.text, isoformat(readable.moment(hit.created_at_ms)), f"{files_of}[id: {hit.memory_id}]")


def list_memories(caller: Caller, arguments: ListArguments) -> Result:
    """List memories that the caller may see. Raises: `InvalidInput` for the cursor."""
    if arguments.as_of and arguments.deleted:
        raise InvalidInput.of_field("as_of", _("cannot be combined with deleted: the trash is as it is now"))
    request = ListRequest(
        **shared(ListRequest, arguments)
        | bounds_ms(caller, arguments.since, arguments.until)
        | {"as_of": as_of_time(caller, arguments.as_of)},
        reader=caller.agent_id or None,
        is_deleted=arguments.deleted,
        after=position_of(arguments.cursor),
    )
    page = replica.read(replica.user_of(caller.owner.user_pk), lambda: get_engine().list(caller.owner, request))
    if not page.memories:
        return result("There are no such memories.", memories=[], next_cursor=None)
    listed = budget.listed([_listed(memory) for memory in page.memories], max_tokens=arguments.max_tokens)
    memories, following = page.memories[: listed.shown], page.following
    if listed.shown < len(page.memories):  # the next page begins with the first memory that did not fit
        following = Position(memories[-1].created_at_ms, memories[-1].row)
    cursor = None if following is None else pagination.encode(*following)
    more = f"\nThere are more: call again with the cursor {cursor}" if cursor else ""
    return result(
        f"{listed.shown} listed:\n\n{listed.text}{more}",
        memories=[rendering.memory(memory, {}, with_labels=False) for memory in memories],
        next_cursor=cursor,
    )


def _listed(memory: StoredMemory) -> Entry:
    kind, created_at = memory.category or memory.memory_type, isoformat(readable.moment(memory.created_at_ms))
    return Entry(memory.text, f"[{kind}] {created_at}", f"[id: {memory.memory_id}]")


def get(caller: Caller, arguments: GetArguments) -> Result:
    """Return a part of a memory's text. Raises: `NotFound`, also for an incognito session that is not named."""
    memory = get_memory(caller, cleaned(arguments.memory_id))
    if memory.is_incognito and memory.session_id != arguments.session_id:
        raise NotFound(_("There is no such memory."))
    if (at := as_of_time(caller, arguments.as_of)) is not None:
        memory = memory_at(memory, at)
    end = arguments.offset + GET_CHARS
    text = memory.text[arguments.offset : end]
    heading = f"[id: {memory.memory_id}], characters {arguments.offset}-{arguments.offset + len(text)} of"
    more = f"\nThere is more: call again with the offset {end}" if end < len(memory.text) else ""
    return result(f"{framed([f'{heading} {len(memory.text)}:', quoted(text)])}{more}", id=memory.memory_id, text=text)


def update(caller: Caller, arguments: UpdateArguments) -> Result:
    """Override a memory and its copies. Raises: `NotFound`, `Conflict` for a deleted one, `NotKept`."""
    text = None if arguments.text is None else own_text(arguments.text).strip()
    values = OverrideValues(text, arguments.category, arguments.importance)
    if text == "" or (values == OverrideValues() and arguments.expires_at is None):
        return failed("missing_param", "Provide text, category, importance or expires_at: what to change.")
    if arguments.category is not None and (refused := refused_category(arguments.category)):
        return refused
    memory = get_memory(caller, cleaned(arguments.memory_id))
    if text is not None:
        require(caller.owner.user_pk, Offer("agents", text))
    user_pk, ref, copy_ids = caller.owner.user_pk, ref_of(caller, memory.memory_id), []
    with transaction.atomic():
        if values != OverrideValues():
            overridden = decisions.override_copies(user_pk, ref, values, reader=caller.agent_id, actor=caller.actor)
            copy_ids = overridden.copy_ids
        if arguments.expires_at is not None:
            decisions.set_expiry(user_pk, ref, end_of(caller, arguments.expires_at), actor=caller.actor)
    return _decided("updated", memory.memory_id, copy_ids)


def restore(caller: Caller, arguments: RestoreArguments) -> Result:
    """Restore a memory from the trash, with the copies deleted with it. Raises: `NotFound`."""
    memory = get_memory(caller, cleaned(arguments.memory_id))
    ref = ref_of(caller, memory.memory_id)
    expires_at = KEPT if arguments.expires_at is None else end_of(caller, arguments.expires_at)
    restored = decisions.restore(caller.owner.user_pk, ref, expires_at=expires_at, actor=caller.actor)
    return _decided("restored", memory.memory_id, [one.memory_id for one in restored[1:]])


def _decided(action: str, memory_id: str, copies: list[str]) -> Result:
    text = f"Memory {memory_id}{and_copies(copies)} {action}."
    return result(text, action=action, id=memory_id, **({"copies": copies} if copies else {}))
