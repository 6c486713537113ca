"""Purged text is neither sent nor shown again: after a re-ingest, after detaching, and from an archive."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction

from core.background.tasks import Round
from engines.registry import get_engine
from memories.services import decisions, files
from memories.services.lookup import MemoryRef
from operations.cleanup import purge
from operations.external.delivery_retry import DeliveryRetry
from remote import sources
from remote.models import OutboxEntry
from resources import services
from store import writes
from store.models import Memory
from store.types import ContentItem, Message, Owner
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway
from tests.remote.conftest import NOON, message_of
from tests.resources.forms import stored_resource
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


def purge_all() -> None:
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)


def purge_memory(gateway: SwitchedGateway, text: str) -> None:
    """Delete a memory and purge the trash."""
    gateway.delete(text)
    purge_all()


def again(gateway: SwitchedGateway) -> None:
    """Attach, ingest again and send what is not sent, and assert that the result is consistent."""
    gateway.attach()
    for into in (None, "remote"):
        outcome = gateway.ingest(into)  # type: ignore[arg-type]
        assert outcome.is_ok, outcome.failures
    assert_consistent(gateway.owner)


def detach(gateway: SwitchedGateway) -> None:
    gateway.detach()
    assert_consistent(gateway.owner)


def rewrite_memory(first: Memory, *texts: str) -> None:
    """Replace a memory of EverOS by memories with other texts, as if EverOS had written them."""
    rows = []
    for number, text in enumerate(texts):
        row = Memory.objects.select_related("user").get(pk=first.pk)
        row.text = row.original_text = text
        row.payload = {**row.payload, "episode": text, "summary": text, "subject": text}
        row.pk, row.memory_id = None, f"{row.memory_id}_{number}" if number else row.memory_id
        rows.append(row)
    owner = Owner(first.user_id, rows[0].user.user_id, first.app_id, first.project_id)
    writes.remove(owner, [Memory.objects.get(pk=first.pk)])
    for row in rows:
        row.sources = []
    writes.insert(owner, rows)
    with transaction.atomic():
        sources.link(rows[0].session)


def stored_texts() -> str:
    """Return all stored texts, visible or hidden, also those for the remote."""
    memories = " ".join(f"{row.text} {row.original_text} {json.dumps(row.payload)}" for row in Memory.objects.all())
    return memories + " ".join(json.dumps(entry.message) for entry in OutboxEntry.objects.all())


@pytest.mark.parametrize("uses_archive", [False, True])
def test_a_purged_message_is_not_sent(gateway: SwitchedGateway, tmp_path: Path, *, uses_archive: bool) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the house is green", at=NOON + 1000)
    purge_memory(gateway, "bicycle")
    assert "bicycle" not in stored_texts()
    if uses_archive:
        gateway.export_and_import(tmp_path / "all.tar")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("bicycle house") == ["the house is green"]
    assert "bicycle" not in stored_texts()


def test_purging_an_override_purges_its_original_messages(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.override("bicycle", "both are yellow")
    purge_memory(gateway, "yellow")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("bicycle car yellow") == []
    assert all(word not in stored_texts() for word in ("bicycle", "car", "yellow"))


def test_purging_a_rephrased_memory_purges_all_messages_of_its_batch(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "I met Ada in Rome", "she wants the green one")
    gateway.add_and_flush("chat:1", "the house is old", at=NOON + 1000)
    rewrite_memory(gateway.find_memory("Ada"), "a meeting about a purchase")
    purge_memory(gateway, "purchase")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("Ada Rome green house") == ["the house is old"]


def test_other_memories_of_a_purged_batch_stay(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "my bicycle is red", "the car is blue", "our cat is old")
    rewrite_memory(
        gateway.find_memory("bicycle"), "alice said: my bicycle is red", "alice has a blue car and a cat of some age"
    )
    purge_memory(gateway, "bicycle")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("bicycle red") == []
    # Messages that no memory shares words with may be in the purged one too.
    assert gateway.search_texts("car cat") == ["alice has a blue car and a cat of some age"]


def test_other_memories_of_a_purged_batch_are_found_here_and_there(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "my bicycle is red", "the car is blue")
    rewrite_memory(gateway.find_memory("bicycle"), "a vehicle of alice's", "something of another color")
    purge_memory(gateway, "vehicle")
    assert "bicycle" not in stored_texts()
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0  # the flush waits for a memory that was purged
    gateway.add_and_flush("chat:1", "the house is old", at=NOON + 1000)
    again(gateway)
    detach(gateway)
    again(gateway)
    assert any("another color" in text for text in gateway.search_texts("another color house"))


def test_files_of_a_purged_batch_are_not_sent(gateway: SwitchedGateway) -> None:
    file = files.inline_file(gateway.person.user_pk, b"The walnut treaty.", "txt")
    files.keep(file)
    item = ContentItem("doc", file=file.key, name="secret.txt", mime_type="text/plain")
    message = Message("alice", "user", NOON, (ContentItem("text", "look at this paper here"), item))
    get_engine().add(gateway.owner, "chat:1", [message])
    get_engine().flush(gateway.owner, "chat:1")
    row = Memory.objects.get(memory_type="episode", is_covered=False)
    rewrite_memory(row, "alice said: look at this paper here", "of a walnut and of peace")
    purge_memory(gateway, "peace")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("walnut treaty") == []


@pytest.mark.parametrize("is_attached", [False, True])
def test_a_repeated_purged_message_is_recognized(gateway: SwitchedGateway, *, is_attached: bool) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the house is green", at=NOON + 1000)
    purge_memory(gateway, "bicycle")
    again(gateway)
    detach(gateway)
    if is_attached:
        gateway.attach()
    gateway.add_and_flush("chat:1", "the bicycle is red")
    assert [text for text in gateway.search_texts("bicycle house") if "bicycle" in text] == []
    assert "bicycle" not in stored_texts()


@pytest.mark.parametrize("uses_archive", [False, True])
def test_a_purged_session_is_not_sent(gateway: SwitchedGateway, tmp_path: Path, *, uses_archive: bool) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:2", "the house is green")
    decisions.delete_session(gateway.owner, "chat:1", actor=ACTOR)
    purge_all()
    assert "bicycle" not in stored_texts()
    if uses_archive:
        gateway.export_and_import(tmp_path / "all.tar")
    again(gateway)
    detach(gateway)
    assert gateway.search_texts("bicycle house") == ["the house is green"]


def test_a_partly_purged_file_is_not_sent_whole(gateway: SwitchedGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    purge_memory(gateway, "quarterly")
    for ingest in (detach, again, detach):
        ingest(gateway)
        assert gateway.search_texts("quarterly") == []


def test_a_purged_passage_is_not_ingested_again(gateway: SwitchedGateway, storage: Path) -> None:
    gateway.detach()
    text = "\n\n".join(" ".join(f"word{number}x{position}." for position in range(150)) for number in range(6))
    resource = stored_resource(gateway.person, text)
    services.ingest(resource.resource_id)
    rows = list(Memory.objects.order_by("chunk_index"))
    assert len(rows) > 2
    decisions.delete(gateway.person.user_pk, MemoryRef(rows[1].memory_id), actor=ACTOR)
    purge_all()
    purged = rows[1].text
    word = purged.split()[len(purged.split()) // 2]
    assert gateway.ingest().is_ok
    assert Memory.objects.filter(text=purged).count() == 0
    for ingest in (again, detach):
        ingest(gateway)
        assert word not in stored_texts()
        assert word not in json.dumps([request.body for request in gateway.stub.requests])


@pytest.mark.parametrize("state", ["pending", "buffered", "flushed"])
def test_a_purged_message_is_nowhere(gateway: SwitchedGateway, state: str) -> None:
    """Neither in the outbox nor in what was derived from it. Other messages of its flush stay."""
    messages = [message_of(gateway.owner, text, NOON) for text in ("the bicycle is red", "the car is blue")]
    if state == "pending":
        gateway.stub.fault("add", Fault(status=503), times=1000)
    get_engine().add(gateway.owner, "chat:1", messages)
    if state == "buffered":
        DeliveryRetry()(Round())
    if state == "flushed":
        get_engine().flush(gateway.owner, "chat:1")
    message = Memory.objects.get(text="the bicycle is red")
    decisions.delete(gateway.person.user_pk, MemoryRef(message.memory_id), actor=ACTOR)
    purge_all()
    assert "bicycle" not in stored_texts()
    gateway.stub.heal("add")
    assert gateway.search_texts("bicycle") == []
    get_engine().flush(gateway.owner, "chat:1")
    assert gateway.search_texts("bicycle") == []
    again(gateway)
    assert "bicycle" not in stored_texts()
    assert [text for text in gateway.search_texts("bicycle car") if "bicycle" in text] == []
    assert len(gateway.search_texts("car")) == 1
    detach(gateway)
    assert gateway.search_texts("bicycle car") == ["the car is blue"]
