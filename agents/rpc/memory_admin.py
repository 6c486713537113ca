"""`memory.admin.*`: the methods of the OpenClaw plugin's panel, on the same services as the gateway's panel.

A token gives access to the memories of one user or of all users; every function is restricted by its principal.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings

from accounts import services as accounts
from accounts.audit import record
from accounts.tokens import TokenPrincipal
from agents.rpc.failures import plugin_failure
from agents.rpc.params import Params, flag, moment_ms, text, whole
from agents.tools import DEFAULT_AGENT
from agents.tools.arguments import DEFAULT_IMPORTANCE
from core.errors import NotFound
from core.ids import check_name
from memories.services import decisions, lookup
from memories.services.manual import MAX_TEXT_CHARS, add_by_hand
from store import browse, cover
from store.admission import NotKept
from store.browse import Selection
from store.browse.selection import unindexed_rows_of
from store.categories import TABS, tab_of
from store.models import Memory
from store.table import stored
from store.types import Owner, StoredMemory

OPENCLAW_USER = "openclaw"
"""The user who owns memories that operators add."""
SHARED_AGENT = "(shared)"
"""Agent name of memories that belong to no agent. Clients list by agent; no agent can have this name."""
NO_AGENT = "缺少 agentId：请先选择 Agent"
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
MAX_FACETS = 2_000
MAX_DELETED = 1_000
# The memory plugin's labels, verbatim: its panel shows them in every language.
LABELS_ZH = {
    "user_memory_fact": "用户事实",
    "user_memory_preference": "用户偏好",
    "user_memory_decision": "用户决策",
    "full_context_memory": "全文记忆",
    "full_context_user": "全文 · 用户消息",
    "full_context_assistant": "全文 · AI助手消息",
    "full_context_system": "全文 · 系统消息",
    "full_context_tool": "全文 · 工具调用",
    "full_context_tool_result": "全文 · 工具结果",
    "full_context_others": "全文 · 其他消息",
    "self_improving_learnings": "最佳实践",
    "self_improving_errors": "错误经验",
    "self_improving_feature_requests": "行为诉求",
}
"""The plugin's own default. Its panel needs an importance for every memory."""


def config(_principal: TokenPrincipal, _params: Params) -> dict[str, Any]:
    categories = {tab: list(_categories(tab)) for tab in TABS}
    options = {
        tab: [{"category": category, "labelZh": LABELS_ZH[category]} for category in of_tab]
        for tab, of_tab in categories.items()
    }
    return {
        "enableFullContextMemory": settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY,
        "enableSelfImprovingMemory": settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY,
        "categoryLabelsZh": LABELS_ZH,
        "tabCategories": categories,
        "memoryTypeFilterOptions": options,
    }


def facets(principal: TokenPrincipal, _params: Params) -> dict[str, Any]:
    found = browse.facets(Selection(user_pk=principal.user_pk), limit=MAX_FACETS)
    record_read(principal, "session.list", {session.user_id for session in found.sessions})
    shared = [SHARED_AGENT] if browse.count(Selection(user_pk=principal.user_pk, agent_id="")) else []
    return {
        "agents": sorted([*(agent.key for agent in found.agents), *shared]),
        "sessions": sorted({session.key for session in found.sessions}),
    }


def list_memories(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Return a page of memories. Reads by an operator's token are audited.

    Raises: `Failure` without an agent, or for a category of another tab.
    """
    agent_id = agent_of(params)
    tab = text(params, "tab")
    tab = tab if tab in TABS else "user"
    if not _categories(tab):
        return {"items": [], "total": 0, "page": 1, "pageSize": DEFAULT_PAGE_SIZE}
    category = text(params, "category")
    if category and category not in _categories(tab):
        raise plugin_failure(400, "category 与当前 Tab 不匹配")
    until_ms = moment_ms(params, "timeTo")
    selection = Selection(
        user_pk=principal.user_pk,
        tab=tab,
        categories=(category,) if category else (),
        agent_id=agent_id,
        session_id=text(params, "sessionId") or None,
        since_ms=moment_ms(params, "timeFrom"),
        until_ms=None if until_ms is None else until_ms + 1,  # the end is inclusive
        is_shown=cover.leaves_any_out(principal.user_pk),  # else the rollups count them
    )
    number = whole(params, "page", 1)
    size = whole(params, "limit", DEFAULT_PAGE_SIZE, maximum=MAX_PAGE_SIZE)
    oldest_first = not flag(params, "sortDesc", True)
    memories = browse.offset_page(selection, offset=(number - 1) * size, limit=size, oldest_first=oldest_first)
    if tab == "full":
        memories = _whole_turns(selection, memories, oldest_first=oldest_first)
    record_read(principal, "memory.list", {memory.owner.user_id for memory in memories})
    items = [_item(memory) for memory in memories]
    return {"items": items, "total": browse.count(selection), "page": number, "pageSize": size}


def delete(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Delete all of these memories or none, and return their number.

    Unknown memories and those of other agents are not counted. Raises: `Failure`, `Conflict`.
    """
    items = value if isinstance(value := params.get("items"), list) else []
    pairs = [(text(item, "agentId"), text(item, "id")) for item in items if isinstance(item, dict)]
    wanted = {(agent_id, memory_id) for agent_id, memory_id in pairs if agent_id and memory_id}
    if not wanted:
        raise plugin_failure(400, "items required")
    if len(wanted) > MAX_DELETED:
        raise plugin_failure(400, f"at most {MAX_DELETED} items can be deleted at once")
    owners = {} if principal.user_pk is None else {"user_id": principal.user_pk}
    rows = Memory.objects.filter(**owners, memory_id__in={memory_id for _, memory_id in wanted})
    found = browse.get_many(list(rows.order_by("user_id", "pk").values_list("pk", flat=True)))
    active = filter(lookup.is_active, found)
    matching = [memory for memory in active if (shown_agent(memory), memory.memory_id) in wanted]
    decisions.delete_many([memory.row for memory in matching], reason="openclaw", actor=principal.actor)
    return {"deleted": len(matching)}


def add(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Add a memory. Raises: `Failure`, `InvalidInput`, `Conflict`, `EngineUnavailable`."""
    agent_id = agent_of(params, "agentId required")
    content, category = text(params, "text"), text(params, "category")
    try:
        check_name(agent_id or DEFAULT_AGENT)
    except ValueError as error:
        raise plugin_failure(400, f"agentId {error}") from None
    if not content:
        raise plugin_failure(400, "text required")
    if category not in _categories(tab_of(category)):
        raise plugin_failure(400, "invalid or disabled category")
    try:
        memory = add_by_hand(
            owner_for(principal),
            category=category,
            # Cut to 8,000 UTF-16 code units, the unit of JavaScript strings.
            text=content.encode("utf-16-le")[: 2 * MAX_TEXT_CHARS].decode("utf-16-le", errors="ignore"),
            agent_id=agent_id,
            origin="panel",
            actor=principal.actor,
        )
    except NotKept as error:
        return {"id": None, "createdAt": None, "chunkRows": 0, "stored": 0, **error.members}
    return {"id": memory.memory_id, "createdAt": memory.created_at_ms, "chunkRows": 1}


def record_read(principal: TokenPrincipal, action: str, users: Collection[str], *, subject_type: str = "") -> None:
    """Audit what the token of an operator reads; a user's token reads the user's own data."""
    if principal.operator is not None and users:
        record(principal.actor, action, users=users, subject_type=subject_type)


def agent_of(params: Params, refusal: str = NO_AGENT) -> str:
    """Return the requested agent, empty for `SHARED_AGENT`. Raises: `Failure` with `refusal` if none is given."""
    agent_id = text(params, "agentId")
    if not agent_id:
        raise plugin_failure(400, refusal)
    return "" if agent_id == SHARED_AGENT else agent_id


def shown_agent(memory: StoredMemory) -> str:
    return memory.agent_id or SHARED_AGENT


def owner_for(principal: TokenPrincipal) -> Owner:
    """Return the owner for writes: the token's user, or the shared user of operators' tokens."""
    if principal.user_pk is not None and principal.user_id is not None:
        return Owner(principal.user_pk, principal.user_id)
    try:
        user = accounts.find_user(OPENCLAW_USER)
    except NotFound:
        user = accounts.create_user(OPENCLAW_USER, actor=principal.actor).key.user
    return Owner(user.pk, user.user_id)


def importance_or_default(importance: float | None) -> float:
    return DEFAULT_IMPORTANCE if importance is None else importance


def _categories(tab: str) -> tuple[str, ...]:
    """Return the categories of a tab; none for an unknown tab or one that a setting disables."""
    is_off = (tab == "self" and not settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY) or (
        tab == "full" and not settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY
    )
    return () if is_off else TABS.get(tab, ())


def _whole_turns(selection: Selection, window: Sequence[StoredMemory], *, oldest_first: bool) -> list[StoredMemory]:
    """Return the conversation turns whose head is in the window, each complete, then memories without a turn.

    The head of a turn is its newest memory, or its oldest if `oldest_first`. So each memory is on exactly one page, and
    a page with a long turn is longer.
    """
    batch_ids = {memory.batch_id for memory in window if memory.batch_id}
    turns: dict[Any, list[StoredMemory]] = {}  # separated by user and session
    for memory in map(stored, unindexed_rows_of(selection).filter(batch_id__in=batch_ids) if batch_ids else ()):
        turns.setdefault(memory.turn, []).append(memory)
    head_of = min if oldest_first else max
    heads = {head_of(turn, key=lambda one: (one.created_at_ms, one.row)).row: turn for turn in turns.values()}
    found = [memory for head in window for memory in sorted(heads.get(head.row, ()), key=_order_in_turn)]
    return found + [memory for memory in window if not memory.batch_id]


def _order_in_turn(memory: StoredMemory) -> tuple[int, int, int, int]:
    return memory.created_at_ms, memory.seq, memory.chunk_index or 0, memory.row


def _item(memory: StoredMemory) -> dict[str, Any]:
    item = {
        "id": memory.memory_id,
        "agentId": shown_agent(memory),
        "sessionId": memory.session_id or "",
        "text": memory.text,
        "importance": importance_or_default(memory.importance),
        "category": memory.category,
        "createdAt": memory.created_at_ms,
        "isDeleted": 0,
        "seqInBatch": memory.seq if memory.batch_id else 0,
        "chunkIndex": memory.chunk_index or 0,
    }
    return item | {"batchId": memory.batch_id} if memory.batch_id else item
