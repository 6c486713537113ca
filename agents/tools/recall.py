"""`memory_recall`: the caller's memories for a question, through the one search that everybody uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from agents.tools.arguments import MAX_LIMIT, RecallArguments
from agents.tools.caller import Caller
from agents.tools.frame import framed, quoted
from agents.tools.results import Result, failed, result
from core.times import from_ms, isoformat
from memories.services.search import SearchCommand, search
from store.models import Memory, owned_by
from store.text.tokens import query_tokens, tokenize
from store.types import UNCOUNTED_TYPES, Hit

MAX_QUERY_CHARS: Final = 8192
DEFAULT_IMPORTANCE: Final = 0.7


class Recalled(NamedTuple):
    """A memory as tools show it. `score` is 0..1: how much of the question it answers."""

    id: str
    text: str
    category: str
    importance: float
    score: float
    created_at_ms: int

    def details(self) -> dict[str, Any]:
        shown = {"id": self.id, "text": self.text, "category": self.category, "importance": self.importance}
        return {**shown, "score": self.score, "createdAt": self.created_at_ms}

    def line(self, number: int) -> str:
        said_at = isoformat(from_ms(self.created_at_ms))
        return f"{number}. [{self.category}] {said_at} {quoted(self.text)} ({self.score:.0%}) [id: {self.id}]"


def recall(caller: Caller, arguments: RecallArguments) -> Result:
    if not arguments.query.strip():
        return failed("missing_param", "Provide query: what to look for.")
    found = find(caller, arguments.query, arguments.limit)
    if not found:
        return result("No relevant memories found.", count=0)
    return result(
        f"Found {len(found)} {'memory' if len(found) == 1 else 'memories'}:\n\n{listed(found)}",
        count=len(found),
        memories=[one.details() for one in found],
    )


def listed(found: Iterable[Recalled]) -> str:
    return framed(one.line(number) for number, one in enumerate(found, start=1))


def find(caller: Caller, query: str, limit: int = MAX_LIMIT) -> list[Recalled]:
    """The best memories that the caller may see, best first; other agents' do not take their places."""
    query = query.strip()[:MAX_QUERY_CHARS]
    return _recalled(caller, query, _search(caller, query, limit))[:limit]


def _search(caller: Caller, query: str, limit: int) -> list[Hit]:
    command = SearchCommand(
        query=query,
        scopes=frozenset({"all_user_memory"}),
        reader=caller.reader,
        top_k=limit,
        include_profile=False,
        enable_llm_rerank=False,
    )
    found = search(caller.owner, command)
    return [item.hit for item in found.results if item.hit.memory_type not in UNCOUNTED_TYPES]


def _recalled(caller: Caller, query: str, hits: Iterable[Hit]) -> list[Recalled]:
    terms = query_tokens(query)
    return [
        Recalled(
            id=hit.memory_id,
            text=hit.text,
            category=row.category or str(hit.raw.get("category") or hit.memory_type),
            importance=DEFAULT_IMPORTANCE if row.importance is None else row.importance,
            score=_score(hit, terms),
            created_at_ms=hit.created_at_ms,
        )
        for hit, row in visible(caller, hits)
    ]


class Row(NamedTuple):
    """What search does not tell; the defaults are for what an upstream holds and our table does not yet."""

    memory_id: str = ""
    category: str = ""
    importance: float | None = None
    origin: str = ""
    agent_id: str = ""


def visible(caller: Caller, hits: Iterable[Hit]) -> list[tuple[Hit, Row]]:
    """The hits that the caller may see, with their rows. At most one statement."""
    hits = list(hits)
    rows = _rows(caller, [hit.memory_id for hit in hits]) if hits else {}
    found = ((hit, rows.get(hit.memory_id, Row())) for hit in hits)
    return [(hit, row) for hit, row in found if caller.may_see(origin=row.origin, agent_id=row.agent_id)]


def _rows(caller: Caller, memory_ids: Sequence[str]) -> dict[str, Row]:
    rows = Memory.objects.filter(owned_by(caller.owner), memory_id__in=memory_ids).order_by()
    return {row[0]: Row(*row) for row in rows.values_list(*Row._fields)}


def _score(hit: Hit, terms: Sequence[str]) -> float:
    """The share of the question's telling words that the memory holds, or its likeness where that says more.

    The scores of the engines rank; they are no shares, and one engine's cannot be compared with another's.
    """
    if "upstream" in hit.legs:  # it does not say which words it found
        matched, likeness = len(set(terms) & set(tokenize(hit.text))), hit.score or 0.0
    else:
        matched = len(hit.legs.get("keyword", {}).get("matched", ()))
        likeness = hit.legs.get("vector", {}).get("score", 0.0)
    return round(min(max(matched / max(len(terms), 1), likeness, 0.0), 1.0), 4)
