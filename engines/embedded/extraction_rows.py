"""Save the items that a model extracted from a window, except duplicates and items that the user deleted.

A memory's id is a hash of its words, so equal words are one memory. A memory that the user deleted or overrode keeps
its id, so the same words are not stored again. The user's profile is one memory that a model derives from the
extracted facts whenever they change.
"""

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from django.db.models import Q, QuerySet
from django.db.models.functions import Length

from core import readable
from core.persistence.checked_rows import repair_row
from core.times import to_ms
from engines.embedded.extraction_prompts import CATEGORY_OF, MAX_REPLACED, ExtractionAnswer, ProfileAnswer, is_of_user
from engines.embedded.extraction_windows import Window, role_of
from engines.embedded.ingest import MAX_SPEAKER_CHARS
from store import expiry, writes
from store.admission import never_kept_of
from store.categories import TABS
from store.derived_memories import can_be_superseded, supersede
from store.models import IS_LIVE, Memory, Session, State, owned_by
from store.states import IS_IN_TRASH
from store.text.normalize import fold
from store.types import Owner

_NAMESPACE: Final = uuid.UUID("0d7f6f0c-58c5-4f5e-9d5e-1f4a2c8f7b63")
_WORDS: Final = re.compile(r"\w+")


@dataclass(slots=True)
class _Draft:
    """A new memory and the known memories that it replaces."""

    memory: Memory
    replaces: Sequence[Memory] = ()


def write(owner: Owner, session: Session, window: Window, extracted: ExtractionAnswer, now: datetime) -> list[Memory]:
    """Save the extracted items that are new, and return them.

    Call inside a transaction that has locked user and session, with a current window.
    """
    first_by_id: dict[str, _Draft] = {}
    for draft in _drafts_of(owner, window, extracted):
        first_by_id.setdefault(draft.memory.memory_id, draft)
    drafts = _new(owner, list(first_by_id.values()), window.known)
    replaced: dict[int, Memory] = {}
    for draft in drafts:
        draft.memory.session = session
        draft.replaces = [row for row in draft.replaces if row.pk not in replaced][: MAX_REPLACED - len(replaced)]
        replaced |= {row.pk: row for row in draft.replaces}
        draft.memory.supersedes = [row.memory_id for row in draft.replaces]
    rows = [draft.memory for draft in drafts]
    for row in rows:
        repair_row(row)  # a model's answer cannot be refused
    expiry.set_defaults(owner, rows)
    writes.insert(owner, rows)
    for draft in drafts:
        supersede(draft.replaces, draft.memory, now)
    return rows


def normal(text: str) -> str:
    """Return the folded words of a text, to compare texts."""
    return " ".join(_WORDS.findall(fold(text)))


def _drafts_of(owner: Owner, window: Window, extracted: ExtractionAnswer) -> Iterator[_Draft]:
    yield from _statements(owner, window, extracted)
    for case in extracted.cases:
        sources = _sources(window, case.messages)
        if agent := _agent(window, sources):
            text = f"{case.task_intent}\n{case.approach}"
            payload = {"key_insight": case.key_insight, "quality_score": case.quality}
            row = _row(owner, sources, "agent_case", text, agent=agent, importance=case.quality, payload=payload)
            yield _Draft(row)
    for skill in extracted.skills:
        sources = _sources(window, skill.messages)
        if agent := _agent(window, sources):
            payload = {"name": skill.name, "description": skill.description}
            row = _row(owner, sources, "agent_skill", skill.content, agent=agent, payload=payload)
            live = Memory.objects.filter(
                owned_by(owner), memory_type=Memory.Type.AGENT_SKILL, agent_id=agent, state=State.LIVE
            ).exclude(memory_id=row.memory_id)
            same_name = [one for one in live if normal(str(one.payload.get("name"))) == normal(skill.name)]
            yield _Draft(row, [one for one in same_name if not one.is_edited])


def _statements(owner: Owner, window: Window, extracted: ExtractionAnswer) -> Iterator[_Draft]:
    """Yield short memories. Those about the user need a message of the user as a source; others are the agent's."""
    for statement in extracted.memories:
        sources, of_user = _sources(window, statement.messages), is_of_user(statement.kind)
        if not sources or (of_user and not any(role_of(row) == "user" for row in sources)):
            continue
        agent = "" if of_user else _agent(window, sources) or ""
        category, importance = CATEGORY_OF[statement.kind], statement.importance
        row = _row(owner, sources, "episode", statement.text, agent=agent, importance=importance, category=category)
        # A statement may replace known memories of its kind.
        numbers = (number for number in dict.fromkeys(statement.replaces) if 1 <= number <= len(window.known))
        named = (window.known[number - 1] for number in numbers)
        ours = (one for one in named if can_be_superseded(one) and _is_read_by(one, agent))
        yield _Draft(row, [one for one in ours if one.category.startswith(category.partition("_")[0])])


def _is_read_by(known: Memory, agent: str) -> bool:
    """Return False for a memory that an operator or a tool wrote for other agents than `agent` (empty: all agents)."""
    return known.origin == Memory.Origin.EXTRACTED or not agent or known.agent_id == agent


def _sources(window: Window, numbers: Iterable[int]) -> list[Memory]:
    """Return the messages with these numbers, sorted."""
    places = sorted({number for number in numbers if 1 <= number <= len(window.messages)})
    return [window.messages[place - 1] for place in places]


def _agent(window: Window, sources: Sequence[Memory]) -> str | None:
    """Return the agent of the last source that has one, else the last agent in the window; None without sources."""
    if not sources:
        return None
    agents = [row.agent_id for row in (*window.messages, *sources) if row.agent_id and role_of(row) != "system"]
    return agents[-1] if agents else None


def _row(
    owner: Owner,
    sources: Sequence[Memory],
    memory_type: str,
    text: str,
    *,
    agent: str = "",
    importance: float | None = None,
    category: str = "",
    payload: Mapping[str, Any] | None = None,
) -> Memory:
    """Return an unsaved memory without owner and session, with the position and time of its last source."""
    last = sources[-1]
    names = [str(owner.user_pk), owner.app_id, owner.project_id, *map(normal, (agent, memory_type, text))]
    return Memory(
        memory_id=str(uuid.uuid5(_NAMESPACE, orjson.dumps(names).decode())),
        memory_type=memory_type,
        category=category,
        agent_id=agent,
        sender_id=last.sender_id,
        speaker=last.speaker,
        text=text,
        original_text=text,
        importance=importance,
        batch_id=last.batch_id,
        seq=last.seq,
        created_at_ms=last.created_at_ms,
        origin=Memory.Origin.EXTRACTED,
        sources=[row.memory_id for row in sources],
        payload={name: last.payload[name] for name in ("utc_offset",) if name in last.payload} | dict(payload or {}),
    )


def _new(owner: Owner, drafts: Sequence[_Draft], known: Sequence[Memory]) -> list[_Draft]:
    """Return the drafts without stored memories and texts that the user deleted or wants never remembered.

    Memories that were superseded or hidden with their source are removed and stored as new ones.
    """
    refused = never_kept_of(owner.user_pk, [one.memory.text for one in drafts], source="agents") if drafts else set()
    drafts = [one for place, one in enumerate(drafts) if place not in refused]
    if not drafts:
        return []
    ids = [one.memory.memory_id for one in drafts]
    stored = {row.memory_id: row for row in Memory.objects.filter(owned_by(owner), memory_id__in=ids)}
    hidden = Memory.objects.exclude(Q(state__in=(State.LIVE, State.PURGED)) | Q(IS_IN_TRASH))
    returning = [row for row in hidden.filter(pk__in=[row.pk for row in stored.values()]) if not row.is_edited]
    if returning:
        writes.remove(owner, returning)
    known_ids = set(stored) - {row.memory_id for row in returning}
    longest = 2 * max(len(one.memory.text) for one in drafts)  # twice the length allows for more white space
    deleted = Memory.objects.filter(~Q(state=State.LIVE), IS_IN_TRASH, owned_by(owner), is_indexed=True)
    texts = deleted.annotate(length=Length("text")).filter(length__lte=longest).values_list("text", flat=True)
    unwanted = {*map(normal, texts), *(normal(row.text) for row in known)}
    return [one for one in drafts if one.memory.memory_id not in known_ids and normal(one.memory.text) not in unwanted]


MAX_FACTS: Final = 80
_MAX_FORMER: Final = 5
"""The most former profiles that are kept as history."""


def facts_of(owner: Owner) -> list[Memory]:
    """Return the user's most important facts, preferences and decisions, oldest first."""
    found = Memory.objects.filter(IS_LIVE, owned_by(owner), category__in=TABS["user"], origin=Memory.Origin.EXTRACTED)
    best = found.order_by("-importance", "-created_at_ms", "-pk")[:MAX_FACTS]
    return sorted(best, key=lambda row: (row.created_at_ms, row.pk))


def lines_of(facts: Sequence[Memory]) -> Iterator[Mapping[str, Any]]:
    """Yield the facts as lines of a prompt."""
    for row in facts:
        yield {
            "memory": row.text,
            "kind": row.category.rpartition("_")[2],
            "day": readable.moment(row.created_at_ms).date().isoformat(),
        }


def write_profile(owner: Owner, facts: Sequence[Memory], described: ProfileAnswer, now: datetime) -> Memory | None:
    """Replace the profile and return it. Return None if a fact has changed, or its session was deleted, meanwhile.

    Call inside a transaction that has locked the user.
    """
    current = Memory.objects.filter(IS_LIVE, pk__in=[row.pk for row in facts])
    if dict(current.values_list("pk", "text")) != {row.pk: row.text for row in facts}:
        return None
    superseded = [profile for profile in _profiles(owner) if profile.state == State.LIVE]
    explicit = [{"category": fact.category, "description": fact.text, "evidence": fact.memory_id} for fact in facts]
    traits = [
        {"trait": trait.trait, "description": trait.trait, "basis": trait.basis, "evidence": ""}
        for trait in described.traits
    ]
    row = Memory(
        memory_id=str(uuid.uuid4()),
        memory_type=Memory.Type.PROFILE,
        sender_id=owner.user_id,
        speaker=owner.user_id[:MAX_SPEAKER_CHARS],
        text=described.summary,
        original_text=described.summary,
        created_at_ms=to_ms(now),
        origin=Memory.Origin.EXTRACTED,
        sources=[fact.memory_id for fact in facts],
        supersedes=[profile.memory_id for profile in superseded],
        payload={"explicit_info": explicit, "implicit_traits": traits},
    )
    repair_row(row)
    writes.insert(owner, [row])
    supersede(superseded, row, now)
    former = list(_profiles(owner).exclude(Q(state=State.LIVE) | Q(IS_IN_TRASH)))
    if len(former) > _MAX_FORMER:
        writes.remove(owner, former[:-_MAX_FORMER])
    return row


def _profiles(owner: Owner) -> QuerySet[Memory]:
    found = Memory.objects.filter(owned_by(owner), memory_type=Memory.Type.PROFILE, origin=Memory.Origin.EXTRACTED)
    return found.order_by("pk")
