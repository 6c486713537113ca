"""Decisions, interruptions and other addresses while sessions are sent again: nothing is lost, doubled or back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from django.utils import timezone

from core.background.tasks import Round
from engines.registry import attached_remote, get_engine
from memories.models import Tombstone
from memories.services import decisions
from memories.services.lookup import MemoryRef
from memories.services.scoped_hits import SearchCommand
from memories.services.search import search
from operations.cleanup import purge
from operations.external.delivery_retry import DeliveryRetry
from operations.reingest import sending
from operations.reingest.plan import Target, plan
from operations.reingest.run import run
from remote.everos import EverOS
from remote.models import OutboxEntry, Resend
from remote.sources import DERIVED_AGAIN
from resources import services
from store import cover, derived
from store.models import IS_LIVE, Memory, Session
from store.table import visible
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway, begin
from tests.remote.conftest import NOON, no_wait
from tests.resources.forms import stored_resource
from tests.resources.test_delete import delete as delete_resource
from tests.resources.test_delete import restore as restore_resource
from tests.store.index_state import assert_consistent
from tests.stub_everos import _text
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def is_fast(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 2.0
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01


def narrate(stub: StubUpstream, *groups: Sequence[str], told: dict[str, str] | None = None) -> None:
    """Let the remote derive one memory of the messages of each group, which contain one of its words.

    `told` replaces words in its memories.
    """
    store = stub.store

    def extract(body: dict[str, Any], messages: dict[str, dict[str, Any]]) -> dict[str, Any]:
        said = list(messages.values())
        for words in groups:
            chosen = [one for one in said if any(word in _text(one["content"]) for word in words)]
            if chosen:
                episode = store._episode(body, chosen[0]["sender_id"], chosen)
                for before, after in (told or {}).items():
                    for name in ("episode", "summary", "subject"):
                        episode[name] = episode[name].replace(before, after)
                store.episodes.append(episode)
        return {"status": "extracted" if said else "no_extraction"}

    store.extract = extract  # type: ignore[method-assign]


def listed(gateway: SwitchedGateway, word: str) -> list[str]:
    """Return the texts of the list of memories that contain a word."""
    return [row.text for row in listed_rows(gateway, word)]


def listed_rows(gateway: SwitchedGateway, word: str) -> list[Memory]:
    rows = visible(Memory.objects.filter(IS_LIVE, user=gateway.person.user_pk))
    return list(rows.exclude(cover.is_left_out()).filter(text__contains=word))


def seen(gateway: SwitchedGateway, word: str) -> list[str]:
    """Return the texts that contain a word, which search and list must agree about."""
    found = [text for text in gateway.search_texts(word) if word in text]
    assert sorted(found) == sorted(listed(gateway, word))
    return found


def ref(text: str, **values: Any) -> MemoryRef:
    return MemoryRef(Memory.objects.get(text=text, **values).memory_id)


def flush_and_list_late(gateway: SwitchedGateway) -> None:
    """Flush: the new memories are listed and linked, and not found yet."""
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 1.0
    gateway.stub.fault("search", Fault(status=503), times=1000)
    get_engine().flush(gateway.owner, Session.objects.get().session_id)
    gateway.stub.heal("search")
    assert Resend.objects.filter(ended_at=None).exists()


def finish(gateway: SwitchedGateway) -> None:
    """Let the background task end what is open."""
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=2))
    DeliveryRetry()(Round())
    assert not Resend.objects.filter(ended_at=None).exists()
    assert_consistent(gateway.owner)


def again(gateway: SwitchedGateway) -> None:
    outcome = gateway.ingest(sleep=no_wait)
    assert outcome.is_ok, outcome.failures
    assert_consistent(gateway.owner)


# --- decisions before -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["delete", "override"])
def test_a_memory_stays_whose_only_source_is_withheld_with_another_memory(
    gateway: SwitchedGateway, decision: str
) -> None:
    """Two memories of one message: one is decided, so the message is not sent, and the other is not derived again."""
    narrate(gateway.stub, ["Ada"], ["Ada"], told={})
    gateway.add_and_flush("chat:1", "Ada has a bicycle and Ada has a walnut tree")
    gateway.add_and_flush("chat:1", "our cat is old Ada", at=NOON + 5000)
    first = Memory.objects.filter(origin="upstream", text__contains="bicycle").order_by("pk").first()
    assert first is not None
    if decision == "delete":
        decisions.delete(gateway.person.user_pk, MemoryRef(first.memory_id), actor=ACTOR)
    else:
        values = decisions.OverrideValues(text="Ada has no such thing")
        decisions.override(gateway.person.user_pk, MemoryRef(first.memory_id), values, actor=ACTOR)
    before = seen(gateway, "walnut")
    assert len(before) == 1
    again(gateway)
    assert seen(gateway, "walnut") == before


def test_a_memory_stays_that_shares_a_reworded_source_with_an_edited_one(gateway: SwitchedGateway) -> None:
    narrate(gateway.stub, ["bicycle"], ["car", "Himalaya"], told={"went to the Himalaya": "travelled in Nepal"})
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue", "went to the Himalaya")
    gateway.override("bicycle", "the bicycle is yellow")
    assert len(seen(gateway, "Nepal")) == 1
    again(gateway)
    assert len([*seen(gateway, "Nepal"), *seen(gateway, "Himalaya")]) == 1


def test_a_restored_memory_is_not_doubled_by_the_next(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.delete("bicycle")
    again(gateway)
    decisions.restore(gateway.person.user_pk, ref("alice said: the bicycle is red"), actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1
    again(gateway)
    assert len(seen(gateway, "bicycle")) == 1


def test_an_undone_edit_is_not_doubled_by_the_next(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.override("bicycle", "the bicycle is yellow")
    again(gateway)
    decisions.undo_override(gateway.person.user_pk, ref("the bicycle is yellow"), actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1
    again(gateway)
    assert len(seen(gateway, "bicycle")) == 1


def test_a_purge_after_it_clears_withheld_messages(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.delete("bicycle")
    again(gateway)
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
    again(gateway)
    assert seen(gateway, "bicycle") == []
    gateway.detach()
    assert seen(gateway, "bicycle") == []
    assert not Memory.objects.filter(text__contains="bicycle").exists()
    assert not any("bicycle" in str(one.message) for one in OutboxEntry.objects.all())


# --- decisions while it is open ---------------------------------------------------------------------------------------

STEPS = ["begun", "sent", "listed"]


def until(gateway: SwitchedGateway, step: str) -> None:
    if step == "begun":
        assert sending.begin(gateway.owner, Session.objects.get().session_id, again=True)
    else:
        begin(gateway)
    if step == "listed":
        flush_and_list_late(gateway)


def rest(gateway: SwitchedGateway, step: str) -> None:
    if step == "listed":
        finish(gateway)
    else:
        again(gateway)
    assert not Resend.objects.filter(ended_at=None).exists()


@pytest.mark.parametrize("step", STEPS)
def test_a_memory_that_is_deleted_meanwhile_stays_deleted(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    gateway.delete("bicycle")
    assert seen(gateway, "bicycle") == []
    rest(gateway, step)
    assert seen(gateway, "bicycle") == []
    assert len(seen(gateway, "car")) == 1
    gateway.detach()
    assert seen(gateway, "bicycle") == []


@pytest.mark.parametrize("step", STEPS)
def test_a_memory_that_is_edited_meanwhile_is_not_shown_as_it_was(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    gateway.override("bicycle", "the bicycle is yellow")
    assert seen(gateway, "bicycle") == ["the bicycle is yellow"]
    rest(gateway, step)
    assert seen(gateway, "bicycle") == ["the bicycle is yellow"]
    assert len(seen(gateway, "car")) == 1
    gateway.detach()
    assert seen(gateway, "bicycle") == ["the bicycle is yellow"]


@pytest.mark.parametrize("step", STEPS)
def test_a_message_that_is_deleted_meanwhile_stays_deleted(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    decisions.delete(gateway.person.user_pk, ref("the bicycle is red"), actor=ACTOR)
    assert seen(gateway, "bicycle") == []
    rest(gateway, step)
    assert seen(gateway, "bicycle") == []
    assert len(seen(gateway, "car")) == 1
    decisions.restore(gateway.person.user_pk, ref("the bicycle is red"), actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_message_that_is_corrected_meanwhile_is_not_shown_as_it_was(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    values = decisions.OverrideValues(text="the bicycle is yellow")
    decisions.override(gateway.person.user_pk, ref("the bicycle is red"), values, actor=ACTOR)
    assert seen(gateway, "bicycle") == ["the bicycle is yellow"]
    rest(gateway, step)
    assert seen(gateway, "bicycle") == ["the bicycle is yellow"]
    decisions.undo_override(gateway.person.user_pk, ref("the bicycle is yellow"), actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_memory_that_is_purged_meanwhile_stays_purged(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.delete("bicycle")
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
    rest(gateway, step)
    assert seen(gateway, "bicycle") == []
    gateway.detach()
    assert seen(gateway, "bicycle") == []
    assert not Memory.objects.filter(text__contains="bicycle").exists()


@pytest.mark.parametrize("step", STEPS)
def test_a_memory_that_is_restored_meanwhile_is_seen_once(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.delete("bicycle")
    narrate(gateway.stub, ["bicycle"], ["car"])
    until(gateway, step)
    decisions.restore(gateway.person.user_pk, ref("alice said: the bicycle is red"), actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1
    rest(gateway, step)
    assert len(seen(gateway, "bicycle")) == 1
    gateway.detach()
    assert len(seen(gateway, "bicycle")) == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_session_that_is_deleted_and_restored_meanwhile(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    until(gateway, step)
    decisions.delete_session(gateway.owner, "chat:1", actor=ACTOR)
    assert seen(gateway, "bicycle") == []
    decisions.restore_session(gateway.owner, "chat:1", actor=ACTOR)
    assert len(seen(gateway, "bicycle")) == 1
    rest(gateway, step)
    assert len(seen(gateway, "bicycle")) == 1


@pytest.mark.parametrize("step", STEPS)
def test_an_archive_of_an_open_one(gateway: SwitchedGateway, step: str, tmp_path: Path) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    until(gateway, step)
    gateway.export_and_import(tmp_path / "all.tar")
    list(derived.fill())
    assert len(seen(gateway, "bicycle")) == 1
    gateway.detach()
    assert len(seen(gateway, "bicycle")) == 1
    gateway.attach()
    again(gateway)
    assert len(seen(gateway, "bicycle")) == 1


# --- begun twice, and other addresses ---------------------------------------------------------------------------------


def test_a_second_one_after_everos_lost_the_first_doubles_nothing(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.settings.MEMORY_GATEWAY_BACKEND_TIMEOUT_SECONDS = 1.0
    begin(gateway)
    gateway.stub.store.buffers.clear()
    gateway.ingest(sleep=no_wait)
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=10))
    DeliveryRetry()(Round())
    get_engine().flush(gateway.owner, "chat:1")
    assert len(seen(gateway, "bicycle")) == 1
    again(gateway)
    assert len(seen(gateway, "bicycle")) == 1


@pytest.mark.parametrize("step", STEPS)
def test_another_address_while_it_is_open(gateway: SwitchedGateway, step: str) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    until(gateway, step)
    with StubUpstream() as other:
        first, gateway.stub = gateway.stub, other
        gateway.attach()
        assert len(seen(gateway, "bicycle")) == 1
        assert gateway.ingest("remote").is_ok
        assert len(seen(gateway, "bicycle")) == 1
        gateway.stub = first
        gateway.attach()
        assert len(seen(gateway, "bicycle")) == 1
        again(gateway)
        assert len(seen(gateway, "bicycle")) == 1
        gateway.stub = other
        gateway.attach()
        assert len(seen(gateway, "bicycle")) == 1
        again(gateway)
        assert len(seen(gateway, "bicycle")) == 1
        gateway.detach()
        assert seen(gateway, "bicycle") == ["the bicycle is red"]


def test_another_address_that_numbers_sessions_otherwise(gateway: SwitchedGateway) -> None:
    """Its memory of the second session has the id that the first address gave to one of the first session."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:2", "the car is blue")
    with StubUpstream() as other:
        gateway.stub = other
        gateway.attach()
        for name in ("chat:2", "chat:1"):
            pk = Session.objects.get(session_id=name).pk
            run(plan(Target(session_pk=pk), "remote"), actor=ACTOR, sleep=no_wait)
            assert (len(seen(gateway, "bicycle")), len(seen(gateway, "car"))) == (1, 1)
        assert not Resend.objects.filter(ended_at=None).exists()


def test_a_copy_by_a_process_that_knows_the_former_id(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    stale = Session.objects.get()
    begin(gateway)
    cast("EverOS", attached_remote()).copy_memories(gateway.owner, stale)
    assert len(seen(gateway, "bicycle")) == 1
    again(gateway)
    assert len(seen(gateway, "bicycle")) == 1


def test_new_messages_of_two_flushes_meanwhile(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    until(gateway, "listed")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    assert (len(seen(gateway, "bicycle")), len(seen(gateway, "car"))) == (1, 1)
    get_engine().add(
        gateway.owner, "chat:1", [Message("alice", "user", NOON + 9000, (ContentItem("text", "our cat"),))]
    )
    assert len(seen(gateway, "cat")) == 1
    gateway.detach()
    assert [len(seen(gateway, word)) for word in ("bicycle", "car", "cat")] == [1, 1, 1]
    gateway.attach()
    again(gateway)
    assert [len(seen(gateway, word)) for word in ("bicycle", "car", "cat")] == [1, 1, 1]


# --- what is not here -------------------------------------------------------------------------------------------------


def image(at: int) -> Message:
    return Message(
        "alice", "user", at, (ContentItem("image", uri="https://example.com/walnut.png", name="walnut.png"),)
    )


@pytest.mark.parametrize("with_text", [False, True])
def test_a_picture_that_is_refused_now(gateway: SwitchedGateway, *, with_text: bool) -> None:
    """The remote knew what it shows; now its address is sent as text, or not at all."""
    narrate(gateway.stub, ["bicycle"], ["walnut"], told={"said": "shows a Juglans regia"})
    get_engine().add(gateway.owner, "chat:1", [image(NOON)])
    get_engine().flush(gateway.owner, "chat:1")
    if with_text:
        gateway.add_and_flush("chat:1", "the bicycle is red", at=NOON + 5000)
    assert len(seen(gateway, "Juglans")) == 1 + with_text
    gateway.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}), times=30)
    gateway.ingest(sleep=no_wait)
    assert [text for text in seen(gateway, "Juglans") if "walnut" in text]


def test_texts_that_are_cleared_while_it_is_open(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    begin(gateway)
    gateway.settings.MEMORY_GATEWAY_FULL_CONTEXT_MEMORY = False
    flush_and_list_late(gateway)
    assert len(seen(gateway, "bicycle")) == 1
    gateway.detach()
    assert len(seen(gateway, "bicycle")) == 1
    gateway.attach()
    finish(gateway)
    assert len(seen(gateway, "bicycle")) == 1
    gateway.detach()
    assert len(seen(gateway, "bicycle")) == 1


# --- scopes, users, agents, files, interruptions ----------------------------------------------------------------------


def test_two_users_with_one_session_id(gateway: SwitchedGateway, bob: Person) -> None:
    other = SwitchedGateway(gateway.settings, gateway.stub, bob)
    gateway.add_and_flush("chat:1", "the bicycle is red")
    other.add_and_flush("chat:1", "the walnut is old")
    for step in ("begun", "sent"):
        for one in (gateway, other):
            assert sending.begin(one.owner, "chat:1", again=True)
            if step == "sent":
                remote = attached_remote()
                assert remote is not None
                remote.send(one.owner, Session.objects.get(user_id=one.person.user_pk))
            assert (len(seen(gateway, "bicycle")), len(seen(other, "walnut"))) == (1, 1)
            assert (seen(gateway, "walnut"), seen(other, "bicycle")) == ([], [])
    again(gateway)
    for attach in (gateway.attach, gateway.detach):
        attach()
        assert (len(seen(gateway, "bicycle")), len(seen(other, "walnut"))) == (1, 1)
        assert (seen(gateway, "walnut"), seen(other, "bicycle")) == ([], [])


def test_agents_and_people(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "noted walnut", role="assistant", sender_id="main", at=NOON + 5)
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    words = ("bicycle", "walnut", "car")
    before = {word: bool(seen(gateway, word)) for word in words}
    for step in STEPS:
        if step == "sent":
            begin(gateway)
        until(gateway, step) if step != "sent" else None
        assert {word: bool(gateway.search_texts(word)) for word in words} == before
    finish(gateway)
    assert {word: bool(gateway.search_texts(word)) for word in words} == before


@pytest.mark.parametrize("call", ["add", "flush", "get", "search"])
@pytest.mark.parametrize("acts", [False, True])
def test_an_interruption_of_each_call(gateway: SwitchedGateway, call: str, *, acts: bool) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.delete("car")
    gateway.stub.fault(call, Fault(reset=True, acts=acts), times=30)
    gateway.ingest(sleep=no_wait)
    gateway.stub.heal(call)
    assert (len(seen(gateway, "bicycle")), seen(gateway, "car")) == (1, [])
    gateway.detach()
    assert (len(seen(gateway, "bicycle")), seen(gateway, "car")) == (1, [])
    gateway.attach()
    Session.objects.update(flushed_at=timezone.now() - timedelta(minutes=2), retry_at=None)
    DeliveryRetry()(Round())
    gateway.ingest(sleep=no_wait)
    assert (len(seen(gateway, "bicycle")), seen(gateway, "car")) == (1, [])


def test_a_file_is_deleted_and_restored_meanwhile(gateway: SwitchedGateway, storage: Path) -> None:
    resource = stored_resource(gateway.person, "The quarterly report speaks of tea. ")
    assert services.ingest(resource.resource_id).status == "extracted"
    for step in STEPS[:2]:
        until(gateway, step)
        delete_resource(gateway.person, resource.resource_id)
        assert gateway.search_texts("quarterly") == []
        restore_resource(gateway.person, resource.resource_id)
        assert len(gateway.search_texts("quarterly")) == 1
    again(gateway)
    assert len(gateway.search_texts("quarterly")) == 1


def test_what_was_added_without_a_remote_is_sent_with_the_rest(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.add_and_flush("chat:1", "the walnut is old", at=NOON + 2000)
    gateway.delete("walnut")
    gateway.detach()
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    gateway.attach()
    for _time in range(2):
        assert gateway.ingest("remote", sleep=no_wait).is_ok
        assert [len(seen(gateway, word)) for word in ("bicycle", "walnut", "car")] == [1, 0, 1]
    gateway.detach()
    assert [len(seen(gateway, word)) for word in ("bicycle", "walnut", "car")] == [1, 0, 1]


def test_what_is_added_without_a_remote_while_it_is_open(gateway: SwitchedGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red")
    begin(gateway)
    gateway.detach()
    gateway.add_and_flush("chat:1", "the car is blue", at=NOON + 5000)
    assert [len(seen(gateway, word)) for word in ("bicycle", "car")] == [1, 1]
    gateway.attach()
    assert [len(seen(gateway, word)) for word in ("bicycle", "car")] == [1, 1]
    for into in (None, "remote"):
        assert gateway.ingest(into, sleep=no_wait).is_ok  # type: ignore[arg-type]
        assert [len(seen(gateway, word)) for word in ("bicycle", "car")] == [1, 1]


def test_a_new_memory_that_is_deleted_before_it_is_shown(gateway: SwitchedGateway) -> None:
    """The person's page shows it, marked as covered."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    until(gateway, "listed")
    new = Memory.objects.get(origin="upstream", is_covered=True)
    decisions.delete(gateway.person.user_pk, MemoryRef(new.memory_id), actor=ACTOR)
    finish(gateway)
    assert seen(gateway, "bicycle") == []


def test_two_scopes_with_one_session_id(gateway: SwitchedGateway) -> None:
    other = replace(gateway.owner, app_id="shop")
    gateway.add_and_flush("chat:1", "the bicycle is red")
    text = (ContentItem("text", text="the walnut is old"),)
    get_engine().add(other, "chat:1", [Message("alice", "user", NOON, text)])
    get_engine().flush(other, "chat:1")
    command = SearchCommand(query="walnut", scopes=frozenset({"all_user_memory"}), method="keyword", top_k=9)

    def found() -> list[int]:
        return [len([one for one in search(owner, command).results if "walnut" in one.hit.text]) for owner in scopes]

    scopes = (gateway.owner, other)
    assert found() == [0, 1]
    assert sending.begin(other, "chat:1", again=True)
    assert found() == [0, 1]
    again(gateway)
    assert found() == [0, 1]
    gateway.detach()
    assert found() == [0, 1]


def test_a_memory_of_a_picture_that_is_restored_meanwhile(gateway: SwitchedGateway) -> None:
    """Its message was withheld, so nothing is derived again from it."""
    narrate(gateway.stub, ["bicycle"], ["walnut"], told={"said": "shows a Juglans regia"})
    get_engine().add(gateway.owner, "chat:1", [image(NOON)])
    get_engine().flush(gateway.owner, "chat:1")
    gateway.add_and_flush("chat:1", "the bicycle is red", at=NOON + 5000)
    gateway.delete("walnut")
    begin(gateway)
    memory = Memory.objects.get(origin="upstream", text__contains="walnut")
    decisions.restore(gateway.person.user_pk, MemoryRef(memory.memory_id), actor=ACTOR)
    assert [text for text in seen(gateway, "Juglans") if "walnut" in text]
    again(gateway)
    assert [text for text in seen(gateway, "Juglans") if "walnut" in text]


def test_a_message_of_the_same_second_as_a_purged_one(gateway: SwitchedGateway) -> None:
    """Memories that are derived again from messages around a purged one are in no trash."""
    narrate(gateway.stub, ["bicycle"], ["car", "cat"], told={"cat": "tomcat"})
    gateway.add_and_flush("chat:1", "my bicycle is red", "the car is blue", "our cat is old")
    gateway.delete("bicycle")
    purge.purge_trash(older_than=timedelta(0), actor=ACTOR)
    assert len(seen(gateway, "tomcat")) == 1
    again(gateway)
    assert not Tombstone.objects.filter(reason=DERIVED_AGAIN).exists()
    assert len(seen(gateway, "tomcat")) == 1
