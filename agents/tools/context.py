"""Make the context of an agent's prompt: the profile, the facts, and what fits a question.

The parts that change least come first and in a stable order, so that the cache of a language model keeps them.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from django.conf import settings
from django.db.models import Q

from agents.tools.about_me import is_about_me
from agents.tools.arguments import DEFAULT_IMPORTANCE
from agents.tools.caller import Caller
from agents.tools.found import Recalled, find
from agents.tools.results import framed, quoted
from core import readable
from core.times import isoformat
from core.token_estimates import estimated_tokens
from memories.queries import override_ids
from memories.services import current
from memories.services.folding import fold_copies
from memories.services.scoped_hits import ScopedHit, SearchCommand
from profiles import services as profiles
from profiles.prompts import AgentType
from store import cover
from store.categories import TABS
from store.models import IS_LIVE, MANUAL_ORIGINS, NOT_INCOGNITO, Memory, owned_by
from store.search import records
from store.search.ranking import Score
from store.search.retrieval import hits_of

MAX_TOKENS: Final = 1500
_MAX_FACTS: Final = 200
"""The newest facts, from which the most important are chosen."""
_MAX_NEWEST: Final = 10
_MAX_FITTING: Final = 20
_PROFILE_SHARE: Final = 3
_FACTS_SHARE: Final = 2
_PROFILES: Final[tuple[tuple[AgentType, str], ...]] = (("router", "user"), ("worker", "work"))
_VIEW_PROFILES: Final = "profiles.view_profilememory"
_MARKERS: Final = re.compile(r"<!--.*?-->")


class Source(NamedTuple):
    """A part of a context: a profile document (its id: `user` or `work`), a fact or another memory."""

    kind: Literal["profile", "fact", "memory"]
    id: str
    created_at_ms: int | None = None


class Context(NamedTuple):
    """The text, its parts in order, and those of them that are memories."""

    text: str
    sources: Sequence[Source]
    memories: Sequence[Recalled] = ()


def make_context(
    caller: Caller,
    query: str = "",
    *,
    conversation_id: str | None = None,
    max_tokens: int = MAX_TOKENS,
    max_memories: int = _MAX_FACTS + _MAX_FITTING,
) -> Context:
    """Return what a prompt should hold, within `max_tokens` and `max_memories`; an empty text if nothing is known.

    Without a query, the newest memories follow the facts. Memories of the conversation are left out, because the agent
    has them before it. Raises: the errors of search.
    """
    parts, sources = _profiles(caller, max_tokens // _PROFILE_SHARE)
    remaining = max_tokens - sum(map(estimated_tokens, parts)) - estimated_tokens(framed([]))
    facts = _within(_current(_facts(caller)), remaining // _FACTS_SHARE)[:max_memories]
    remaining -= sum(map(_cost, facts))
    known, session_id = {one.id for one in facts}, None if conversation_id is None else f"chat:{conversation_id}"
    if query.strip() and not is_about_me(query):
        others = find(caller, query, _MAX_FITTING, without_session=session_id)
    else:
        others = _newest(caller, session_id)
    # A fact stays whatever the question is, so that the beginning of the text does not change.
    fitting = _within([one for one in _current([*facts, *others], query) if one.id not in known], remaining)
    fitting = fitting[: max_memories - len(facts)]
    facts = sorted(facts, key=lambda one: (one.created_at_ms, one.id))
    lines = [*parts, *map(_line, (*facts, *fitting))]
    sources += [Source("fact", one.id, one.created_at_ms) for one in facts]
    sources += [Source("memory", one.id, one.created_at_ms) for one in fitting]
    return Context(framed(lines) if lines else "", sources, (*facts, *fitting))


def _profiles(caller: Caller, max_tokens: int) -> tuple[list[str], list[Source]]:
    """Return the prompts of both documents without their markers, and the documents that have one."""
    if not caller.may(_VIEW_PROFILES):
        return [], []
    prompts = [
        (name, profiles.make_prompt(caller.owner.user_pk, agent, max_tokens=max_tokens // len(_PROFILES)).text)
        for agent, name in _PROFILES
    ]
    texts = [_MARKERS.sub("", text).strip() for _, text in prompts if text]
    return texts, [Source("profile", name) for name, text in prompts if text]


def _facts(caller: Caller) -> list[Recalled]:
    """Return the user's facts, the most important first, newer ones before older ones."""
    categories = [*TABS["user"], *(TABS["self"] if settings.MEMORY_GATEWAY_SELF_IMPROVING_MEMORY else ())]
    return sorted(_newest_of(caller, Q(category__in=categories), _MAX_FACTS), key=lambda one: -one.importance)


def _newest(caller: Caller, without_session: str | None) -> list[Recalled]:
    """Return the newest memories, without those of a session."""
    is_other = Q() if without_session is None else ~Q(session__session_id=without_session)
    return _newest_of(caller, is_other & ~Q(memory_type=Memory.Type.PROFILE), _MAX_NEWEST)


def _newest_of(caller: Caller, condition: Q, limit: int) -> list[Recalled]:
    """Return memories that the caller may see, newest first. Three statements."""
    own = Memory.objects.filter(condition, IS_LIVE, NOT_INCOGNITO, owned_by(caller.owner)).exclude(cover.is_left_out())
    if caller.agent_id:
        own = own.exclude(~Q(agent_id__in=["", caller.agent_id]), origin__in=MANUAL_ORIGINS)
    importances = dict(own.order_by("-created_at_ms", "-pk").values_list("pk", "importance")[:limit])
    rows = records.rows(caller.owner, importances)
    hits = hits_of(caller.owner, [(pk, Score(None, {})) for pk in importances], rows)
    overrides = override_ids(caller.owner, [row.memory_id for row in rows.values()])
    known = {row.memory_id: importances[pk] for pk, row in rows.items()}
    return [
        Recalled(
            ScopedHit(hit, "all_user_memory", override_id=overrides.get(hit.memory_id)),
            category=hit.category or hit.memory_type,
            importance=DEFAULT_IMPORTANCE if (found := known[hit.memory_id]) is None else found,
        )
        for hit in hits
    ]


def _current(found: Sequence[Recalled], query: str = "") -> list[Recalled]:
    """Return memories once, without those that another one replaces for certain: it takes the better place of both."""
    known = {one.id: one for one in found}
    command = SearchCommand(query=query, scopes=frozenset({"all_user_memory"}), history=False)
    items = current.put_current_first(fold_copies(one.item for one in known.values()), command)
    return [known[item.hit.memory_id] for item in current.leave_out_replaced(items, command)]


def _within(found: Sequence[Recalled], tokens: int) -> list[Recalled]:
    """Return the first memories within a number of tokens; one that does not fit is left out."""
    chosen = []
    for one in found:
        if (cost := _cost(one)) <= tokens:
            chosen.append(one)
            tokens -= cost
    return chosen


def _cost(one: Recalled) -> int:
    return estimated_tokens(f"{_line(one)}\n")


def _line(one: Recalled) -> str:
    created_at = isoformat(readable.moment(one.created_at_ms))
    return f"- [{quoted(one.category)}] {created_at} {quoted(one.text)} [id: {one.id}]"
