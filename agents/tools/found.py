"""Find memories for tools: those that the caller may see, as tools show them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agents.tools.arguments import DEFAULT_IMPORTANCE, MAX_LIMIT
from agents.tools.budget import Entry
from agents.tools.caller import Caller
from agents.tools.results import quoted
from core import readable
from core.ids import parse_session_id
from core.times import isoformat
from memories.api.schemas.search import MAX_QUERY_CHARS
from memories.services.scoped_hits import ScopedHit, SearchCommand
from memories.services.search_log import logged_search
from store.models import Memory, owned_by
from store.text.tokens import query_tokens, tokenize
from store.types import UNCOUNTED_TYPES, Hit, StoredMemory


class Recalled(NamedTuple):
    """A memory as tools show it. `score` is its relevance to the query, 0..1."""

    item: ScopedHit
    category: str
    importance: float
    score: float = 0.0

    @property
    def hit(self) -> Hit:
        return self.item.hit

    @property
    def id(self) -> str:
        return self.hit.memory_id

    @property
    def text(self) -> str:
        return self.hit.text

    @property
    def created_at_ms(self) -> int:
        return self.hit.created_at_ms

    def details(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "text": self.text,
            "category": self.category,
            "importance": self.importance,
            "score": self.score,
            "createdAt": self.created_at_ms,
        }

    def entry(self) -> Entry:
        created_at = isoformat(readable.moment(self.created_at_ms))
        session = parse_session_id(self.hit.session_id)
        file = f" [resource_id: {session.rest}]" if session.kind == "resource" else ""
        return Entry(self.text, f"[{quoted(self.category)}] {created_at}", f"({self.score:.0%}) [id: {self.id}]{file}")


class HitColumns(NamedTuple):
    """Columns that hits lack. The defaults are for memories that only the remote holds."""

    memory_id: str = ""
    category: str = ""
    importance: float | None = None
    origin: str = ""
    agent_id: str = ""


def find(
    caller: Caller,
    query: str,
    limit: int = MAX_LIMIT,
    filters: Mapping[str, Any] | None = None,
    *,
    without_session: str | None = None,
    as_of: datetime | None = None,
) -> list[Recalled]:
    """Return the best memories that the caller may see, best first, without those of a session; those of a time."""
    query = query.strip()[:MAX_QUERY_CHARS]
    command = SearchCommand(
        query=query,
        scopes=frozenset({"all_user_memory"}),
        reader=caller.agent_id or None,
        top_k=limit,
        include_profile=False,
        enable_llm_rerank=False,
        filters=filters,
        history=False,
        as_of=as_of,
    )
    results = logged_search(caller.owner, command, interface=caller.interface).results
    counted = [one for one in results if one.hit.memory_type not in UNCOUNTED_TYPES]
    items = {
        one.hit.memory_id: one for one in counted if without_session is None or one.hit.session_id != without_session
    }
    terms = query_tokens(query)
    found = [
        Recalled(
            items[hit.memory_id],
            category=hit.category or row.category or str(hit.raw.get("category") or hit.memory_type),
            importance=DEFAULT_IMPORTANCE if row.importance is None else row.importance,
            score=_score(hit, terms),
        )
        for hit, row in visible(caller, [one.hit for one in items.values()])
    ]
    return found[:limit]


def recalled_of(memory: StoredMemory) -> Recalled:
    """Return a stored memory that has all words of a query as one that was found."""
    hit = Hit(memory.memory_id, memory.memory_type, memory.session_id, memory.text, 1.0, memory.created_at_ms, {})
    importance = DEFAULT_IMPORTANCE if memory.importance is None else memory.importance
    return Recalled(ScopedHit(hit, "all_user_memory"), memory.category or memory.memory_type, importance, score=1.0)


def visible(caller: Caller, hits: Sequence[Hit]) -> list[tuple[Hit, HitColumns]]:
    """Return the hits that the caller may see, with their rows. At most one statement."""
    rows: dict[str, HitColumns] = {}
    if hits:
        own = Memory.objects.filter(owned_by(caller.owner), memory_id__in=[hit.memory_id for hit in hits]).order_by()
        rows = {row[0]: HitColumns(*row) for row in own.values_list(*HitColumns._fields)}
    found = [(hit, rows.get(hit.memory_id, HitColumns())) for hit in hits]
    return [(hit, row) for hit, row in found if caller.may_see(origin=row.origin, agent_id=row.agent_id)]


def _score(hit: Hit, terms: Sequence[str]) -> float:
    """Return the share of the query's terms that the memory contains, or its similarity if that is higher.

    The engines' scores only rank: they have no fixed range and cannot be compared between engines.
    """
    if hit.is_of_remote:  # the remote does not return the matched terms
        matched, similarity = len(set(terms) & set(tokenize(hit.text))), hit.score or 0.0
    else:
        matched = len(hit.legs.get("keyword", {}).get("matched", ()))
        similarity = hit.legs.get("vector", {}).get("score", 0.0)
    return round(min(max(matched / max(len(terms), 1), similarity, 0.0), 1.0), 4)
