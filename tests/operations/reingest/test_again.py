"""Sessions are sent again: their former memories stand for them until the new ones are here, and never both."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from django.utils import timezone

from core.background.tasks import Round
from core.errors import EngineUnavailable
from engines.registry import attached_remote, get_engine
from memories.services import decisions
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from operations.cleanup import purge
from operations.external.delivery_retry import DeliveryRetry
from remote import residue
from remote.everos import EverOS
from remote.models import OutboxEntry, Resend
from resources import services
from store import derived
from store.models import Memory, PendingDeletion, Session
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway, begin
from tests.remote.conftest import NOON, no_wait
from tests.resources.forms import stored_resource
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


def texts_sent(gateway: SwitchedGateway) -> str:
    """Return the bodies of all adds."""
    return json.dumps(gateway.stub.calls("add"), ensure_ascii=False)


def again(gateway: SwitchedGateway) -> None:
    outcome = gateway.ingest()
    assert outcome.is_ok, outcome.failures
    assert_consistent(gateway.owner)
    assert not Resend.objects.filter(ended_at=None).exists()


def test_new_memories_replace_the_former_ones(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    former = gateway.find_memory("bicycle")
    before = Session.objects.get()
    again(gateway)
    after = Session.objects.get()
    assert after.engine_session_id != before.engine_session_id
    assert residue.holds_session(before)
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
    assert gateway.find_memory("bicycle").memory_id != former.memory_id
    assert not Memory.objects.filter(pk=former.pk).exists()
    gateway.detach()
    assert sorted(gateway.search_texts("bicycle car")) == ["the bicycle is red", "the car is blue"]


def test_until_then_the_former_ones_stand_for_the_session(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former = gateway.find_memory("bicycle")
    begin(gateway)
    session = Session.objects.get()
    # EverOS has derived them, and the copies are here, but its flush is not confirmed.
    remote = cast("EverOS", attached_remote())
    remote._client.flush({"session_id": session.engine_session_id, **gateway.owner.scope}, remote._client.deadline())
    assert remote.copy_memories(gateway.owner, session) == 1
    for attach in (gateway.detach, gateway.attach):
        attach()
        assert len(gateway.search_texts("bicycle")) == 1
    assert gateway.find_memory("bicycle").pk == former.pk
    searches = len(gateway.stub.calls("search"))
    command = SearchCommand(query="bicycle", scopes=frozenset({"current_chat"}), conversation_id="1", top_k=9)
    assert [one.hit.memory_id for one in search(gateway.owner, command).results] == [former.memory_id]
    assert len(gateway.stub.calls("search")) == searches  # it is not asked for the session
    again(gateway)
    assert len(gateway.search_texts("bicycle")) == 1
    assert not Memory.objects.filter(pk=former.pk).exists()


def test_a_deleted_memory_is_not_derived_again(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 1000)
    gateway.delete("bicycle")
    sent = len(gateway.stub.calls("add"))
    again(gateway)
    assert "bicycle" not in json.dumps(gateway.stub.calls("add")[sent:])
    assert gateway.search_texts("bicycle car") == ["alice said: the car is blue"]
    decisions.restore(
        gateway.person.user_pk,
        MemoryRef(Memory.objects.get(text="alice said: the bicycle is red").memory_id),
        actor=ACTOR,
    )
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]


def test_an_edited_memory_stays_and_its_messages_are_not_sent(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 1000)
    gateway.override("bicycle", "the bicycle is yellow")
    sent = len(gateway.stub.calls("add"))
    again(gateway)
    assert "bicycle" not in json.dumps(gateway.stub.calls("add")[sent:])
    assert sorted(gateway.search_texts("bicycle car")) == ["alice said: the car is blue", "the bicycle is yellow"]


def test_a_memory_stays_whose_category_alone_was_edited(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.override("bicycle", category="user_memory_preference")
    again(gateway)
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    assert gateway.find_memory("bicycle").category == "user_memory_preference"


def test_a_deleted_message_is_not_sent(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    message = Memory.objects.get(text="the bicycle is red")
    decisions.delete(gateway.person.user_pk, MemoryRef(message.memory_id), actor=ACTOR)
    sent = len(gateway.stub.calls("add"))
    again(gateway)
    assert "bicycle" not in json.dumps(gateway.stub.calls("add")[sent:])
    assert gateway.search_texts("bicycle car") == ["alice said: the car is blue"]


def test_what_is_derived_again_from_the_rest_is_not_held_back(gateway: SwitchedGateway) -> None:
    """The deleted memory is of the same time as the new one, which is derived from what was not deleted."""
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue", "our cat is old")
    message = Memory.objects.get(text="the car is blue")
    decisions.delete(gateway.person.user_pk, MemoryRef(message.memory_id), actor=ACTOR)
    again(gateway)
    assert gateway.search_texts("bicycle car cat") == ["alice said: the bicycle is red alice said: our cat is old"]


def test_without_an_answer_the_former_ones_stay_and_the_background_task_ends_it(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former = gateway.find_memory("bicycle")
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    gateway.settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    gateway.stub.fault("flush", Fault(status=503), times=100)
    outcome = gateway.ingest(sleep=no_wait)
    assert not outcome.is_ok
    assert gateway.find_memory("bicycle").pk == former.pk
    assert len(gateway.search_texts("bicycle")) == 1
    gateway.stub.heal("flush")
    again(gateway)
    assert len(gateway.search_texts("bicycle")) == 1
    assert not Memory.objects.filter(pk=former.pk).exists()


def test_memories_that_are_listed_late_replace_the_former_ones_then(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former = gateway.find_memory("bicycle")
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    gateway.stub.fault("get", Fault(status=503), times=1000)
    begin(gateway)
    get_engine().flush(gateway.owner, "chat:1")
    assert Resend.objects.filter(ended_at=None).exists()
    assert gateway.find_memory("bicycle").pk == former.pk
    gateway.stub.heal("get")
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=2))
    DeliveryRetry()(Round())
    assert not Resend.objects.exists()
    assert len(gateway.search_texts("bicycle")) == 1
    assert not Memory.objects.filter(pk=former.pk).exists()


def test_a_new_message_is_found_while_its_session_is_sent_again(gateway: SwitchedGateway) -> None:
    """Nothing that a user says is hidden with memories that are not shown yet."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    begin(gateway)
    gateway.stub.fault("search", Fault(status=503), times=1000)  # new memories are listed and not found yet
    gateway.add_and_flush("chat:1", "our cat is old", at=NOON + 1000)
    assert Resend.objects.filter(ended_at=None).exists()
    assert gateway.search_texts("cat") == ["our cat is old"]
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    gateway.stub.heal("search")
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=2))
    DeliveryRetry()(Round())
    assert not Resend.objects.exists()
    assert len(gateway.search_texts("cat bicycle")) == 1


def test_a_session_that_everos_lost_shows_its_messages_after_its_next_flush(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    begin(gateway)
    gateway.stub.store.buffers.clear()
    gateway.ingest(sleep=no_wait)
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=10))
    get_engine().flush(gateway.owner, "chat:1")  # its time is over
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    gateway.add_and_flush("chat:1", "our cat is old", at=NOON + 1000)
    assert not Resend.objects.filter(ended_at=None).exists()
    assert sorted(gateway.search_texts("cat bicycle")) == ["alice said: our cat is old", "the bicycle is red"]


def test_another_address_derives_again(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    with StubUpstream() as other:
        first, gateway.stub = gateway.stub, other
        gateway.attach()
        assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
        assert gateway.ingest().counts["sessions"] == 0  # this address has nothing of it
        assert gateway.ingest("remote").is_ok
        assert [body["messages"][0]["content"][0]["text"] for body in other.calls("add")] == ["the bicycle is red"]
        assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
        assert Memory.objects.filter(origin="upstream").count() == 1
        assert gateway.ingest("remote").counts["sessions"] == 0
        gateway.stub = first
        gateway.attach()
        assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
        gateway.add_and_flush("chat:1", "our cat is old", at=NOON + 1000)
        assert gateway.search_texts("cat") == ["alice said: our cat is old"]


def test_a_refused_message_is_tried_again(gateway: SwitchedGateway) -> None:
    gateway.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    gateway.add_and_flush("chat:1", "the bicycle is red")
    assert OutboxEntry.objects.get().state == "refused"
    assert gateway.search_texts("bicycle") == ["the bicycle is red"]
    again(gateway)
    assert OutboxEntry.objects.get().state == "flushed"
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]


def test_the_remote_deletes_what_it_has_under_the_former_id(gateway: SwitchedGateway) -> None:
    gateway.settings.MEMORY_GATEWAY_EVEROS_DELETE = True
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former_id = Session.objects.get().engine_session_id
    again(gateway)
    assert list(PendingDeletion.objects.values_list("engine_session_id", flat=True)) == [former_id]


def test_a_purge_deletes_both_ids(gateway: SwitchedGateway) -> None:
    gateway.settings.MEMORY_GATEWAY_EVEROS_DELETE = True
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former_id = Session.objects.get().engine_session_id
    begin(gateway)
    decisions.delete_session(gateway.owner, "chat:1", actor=ACTOR)
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
    names = {former_id, Session.objects.get().engine_session_id}
    assert set(PendingDeletion.objects.values_list("engine_session_id", flat=True)) == names
    assert len(names) == 2


def test_a_chat_whose_messages_were_cleared_stays(gateway: SwitchedGateway) -> None:
    gateway.settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former = gateway.find_memory("bicycle")
    again(gateway)
    assert gateway.find_memory("bicycle").pk == former.pk
    assert len(gateway.stub.calls("add")) == 1


def test_a_repeated_message_is_not_added(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    again(gateway)
    gateway.add_and_flush("chat:1", "the bicycle is red")
    assert len(gateway.stub.calls("add")) == 2
    assert len(gateway.search_texts("bicycle")) == 1


def test_a_remote_that_is_away_changes_nothing(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.stub.fault("*", Fault(status=503), times=1000)
    begin_fails = False
    try:
        begin(gateway)
    except EngineUnavailable:
        begin_fails = True
    assert begin_fails
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    gateway.stub.heal("*")
    again(gateway)
    assert gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    assert texts_sent(gateway).count("the bicycle is red") >= 2


def test_what_cannot_be_derived_again_stays(gateway: SwitchedGateway) -> None:
    """A part of the session is known from EverOS alone."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    [episode] = gateway.stub.store.episodes
    older = {**episode, "id": "alice_ep_20200101_1", "episode": "an old walnut", "timestamp": "2020-01-01T00:00:00Z"}
    gateway.stub.store.episodes.append(older)
    remote = attached_remote()
    assert remote is not None
    assert remote.copy_memories(gateway.owner, Session.objects.get()) == 1
    for _time in range(2):
        again(gateway)
        assert gateway.search_texts("walnut") == ["an old walnut"]
        assert len(gateway.search_texts("bicycle")) == 1


def test_a_file_whose_reading_changed_is_read_and_sent_again(gateway: SwitchedGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    former = gateway.find_memory("quarterly")
    # As if an older version had read less of the file.
    Memory.objects.filter(chunk_index=0).update(text="The quarterly")
    outcome = gateway.ingest()
    assert outcome.is_ok, outcome.failures
    [text] = gateway.search_texts("quarterly")
    assert "speaks of tea" in text
    assert not Memory.objects.filter(pk=former.pk).exists()
    gateway.detach()
    [text] = gateway.search_texts("quarterly")
    assert text.startswith("The quarterly report speaks of tea.")


def test_a_file_whose_derived_memory_was_deleted_is_not_read_again(gateway: SwitchedGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    gateway.delete("quarterly")
    Memory.objects.filter(chunk_index=0).update(text="The quarterly")
    sent = len(gateway.stub.calls("add"))
    for attach in (gateway.attach, gateway.detach):
        attach()
        assert gateway.ingest().is_ok
        assert gateway.search_texts("quarterly report") == []
    assert len(gateway.stub.calls("add")) == sent


def test_an_archive_of_the_time_between_continues(gateway: SwitchedGateway, storage: Path, tmp_path: Path) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    former = gateway.find_memory("bicycle").memory_id
    begin(gateway)
    session, remote = Session.objects.get(), cast("EverOS", attached_remote())
    remote._client.flush({"session_id": session.engine_session_id, **gateway.owner.scope}, remote._client.deadline())
    assert remote.copy_memories(gateway.owner, session) == 1
    gateway.export_and_import(tmp_path / "all.tar")
    assert gateway.find_memory("bicycle").memory_id == former
    list(derived.fill())  # as a background task does
    assert len(gateway.search_texts("bicycle")) == 1
    again(gateway)
    assert len(gateway.search_texts("bicycle")) == 1
    assert gateway.find_memory("bicycle").memory_id != former
