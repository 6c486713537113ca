"""`memory.admin.*`: the methods of the plugin's panel, on the same services as our panel.

A token gives access to one user's memories or to all users': each function starts from its principal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from accounts import services as accounts
from accounts.audit import record
from accounts.tokens import TokenPrincipal
from agents.rpc import listing
from agents.rpc.failures import plugin_failure
from agents.rpc.labels import LABELS_ZH
from agents.rpc.params import Params, moment_ms, text, whole
from agents.tools import DEFAULT_AGENT
from core.errors import NotFound
from core.ids import check_name
from engines.registry import get_engine
from memories.services import decisions, lookup
from memories.services.manual import MAX_TEXT_CHARS, add_by_hand
from store import browse
from store.browse import Selection
from store.categories import TABS, tab_of
from store.models import Memory
from store.types import Owner, StoredMemory

OPENCLAW_USER = "openclaw"
"""The user who owns memories that operators add."""
SHARED_AGENT = "(shared)"
"""Agent name of memories that belong to no agent. Clients list by agent; no agent can have this name."""
NO_AGENT = "缺少 agentId：请先选择 Agent"
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
MAX_FACETS = 2_000
MAX_DELETED = 1_000
_DEFAULT_IMPORTANCE = 0.7
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
    shared = [SHARED_AGENT] if browse.count(Selection(user_pk=principal.user_pk, agent_id="")) else []
    return {
        "agents": sorted([*(agent.key for agent in found.agents), *shared]),
        "sessions": sorted({session.key for session in found.sessions}),
    }


def list_memories(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Return a page of memories. Raises: `Failure` without an agent, or for a category of another tab."""
    agent_id = agent_of(params)
    tab = text(params, "tab")
    tab = tab if tab in TABS else "user"
    if not _categories(tab):
        return {"items": [], "total": 0, "page": 1, "pageSize": DEFAULT_PAGE_SIZE}
    selection = _selection(principal, params, agent_id, tab)
    number = whole(params, "page", 1)
    size = whole(params, "limit", DEFAULT_PAGE_SIZE, maximum=MAX_PAGE_SIZE)
    read = listing.whole_turns if tab == "full" else listing.rows
    memories = read(selection, page=number, size=size, oldest_first=params.get("sortDesc") in {False, "false"})
    _record_reading(principal, memories)
    items = [_item(memory) for memory in memories]
    return {"items": items, "total": browse.count(selection), "page": number, "pageSize": size}


def delete(principal: TokenPrincipal, params: Params) -> dict[str, Any]:
    """Delete all of these memories or none, and return how many.

    Unknown memories and those of other agents are not counted. Raises: `Failure`, `Conflict`.
    """
    wanted = _wanted(params.get("items"))
    if not wanted:
        raise plugin_failure(400, "items required")
    if len(wanted) > MAX_DELETED:
        raise plugin_failure(400, f"at most {MAX_DELETED} items can be deleted at once")
    owners = {} if principal.user_pk is None else {"user_id": principal.user_pk}
    rows = Memory.objects.filter(**owners, memory_id__in={memory_id for _, memory_id in wanted})
    found = browse.get_many(list(rows.order_by("user_id", "pk").values_list("pk", flat=True)))
    active = filter(lookup.is_active, found)
    meant = [memory for memory in active if (shown_agent(memory), memory.memory_id) in wanted]
    for memory in meant:
        lookup.require_flushed(memory, get_engine())
    decisions.delete_many([memory.row for memory in meant], reason="openclaw", actor=principal.actor)
    return {"deleted": len(meant)}


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
    memory = add_by_hand(
        owner_for(principal),
        category=category,
        text=_truncate(content),
        agent_id=agent_id,
        origin="panel",
        actor=principal.actor,
    )
    return {"id": memory.memory_id, "createdAt": memory.created_at_ms, "chunkRows": 1}


def agent_of(params: Params, refusal: str = NO_AGENT) -> str:
    """Return the requested agent, empty for `SHARED_AGENT`. Raises: `Failure` with `refusal` if none is given."""
    given = text(params, "agentId")
    if not given:
        raise plugin_failure(400, refusal)
    return "" if given == SHARED_AGENT else given


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
    return _DEFAULT_IMPORTANCE if importance is None else importance


def _categories(tab: str) -> tuple[str, ...]:
    """Return the categories of a tab; none for an unknown tab or a kind that is switched off."""
    is_off = (tab == "self" and not settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY) or (
        tab == "full" and not settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY
    )
    return () if is_off else TABS.get(tab, ())


def _selection(principal: TokenPrincipal, params: Params, agent_id: str, tab: str) -> Selection:
    category = text(params, "category")
    if category and category not in _categories(tab):
        raise plugin_failure(400, "category 与当前 Tab 不匹配")
    until_ms = moment_ms(params, "timeTo")
    return Selection(
        user_pk=principal.user_pk,
        tab=tab,
        categories=(category,) if category else (),
        agent_id=agent_id,
        session_id=text(params, "sessionId") or None,
        since_ms=moment_ms(params, "timeFrom"),
        until_ms=None if until_ms is None else until_ms + 1,  # the end is inclusive
    )


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
        "seqInBatch": memory.seq,
        "chunkIndex": memory.chunk_index or 0,
    }
    return item | {"batchId": memory.batch_id} if memory.batch_id else item


def _record_reading(principal: TokenPrincipal, memories: Sequence[StoredMemory]) -> None:
    """Record an audit event when an operator's token reads users' memories."""
    users = sorted({memory.owner.user_id for memory in memories})
    if principal.operator is not None and users:
        of_one = users[0] if len(users) == 1 else ""
        detail = {"users": users}
        record(principal.actor, "memory.list", subject_type="memory", subject_id="", user_id=of_one, detail=detail)


def _wanted(items: Any) -> set[tuple[str, str]]:
    if not isinstance(items, list):
        return set()
    named = ((text(item, "agentId"), text(item, "id")) for item in items if isinstance(item, dict))
    return {(agent_id, memory_id) for agent_id, memory_id in named if agent_id and memory_id}


def _truncate(content: str) -> str:
    """Return the first 8,000 UTF-16 code units, the unit of JavaScript strings."""
    return content.encode("utf-16-le")[: 2 * MAX_TEXT_CHARS].decode("utf-16-le", errors="ignore")
