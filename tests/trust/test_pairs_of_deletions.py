"""Two reasons that hide one memory, in each order, and the end of each, in each order.

A memory is shown when no reason is left: what one of them did, the end of another does not undo. The memory was derived
from a message in the session of a file, so that every reason can meet it: its own deletion, that of its session or
file, a newer memory, and the deletion or correction of the message.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.utils import timezone

from accounts.audit import Actor
from memories.services.manual import add_by_hand
from store import derived_memories
from store import writes as memory_storage
from store.models import Memory, Session
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call, id_of, search, upload

ACTOR = Actor.command("tests")
pytestmark = pytest.mark.django_db(transaction=True)

DELETE, SESSION, FILE, SUPERSEDE, SOURCE, CORRECT = (
    "delete",
    "delete session",
    "delete file",
    "supersede",
    "delete source",
    "correct source",
)
REASONS = (DELETE, SESSION, FILE, SUPERSEDE, SOURCE, CORRECT)
SAID, DERIVED, NEWER = "I live in Oslo by the harbour.", "Lives in Oslo.", "Lives in Bergen."


@dataclass
class Derived:
    """A memory with everything that can hide it. `open` are the reasons that hide it now."""

    person: Person
    session_id: str
    resource_id: str
    source: str
    memory: str
    newer: str
    open: set[str] = field(default_factory=set)

    def begin(self, reason: str, status: int = 200) -> None:
        if reason == SUPERSEDE:
            self._supersede()
        else:
            method, path, body = {
                DELETE: ("delete", f"/memories/{self.memory}", {}),
                SESSION: ("delete", f"/sessions/{quote(self.session_id, safe='')}", {}),
                FILE: ("delete", f"/resources/{self.resource_id}", {}),
                SOURCE: ("delete", f"/memories/{self.source}", {}),
                CORRECT: ("patch", f"/memories/{self.source}", {"override_text": "I live in Rome by the river."}),
            }[reason]
            call(self.person, method, path, status=status, **body)
        self.open |= {reason} if status == 200 else set()

    def _supersede(self) -> None:
        """Do what a comparison by a language model does, which finds live memories only."""
        newer = Memory.objects.get(memory_id=self.newer)
        newer.supersedes = [self.memory]
        newer.save(update_fields=["supersedes"])
        derived_memories.supersede([Memory.objects.get(memory_id=self.memory)], newer, timezone.now())

    def end(self, reason: str, status: int = 200) -> None:
        method, path = {
            DELETE: ("post", f"/memories/{self.memory}/restore"),
            SUPERSEDE: ("post", f"/memories/{self.memory}/restore"),
            SESSION: ("post", f"/sessions/{quote(self.session_id, safe='')}/restore"),
            FILE: ("post", f"/resources/{self.resource_id}/restore"),
            SOURCE: ("post", f"/memories/{self.source}/restore"),
            CORRECT: ("delete", f"/memories/{self.source}/override"),
        }[reason]
        call(self.person, method, path, status=status)
        self.open -= {reason} if status == 200 else set()

    def check(self) -> None:
        """The memory is shown everywhere or nowhere, and each deletion of a user is in a trash list, once."""
        listed = {row["id"] for row in call(self.person, "get", "/memories")["memories"]}
        found = {hit["id"] for hit in search(self.person, "Oslo", scope=["all_user_memory", "resources"])["results"]}
        assert (self.memory in listed, self.memory in found) == (not self.open, not self.open), self.open
        is_source_shown = not self.open & {SESSION, FILE, SOURCE}
        assert (self.source in listed) == is_source_shown, self.open
        assert (self.source in found) == (is_source_shown and CORRECT not in self.open), self.open
        assert self._trash() == self._expected_trash(), self.open

    def _trash(self) -> set[str]:
        rows = call(self.person, "get", "/memories/trash")["trash"]
        files = call(self.person, "get", "/resources", deleted="true")["resources"]
        return {str(row["memory_id"] or row["session_id"]) for row in rows} | {row["resource_id"] for row in files}

    def _expected_trash(self) -> set[str]:
        names = {DELETE: self.memory, SESSION: self.session_id, FILE: self.resource_id, SOURCE: self.source}
        return {name for reason, name in names.items() if reason in self.open}


@pytest.fixture
def derived(alice: Person, storage: Path) -> Derived:
    file = upload(alice, text="The contract runs for ten years.")
    session_id, resource_id = file["session_id"], file["resource_id"]
    said = {"sender_id": "alice", "role": "user", "timestamp": NOON_MS, "content": SAID}
    call(alice, "post", "/memories/add", session_id=session_id, messages=[said])
    call(alice, "post", "/memories/flush", session_id=session_id)
    add_derived(alice, session_id, sources=[id_of(SAID)])
    newer = add_by_hand(alice.owner, category="user_memory_fact", text=NEWER, origin="panel", actor=ACTOR)
    return Derived(alice, session_id, resource_id, id_of(SAID), id_of(DERIVED), newer.memory_id)


def add_derived(person: Person, session_id: str, sources: list[str]) -> None:
    """Store a memory as the extraction of a session does."""
    memory = Memory(
        memory_id="derived-1",
        session=Session.objects.get(session_id=session_id),
        memory_type=Memory.Type.EPISODE,
        category="user_memory_fact",
        sender_id=person.user_id,
        speaker=person.user_id,
        text=DERIVED,
        original_text=DERIVED,
        sources=sources,
        created_at_ms=NOON_MS,
        seq=100,
        origin=Memory.Origin.EXTRACTED,
    )
    memory_storage.insert(person.owner, [memory])


# Only live messages can be corrected, and only live memories are superseded.
REFUSED = {(first, CORRECT) for first in (SESSION, FILE, SOURCE)}
PAIRS = [pair for pair in itertools.permutations(REASONS, 2) if pair not in REFUSED and pair[1] != SUPERSEDE]


def orders() -> Iterator[tuple[str, str, str, str]]:
    """Yield two reasons in the order in which they begin, then in that in which they end.

    One interface ends a deletion and a supersession, the deletion first.
    """
    for pair in PAIRS:
        for ended in (pair, pair[::-1]):
            if ended != (SUPERSEDE, DELETE):
                yield *pair, *ended


def cases() -> Iterator[Any]:
    for order in orders():
        yield pytest.param(*order, id=f"{order[0]}, {order[1]}, end of {order[2]}, of {order[3]}")


@pytest.mark.parametrize(("first", "second", "ended_first", "ended_second"), list(cases()))
def test_a_memory_is_shown_when_no_reason_to_hide_it_is_left(
    derived: Derived, first: str, second: str, ended_first: str, ended_second: str
) -> None:
    derived.check()
    derived.begin(first)
    derived.check()
    derived.begin(second)
    derived.check()
    if (ended_first, ended_second) == (SESSION, FILE):  # the file has to come back first
        derived.end(SESSION, status=409)
        derived.end(FILE)
        derived.check()
        derived.end(SESSION)
    else:
        derived.end(ended_first)
        derived.check()
        derived.end(ended_second)
    derived.check()
    assert not derived.open


@pytest.mark.parametrize("reason", REASONS)
def test_a_memory_is_shown_after_its_only_reason_has_ended(derived: Derived, reason: str) -> None:
    derived.begin(reason)
    derived.check()
    derived.end(reason)
    derived.check()


@pytest.mark.parametrize(("first", "second"), sorted(REFUSED))
def test_what_is_in_the_trash_is_not_corrected(derived: Derived, first: str, second: str) -> None:
    derived.begin(first)
    derived.begin(second, status=409)
    derived.check()
