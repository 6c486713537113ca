"""Compare a memory that an operator or a tool wrote with older ones near it, by a language model.

Extraction names the known memories that a new one replaces in the same answer; this is for memories that come without
messages. What the model calls the same or no longer true is superseded, and can be restored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from django.db.models import QuerySet
from pydantic import Field

from core import readable
from core.network.language_model import RULE, ChatClient, ModelAnswer
from engines.embedded.extraction_prompts import MAX_REPLACED
from engines.embedded.extraction_windows import KNOWN_ORIGINS
from store import writes
from store.derived_memories import can_be_superseded, supersede
from store.models import IS_LIVE, Memory, owned_by
from store.search.retrieval import rank
from store.types import MAX_TOP_K, Owner, SearchRequest

MAX_NEAR: Final = 10
_MAX_CHARS: Final = 2000
_TASK: Final = (
    "You keep a person's memory. The first line of the data is a new memory, each other line an older one, with its "
    "number. Say how the new one relates to each: same (both state the same, perhaps in other words), newer (the older "
    "one is no longer true because of the new one), different (both can be true). If you are not sure, say different. "
    'The answer\'s form: {"relations": [{"number": 1, "relation": "different"}]}. '
) + RULE


class _Relation(ModelAnswer):
    number: int
    relation: Literal["same", "newer", "different"]


class ComparisonAnswer(ModelAnswer):
    """The relations of a new memory to older ones."""

    relations: Annotated[list[_Relation], Field(max_length=100)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A new memory, and older ones near it, numbered from 1."""

    memory: Memory
    near: Sequence[Memory]

    def lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield the memories as lines of a prompt."""
        yield {"new": self.memory.text[:_MAX_CHARS], "day": _day(self.memory)}
        for number, row in enumerate(self.near, start=1):
            yield {"number": number, "text": row.text[:_MAX_CHARS], "day": _day(row)}


def comparison_of(owner: Owner, memory: Memory) -> Comparison | None:
    """Return the older memories with words of this one that it may supersede; None if there are none.

    They have the same kind and are for all agents or for its agent.
    """
    like_it = SearchRequest(memory.text[:_MAX_CHARS], method="keyword", top_k=MAX_TOP_K, min_relevance=0)
    [best], _degraded = rank(owner, [like_it])
    found = _live(owner).filter(
        pk__in=[pk for pk, _score in best],
        pk__lt=memory.pk,
        origin__in=KNOWN_ORIGINS,
        memory_type=Memory.Type.EPISODE,
        category__startswith=memory.category.partition("_")[0],
        chunk_index=None,
        agent_id__in=["", memory.agent_id],
        session__incognito_until=None,
    )
    by_pk = {row.pk: row for row in found if can_be_superseded(row)}
    near = [by_pk[pk] for pk, _score in best if pk in by_pk][:MAX_NEAR]
    return Comparison(memory, near) if near and _live(owner).filter(pk=memory.pk).exists() else None


def compare(client: ChatClient, lines: Iterable[Mapping[str, Any]], seconds: float) -> ComparisonAnswer:
    """Return the model's judgment. Raises: `EndpointError`."""
    return client.ask(_TASK, lines, ComparisonAnswer, seconds)


def write(owner: Owner, comparison: Comparison, compared: ComparisonAnswer, now: datetime) -> list[Memory] | None:
    """Supersede what the model calls the same or no longer true, and return it.

    Return None if a memory was deleted or edited meanwhile. Call inside a transaction that has locked the user.
    """
    memory = comparison.memory
    shown = {row.pk: row.text for row in (memory, *comparison.near)}
    if dict(_live(owner).filter(pk__in=shown).values_list("pk", "text")) != shown:
        return None
    wanted = {}
    for one in compared.relations:
        row = comparison.near[one.number - 1] if 1 <= one.number <= len(comparison.near) else None
        # An equal memory for all agents stays if the new one is for one agent only.
        if row and (one.relation == "newer" or (one.relation == "same" and memory.agent_id in {"", row.agent_id})):
            wanted[row.pk] = row
    superseded = list(wanted.values())[:MAX_REPLACED]
    if superseded:
        memory.supersedes = [*memory.supersedes, *(row.memory_id for row in superseded)]
        writes.save(owner, [memory], ["supersedes"])
        supersede(superseded, memory, now)
    return superseded


def _live(owner: Owner) -> QuerySet[Memory]:
    return Memory.objects.filter(IS_LIVE, owned_by(owner))


def _day(row: Memory) -> str:
    return readable.moment(row.created_at_ms).date().isoformat()
