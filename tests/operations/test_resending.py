"""Messages whose outcome EverOS left open, and the files that they came with."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, transaction
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import MemoryUser
from core.errors import EngineRefused, NoSpace, OutcomeUnknown
from engines.port import AddResult
from engines.registry import get_engine
from memories.services import decisions
from memories.services.add import AddCommand, Part, Said, add
from operations import orphans, purge
from operations.delivery_retry import DeliveryRetryTask
from operations.export import export
from resources.models import Attachment, Resource
from store.models import Memory, Session
from store.types import Message, Owner
from tests.conftest import Person
from tests.engines.everos.conftest import NOON
from tests.fake_engine import RecordingEngine
from tests.resources.forms import files_below, upload
from tests.resources.test_delete import principal
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def say(alice: Person, text: str, session_id: str = "chat:1", data: bytes | None = None) -> None:
    parts = [Part("text", text=text)]
    if data is not None:
        parts.append(Part("doc", data=data, name="note.txt", ext="txt"))
    add(principal(alice), AddCommand(session_id, (Said(alice.user_id, "user", NOON, tuple(parts)),)))


def lose_the_answer(stub: StubUpstream, alice: Person, *, acts: bool = True, **values: Any) -> None:
    stub.fault("add", Fault(reset=True, acts=acts))
    with pytest.raises(OutcomeUnknown):
        say(alice, "the bicycle is red", **values)


def resend(later: timedelta = timedelta(minutes=10)) -> int:
    return DeliveryRetryTask(clock=lambda: timezone.now() + later).run_once()


@pytest.mark.parametrize("acts", [True, False])
def test_what_went_out_without_an_answer_is_sent_again_where_it_did_not_arrive(
    stub: StubUpstream, alice: Person, acts: bool
) -> None:
    lose_the_answer(stub, alice, acts=acts)
    assert Memory.objects.get().batch_id.startswith("sending:")
    assert resend() == 1
    assert Memory.objects.get().batch_id == ""
    first, *again = stub.calls("add")
    assert again == ([] if acts else [first])
    assert resend() == 0


def test_a_call_that_may_be_under_way_is_left_alone(stub: StubUpstream, alice: Person) -> None:
    lose_the_answer(stub, alice)
    assert resend(timedelta(minutes=1)) == 0
    assert len(stub.calls("add")) == 1


def test_an_upstream_that_is_away_is_asked_once_a_round(stub: StubUpstream, alice: Person) -> None:
    for number in range(3):
        stub.fault("add", Fault(reset=True))
        with pytest.raises(OutcomeUnknown):
            say(alice, "the bicycle is red", f"chat:{number}")
    task = DeliveryRetryTask(clock=lambda: timezone.now() + timedelta(minutes=10))
    stub.fault("add", Fault(reset=True))
    assert task.run_once() == 0
    assert len(stub.calls("add")) == 4
    assert resend() == 0  # another process leaves it to this one
    assert task.run_once() == 2  # that one waits for its backoff
    assert resend(timedelta(minutes=20)) == 1


def test_calls_that_fail_for_one_user_hold_up_nobody_else(
    stub: StubUpstream, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.delivery_retry.BATCH", 2)
    for number in range(3):
        lose_the_answer(stub, alice, session_id=f"chat:{number}")
    lose_the_answer(stub, bob)
    with stub.failing_for(alice.user_id, Fault(reset=True)):
        assert resend() == 1
    assert not Memory.objects.filter(user_id=bob.user_pk, batch_id__startswith="sending:").exists()
    task = DeliveryRetryTask(clock=lambda: timezone.now() + timedelta(minutes=20))
    assert [task.run_once(), task.run_once(), task.run_once()] == [2, 1, 0]


def test_a_round_begins_nothing_that_could_outlast_its_lease(stub: StubUpstream, alice: Person) -> None:
    for number in range(3):
        lose_the_answer(stub, alice, session_id=f"chat:{number}")
    now = [timezone.now() + timedelta(minutes=10)]

    def clock() -> datetime:
        now[0] += timedelta(minutes=1)  # as long as each session takes
        return now[0]

    assert DeliveryRetryTask(clock=clock).run_once() == 2


def test_looking_after_one_users_flushes_holds_up_nobody_elses(
    stub: StubUpstream, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.delivery_retry.BATCH", 2)
    for person, session_id in ((bob, "chat:1"), (alice, "chat:1"), (alice, "chat:2")):
        say(person, "the bicycle is red", session_id)
        stub.fault("flush", Fault(acts=True, reset=True))
        with pytest.raises(OutcomeUnknown):
            get_engine().flush(person.owner, session_id)
    with stub.failing_for(alice.user_id, Fault(reset=True)):
        resend(timedelta(minutes=1))
    assert [row.user_id for row in Memory.objects.filter(memory_type="episode")] == [bob.user_pk]


def test_what_is_refused_after_all_is_dropped(stub: StubUpstream, alice: Person) -> None:
    lose_the_answer(stub, alice, acts=False)
    stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    assert resend() == 0
    assert not Memory.objects.exists()


def test_files_that_came_along_are_noted_once_they_arrived(stub: StubUpstream, alice: Person) -> None:
    lose_the_answer(stub, alice, data=b"The invoice is payable in May.")
    assert not Attachment.objects.exists()
    resend()
    noted = Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get()
    Attachment.objects.all().delete()
    say(alice, "the bicycle is red", data=b"The invoice is payable in May.")
    assert Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get() == noted


def test_the_embedded_engine_owes_nothing(alice: Person, storage: Path) -> None:
    say(alice, "the bicycle is red")
    assert resend() == 0


def test_a_look_is_one_statement_and_now_and_then_two(
    stub: StubUpstream, alice: Person, django_assert_num_queries: Any
) -> None:
    get_engine()
    task = DeliveryRetryTask()
    for statements in (3, 1):
        with django_assert_num_queries(statements):
            task.run_once()


# --- files of messages ------------------------------------------------------------------------------------------------


def age(storage: Path) -> datetime:
    """Makes everything two hours old; returns now."""
    then = time.time() - 7200
    for path in storage.rglob("*"):
        os.utime(path, (then, then))
    return timezone.now()


def test_files_of_messages_without_an_attachment_are_moved_into_quarantine(
    alice: Person, bob: Person, storage: Path
) -> None:
    say(alice, "look", data=b"kept")
    kept = files_below(storage)
    say(alice, "look", data=b"orphan")
    Attachment.objects.exclude(internal_uri__contains=kept[0].split("/")[2]).delete()
    assert len(files_below(storage)) == 2
    assert orphans.clear(timezone.now()) == 0
    assert orphans.clear(age(storage)) == 1
    assert [path for path in files_below(storage) if not path.startswith(".quarantine/")] == kept


def test_a_file_whose_message_is_still_open_stays(stub: StubUpstream, alice: Person, storage: Path) -> None:
    lose_the_answer(stub, alice, data=b"The invoice is payable in May.")
    before = files_below(storage)
    assert orphans.clear(age(storage)) == 0
    assert files_below(storage) == before


def test_a_file_whose_message_is_still_open_is_spared_by_a_purge_and_goes_with_an_export(
    stub: StubUpstream, alice: Person, storage: Path, tmp_path: Path
) -> None:
    say(alice, "of no importance", "chat:2")
    lose_the_answer(stub, alice, data=b"The invoice is payable in May.")
    [path] = files_below(storage)
    decisions.delete_session(alice.owner, "chat:2", actor=ACTOR)
    assert purge.purge_trash(older_than=timedelta(0), actor=ACTOR).sessions == 1
    assert files_below(storage) == [path]
    manifest = export([alice.user_pk], tmp_path / "alice.tar", actor=ACTOR)
    assert (manifest.files, manifest.missing) == (1, ())
    assert resend() == 1


class Refusing(RecordingEngine):
    """Refuses a message, after something else has happened."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def add(self, owner: Owner, session_id: str, messages: Sequence[Message]) -> AddResult:
        self._before()
        raise EngineRefused("no")


def test_a_refused_message_leaves_the_file_of_one_that_is_still_open(
    stub: StubUpstream, alice: Person, storage: Path
) -> None:
    data = b"The invoice is payable in May."
    part = Part("doc", data=data, name="note.txt", ext="txt")
    command = AddCommand("chat:2", (Said("alice", "user", NOON, (part,)),))
    with pytest.raises(EngineRefused):
        add(principal(alice), command, engine=Refusing(lambda: lose_the_answer(stub, alice, data=data)))
    assert len(files_below(storage)) == 1
    assert resend() == 1


def test_a_file_that_is_taken_up_again_while_orphans_are_removed_stays(alice: Person, storage: Path) -> None:
    say(alice, "look", data=b"taken up again")
    [attachment] = Attachment.objects.all()
    before = files_below(storage)
    Attachment.objects.all().delete()
    now = age(storage)
    is_taken_up = threading.Event()

    def take_up() -> None:
        with transaction.atomic():
            MemoryUser.objects.select_for_update().get(pk=alice.user_pk)
            attachment.save(force_insert=True)
            is_taken_up.set()
            time.sleep(1)
        connections.close_all()

    other = threading.Thread(target=take_up)
    other.start()
    is_taken_up.wait(10)
    removed = orphans.clear(now)
    other.join()
    assert (removed, files_below(storage)) == (0, before)


def test_files_of_messages_count_in_the_quota(alice: Person, bob: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_FILES = 2
    say(alice, "look", data=b"one")
    assert upload(alice, b"two").status_code == 200
    with pytest.raises(NoSpace, match="MEMORY_GATEWAY_QUOTA_FILES"):
        say(alice, "look", data=b"three")
    assert upload(alice, b"three").status_code == 507
    say(alice, "look again", data=b"one")
    assert upload(bob, b"two").status_code == 200


def test_their_bytes_count_too(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_BYTES = 10
    say(alice, "look", data=b"seven..")
    with pytest.raises(NoSpace, match="MEMORY_GATEWAY_QUOTA_BYTES"):
        say(alice, "look", data=b"four")
    assert len(files_below(storage)) == 1


def test_what_a_broken_off_flush_brought_is_found_though_nobody_flushes_again(
    stub: StubUpstream, alice: Person
) -> None:
    say(alice, "the bicycle is red")
    stub.fault("flush", Fault(acts=True, reset=True))
    with pytest.raises(OutcomeUnknown):
        get_engine().flush(alice.owner, "chat:1")
    resend(timedelta(seconds=5))
    assert not stub.calls("get")  # its caller may still be at it
    resend(timedelta(minutes=1))
    assert "the bicycle is red" in Memory.objects.get(memory_type="episode").text
    assert get_engine().flush(alice.owner, "chat:1").status == "extracted"
    resend()
    assert len(stub.calls("get")) == 2


def test_a_file_whose_memories_showed_late_says_since_when_it_is_found(
    stub: StubUpstream, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engines.everos.flush.SEARCHABLE_SECONDS", 0.5)
    stub.fault("get", Fault(body={"request_id": "x", "data": {"episodes": [], "total_count": 0}}), times=1000)
    assert upload(alice, b"The bicycle is red.").json()["status"] == "extracted"
    assert Resource.objects.get().searchable_at is None
    resend(timedelta(minutes=1))
    assert Resource.objects.get().searchable_at is None
    stub.heal("get")
    resend(timedelta(minutes=7))  # the round before has its lease for five
    assert Resource.objects.get().searchable_at == Session.objects.get().searchable_at is not None


def test_a_round_looks_at_open_flushes_now_and_then_alone(stub: StubUpstream, alice: Person) -> None:
    say(alice, "the bicycle is red")
    stub.fault("flush", Fault(acts=True, reset=True))
    with pytest.raises(OutcomeUnknown):
        get_engine().flush(alice.owner, "chat:1")
    now = [timezone.now() + timedelta(minutes=1)]
    task = DeliveryRetryTask(clock=lambda: now[0])
    for seconds, looks in ((0, 1), (10, 1), (31, 2)):
        now[0] += timedelta(seconds=seconds)
        task.run_once()
        assert len(stub.calls("get")) == looks


def test_an_unconfirmed_flush_is_retried_though_nobody_flushes_again(stub: StubUpstream, alice: Person) -> None:
    say(alice, "the bicycle is red")
    stub.fault("flush", Fault(status=504))
    with pytest.raises(OutcomeUnknown):
        get_engine().flush(alice.owner, "chat:1")
    resend(timedelta(minutes=1))
    assert len(stub.calls("flush")) == 1  # its caller may still be at it
    resend(timedelta(minutes=9))
    assert len(stub.calls("flush")) == 2
    assert "the bicycle is red" in Memory.objects.get(memory_type="episode").text


def test_retries_of_unconfirmed_calls_back_off_and_end_after_seven_days(stub: StubUpstream, alice: Person) -> None:
    for fault in ("add", "flush"):
        stub.fault(fault, Fault(status=504), times=200)
    say_unheard(alice, "chat:1")
    stub.heal("add")
    say(alice, "the rent is due", "chat:2")
    stub.fault("add", Fault(status=504), times=200)
    with pytest.raises(OutcomeUnknown):
        get_engine().flush(alice.owner, "chat:2")
    began = timezone.now()
    now = [began]
    task = DeliveryRetryTask(clock=lambda: now[0])
    before = len(stub.calls("add")) + len(stub.calls("flush"))
    tries = []
    while now[0] < began + timedelta(days=9):
        now[0] += max(timedelta(minutes=10), (now[0] - began) / 20)
        calls = len(stub.calls("add")) + len(stub.calls("flush"))
        task.run_once()
        tries += [now[0] - began] * (len(stub.calls("add")) + len(stub.calls("flush")) - calls)
    assert 10 <= len(tries) <= 60
    assert timedelta(days=5) < max(tries) <= timedelta(days=7, minutes=10)
    assert before == 3


def say_unheard(alice: Person, session_id: str) -> None:
    with pytest.raises(OutcomeUnknown):
        say(alice, "the bicycle is red", session_id)


def test_a_session_that_cannot_be_listed_holds_up_no_other(stub: StubUpstream, alice: Person) -> None:
    for session_id in ("chat:1", "chat:2"):
        say(alice, f"the bicycle of {session_id}", session_id)
        stub.fault("flush", Fault(acts=True, reset=True))
        with pytest.raises(OutcomeUnknown):
            get_engine().flush(alice.owner, session_id)
    stub.fault("get", Fault(status=422, body={}))
    resend(timedelta(minutes=1))
    assert Memory.objects.filter(memory_type="episode").count() == 1
