"""What a model said of a window of messages, as memories: said once, not deleted by their user, the replaced set aside.

A memory's id is made of its words, so that the same words are the same memory, whenever and wherever they are said
again; a memory that its user deleted or reworded keeps its id, and so keeps the words from coming back.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from django.db.models.functions import Length

from engines.embedded.llm.extraction import CATEGORY_OF, MAX_REPLACED, Extracted, is_of_user
from store import storage
from store.derived_memories import HIDDEN_AS, hide
from store.index import keyword
from store.models import Memory, Session, owned_by
from store.text.normalize import fold
from store.types import Owner

_NAMESPACE: Final = uuid.UUID("0d7f6f0c-58c5-4f5e-9d5e-1f4a2c8f7b63")
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Window:
    """The messages that a model was given under the numbers 1, 2, …, under numbers too what was known already, and
    without a number what was said before."""

    messages: Sequence[Memory]
    known: Sequence[Memory]
    before: Sequence[Memory] = ()

    def is_current(self) -> bool:
        """Whether nothing of it was deleted or corrected since: a model may have had its words from any line, whatever
        it names as its source."""
        shown = {row.pk: row.text for row in (*self.messages, *self.known, *self.before)}
        live = Memory.objects.filter(
            pk__in=list(shown), hidden_at=None, session__hidden_at=None, session__deleted_at=None
        )
        return dict(live.values_list("pk", "text")) == shown


@dataclass(slots=True)
class _Made:
    """A new memory and the known ones that it replaces."""

    memory: Memory
    replaces: Sequence[Memory] = ()


def write(owner: Owner, session: Session, window: Window, extracted: Extracted, now: datetime) -> list[Memory]:
    """Saves what is new in what was extracted; returns it. Call inside a transaction that holds user and session, where
    the window is current."""
    made = _without_known(owner, _once(_made(owner, window, extracted)), window.known)
    replaced: dict[int, Memory] = {}
    for one in made:
        one.memory.session = session
        one.replaces = [row for row in one.replaces if row.pk not in replaced][: MAX_REPLACED - len(replaced)]
        replaced |= {row.pk: row for row in one.replaces}
        one.memory.payload["supersedes"] = [row.memory_id for row in one.replaces]
    rows = [one.memory for one in made]
    storage.insert(owner, rows, [keyword.entry_of(row) for row in rows])
    for one in made:
        _supersede(one, now)
    return rows


def normal(text: str) -> str:
    """A text as it is compared with others: its words alone."""
    return " ".join(_WORDS.findall(fold(text)))


def memory_id(owner: Owner, *names: str) -> str:
    """The id of what is made of these words."""
    named = [str(owner.user_pk), owner.app_id, owner.project_id, *map(normal, names)]
    return str(uuid.uuid5(_NAMESPACE, orjson.dumps(named).decode()))


def _made(owner: Owner, window: Window, extracted: Extracted) -> Iterator[_Made]:
    yield from _sentences(owner, window, extracted)
    for case in extracted.cases:
        sources = _sources(window, case.messages)
        if agent := _agent(window, sources):
            text = f"{case.task_intent}\n{case.approach}"
            own = {"key_insight": case.key_insight, "quality_score": case.quality}
            yield _Made(_row(owner, sources, "agent_case", text, agent=agent, importance=case.quality, own=own))
    for skill in extracted.skills:
        sources = _sources(window, skill.messages)
        if agent := _agent(window, sources):
            own = {"name": skill.name, "description": skill.description}
            row = _row(owner, sources, "agent_skill", skill.content, agent=agent, own=own)
            yield _Made(row, tuple(_same_skill(owner, agent, skill.name, row.memory_id)))


def _sentences(owner: Owner, window: Window, extracted: Extracted) -> Iterator[_Made]:
    """What is said of the user has to come from the user; what an agent learned is that agent's."""
    for told in extracted.memories:
        sources, of_user = _sources(window, told.messages), is_of_user(told.kind)
        if not sources or (of_user and not any(_role(row) == "user" for row in sources)):
            continue
        agent = "" if of_user else _agent(window, sources) or ""
        category = CATEGORY_OF[told.kind]
        weight = told.importance
        row = _row(owner, sources, "episode", told.text, agent=agent, importance=weight, category=category)
        yield _Made(row, tuple(_replaceable(window.known, told.replaces, category)))


def _sources(window: Window, numbers: Iterable[int]) -> list[Memory]:
    """The messages that were named, in their order."""
    places = sorted({number for number in numbers if 1 <= number <= len(window.messages)})
    return [window.messages[place - 1] for place in places]


def _role(message: Memory) -> str:
    return str(message.payload.get("role", "user"))


def _agent(window: Window, sources: Sequence[Memory]) -> str | None:
    """The agent that the sources are of, else the last that spoke; None where none did, or nothing was named."""
    if not sources:
        return None
    spoke = [row.agent_id for row in (*window.messages, *sources) if row.agent_id]
    return spoke[-1] if spoke else None


def _row(
    owner: Owner,
    sources: Sequence[Memory],
    memory_type: str,
    text: str,
    *,
    agent: str = "",
    importance: float | None = None,
    category: str = "",
    own: Mapping[str, Any] | None = None,
) -> Memory:
    """Without owner and session. It stands where its last source stands, and is as old."""
    last = sources[-1]
    return Memory(
        memory_id=memory_id(owner, agent, memory_type, text),
        memory_type=memory_type,
        category=category,
        agent_id=agent,
        sender_id=last.sender_id,
        speaker=last.speaker,
        text=text,
        importance=importance,
        batch_id=last.batch_id,
        seq=last.seq,
        created_at_ms=last.created_at_ms,
        origin=Memory.Origin.EXTRACTED,
        payload={
            "said": text,
            "agent_id": agent,
            "sources": [row.memory_id for row in sources],
            **(own or {}),
        },
    )


def _replaceable(known: Sequence[Memory], numbers: Iterable[int], category: str) -> Iterator[Memory]:
    """What a model made itself and its user left as it was: people's own words are never replaced."""
    named = [known[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(known)]
    tab = category.partition("_")[0]
    ours = (row for row in named if row.origin == Memory.Origin.EXTRACTED and row.text == row.payload.get("said"))
    yield from (row for row in ours if row.category.startswith(tab))


def _same_skill(owner: Owner, agent: str, name: str, new_id: str) -> Iterator[Memory]:
    """The agent's skill of that name as it was: the new words stand for it."""
    skills = Memory.objects.filter(
        owned_by(owner), memory_type=Memory.Type.AGENT_SKILL, agent_id=agent, hidden_at__isnull=True
    )
    for row in skills.exclude(memory_id=new_id):
        if normal(str(row.payload.get("name"))) == normal(name) and row.text == row.payload.get("said"):
            yield row


def _once(made: Iterable[_Made]) -> list[_Made]:
    """The first of those that say the same."""
    found: dict[str, _Made] = {}
    for one in made:
        found.setdefault(one.memory.memory_id, one)
    return list(found.values())


def _without_known(owner: Owner, made: Sequence[_Made], known: Sequence[Memory]) -> list[_Made]:
    """Leaves out what is remembered already, and what the user deleted. What was superseded and is said again comes
    back as new."""
    ids = [one.memory.memory_id for one in made]
    held = {row.memory_id: row for row in Memory.objects.filter(owned_by(owner), memory_id__in=ids)}
    again = [row for row in held.values() if HIDDEN_AS in row.payload and row.text == row.payload.get("said")]
    if again:
        storage.remove(owner, again)
    gone = set(held) - {row.memory_id for row in again}
    unwanted = _deleted(owner, made) | {normal(row.text) for row in known}
    return [one for one in made if one.memory.memory_id not in gone and normal(one.memory.text) not in unwanted]


def _deleted(owner: Owner, made: Collection[_Made]) -> set[str]:
    """The texts that the user deleted, whoever had written them."""
    if not made:
        return set()
    longest = 2 * max(len(one.memory.text) for one in made)  # the same words in a longer text have odd spaces
    hidden = Memory.objects.filter(owned_by(owner), hidden_at__isnull=False, is_indexed=True)
    rows = hidden.annotate(length=Length("text")).filter(length__lte=longest).values_list("text", "payload")
    return {normal(text) for text, payload in rows if HIDDEN_AS not in payload}


def _supersede(made: _Made, now: datetime) -> None:
    for row in made.replaces:
        row.payload["superseded_by"] = made.memory.memory_id
    hide(made.replaces, "superseded", now)
