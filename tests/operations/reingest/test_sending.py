"""Sessions that were added without a remote are sent to it, and files are read again."""

from __future__ import annotations

import base64
import json
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from core.errors import Conflict, InvalidInput, NotFound
from core.persistence.files import root
from engines.registry import get_engine
from memories.services import add, decisions, files
from memories.services.lookup import MemoryRef
from operations.commands import Stopped
from operations.models import Job
from operations.reingest.plan import CALLS_PER_SESSION, Target, plan
from operations.reingest.run import resume, run
from remote import outbox
from remote.models import OutboxEntry
from resources import services
from resources.models import Attachment
from store import derived
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.operations.reingest.conftest import ACTOR, SwitchedGateway
from tests.remote.conftest import NOON, no_wait
from tests.resources.forms import stored_resource
from tests.resources.test_delete import principal
from tests.store.index_state import assert_consistent
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def detached(gateway: SwitchedGateway) -> SwitchedGateway:
    gateway.detach()
    return gateway


def send(gateway: SwitchedGateway) -> None:
    """Attach EverOS and send what it lacks."""
    gateway.attach()
    outcome = gateway.ingest("remote")
    assert outcome.is_ok, outcome.failures
    assert_consistent(gateway.owner)


def sent_data(gateway: SwitchedGateway) -> str:
    """Return everything that was sent to EverOS."""
    return json.dumps([request.body for request in gateway.stub.requests], ensure_ascii=False)


@pytest.mark.parametrize("way", ["memory", "session"])
def test_what_expires_is_not_sent(detached: SwitchedGateway, way: str) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "the draft is yellow")
    later = timezone.now() + timedelta(days=1)
    if way == "memory":
        ref = MemoryRef(Memory.objects.get(text__contains="draft").memory_id)
        decisions.set_expiry(detached.owner.user_pk, ref, later, actor=ACTOR)
    else:
        get_engine().add(detached.owner, "chat:1", [], expires_at=later)
    send(detached)
    assert ("bicycle" in sent_data(detached)) == (way == "memory")
    assert "draft" not in sent_data(detached)
    assert len(detached.search_texts("draft bicycle")) == 2


def test_sent_messages_are_found_in_everos_and_covered_here(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "我喜欢绿茶")
    send(detached)
    assert detached.search_texts("bicycle") == ["alice said: the bicycle is red alice said: 我喜欢绿茶"]
    kept = Memory.objects.filter(origin="embedded")
    assert set(kept.values_list("is_covered", "memory_type")) == {(True, "episode")}
    [item] = Memory.objects.filter(memory_type="episode", is_covered=False)
    assert (item.origin, item.session.session_id if item.session else None) == ("upstream", "chat:1")


def test_roles_and_times_are_sent(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    detached.add_and_flush("chat:1", "noted", role="assistant", sender_id="main", at=NOON + 5)
    send(detached)
    [body] = detached.stub.calls("add")
    assert [(item["role"], item["timestamp"]) for item in body["messages"]] == [("user", NOON), ("assistant", NOON + 5)]
    assert body["messages"][1]["sender_name"] == "main"


CALL = {"id": "call_7", "type": "function", "function": {"name": "trains", "arguments": "{}"}}


def test_messages_are_sent_as_their_senders_made_them(detached: SwitchedGateway) -> None:
    text = (ContentItem("text", text="the bicycle is red"),)
    messages = [
        Message("main", "system", NOON, text),
        Message("bob", "user", NOON + 1, text, sender_name="Bob", is_participant=True),
        Message("main", "assistant", NOON + 2, text, tool_calls=[CALL]),
        Message("main", "tool", NOON + 3, text, tool_call_id="call_7"),
    ]
    engine, owner = get_engine(), detached.owner
    engine.add(owner, "chat:1", messages)
    engine.flush(owner, "chat:1")
    engine.add(owner, "chat:2", messages[:1])
    engine.flush(owner, "chat:2")
    send(detached)
    bob, assistant, tool = [message for body in detached.stub.calls("add") for message in body["messages"]]
    assert (bob["sender_id"], bob["sender_name"], bob["role"]) == (owner.user_id, "Bob", "user")
    assert (assistant["tool_calls"], tool["tool_call_id"]) == ([CALL], "call_7")
    kept = [
        outbox.message_of(entry) for entry in OutboxEntry.objects.filter(category="full_context_system").order_by("pk")
    ]
    assert kept == [messages[0]] * 2


def test_a_deleted_memory_is_not_sent_and_can_be_restored(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    detached.delete("bicycle")
    send(detached)
    assert "bicycle" not in sent_data(detached)
    assert detached.search_texts("bicycle car") == ["alice said: the car is blue"]
    decisions.restore(detached.person.user_pk, MemoryRef(detached.find_memory("bicycle").memory_id), actor=ACTOR)
    assert detached.search_texts("bicycle") == ["the bicycle is red"]


def test_an_override_stays_and_can_be_undone(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    detached.override("bicycle", "the bicycle is yellow", category="user_memory_fact")
    send(detached)
    assert detached.search_texts("bicycle") == ["the bicycle is yellow"]
    assert detached.find_memory("yellow").category == "user_memory_fact"
    decisions.undo_override(detached.person.user_pk, MemoryRef(detached.find_memory("yellow").memory_id), actor=ACTOR)
    assert detached.search_texts("bicycle") == ["the bicycle is red"]


def test_a_deleted_session_is_not_sent(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    decisions.delete_session(detached.owner, "chat:1", actor=ACTOR)
    send(detached)
    assert detached.stub.requests == []
    decisions.restore_session(detached.owner, "chat:1", actor=ACTOR)
    assert detached.search_texts("bicycle") == ["the bicycle is red"]


def test_a_repeated_message_is_not_sent_again(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    send(detached)
    detached.add_and_flush("chat:1", "the bicycle is red")
    assert len(detached.stub.calls("add")) == 1


def test_a_file_is_sent_as_a_file(detached: SwitchedGateway) -> None:
    resource = stored_resource(detached.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    send(detached)
    [text] = detached.search_texts("quarterly")
    assert "[TEXT: notes.txt]" in text


def test_a_file_with_a_deleted_passage_is_sent_as_text(detached: SwitchedGateway) -> None:
    text = "\n\n".join(
        f"Paragraph {number} speaks of {word}. " * 20 for number, word in enumerate(("tea", "rum", "ale"))
    )
    resource = stored_resource(detached.person, text)
    services.ingest(resource.resource_id)
    detached.delete("rum")
    send(detached)
    assert "rum" not in sent_data(detached)
    assert detached.search_texts("rum") == []
    [text] = detached.search_texts("ale")
    assert "[TEXT: notes.txt]" in text


def test_a_file_of_a_message_is_sent_with_it(detached: SwitchedGateway) -> None:
    stored = files.inline_file(detached.person.user_pk, b"The invoice is payable in May.", "txt")
    files.keep(stored)
    Attachment.objects.create(
        user_id=detached.person.user_pk,
        session_id="chat:1",
        source="memory_add",
        type="doc",
        name="invoice.txt",
        internal_uri=(root() / stored.key).as_uri(),
        sha256=stored.sha256,
    )
    item = ContentItem("doc", file=stored.key, name="invoice.txt", mime_type="text/plain")
    get_engine().add(detached.owner, "chat:1", [Message("alice", "user", NOON, (ContentItem("text", "look"), item))])
    get_engine().flush(detached.owner, "chat:1")
    send(detached)
    [text] = detached.search_texts("invoice payable")
    assert "look" in text
    assert "[TEXT: invoice.txt]" in text


def test_a_session_that_everos_rejects_is_reported_and_found_here(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    detached.add_and_flush("chat:2", "the car is blue")
    detached.attach()
    detached.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    outcome = detached.ingest("remote", workers=1)
    assert not outcome.is_ok
    assert list(outcome.failures) == [str(Session.objects.get(session_id="chat:1").pk)]
    assert detached.search_texts("bicycle") == ["the bicycle is red"]
    assert detached.ingest("remote").is_ok
    assert detached.search_texts("bicycle") == ["alice said: the bicycle is red"]


@pytest.mark.slow
@pytest.mark.parametrize("call", ["add", "flush", "get"])
def test_a_lost_response_duplicates_nothing(detached: SwitchedGateway, call: str) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "the car is blue")
    detached.settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    detached.attach()
    detached.stub.fault(call, Fault(reset=True, acts=True), times=4)
    outcome = detached.ingest("remote", sleep=no_wait)
    assert outcome.is_ok, outcome.failures
    assert detached.search_texts("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
    assert Memory.objects.filter(memory_type="episode", is_covered=False).count() == 1


def test_a_run_stops_between_two_sessions_and_resumes(detached: SwitchedGateway) -> None:
    for number in range(4):
        detached.add_and_flush(f"chat:{number}", f"bicycle {number}")
    detached.attach()

    def report(step: str, done: int, total: int) -> None:
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        run(plan(Target(), "remote"), actor=ACTOR, report=report, workers=1)
    assert (Job.objects.get().done, Job.objects.get().status) == (2, "running")
    assert len(detached.search_texts("bicycle")) == 4
    outcome = resume(workers=2)
    assert outcome.is_ok
    assert (outcome.job.done, outcome.counts["messages"]) == (4, 4)
    with pytest.raises(NotFound):
        resume()


def test_only_one_run_works_at_a_time(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    detached.attach()

    def start_another(step: str, done: int, total: int) -> None:
        if done:
            with pytest.raises(Conflict):
                detached.ingest("remote")

    assert run(plan(Target(), "remote"), actor=ACTOR, report=start_another).is_ok


def test_sending_needs_a_remote(detached: SwitchedGateway) -> None:
    with pytest.raises(InvalidInput, match="MEMORY_GATEWAY_BACKEND_BASE_URL"):
        plan(Target(), "remote")


def test_a_plan_counts_and_changes_nothing(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red", "the car is blue", "the house is old")
    services.ingest(stored_resource(detached.person, "The quarterly report. ").resource_id)
    detached.delete("car")
    detached.override("house", "the house is new")
    detached.attach()
    before = list(Memory.objects.values())
    planned = plan(Target(), "remote", price=2.0)
    assert (planned.sessions, planned.resources, planned.tombstones, planned.overrides) == (2, 1, 1, 1)
    assert planned.messages == 4
    assert planned.estimate.calls == 8
    assert planned.estimate.cost is not None
    assert plan(Target(user_pk=detached.person.user_pk), "remote").sessions == 2
    assert list(Memory.objects.values()) == before
    assert detached.stub.requests == []


def test_files_with_equal_names_in_one_session_are_both_sent(detached: SwitchedGateway) -> None:
    for number, text in enumerate((b"The invoice is payable in May.", b"The lease ends in June.")):
        part = add.NewContentItem("doc", data=text, name="notes.txt", ext="txt")
        message = add.NewMessage("alice", "user", NOON + number, (part,))
        add.add(detached.person.owner, add.AddCommand("chat:1", (message,)))
    get_engine().flush(detached.owner, "chat:1")
    send(detached)
    assert "payable in May" in "".join(detached.search_texts("invoice payable"))
    assert "ends in June" in "".join(detached.search_texts("lease ends"))


@pytest.mark.parametrize("place", ["{storage}/../secret.png", "{storage}/00000000-0000-4000-8000-000000000000/a.png"])
def test_a_file_that_a_message_only_refers_to_is_not_read(detached: SwitchedGateway, storage: Path, place: str) -> None:
    """A file address in a message must not give its sender access to the file, which may be of another user."""
    path = Path(place.format(storage=storage))
    storage.mkdir(exist_ok=True)
    path.resolve().parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG the secret plan")
    detached.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [storage.parent]  # the startup checks reject this setting
    part = add.NewContentItem("image", uri=path.resolve().as_uri(), name="secret.png")
    add.add(detached.person.owner, add.AddCommand("chat:1", (add.NewMessage("alice", "user", NOON, (part,)),)))
    get_engine().flush(detached.owner, "chat:1")
    send(detached)
    assert "secret.png" in sent_data(detached)
    assert base64.b64encode(path.read_bytes()).decode() not in sent_data(detached)


def test_a_registered_file_whose_folder_is_no_longer_allowed_is_sent_as_text(
    detached: SwitchedGateway, tmp_path: Path
) -> None:
    detached.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    path = tmp_path / "report.txt"
    path.write_text("The quarterly report.")
    registration = services.Registration("report.txt", path.as_uri())
    assert services.register(principal(detached.person), registration).status == "extracted"
    detached.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    send(detached)
    assert path.as_uri() not in sent_data(detached)
    assert "The quarterly report." in sent_data(detached)


def test_one_session_or_one_file_can_be_sent_alone(detached: SwitchedGateway) -> None:
    detached.add_and_flush("chat:1", "the bicycle is red")
    detached.add_and_flush("chat:2", "the car is blue")
    resource = stored_resource(detached.person, "The quarterly report. ")
    services.ingest(resource.resource_id)
    detached.attach()
    one = Session.objects.get(session_id="chat:1")
    assert run(plan(Target(session_pk=one.pk), "remote"), actor=ACTOR).is_ok
    assert run(plan(Target(resource_id=resource.resource_id), "remote"), actor=ACTOR).is_ok
    assert detached.search_texts("car") == ["the car is blue"]
    assert detached.search_texts("bicycle") == ["alice said: the bicycle is red"]


# --- files are read again ---------------------------------------------------------------------------------------------


def test_decisions_survive_the_reingestion_of_a_file(detached: SwitchedGateway, storage: Path) -> None:
    paragraphs = [f"A paragraph that speaks of {word}. " * 20 for word in ("tea", "rum", "ale")]
    resource = stored_resource(detached.person, "\n\n".join(paragraphs))
    services.ingest(resource.resource_id)
    detached.delete("rum")
    detached.override("ale", "there is no beer")
    old = detached.find_memory("tea")
    # As if an older version had read less of the file.
    Memory.objects.filter(pk=old.pk).update(text=old.text + " ...", is_indexed=False)
    derived.empty_keywords()
    list(derived.fill())
    outcome = detached.ingest()
    assert outcome.is_ok
    assert outcome.counts["replaced"] == 3
    assert_consistent(detached.owner)
    assert "..." not in detached.search_texts("tea")[0]
    assert detached.search_texts("rum") == []
    assert detached.search_texts("ale beer") == ["there is no beer"]
    assert detached.ingest().counts["replaced"] == 0


def test_the_rate_limit_spreads_calls(detached: SwitchedGateway) -> None:
    for number in range(3):
        detached.add_and_flush(f"chat:{number}", "tea is brewed")
    detached.attach()
    began = time.monotonic()
    assert detached.ingest("remote", workers=1, calls_per_minute=600).is_ok
    assert time.monotonic() - began >= 0.1 * (3 * CALLS_PER_SESSION - 1)
