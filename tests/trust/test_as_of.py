"""Histories of facts, in any order: what `as_of` shows of each moment is what a replay until then says.

Each history is in another scope. After it, lists and searches as of every moment are compared with a plain model.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounts.audit import Actor
from core.errors import DeletedByPerson
from engines.registry import get_engine
from memories.services import decisions, expiry
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from memories.services.manual import NewFact, Source, store_fact
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from store import derived_memories
from store.models import Memory
from store.types import ListRequest, Owner
from tests.conftest import Person

HISTORIES = int(os.environ.get("MEMORY_GATEWAY_TEST_HISTORIES", "60"))
ACTOR = Actor.command("tests")
LETTERS = str.maketrans("0123456789", "abcdefghij")
WEIGHTS = {
    "add": 3, "upsert": 6, "correct": 4, "undo": 2, "delete": 3, "restore": 4, "expire": 2, "supersede": 3,
}  # fmt: skip
ACTIONS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
NUMBERS = itertools.count(1)
step = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2**16), st.integers(0, 2**16))


class Clock:
    def __init__(self) -> None:
        self.now = timezone.now()

    def tick(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@dataclass
class Item:
    """A fact: its texts since the last correction, and the times at which it was hidden, by reason."""

    memory_id: str
    stored_at: datetime
    texts: list[tuple[datetime, str]]
    original: str = ""
    hidden: dict[str, datetime] = field(default_factory=dict)
    past: list[tuple[datetime, datetime]] = field(default_factory=list)

    @property
    def is_live(self) -> bool:
        return not self.hidden

    def show(self, reason: str, at: datetime) -> None:
        self.past.append((self.hidden.pop(reason), at))

    def text(self, at: datetime) -> str:
        """The last correction holds for all times before, too."""
        until = [text for since, text in self.texts if since <= at]
        return until[-1] if until else self.texts[0][1]

    def shown(self, at: datetime) -> str | None:
        if self.hidden.keys() & {"deleted", "expired"} or at < self.stored_at:
            return None
        spans = [*self.past, *((since, datetime.max.replace(tzinfo=at.tzinfo)) for since in self.hidden.values())]
        return None if any(since <= at < until for since, until in spans) else self.text(at)


class History:
    def __init__(self, person: Person, clock: Clock) -> None:
        owner = person.owner
        self.owner = Owner(owner.user_pk, owner.user_id, f"h{next(NUMBERS)}")
        self.clock, self.moments = clock, [clock.tick()]
        self.items: list[Item] = []
        self.by_external_id: dict[str, Item] = {}

    def take(self, action: str, first: int, second: int) -> None:
        at = self.clock.tick()
        getattr(self, action)(at, first, second)
        self.moments.append(self.clock.tick())

    def chosen(self, choice: int, condition: Any) -> Item | None:
        found = [item for item in self.items if condition(item)]
        return found[choice % len(found)] if found else None

    def live(self, choice: int) -> Item | None:
        return self.chosen(choice, lambda item: item.is_live)

    def ref(self, item: Item) -> MemoryRef:
        return MemoryRef(item.memory_id, app_id=self.owner.app_id, project_id=self.owner.project_id)

    @staticmethod
    def new_text() -> str:
        return f"a payment zq{str(next(NUMBERS)).translate(LETTERS)}"

    def store(self, at: datetime, external_id: str = "") -> Item:
        text = self.new_text()
        fact = NewFact(text, external_id=external_id, given=frozenset({"external_id"}))
        stored = store_fact(self.owner, fact, Source("tool", ACTOR), with_similar=False)
        known = {item.memory_id: item for item in self.items}
        if (item := known.get(stored.memory.memory_id)) is None:
            item = Item(stored.memory.memory_id, at, [(at, text)])
            self.items.append(item)
            return item
        item.original = item.original or item.texts[-1][1]
        item.texts.append((at, text))
        return item

    def add(self, at: datetime, _first: int, _second: int) -> None:
        self.store(at)

    def upsert(self, at: datetime, first: int, _second: int) -> None:
        name = f"fact {first % 2}"
        item = self.by_external_id.get(name)
        if item and "deleted" in item.hidden:
            with pytest.raises(DeletedByPerson):
                self.store(at, name)
            return
        begins_again = item is None or "expired" in item.hidden
        self.by_external_id[name] = stored = self.store(at, name)
        assert begins_again == (stored is not item)
        if "superseded" in stored.hidden:
            stored.show("superseded", at)

    def correct(self, at: datetime, first: int, _second: int) -> None:
        if item := self.live(first):
            text = self.new_text()
            decisions.override(self.owner.user_pk, self.ref(item), OverrideValues(text), actor=ACTOR)
            item.original = item.original or item.texts[-1][1]
            item.texts = [(at, text)]

    def undo(self, at: datetime, first: int, _second: int) -> None:
        if item := self.chosen(first, lambda one: one.is_live and one.original):
            decisions.undo_override(self.owner.user_pk, self.ref(item), actor=ACTOR)
            item.texts, item.original = [(at, item.original)], ""

    def delete(self, at: datetime, first: int, _second: int) -> None:
        if item := self.chosen(first, lambda one: "deleted" not in one.hidden):
            decisions.delete(self.owner.user_pk, self.ref(item), actor=ACTOR)
            item.hidden["deleted"] = item.hidden.pop("expired", at)

    def restore(self, at: datetime, first: int, _second: int) -> None:
        if item := self.chosen(first, lambda one: not one.is_live):
            decisions.restore(self.owner.user_pk, self.ref(item), expires_at=None, actor=ACTOR)
            reasons = item.hidden.keys() & {"deleted", "expired"} or {"superseded"}
            item.show(next(iter(reasons)), at)

    def expire(self, at: datetime, first: int, _second: int) -> None:
        if item := self.live(first):
            ends_at = at + timedelta(seconds=1)
            decisions.set_expiry(self.owner.user_pk, self.ref(item), ends_at, actor=ACTOR)
            at = self.clock.tick()
            expiry.end_due(user_pk=self.owner.user_pk)
            item.hidden["expired"] = at

    def supersede(self, at: datetime, first: int, second: int) -> None:
        older = self.live(first)
        newer = self.chosen(second, lambda one: one.is_live and one is not older)
        if older and newer:
            rows = {row.memory_id: row for row in Memory.objects.filter(app_id=self.owner.app_id)}
            derived_memories.supersede([rows[older.memory_id]], rows[newer.memory_id], at)
            older.hidden["superseded"] = at

    def check(self) -> None:
        for number, at in enumerate(self.moments):
            expected = {item.memory_id: text for item in self.items if (text := item.shown(at)) is not None}
            assert self.listed(at) == expected
            if number % 3 == len(self.items) % 3:  # a search takes four times as long
                assert self.found(at) == expected
        assert self.listed(self.clock.tick()) == self.listed(None) == self.found(None)

    def listed(self, at: datetime | None) -> dict[str, str]:
        page = get_engine().list(self.owner, ListRequest(as_of=at, limit=100))
        return {one.memory_id: one.text for one in page.memories}

    def found(self, at: datetime | None) -> dict[str, str]:
        command = SearchCommand(query="payment", scopes=frozenset({"all_user_memory"}), top_k=100, as_of=at)
        return {one.hit.memory_id: one.hit.text for one in search(self.owner, command).results}


@pytest.mark.django_db
def test_each_moment_is_as_a_replay_says(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(timezone, "now", lambda: clock.now)

    @settings(
        max_examples=HISTORIES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(step, min_size=3, max_size=14))
    def take(steps: list[tuple[str, int, int]]) -> None:
        history = History(alice, clock)
        for one in steps:
            history.take(*one)
        history.check()
        taken.append(len(steps))

    taken: list[int] = []
    take()
    assert len(taken) >= HISTORIES


@pytest.mark.django_db
def test_the_text_that_an_undone_correction_restored_is_that_of_its_time(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(timezone, "now", lambda: clock.now)
    history = History(alice, clock)
    for action in ("upsert", "correct", "undo", "upsert"):
        history.take(action, 0, 0)
    history.check()
