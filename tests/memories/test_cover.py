"""Show a message or what EverOS derived from it, never both: rule 1 of memories that also live at a remote.

A message is covered by what was derived from it: stored, and not shown while EverOS is attached, whether it answers or
not. A decision about one holds for the other, attached, away and detached. The stand-in for EverOS words everything in
its own way, so that no comparison of texts finds out what was derived from what.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from core.background import tasks
from tests.conftest import Person
from tests.memories.calls import NOON_MS, call
from tests.stub_everos import Store
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

NARRATIVES = {
    "My bicycle is crimson.": "A scarlet velocipede belongs to her.",
    "I keep a hedgehog.": "A prickly animal lives in the household.",
    "The dentist is on Friday.": "An appointment about teeth comes before the weekend.",
    "My flat is in Hamburg.": "She resides in the Hanseatic city.",
}
BICYCLE, HEDGEHOG, DENTIST, FLAT = NARRATIVES


class RewordingStore(Store):
    """EverOS as far as it merges all messages of a flush into one text, and repeats no word of them."""

    def _episode(self, body: dict[str, Any], user_id: str, said: list[dict[str, Any]]) -> dict[str, Any]:
        texts = [item["text"] for message in said for item in message["content"] if item["type"] == "text"]
        text = " ".join(NARRATIVES[text] for text in texts)
        return {**super()._episode(body, user_id, said), "episode": text, "summary": text, "subject": text[:90]}


@dataclass
class Gateway:
    """A gateway that has EverOS attached from the start, and one user."""

    person: Person
    stub: StubUpstream
    settings: Any
    ids: dict[str, str] = field(default_factory=dict)

    def attach(self) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = self.stub.url

    def detach(self) -> None:
        self.settings.MEMORY_GATEWAY_BACKEND_BASE_URL = ""

    @contextmanager
    def away(self) -> Iterator[None]:
        """EverOS refuses every call meanwhile."""
        self.stub.fault("*", Fault(status=503), times=10_000)
        try:
            yield
        finally:
            self.stub.heal("*")

    def call(self, method: str, path: str, *, status: int = 200, **fields: Any) -> dict[str, Any]:
        return call(self.person, method, path, status=status, **fields)

    def add(self, *texts: str, session_id: str = "chat:c1", at: int = 0) -> None:
        """Add messages, and note their ids."""
        messages = [
            {"sender_id": self.person.user_id, "role": "user", "timestamp": NOON_MS + 1000 * (at + n), "content": text}
            for n, text in enumerate(texts)
        ]
        self.call("post", "/memories/add", session_id=session_id, messages=messages)
        rows = self.call("get", "/memories", session_id=session_id)["memories"]
        self.ids |= {row["text"]: row["id"] for row in rows if row["text"] in texts}

    def say(self, *texts: str, session_id: str = "chat:c1", at: int = 0) -> None:
        self.add(*texts, session_id=session_id, at=at)
        self.call("post", "/memories/flush", session_id=session_id)

    def delete(self, memory_id: str) -> None:
        self.call("delete", f"/memories/{memory_id}")

    def restore(self, memory_id: str) -> None:
        self.call("post", f"/memories/{memory_id}/restore")

    def edit(self, memory_id: str, text: str) -> None:
        self.call("patch", f"/memories/{memory_id}", override_text=text)

    def listed(self) -> list[str]:
        return sorted(row["text"] for row in self.call("get", "/memories")["memories"])

    def found(self, query: str) -> list[str]:
        body = {"query": query, "scope": ["all_user_memory"], "top_k": 50}
        return sorted(hit["text"] for hit in self.call("post", "/memories/search", **body)["results"])

    def episode(self, text: str) -> str:
        """Return the id of the memory that was derived from that message."""
        rows = self.call("get", "/memories")["memories"]
        [found] = [row["id"] for row in rows if NARRATIVES[text] in row["text"]]
        return str(found)

    def trash(self) -> set[str]:
        return {row["memory_id"] for row in self.call("get", "/memories/trash")["trash"]}

    @property
    def sent(self) -> str:
        """Everything that EverOS got."""
        return json.dumps([request.body for request in self.stub.requests if request.name == "add"])


@pytest.fixture
def gateway(alice: Person, settings: Any, storage: Path) -> Iterator[Gateway]:
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 3.0
    with StubUpstream() as stub:
        stub.store = RewordingStore()
        gateway = Gateway(alice, stub, settings)
        gateway.attach()
        yield gateway
        assert tasks.wait_until_idle(30)


def narrative(*texts: str) -> str:
    return " ".join(NARRATIVES[text] for text in texts)


# --- cover ------------------------------------------------------------------------------------------------------------


def test_a_covered_message_is_not_shown_beside_its_narrative(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    assert gateway.listed() == [narrative(BICYCLE, HEDGEHOG)]
    assert gateway.found("velocipede bicycle") == [narrative(BICYCLE, HEDGEHOG)]


def test_an_outage_shows_the_same_memories_under_the_same_ids(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    before = gateway.call("post", "/memories/search", query="velocipede", scope=["all_user_memory"])["results"]
    with gateway.away():
        answer = gateway.call("post", "/memories/search", query="velocipede", scope=["all_user_memory"])
        assert [hit["id"] for hit in answer["results"]] == [hit["id"] for hit in before]
        assert answer["meta"]["scopes"]["all_user_memory"]["degraded"]
        assert gateway.found("bicycle") == []


def test_an_outage_shows_uncovered_messages(gateway: Gateway) -> None:
    gateway.say(BICYCLE)
    gateway.add(HEDGEHOG, at=10)
    with gateway.away():
        assert gateway.found("hedgehog") == [HEDGEHOG]


def test_a_covered_message_keeps_its_id(gateway: Gateway) -> None:
    gateway.say(BICYCLE)
    assert gateway.call("get", f"/memories/{gateway.ids[BICYCLE]}")["memory"]["text"] == BICYCLE


# --- (a) a derived memory is deleted or edited ------------------------------------------------------------------------


def test_deleting_a_narrative_deletes_its_messages(gateway: Gateway) -> None:
    gateway.say(BICYCLE)
    gateway.say(DENTIST, session_id="chat:c2", at=10)
    gateway.delete(gateway.episode(BICYCLE))
    assert gateway.listed() == [narrative(DENTIST)]
    gateway.detach()
    assert gateway.listed() == [DENTIST]
    assert gateway.found("bicycle dentist velocipede") == [DENTIST]
    assert len(gateway.trash()) == 1


def test_restoring_a_narrative_restores_its_messages(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    episode = gateway.episode(BICYCLE)
    gateway.delete(episode)
    gateway.restore(episode)
    assert gateway.listed() == [narrative(BICYCLE, HEDGEHOG)]
    gateway.detach()
    assert gateway.listed() == sorted([BICYCLE, HEDGEHOG])


def test_messages_deleted_with_a_narrative_are_restored_one_by_one(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    gateway.delete(gateway.episode(BICYCLE))
    gateway.restore(gateway.ids[HEDGEHOG])
    gateway.detach()
    assert gateway.listed() == [HEDGEHOG]


def test_an_edited_narrative_keeps_its_messages_covered(gateway: Gateway) -> None:
    gateway.say(BICYCLE)
    gateway.edit(gateway.episode(BICYCLE), "Her velocipede is blue.")
    with gateway.away():
        assert gateway.found("velocipede bicycle") == ["Her velocipede is blue."]
    gateway.detach()
    assert gateway.listed() == ["Her velocipede is blue."]
    assert gateway.found("velocipede bicycle crimson scarlet") == ["Her velocipede is blue."]


# --- (b) a message is deleted or corrected ----------------------------------------------------------------------------


def test_deleting_a_message_hides_every_narrative_of_it(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    gateway.say(DENTIST, session_id="chat:c2", at=10)
    gateway.delete(gateway.ids[BICYCLE])
    assert "velocipede" not in " ".join(gateway.listed())
    assert gateway.found("velocipede bicycle crimson") == []
    assert gateway.found("weekend") == [narrative(DENTIST)]
    assert gateway.trash() == {gateway.ids[BICYCLE]}


def test_correcting_a_message_hides_every_narrative_of_it(gateway: Gateway) -> None:
    gateway.say(FLAT)
    gateway.edit(gateway.ids[FLAT], "My flat is in Kiel.")
    assert gateway.found("Hanseatic Hamburg") == []
    assert gateway.found("Kiel") == ["My flat is in Kiel."]


def test_a_second_derivation_of_deleted_messages_waits_for_a_person(gateway: Gateway) -> None:
    gateway.say(BICYCLE)
    episode = gateway.episode(BICYCLE)
    gateway.delete(episode)
    [first] = [one for one in gateway.stub.store.episodes if one["id"] == episode]
    text = "Her crimson cycle came up again."
    gateway.stub.store.episodes.append({**first, "id": f"{episode}9", "episode": text, "summary": text})
    gateway.say(DENTIST, at=100)  # copies what EverOS lists
    assert gateway.found("crimson cycle came again") == []
    assert gateway.listed() == [narrative(DENTIST)]


# --- (c) nothing that was deleted or edited is sent -------------------------------------------------------------------


def test_what_was_decided_before_attaching_is_not_sent(gateway: Gateway) -> None:
    gateway.detach()
    gateway.say(BICYCLE, HEDGEHOG, DENTIST)
    gateway.delete(gateway.ids[BICYCLE])
    gateway.edit(gateway.ids[HEDGEHOG], "I keep a tortoise.")
    gateway.attach()
    gateway.say(BICYCLE, HEDGEHOG, DENTIST)  # a client that repeats its transcript
    gateway.say(FLAT, at=100)
    assert "bicycle" not in gateway.sent
    assert "hedgehog" not in gateway.sent
    assert "tortoise" not in gateway.sent
    assert FLAT in gateway.sent


def test_what_was_decided_before_attaching_is_not_sent_by_reingest(gateway: Gateway) -> None:
    gateway.detach()
    gateway.say(BICYCLE, HEDGEHOG, DENTIST)
    gateway.delete(gateway.ids[BICYCLE])
    gateway.edit(gateway.ids[HEDGEHOG], "I keep a tortoise.")
    gateway.attach()
    quiet = {"stdout": StringIO(), "stderr": StringIO()}
    call_command("reingest", "--into", "remote", "--user", "alice", "--apply", **quiet)
    for word in ("bicycle", "hedgehog", "tortoise"):
        assert word not in gateway.sent
    assert DENTIST in gateway.sent


def test_a_message_deleted_before_it_was_sent_is_never_sent(gateway: Gateway) -> None:
    with gateway.away():
        gateway.add(BICYCLE, HEDGEHOG)
        gateway.delete(gateway.ids[BICYCLE])
    gateway.call("post", "/memories/flush", session_id="chat:c1")
    assert "bicycle" not in gateway.sent
    assert gateway.listed() == [narrative(HEDGEHOG)]


# --- (d) detaching and attaching again --------------------------------------------------------------------------------


def test_detaching_shows_messages_instead_of_narratives(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    gateway.detach()
    assert gateway.listed() == sorted([BICYCLE, HEDGEHOG])
    assert gateway.found("bicycle velocipede") == [BICYCLE]


def test_detaching_keeps_narratives_without_messages(gateway: Gateway) -> None:
    gateway.settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    gateway.say(BICYCLE)
    gateway.detach()
    assert gateway.listed() == [narrative(BICYCLE)]
    assert gateway.found("velocipede") == [narrative(BICYCLE)]


def test_attaching_again_recognizes_the_narratives(gateway: Gateway) -> None:
    gateway.say(BICYCLE, HEDGEHOG)
    gateway.say(DENTIST, session_id="chat:c2", at=10)
    deleted, kept = gateway.episode(DENTIST), gateway.episode(BICYCLE)
    gateway.delete(deleted)
    gateway.detach()
    assert gateway.listed() == sorted([BICYCLE, HEDGEHOG])
    gateway.attach()
    assert gateway.listed() == [narrative(BICYCLE, HEDGEHOG)]
    assert gateway.episode(BICYCLE) == kept
    assert gateway.found("weekend velocipede bicycle dentist") == [narrative(BICYCLE, HEDGEHOG)]
    assert gateway.sent.count(BICYCLE) == 1
