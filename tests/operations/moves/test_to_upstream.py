"""Moves from the embedded engine to EverOS, and re-ingestion into the current engine."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from core.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown
from core.persistence.files import root
from engines.registry import get_engine
from memories.models import Override, Tombstone
from memories.services import add, decisions, files
from memories.services.lookup import MemoryRef
from operations.commands import Stopped
from operations.models import Job
from operations.moves.plan import CALLS_PER_SESSION, Target, plan
from operations.moves.reingest import resume, run
from remote import outbox
from remote import staging as upstream_staging
from remote.models import OutboxEntry
from resources import services
from resources.models import Attachment
from store.index import rebuild
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.operations.moves.conftest import ACTOR, TwoEngineGateway
from tests.remote.conftest import NOON, no_wait
from tests.resources.forms import stored_resource
from tests.resources.test_delete import principal
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def embedded_gateway(gateway: TwoEngineGateway) -> TwoEngineGateway:
    gateway.use_engine("embedded")
    return gateway


def move(gateway: TwoEngineGateway) -> None:
    """Move to EverOS, and assert that the move is complete and consistent."""
    gateway.use_engine("upstream")
    outcome = gateway.move("upstream")
    assert outcome.is_ok, (outcome.failures, outcome.verified)
    assert_consistent(gateway.owner)
    assert not Session.objects.filter(session_id__startswith="\x1f").exists()


def sent_data(gateway: TwoEngineGateway) -> str:
    """Return everything that was sent to EverOS."""
    return json.dumps([request.body for request in gateway.stub.requests], ensure_ascii=False)


def test_moved_messages_are_found_in_everos_and_covered_here(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "我喜欢绿茶")
    move(embedded_gateway)
    assert embedded_gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: 我喜欢绿茶"]
    kept = Memory.objects.filter(origin="embedded")
    assert set(kept.values_list("is_covered", "memory_type")) == {(True, "episode")}
    [item] = Memory.objects.filter(memory_type="episode", is_covered=False)
    assert (item.origin, item.session.session_id if item.session else None) == ("upstream", "chat:1")


def test_roles_and_times_are_moved(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    embedded_gateway.add_and_flush("chat:1", "noted", role="assistant", sender_id="main", at=NOON + 5)
    move(embedded_gateway)
    [body] = embedded_gateway.stub.calls("add")
    assert [(item["role"], item["timestamp"]) for item in body["messages"]] == [("user", NOON), ("assistant", NOON + 5)]
    assert body["messages"][1]["sender_name"] == "main"


CALL = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": "{}"}}


def test_messages_are_moved_as_their_senders_made_them(embedded_gateway: TwoEngineGateway) -> None:
    text = (ContentItem("text", text="the bicycle is red"),)
    messages = [
        Message("main", "system", NOON, text),
        Message("bob", "user", NOON + 1, text, sender_name="Bob", is_participant=True),
        Message("main", "assistant", NOON + 2, text, tool_calls=[CALL]),
        Message("main", "tool", NOON + 3, text, tool_call_id="call_7"),
    ]
    engine, owner = get_engine(), embedded_gateway.owner
    engine.add(owner, "chat:1", messages)
    engine.flush(owner, "chat:1")
    engine.add(owner, "chat:2", messages[:1])
    engine.flush(owner, "chat:2")
    move(embedded_gateway)
    bob, assistant, tool = [message for body in embedded_gateway.stub.calls("add") for message in body["messages"]]
    assert (bob["sender_id"], bob["sender_name"], bob["role"]) == (owner.user_id, "Bob", "user")
    assert (assistant["tool_calls"], tool["tool_call_id"]) == ([CALL], "call_7")
    kept = [
        outbox.message_of(entry) for entry in OutboxEntry.objects.filter(category="full_context_system").order_by("pk")
    ]
    assert kept == [messages[0]] * 2


def test_a_deleted_memory_is_not_sent_and_can_be_restored(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    embedded_gateway.delete("bicycle")
    move(embedded_gateway)
    assert "bicycle" not in sent_data(embedded_gateway)
    assert embedded_gateway.search_texts("bicycle car") == ["alice said: the car is blue"]
    decisions.restore(
        embedded_gateway.person.user_pk, MemoryRef(embedded_gateway.find_memory("bicycle").memory_id), actor=ACTOR
    )
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_an_override_is_moved_and_can_be_undone(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    embedded_gateway.override("bicycle", "the bicycle is yellow", category="user_memory_fact")
    move(embedded_gateway)
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is yellow"]
    assert embedded_gateway.find_memory("yellow").category == "user_memory_fact"
    decisions.undo_override(
        embedded_gateway.person.user_pk, MemoryRef(embedded_gateway.find_memory("yellow").memory_id), actor=ACTOR
    )
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_a_deleted_session_is_not_sent(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    decisions.delete_session(embedded_gateway.owner, "chat:1", actor=ACTOR)
    move(embedded_gateway)
    assert embedded_gateway.stub.requests == []
    decisions.restore_session(embedded_gateway.owner, "chat:1", actor=ACTOR)
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is red"]


def test_unflushed_messages_stay_unflushed(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    waiting = Message("alice", "user", NOON + 50, (ContentItem("text", "the car is blue"),))
    get_engine().add(embedded_gateway.owner, "chat:1", [waiting])
    move(embedded_gateway)
    assert len(embedded_gateway.stub.calls("flush")) == 1
    assert get_engine().flush(embedded_gateway.owner, "chat:1").memory_count == 1
    assert embedded_gateway.search_texts("car") == ["alice said: the car is blue"]


def test_a_repeated_message_is_not_sent_again(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    move(embedded_gateway)
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    assert len(embedded_gateway.stub.calls("add")) == 1


def test_a_file_is_sent_as_a_file(embedded_gateway: TwoEngineGateway) -> None:
    resource = stored_resource(embedded_gateway.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    move(embedded_gateway)
    [text] = embedded_gateway.search_texts("quarterly")
    assert "[TEXT: notes.txt]" in text


def test_a_file_with_a_deleted_passage_is_sent_as_text(embedded_gateway: TwoEngineGateway) -> None:
    text = "\n\n".join(
        f"Paragraph {number} speaks of {word}. " * 20 for number, word in enumerate(("tea", "rum", "ale"))
    )
    resource = stored_resource(embedded_gateway.person, text)
    services.ingest(resource.resource_id)
    embedded_gateway.delete("rum")
    move(embedded_gateway)
    assert "rum" not in sent_data(embedded_gateway)
    assert embedded_gateway.search_texts("rum") == []
    [text] = embedded_gateway.search_texts("ale")
    assert "[TEXT: notes.txt]" in text


def test_a_file_of_a_message_is_sent_with_it(embedded_gateway: TwoEngineGateway) -> None:
    stored = files.inline_file(embedded_gateway.person.user_pk, b"The invoice is payable in May.", "txt")
    files.keep(stored)
    Attachment.objects.create(
        user_id=embedded_gateway.person.user_pk,
        session_id="chat:1",
        source="memory_add",
        type="doc",
        name="invoice.txt",
        internal_uri=(root() / stored.key).as_uri(),
        sha256=stored.sha256,
    )
    item = ContentItem("doc", file=stored.key, name="invoice.txt", mime_type="text/plain")
    get_engine().add(
        embedded_gateway.owner, "chat:1", [Message("alice", "user", NOON, (ContentItem("text", "look"), item))]
    )
    get_engine().flush(embedded_gateway.owner, "chat:1")
    move(embedded_gateway)
    [text] = embedded_gateway.search_texts("invoice payable")
    assert "look" in text
    assert "[TEXT: invoice.txt]" in text


def test_a_category_is_moved_if_all_messages_of_a_memory_have_it(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    embedded_gateway.add_and_flush("chat:2", "the car is blue", "the house is old")
    Memory.objects.filter(text__contains="the").exclude(text__contains="old").update(category="user_memory_fact")
    move(embedded_gateway)
    assert embedded_gateway.find_memory("bicycle").category == "user_memory_fact"
    assert embedded_gateway.find_memory("car").category == ""


def test_a_decision_during_the_move_applies(embedded_gateway: TwoEngineGateway) -> None:
    """A user deletes a message after it is staged and before it is published."""
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    embedded_gateway.use_engine("upstream")
    embedded_gateway.stub.latency_seconds = 0.2
    deleted = threading.Timer(0.3, in_own_connection(lambda: embedded_gateway.delete("bicycle")))
    deleted.start()
    outcome = embedded_gateway.move("upstream", workers=1, sleep=no_wait)
    deleted.join()
    assert outcome.is_ok
    embedded_gateway.stub.latency_seconds = 0
    assert len(embedded_gateway.stub.calls("flush")) == 2
    assert embedded_gateway.search_texts("bicycle car") == ["alice said: the car is blue"]


def in_own_connection(call: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            call()
        finally:
            connections.close_all()

    return run


def test_a_session_that_everos_rejects_is_not_moved_and_reported(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    embedded_gateway.add_and_flush("chat:2", "the car is blue")
    embedded_gateway.use_engine("upstream")
    embedded_gateway.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    outcome = embedded_gateway.move("upstream", workers=1)
    assert not outcome.is_ok
    assert list(outcome.failures) == [str(Session.objects.get(session_id="chat:1").pk)]
    assert outcome.verified.sessions_left == 1
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is red"]
    assert embedded_gateway.move("upstream").is_ok
    assert embedded_gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["add", "flush", "get"])
def test_a_lost_response_duplicates_nothing(embedded_gateway: TwoEngineGateway, call: str) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    embedded_gateway.settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    embedded_gateway.use_engine("upstream")
    embedded_gateway.stub.fault(call, Fault(reset=True, acts=True), times=4)
    outcome = embedded_gateway.move("upstream", sleep=no_wait)
    assert outcome.is_ok, outcome.failures
    assert embedded_gateway.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
    assert Memory.objects.filter(memory_type="episode", is_covered=False).count() == 1


def test_a_move_stops_between_two_sessions_and_resumes(embedded_gateway: TwoEngineGateway) -> None:
    for number in range(4):
        embedded_gateway.add_and_flush(f"chat:{number}", f"bicycle {number}")
    embedded_gateway.use_engine("upstream")

    def report(step: str, done: int, total: int) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(plan(Target(), "upstream"), actor=ACTOR, report=report, workers=1)
    assert (Job.objects.get().done, Job.objects.get().status) == (2, "running")
    assert len(embedded_gateway.search_texts("bicycle")) == 4
    outcome = resume(workers=2)
    assert outcome.is_ok
    assert (outcome.job.done, outcome.counts["messages"]) == (4, 4)
    with pytest.raises(NotFound):
        resume()


def stage_as_before_a_crash(gateway: TwoEngineGateway) -> None:
    """Send the staging session to EverOS without publishing it."""
    gateway.add_and_flush("chat:1", "the bicycle is red")
    gateway.use_engine("upstream")
    session = Session.objects.get()
    staging = upstream_staging.staging_session(gateway.owner, session, session.created_at)
    message = Message("alice", "user", NOON, (ContentItem("text", "the bicycle is red"),))
    get_engine().remote.stage(gateway.owner, staging, [message], [])  # type: ignore[attr-defined]


def test_a_session_staged_before_a_crash_is_published(embedded_gateway: TwoEngineGateway) -> None:
    stage_as_before_a_crash(embedded_gateway)
    assert embedded_gateway.search_texts("bicycle") == ["the bicycle is red"]
    move(embedded_gateway)
    assert len(embedded_gateway.stub.calls("add")) == 1
    assert len(embedded_gateway.stub.calls("flush")) == 1


@pytest.mark.slow
def test_a_session_lost_during_extraction_is_replayed(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.stub.fault("flush", Fault(reset=True), times=4)
    with pytest.raises(OutcomeUnknown):
        stage_as_before_a_crash(embedded_gateway)
    embedded_gateway.stub.store.buffers.clear()
    embedded_gateway.stub.heal("flush")
    move(embedded_gateway)
    assert embedded_gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]
    assert len(embedded_gateway.stub.calls("add")) == 2


def test_only_one_move_runs_at_a_time(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    embedded_gateway.use_engine("upstream")

    def start_another(step: str, done: int, total: int) -> None:
        if done:
            with pytest.raises(Conflict):
                embedded_gateway.move("upstream")

    assert run(plan(Target(), "upstream"), actor=ACTOR, report=start_another).is_ok


def test_a_move_to_everos_needs_an_upstream(embedded_gateway: TwoEngineGateway) -> None:
    with pytest.raises(InvalidInput, match="MEMORY_GATEWAY_BACKEND_BASE_URL"):
        plan(Target(), "upstream")


def test_a_plan_counts_and_changes_nothing(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue", "the house is old")
    services.ingest(stored_resource(embedded_gateway.person, "The quarterly report. ").resource_id)
    embedded_gateway.delete("car")
    embedded_gateway.override("house", "the house is new")
    embedded_gateway.use_engine("upstream")
    before = list(Memory.objects.values())
    planned = plan(Target(), "upstream", price=2.0)
    assert (planned.sessions, planned.resources, planned.tombstones, planned.overrides) == (2, 1, 1, 1)
    assert planned.messages == 4
    assert planned.estimate.calls == 8
    assert planned.estimate.cost is not None
    assert plan(Target(user_pk=embedded_gateway.person.user_pk), "upstream").sessions == 2
    assert list(Memory.objects.values()) == before
    assert embedded_gateway.stub.requests == []


def test_files_with_equal_names_in_one_session_are_both_moved(embedded_gateway: TwoEngineGateway) -> None:
    for number, text in enumerate((b"The invoice is payable in May.", b"The lease ends in June.")):
        part = add.NewContentItem("doc", data=text, name="notes.txt", ext="txt")
        message = add.NewMessage("alice", "user", NOON + number, (part,))
        add.add(embedded_gateway.person.owner, add.AddCommand("chat:1", (message,)))
    get_engine().flush(embedded_gateway.owner, "chat:1")
    move(embedded_gateway)
    assert "payable in May" in "".join(embedded_gateway.search_texts("invoice payable"))
    assert "ends in June" in "".join(embedded_gateway.search_texts("lease ends"))


@pytest.mark.parametrize("place", ["{storage}/../secret.png", "{storage}/00000000-0000-4000-8000-000000000000/a.png"])
def test_a_file_that_a_message_only_refers_to_is_not_read(
    embedded_gateway: TwoEngineGateway, storage: Path, place: str
) -> None:
    """A file address in a message must not give its sender access to the file, which may be of another user."""
    path = Path(place.format(storage=storage))
    storage.mkdir(exist_ok=True)
    path.resolve().parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG the secret plan")
    embedded_gateway.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [storage.parent]  # the startup checks reject this setting
    part = add.NewContentItem("image", uri=path.resolve().as_uri(), name="secret.png")
    add.add(embedded_gateway.person.owner, add.AddCommand("chat:1", (add.NewMessage("alice", "user", NOON, (part,)),)))
    get_engine().flush(embedded_gateway.owner, "chat:1")
    move(embedded_gateway)
    assert "secret.png" in sent_data(embedded_gateway)
    assert base64.b64encode(path.read_bytes()).decode() not in sent_data(embedded_gateway)


def test_a_registered_file_whose_folder_is_no_longer_allowed_is_moved_as_text(
    embedded_gateway: TwoEngineGateway, tmp_path: Path
) -> None:
    embedded_gateway.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    path = tmp_path / "report.txt"
    path.write_text("The quarterly report.")
    registration = services.Registration("report.txt", path.as_uri())
    assert services.register(principal(embedded_gateway.person), registration).status == "extracted"
    embedded_gateway.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    move(embedded_gateway)
    assert path.as_uri() not in sent_data(embedded_gateway)
    assert "The quarterly report." in sent_data(embedded_gateway)


def test_one_session_or_one_file_can_be_moved_alone(embedded_gateway: TwoEngineGateway) -> None:
    embedded_gateway.add_and_flush("chat:1", "the bicycle is red")
    embedded_gateway.add_and_flush("chat:2", "the car is blue")
    resource = stored_resource(embedded_gateway.person, "The quarterly report. ")
    services.ingest(resource.resource_id)
    embedded_gateway.use_engine("upstream")
    one = Session.objects.get(session_id="chat:1")
    assert run(plan(Target(session_pk=one.pk), "upstream"), actor=ACTOR).is_ok
    assert run(plan(Target(resource_id=resource.resource_id), "upstream"), actor=ACTOR).is_ok
    assert embedded_gateway.search_texts("car") == ["the car is blue"]
    assert embedded_gateway.search_texts("bicycle") == ["alice said: the bicycle is red"]


# --- round trips and re-ingestion -------------------------------------------------------------------------------------


def test_decisions_survive_a_round_trip(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.add_and_flush("chat:1", "the house is old", at=NOON + 1000)
    gateway.add_and_flush("chat:2", "tea is green")
    gateway.delete("bicycle")
    gateway.override("house", "the house is new")
    assert gateway.move("embedded").is_ok
    gateway.use_engine("embedded")
    move(gateway)
    assert gateway.search_texts("bicycle car red blue") == []
    assert gateway.search_texts("house old new") == ["the house is new"]
    assert gateway.search_texts("tea") == ["alice said: tea is green"]
    assert Override.objects.filter(undone_at=None).count() == 1
    assert Tombstone.objects.filter(undone_at=None, row__isnull=False).count() == 2


def test_reingestion_into_the_same_everos(gateway: TwoEngineGateway) -> None:
    gateway.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    gateway.add_and_flush("chat:1", "the house is old", at=NOON + 1000)
    gateway.delete("bicycle")
    old = gateway.find_memory("house").memory_id
    assert gateway.move(None).is_ok
    assert gateway.search_texts("bicycle car house") == ["alice said: the house is old"]
    assert gateway.find_memory("house").memory_id != old


def test_decisions_survive_the_reingestion_of_a_file(embedded_gateway: TwoEngineGateway, storage: Path) -> None:
    paragraphs = [f"A paragraph that speaks of {word}. " * 20 for word in ("tea", "rum", "ale")]
    resource = stored_resource(embedded_gateway.person, "\n\n".join(paragraphs))
    services.ingest(resource.resource_id)
    embedded_gateway.delete("rum")
    embedded_gateway.override("ale", "there is no beer")
    old = embedded_gateway.find_memory("tea")
    # As if an older version had read less of the file.
    Memory.objects.filter(pk=old.pk).update(text=old.text + " ...", is_indexed=False)
    rebuild.empty()
    list(rebuild.fill())
    outcome = embedded_gateway.move(None)
    assert outcome.is_ok
    assert outcome.counts["replaced"] == 3
    assert_consistent(embedded_gateway.owner)
    assert "..." not in embedded_gateway.search_texts("tea")[0]
    assert embedded_gateway.search_texts("rum") == []
    assert embedded_gateway.search_texts("ale beer") == ["there is no beer"]
    assert embedded_gateway.move(None).counts["replaced"] == 0


def test_the_rate_limit_spreads_calls(embedded_gateway: TwoEngineGateway) -> None:
    for number in range(3):
        embedded_gateway.add_and_flush(f"chat:{number}", "tea is brewed")
    embedded_gateway.use_engine("upstream")
    began = time.monotonic()
    assert embedded_gateway.move("upstream", workers=1, calls_per_minute=600).is_ok
    assert time.monotonic() - began >= 0.1 * (3 * CALLS_PER_SESSION - 1)
