"""Random decisions, re-ingests, attaching and detaching: each fact is found once, and nothing decided comes back."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from core.background.tasks import Round
from engines.registry import attached_remote, get_engine
from memories.models import Override, Tombstone
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from operations.cleanup import purge
from operations.external.delivery_retry import DeliveryRetry
from operations.reingest import sending
from store import derived_memories
from store.models import Memory, Session
from store.types import Message
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway
from tests.operations.reingest.test_meanwhile import listed, listed_rows, seen
from tests.remote.conftest import NOON, message_of, no_wait
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 16
MARK = re.compile(r"zq\d+x")
WORDS = ("bicycle", "walnut", "kitchen", "harbour", "teapot", "violin", "meadow", "lantern")


class Walk:
    """A session, and what its facts (by mark) should be found as: `live` marks once, all others never."""

    def __init__(self, gateway: SwitchedGateway, seed: int) -> None:
        self.gateway, self.random = gateway, random.Random(seed)
        self.numbers = itertools.count(seed * 1000)
        self.live: set[str] = set()
        self.marks: set[str] = set()
        self.deleted: dict[str, set[str]] = {}
        """The marks that each deletion (by memory id) hides."""
        self.edited: dict[str, tuple[set[str], str]] = {}
        """The marks that each edit (by memory id) replaces, and its own."""
        self.sent: list[str] = []

    def text(self) -> tuple[str, str]:
        mark = f"zq{next(self.numbers)}x"
        self.marks.add(mark)
        return mark, f"the {' '.join(self.random.sample(WORDS, 4))} of {mark}"

    def step(self) -> None:
        actions: list[Callable[[], None]] = [
            self.add, self.add, self.delete, self.delete, self.restore, self.edit, self.undo, self.purge,
            self.begin, self.begin, self.list_late, self.finish, self.ingest, self.ingest, self.attach, self.detach,
        ]  # fmt: skip
        action = self.random.choice(actions)
        self.sent.append(action.__name__)
        action()

    # --- actions ------------------------------------------------------------------------------------------------------

    def add(self) -> None:
        facts = [self.text() for _number in range(self.random.randint(1, 3))]
        at = NOON + next(self.numbers) * 5000
        messages: list[Message] = [
            message_of(self.gateway.owner, text, at + number) for number, (_mark, text) in enumerate(facts)
        ]
        get_engine().add(self.gateway.owner, "chat:1", messages)
        self.live |= {mark for mark, _text in facts}
        if self.random.random() < 0.8:
            get_engine().flush(self.gateway.owner, "chat:1")

    def shown(self) -> Memory | None:
        rows = sorted(listed_rows(self.gateway, "zq"), key=lambda row: row.text)
        return self.random.choice(rows) if rows else None

    def delete(self) -> None:
        if (row := self.shown()) is not None:
            decisions.delete(self.gateway.person.user_pk, MemoryRef(row.memory_id), actor=ACTOR)
            self.deleted[row.memory_id] = gone = set(MARK.findall(row.text)) & self.live
            self.live -= gone

    def restore(self) -> None:
        remote = derived_memories.REMOTE
        found = Tombstone.objects.filter(undone_at=None, row__isnull=False).exclude(actor=remote.name)
        if ids := sorted(set(found.values_list("memory_id", flat=True)) & self.deleted.keys()):
            memory_id = self.random.choice(ids)
            decisions.restore(self.gateway.person.user_pk, MemoryRef(memory_id), actor=ACTOR)
            self.live |= self.deleted.pop(memory_id)

    def edit(self) -> None:
        if (row := self.shown()) is not None and row.memory_id not in self.edited:
            mark, text = self.text()
            values = OverrideValues(text=text)
            decisions.override(self.gateway.person.user_pk, MemoryRef(row.memory_id), values, actor=ACTOR)
            self.edited[row.memory_id] = (set(MARK.findall(row.text)) & self.live, mark)
            self.live -= self.edited[row.memory_id][0]
            self.live.add(mark)

    def undo(self) -> None:
        found = Override.objects.filter(undone_at=None, row__isnull=False).values_list("memory_id", flat=True)
        if ids := sorted({one for one in found if self.edited.get(one, ("", ""))[1] in self.live}):
            memory_id = self.random.choice(ids)
            decisions.undo_override(self.gateway.person.user_pk, MemoryRef(memory_id), actor=ACTOR)
            former, mark = self.edited.pop(memory_id)
            self.live.discard(mark)
            self.live |= former

    def purge(self) -> None:
        if self.random.random() < 0.4:
            purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
            self.deleted.clear()

    def begin(self) -> None:
        if self.is_attached() and Session.objects.exists():
            sending.begin(self.gateway.owner, "chat:1", again=True)
            if self.random.random() < 0.7 and (remote := attached_remote()):
                remote.send(self.gateway.owner, Session.objects.get())

    def list_late(self) -> None:
        if self.is_attached():
            self.gateway.stub.fault("search", Fault(status=503), times=1000)
            get_engine().flush(self.gateway.owner, "chat:1")
            self.gateway.stub.heal("search")

    def finish(self) -> None:
        Session.objects.filter(flushed_at__isnull=False).update(flushed_at=timezone.now() - timedelta(minutes=2))
        DeliveryRetry()(Round())

    def ingest(self) -> None:
        into: Any = self.random.choice([None, None, "remote"])
        if self.is_attached():
            self.gateway.ingest(into, sleep=no_wait)

    def is_attached(self) -> bool:
        return attached_remote() is not None

    def attach(self) -> None:
        self.gateway.attach()

    def detach(self) -> None:
        self.gateway.detach()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        texts = " ".join(listed(self.gateway, "zq"))
        counts = {mark: texts.count(mark) for mark in self.marks}
        wrong = {mark: count for mark, count in counts.items() if count != int(mark in self.live)}
        assert not wrong, (wrong, self.sent)


FOUND_FAULTS = (9, 95, 198)
LONG = [pytest.param(seed, marks=pytest.mark.torture) for seed in range(200) if seed > 3 and seed not in FOUND_FAULTS]


@pytest.mark.parametrize("seed", [*range(4), *FOUND_FAULTS, *LONG])
def test_each_fact_is_found_once_whatever_is_decided_meanwhile(gateway: SwitchedGateway, seed: int) -> None:
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    gateway.settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    walk = Walk(gateway, seed)
    walk.add()
    for _step in range(STEPS):
        walk.step()
        walk.check()
    for attach in (gateway.detach, gateway.attach):
        attach()
        walk.check()
        for mark in walk.marks:
            assert len(seen(gateway, mark)) == int(mark in walk.live), (mark, walk.sent)
    with transaction.atomic():
        assert_consistent(gateway.owner)
