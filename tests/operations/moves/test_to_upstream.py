"""Out of this database, into EverOS; and anew into the engine that is in use."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from core.errors import Conflict, InvalidInput, NotFound, OutcomeUnknown
from engines.registry import get_engine
from memories.models import Override, Tombstone
from memories.services import add, decisions, files
from memories.services.lookup import MemoryRef
from operations.commands import Stop, Stopped
from operations.models import Job
from operations.moves.call_rate import Pace
from operations.reingest import Target, plan, resume, run
from resources import services
from resources.models import Attachment
from store.external import staging as upstream_staging
from store.index import rebuild
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.engines.everos.conftest import NOON, no_wait
from tests.operations.moves.conftest import ACTOR, World
from tests.resources.forms import stored_resource
from tests.resources.test_delete import principal
from tests.store.index_state import assert_consistent, entries_of
from tests.stub_upstream import Fault

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here(world: World) -> World:
    world.engine("embedded")
    return world


def move(world: World) -> None:
    """And look that everything is in order."""
    world.engine("upstream")
    outcome = world.move("upstream")
    assert outcome.is_ok, (outcome.failures, outcome.verified)
    assert_consistent(world.owner)
    assert not Session.objects.filter(session_id__startswith="\x1f").exists()


def sent(world: World) -> str:
    """Everything that EverOS was ever told."""
    return json.dumps([request.body for request in world.stub.requests], ensure_ascii=False)


def test_everos_tells_what_was_said_and_our_index_lets_go(here: World) -> None:
    here.say("chat:1", "the bicycle is red", "我喜欢绿茶")
    move(here)
    assert here.found("bicycle") == ["alice said: the bicycle is red alice said: 我喜欢绿茶"]
    assert entries_of(here.owner) == {}
    [item] = Memory.objects.filter(memory_type="episode")
    assert (item.origin, item.session.session_id if item.session else None) == ("upstream", "chat:1")


def test_roles_and_times_go_with_it(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    here.say("chat:1", "noted", role="assistant", sender_id="main", at=NOON + 5)
    move(here)
    [body] = here.stub.calls("add")
    assert [(item["role"], item["timestamp"]) for item in body["messages"]] == [("user", NOON), ("assistant", NOON + 5)]
    assert body["messages"][1]["sender_name"] == "main"


def test_a_deleted_text_is_never_told_and_can_still_be_restored(here: World) -> None:
    here.say("chat:1", "the bicycle is red", "the car is blue")
    here.delete("bicycle")
    move(here)
    assert "bicycle" not in sent(here)
    assert here.found("bicycle car") == ["alice said: the car is blue"]
    decisions.restore(here.person.user_pk, MemoryRef(here.memory("bicycle").memory_id), actor=ACTOR)
    assert here.found("bicycle") == ["the bicycle is red"]


def test_a_correction_reads_as_corrected_and_can_still_be_undone(here: World) -> None:
    here.say("chat:1", "the bicycle is red", "the car is blue")
    here.correct("bicycle", "the bicycle is yellow", category="user_memory_fact")
    move(here)
    assert here.found("bicycle") == ["the bicycle is yellow"]
    assert here.memory("yellow").category == "user_memory_fact"
    decisions.undo_override(here.person.user_pk, MemoryRef(here.memory("yellow").memory_id), actor=ACTOR)
    assert here.found("bicycle") == ["the bicycle is red"]


def test_a_deleted_session_is_not_told(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    decisions.delete_session(here.owner, "chat:1", actor=ACTOR)
    move(here)
    assert here.stub.requests == []
    decisions.restore_session(here.owner, "chat:1", actor=ACTOR)
    assert here.found("bicycle") == ["the bicycle is red"]


def test_what_waits_for_a_flush_still_waits(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    waiting = Message("alice", "user", NOON + 50, (ContentItem("text", "the car is blue"),))
    get_engine().add(here.owner, "chat:1", [waiting])
    move(here)
    assert len(here.stub.calls("flush")) == 1
    assert get_engine().flush(here.owner, "chat:1").memory_count == 1
    assert here.found("car") == ["alice said: the car is blue"]


def test_a_message_said_again_is_not_sent_again(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    move(here)
    here.say("chat:1", "the bicycle is red")
    assert len(here.stub.calls("add")) == 1


def test_a_file_goes_as_a_file(here: World) -> None:
    resource = stored_resource(here.person, "The quarterly report speaks of tea. ")
    services.ingest(resource.resource_id)
    move(here)
    [text] = here.found("quarterly")
    assert "[TEXT: notes.txt]" in text


def test_of_a_file_with_a_deleted_passage_the_others_go_as_text(here: World) -> None:
    text = "\n\n".join(
        f"Paragraph {number} speaks of {word}. " * 20 for number, word in enumerate(("tea", "rum", "ale"))
    )
    resource = stored_resource(here.person, text)
    services.ingest(resource.resource_id)
    here.delete("rum")
    move(here)
    assert "rum" not in sent(here)
    assert here.found("rum") == []
    [told] = here.found("ale")
    assert "[TEXT: notes.txt]" in told


def test_a_file_that_came_in_a_message_goes_with_it(here: World) -> None:
    kept = files.inline_file(here.person.user_pk, b"The invoice is payable in May.", "txt")
    files.keep(kept)
    Attachment.objects.create(
        user_id=here.person.user_pk,
        session_id="chat:1",
        source="memory_add",
        type="doc",
        name="invoice.txt",
        internal_uri=kept.path.as_uri(),
        sha256=kept.sha256,
    )
    item = ContentItem("doc", file=kept.path, name="invoice.txt", mime_type="text/plain")
    get_engine().add(here.owner, "chat:1", [Message("alice", "user", NOON, (ContentItem("text", "look"), item))])
    get_engine().flush(here.owner, "chat:1")
    move(here)
    [text] = here.found("invoice payable")
    assert "look" in text
    assert "[TEXT: invoice.txt]" in text


def test_a_category_goes_along_where_all_of_a_memory_had_it(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    here.say("chat:2", "the car is blue", "the house is old")
    Memory.objects.filter(text__contains="the").exclude(text__contains="old").update(category="user_memory_fact")
    move(here)
    assert here.memory("bicycle").category == "user_memory_fact"
    assert here.memory("car").category == ""


def test_a_decision_made_meanwhile_counts(here: World) -> None:
    """Somebody deletes a message between its telling and its publishing."""
    here.say("chat:1", "the bicycle is red", "the car is blue")
    here.engine("upstream")
    here.stub.latency_seconds = 0.2
    deleted = threading.Timer(0.3, in_own_connection(lambda: here.delete("bicycle")))
    deleted.start()
    outcome = here.move("upstream", workers=1, sleep=no_wait)
    deleted.join()
    assert outcome.is_ok
    here.stub.latency_seconds = 0
    assert len(here.stub.calls("flush")) == 2
    assert here.found("bicycle car") == ["alice said: the car is blue"]


def in_own_connection(act: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            act()
        finally:
            connections.close_all()

    return run


def test_what_everos_refuses_stays_here_and_is_named(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    here.say("chat:2", "the car is blue")
    here.engine("upstream")
    here.stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    outcome = here.move("upstream", workers=1)
    assert not outcome.is_ok
    assert list(outcome.failures) == [str(Session.objects.get(session_id="chat:1").pk)]
    assert outcome.verified.sessions_left == 1
    assert here.found("bicycle") == ["the bicycle is red"]
    assert here.move("upstream").is_ok
    assert here.found("bicycle") == ["alice said: the bicycle is red"]


@pytest.mark.parametrize("call", ["add", "flush", "get"])
def test_an_answer_that_got_lost_doubles_nothing(here: World, call: str) -> None:
    here.say("chat:1", "the bicycle is red", "the car is blue")
    here.settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    here.engine("upstream")
    here.stub.fault(call, Fault(reset=True, acts=True), times=4)
    outcome = here.move("upstream", sleep=no_wait)
    assert outcome.is_ok, outcome.failures
    assert here.found("bicycle") == ["alice said: the bicycle is red alice said: the car is blue"]
    assert Memory.objects.filter(memory_type="episode").count() == 1


def test_a_stop_ends_between_two_sessions_and_resume_goes_on(here: World) -> None:
    for number in range(4):
        here.say(f"chat:{number}", f"bicycle {number}")
    here.engine("upstream")
    stop = Stop()

    def report(step: str, done: int, total: int) -> None:
        if done == 2:
            stop.set(15)

    with pytest.raises(Stopped):
        run(plan(Target(), "upstream"), actor=ACTOR, report=report, stop=stop, workers=1)
    assert (Job.objects.get().done, Job.objects.get().status) == (2, "running")
    assert len(here.found("bicycle")) == 4
    outcome = resume(workers=2)
    assert outcome.is_ok
    assert (outcome.job.done, outcome.counts["messages"]) == (4, 4)
    with pytest.raises(NotFound):
        resume()


def stage_as_before_a_crash(world: World) -> None:
    """Gives EverOS a session's stand-in, which nobody then makes the session's own."""
    world.say("chat:1", "the bicycle is red")
    world.engine("upstream")
    session = Session.objects.get()
    staging = upstream_staging.staging_session(world.owner, session, session.created_at)
    message = Message("alice", "user", NOON, (ContentItem("text", "the bicycle is red"),))
    get_engine().stage(world.owner, staging, [message], [])  # type: ignore[attr-defined]


def test_what_a_crash_left_half_told_is_gone_on_with(here: World) -> None:
    stage_as_before_a_crash(here)
    assert here.found("bicycle") == ["the bicycle is red"]
    move(here)
    assert len(here.stub.calls("add")) == 1
    assert len(here.stub.calls("flush")) == 1


def test_what_a_crash_left_while_everos_made_memories_of_it_is_told_anew(here: World) -> None:
    here.stub.fault("flush", Fault(reset=True), times=4)
    with pytest.raises(OutcomeUnknown):
        stage_as_before_a_crash(here)
    here.stub.store.buffers.clear()
    here.stub.heal("flush")
    move(here)
    assert here.found("bicycle") == ["alice said: the bicycle is red"]
    assert len(here.stub.calls("add")) == 2


def test_only_one_move_at_a_time(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    here.engine("upstream")

    def again(step: str, done: int, total: int) -> None:
        if done:
            with pytest.raises(Conflict):
                here.move("upstream")

    assert run(plan(Target(), "upstream"), actor=ACTOR, report=again).is_ok


def test_without_an_upstream_there_is_nothing_to_move_into(here: World) -> None:
    with pytest.raises(InvalidInput, match="MEMORY_GATEWAY_BACKEND_BASE_URL"):
        plan(Target(), "upstream")


def test_a_plan_counts_and_changes_nothing(here: World) -> None:
    here.say("chat:1", "the bicycle is red", "the car is blue", "the house is old")
    services.ingest(stored_resource(here.person, "The quarterly report. ").resource_id)
    here.delete("car")
    here.correct("house", "the house is new")
    here.engine("upstream")
    before = list(Memory.objects.values())
    planned = plan(Target(), "upstream", price=2.0)
    assert (planned.sessions, planned.resources, planned.tombstones, planned.overrides) == (2, 1, 1, 1)
    assert planned.messages == 4
    assert planned.estimate.calls == 8
    assert planned.estimate.cost is not None
    assert plan(Target(user_pk=here.person.user_pk), "upstream").sessions == 2
    assert list(Memory.objects.values()) == before
    assert here.stub.requests == []


def test_files_of_one_name_in_one_chat_stay_two(here: World) -> None:
    for number, text in enumerate((b"The invoice is payable in May.", b"The lease ends in June.")):
        part = add.Part("doc", data=text, name="notes.txt", ext="txt")
        said = add.Said("alice", "user", NOON + number, (part,))
        add.add(principal(here.person), add.AddCommand("chat:1", (said,)))
    get_engine().flush(here.owner, "chat:1")
    move(here)
    assert "payable in May" in "".join(here.found("invoice payable"))
    assert "ends in June" in "".join(here.found("lease ends"))


@pytest.mark.parametrize("place", ["{storage}/../secret.png", "{storage}/00000000-0000-4000-8000-000000000000/a.png"])
def test_a_file_that_a_message_merely_points_at_is_never_read(here: World, storage: Path, place: str) -> None:
    """Whoever wrote the address does not thereby read what lies there, another user's file for one."""
    path = Path(place.format(storage=storage))
    storage.mkdir(exist_ok=True)
    path.resolve().parent.mkdir(exist_ok=True)
    path.write_bytes(b"\x89PNG the secret plan")
    here.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [storage.parent]  # no start allows this
    part = add.Part("image", uri=path.resolve().as_uri(), name="secret.png")
    add.add(principal(here.person), add.AddCommand("chat:1", (add.Said("alice", "user", NOON, (part,)),)))
    get_engine().flush(here.owner, "chat:1")
    move(here)
    assert "secret.png" in sent(here)
    assert base64.b64encode(path.read_bytes()).decode() not in sent(here)


def test_a_registered_file_whose_folder_was_closed_since_is_moved_as_text(here: World, tmp_path: Path) -> None:
    here.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = [tmp_path]
    path = tmp_path / "report.txt"
    path.write_text("The quarterly report.")
    said = services.Registration("report.txt", path.as_uri())
    assert services.register(principal(here.person), said).status == "extracted"
    here.settings.MEMORY_GATEWAY_FILE_URI_ROOTS = []
    move(here)
    assert path.as_uri() not in sent(here)
    assert "The quarterly report." in sent(here)


def test_one_session_or_one_file_can_be_moved_alone(here: World) -> None:
    here.say("chat:1", "the bicycle is red")
    here.say("chat:2", "the car is blue")
    resource = stored_resource(here.person, "The quarterly report. ")
    services.ingest(resource.resource_id)
    here.engine("upstream")
    one = Session.objects.get(session_id="chat:1")
    assert run(plan(Target(session_pk=one.pk), "upstream"), actor=ACTOR).is_ok
    assert run(plan(Target(resource_id=resource.resource_id), "upstream"), actor=ACTOR).is_ok
    assert here.found("car") == ["the car is blue"]
    assert here.found("bicycle") == ["alice said: the bicycle is red"]


# --- there and back, and anew -----------------------------------------------------------------------------------------


def test_there_and_back_decisions_still_hold(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.say("chat:1", "the house is old", at=NOON + 1000)
    world.say("chat:2", "tea is green")
    world.delete("bicycle")
    world.correct("house", "the house is new")
    assert world.move("embedded").is_ok
    world.engine("embedded")
    move(world)
    assert world.found("bicycle car red blue") == []
    assert world.found("house old new") == ["the house is new"]
    assert world.found("tea") == ["alice said: tea is green"]
    assert Override.objects.filter(undone_at=None).count() == 1
    assert Tombstone.objects.filter(undone_at=None, row__isnull=False).count() == 2


def test_anew_into_the_same_everos(world: World) -> None:
    world.say("chat:1", "the bicycle is red", "the car is blue")
    world.say("chat:1", "the house is old", at=NOON + 1000)
    world.delete("bicycle")
    old = world.memory("house").memory_id
    assert world.move(None).is_ok
    assert world.found("bicycle car house") == ["alice said: the house is old"]
    assert world.memory("house").memory_id != old


def test_a_file_read_anew_takes_its_decisions_along(here: World, storage: Path) -> None:
    paragraphs = [f"A paragraph that speaks of {word}. " * 20 for word in ("tea", "rum", "ale")]
    resource = stored_resource(here.person, "\n\n".join(paragraphs))
    services.ingest(resource.resource_id)
    here.delete("rum")
    here.correct("ale", "there is no beer")
    old = here.memory("tea")
    # As if an older reader had seen less of the file.
    Memory.objects.filter(pk=old.pk).update(text=old.text + " ...", is_indexed=False)
    rebuild.empty()
    list(rebuild.fill())
    outcome = here.move(None)
    assert outcome.is_ok
    assert outcome.counts["replaced"] == 3
    assert_consistent(here.owner)
    assert "..." not in here.found("tea")[0]
    assert here.found("rum") == []
    assert here.found("ale beer") == ["there is no beer"]
    assert here.move(None).counts["replaced"] == 0


def test_a_cap_spreads_calls_over_time() -> None:
    slept: list[float] = []
    pace = Pace(60, clock=lambda: 0.0, sleep=slept.append)
    for _ in range(3):
        pace.wait(4)
    assert slept == [4.0, 8.0]
    Pace(0, sleep=slept.append).wait(1000)
    assert len(slept) == 2
