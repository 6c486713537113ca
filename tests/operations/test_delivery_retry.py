"""Retries of unconfirmed calls to EverOS, and the files of unconfirmed messages."""

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
from core.background.tasks import Round
from core.errors import EngineRefused, NoSpace, OutcomeUnknown
from engines.registry import attached_remote, get_engine
from memories.services import decisions
from memories.services.add import AddCommand, NewContentItem, NewMessage, add
from memories.services.lookup import MemoryRef
from operations.archives.export import export
from operations.cleanup import orphans, purge
from operations.external.delivery_retry import DeliveryRetry
from operations.models import Lease
from remote.models import OutboxEntry
from resources.models import Attachment, Resource
from store.models import Memory, Session
from store.port import AddResult
from store.types import KEPT, Message, NewExpiry, Owner
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.remote.conftest import NOON
from tests.resources.forms import files_below, upload
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def add_message(alice: Person, text: str, session_id: str = "chat:1", data: bytes | None = None) -> None:
    parts = [NewContentItem("text", text=text)]
    if data is not None:
        parts.append(NewContentItem("doc", data=data, name="note.txt", ext="txt"))
    add(alice.owner, AddCommand(session_id, (NewMessage(alice.user_id, "user", NOON, tuple(parts)),)))


def send_without_response(stub: StubUpstream, alice: Person, *, acts: bool = True, **values: Any) -> None:
    add_message(alice, "the bicycle is red", **values)
    stub.fault("add", Fault(reset=True, acts=acts))
    fail_to_send(alice, values.get("session_id", "chat:1"))


def send(alice: Person, session_id: str = "chat:1") -> None:
    remote = attached_remote()
    assert remote is not None
    remote.send(alice.owner, Session.objects.get(user=alice.user_pk, session_id=session_id))


def fail_to_send(alice: Person, session_id: str = "chat:1") -> None:
    with pytest.raises(OutcomeUnknown):
        send(alice, session_id)


def retry_deliveries(later: timedelta = timedelta(minutes=10)) -> int:
    return DeliveryRetry()(Round(clock=lambda: timezone.now() + later))


@pytest.mark.parametrize("acts", [True, False])
def test_an_unconfirmed_message_is_sent_again_only_if_it_did_not_arrive(
    stub: StubUpstream, alice: Person, acts: bool
) -> None:
    send_without_response(stub, alice, acts=acts)
    unconfirmed = OutboxEntry.objects.get()
    assert unconfirmed.state == "unconfirmed"
    assert unconfirmed.sent_at is not None
    assert retry_deliveries() == 1
    confirmed = OutboxEntry.objects.get()
    assert (confirmed.state, confirmed.call_id, confirmed.sent_at) == ("buffered", "", None)
    first, *again = stub.calls("add")
    assert again == ([] if acts else [first])
    assert retry_deliveries() == 0


def test_a_call_that_may_still_run_is_not_retried(stub: StubUpstream, alice: Person) -> None:
    send_without_response(stub, alice)
    assert retry_deliveries(timedelta(minutes=1)) == 0
    assert len(stub.calls("add")) == 1


def test_an_unavailable_upstream_is_called_once_per_run(stub: StubUpstream, alice: Person) -> None:
    for number in range(3):
        send_without_response(stub, alice, acts=False, session_id=f"chat:{number}")
    retry, run = DeliveryRetry(), Round(clock=lambda: timezone.now() + timedelta(minutes=10))
    stub.fault("add", Fault(reset=True))
    assert retry(run) == 0
    assert len(stub.calls("add")) == 4
    Lease.objects.take("retry_deliveries", "elsewhere:1:x", now=run.clock(), lasts=timedelta(minutes=5))
    assert retry(run) == 0  # another process holds the lease
    Lease.objects.all().delete()
    assert retry(run) == 2  # the failed session waits for its backoff
    assert retry_deliveries(timedelta(minutes=20)) == 1


def test_failing_calls_of_one_user_do_not_delay_others(
    stub: StubUpstream, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.external.delivery_retry.BATCH", 2)
    for number in range(3):
        send_without_response(stub, alice, session_id=f"chat:{number}")
    send_without_response(stub, bob)
    with stub.failing_for(alice.user_id, Fault(reset=True)):
        assert retry_deliveries() == 1
    assert not OutboxEntry.objects.filter(user_id=bob.user_pk, state="unconfirmed").exists()
    retry, run = DeliveryRetry(), Round(clock=lambda: timezone.now() + timedelta(minutes=20))
    assert [retry(run), retry(run), retry(run)] == [2, 1, 0]


def test_a_run_starts_nothing_that_could_outlast_its_lease(stub: StubUpstream, alice: Person) -> None:
    for number in range(3):
        send_without_response(stub, alice, session_id=f"chat:{number}")
    now = [timezone.now() + timedelta(minutes=10)]

    def clock() -> datetime:
        now[0] += timedelta(minutes=1)  # the time that each session takes
        return now[0]

    assert DeliveryRetry()(Round(clock=clock)) == 2


def test_open_flushes_of_one_user_do_not_delay_others(
    stub: StubUpstream, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operations.external.delivery_retry.BATCH", 2)
    for person, session_id in ((bob, "chat:1"), (alice, "chat:1"), (alice, "chat:2")):
        add_message(person, "the bicycle is red", session_id)
        stub.fault("flush", Fault(acts=True, reset=True))
        assert get_engine().flush(person.owner, session_id).degraded
    with stub.failing_for(alice.user_id, Fault(reset=True)):
        retry_deliveries(timedelta(minutes=1))
    assert [row.user_id for row in Memory.objects.filter(memory_type="episode", is_covered=False)] == [bob.user_pk]


def test_a_message_rejected_on_retry_stays_here(stub: StubUpstream, alice: Person) -> None:
    send_without_response(stub, alice, acts=False)
    stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "no"}}))
    assert retry_deliveries() == 0
    assert "not accepted" in OutboxEntry.objects.get(state="refused").cause
    assert [memory.text for memory in Memory.objects.all()] == ["the bicycle is red"]


def test_what_was_deleted_since_is_not_sent_again(stub: StubUpstream, alice: Person) -> None:
    send_without_response(stub, alice, acts=False)
    decisions.delete(alice.user_pk, MemoryRef(Memory.objects.get().memory_id), actor=ACTOR)
    assert retry_deliveries() == 1
    first, second = ([item["text"] for item in body["messages"][0]["content"]] for body in stub.calls("add"))
    assert (first, second) == (["the bicycle is red"], ["…"])


def test_files_of_a_message_are_recorded_when_it_is_confirmed(stub: StubUpstream, alice: Person) -> None:
    send_without_response(stub, alice, data=b"The invoice is payable in May.")
    Attachment.objects.all().delete()  # as if the process had ended between the message and its attachment
    retry_deliveries()
    recorded = Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get()
    Attachment.objects.all().delete()
    add_message(alice, "the bicycle is red", data=b"The invoice is payable in May.")
    assert Attachment.objects.values("session_id", "source", "type", "name", "internal_uri", "sha256").get() == recorded


def test_the_embedded_engine_has_nothing_to_retry(alice: Person, storage: Path) -> None:
    add_message(alice, "the bicycle is red")
    assert retry_deliveries() == 0


def test_a_run_without_work_takes_few_statements(
    stub: StubUpstream, alice: Person, django_assert_num_queries: Any
) -> None:
    get_engine()
    retry, run = DeliveryRetry(), Round()
    for statements in (4, 2):
        with django_assert_num_queries(statements):
            retry(run)


# --- files of messages ------------------------------------------------------------------------------------------------


def make_files_old(storage: Path) -> datetime:
    """Make all files two hours old, and return the time."""
    then = time.time() - 7200
    for path in storage.rglob("*"):
        os.utime(path, (then, then))
    return timezone.now()


def test_files_of_messages_without_an_attachment_are_moved_into_quarantine(
    alice: Person, bob: Person, storage: Path
) -> None:
    add_message(alice, "look", data=b"kept")
    kept = files_below(storage)
    add_message(alice, "look", data=b"orphan")
    Attachment.objects.exclude(internal_uri__contains=kept[0].split("/")[2]).delete()
    assert len(files_below(storage)) == 2
    assert orphans.clear(timezone.now()) == 0
    assert orphans.clear(make_files_old(storage)) == 1
    assert [path for path in files_below(storage) if not path.startswith(".quarantine/")] == kept


def test_the_file_of_an_unconfirmed_message_is_not_removed(stub: StubUpstream, alice: Person, storage: Path) -> None:
    send_without_response(stub, alice, data=b"The invoice is payable in May.")
    before = files_below(storage)
    assert orphans.clear(make_files_old(storage)) == 0
    assert files_below(storage) == before


def test_the_file_of_an_unconfirmed_message_survives_a_purge_and_is_exported(
    stub: StubUpstream, alice: Person, storage: Path, tmp_path: Path
) -> None:
    add_message(alice, "of no importance", "chat:2")
    send_without_response(stub, alice, data=b"The invoice is payable in May.")
    [path] = files_below(storage)
    decisions.delete_session(alice.owner, "chat:2", actor=ACTOR)
    assert purge.purge_trash(older_than=timedelta(0), actor=ACTOR).sessions == 1
    assert files_below(storage) == [path]
    manifest = export([alice.user_pk], tmp_path / "alice.tar", actor=ACTOR)
    assert (manifest.files, manifest.missing) == (1, ())
    assert retry_deliveries() == 1


class RejectingEngine(RecordingEngine):
    """Reject a message after calling a function."""

    def __init__(self, before: Callable[[], None]) -> None:
        super().__init__()
        self._before = before

    def add(
        self,
        owner: Owner,
        session_id: str,
        messages: Sequence[Message],
        *,
        expires_at: NewExpiry = KEPT,
        check: Callable[[], None] = lambda: None,
    ) -> AddResult:
        self._before()
        raise EngineRefused("no")


def test_a_rejected_message_keeps_the_same_file_of_an_unconfirmed_one(
    stub: StubUpstream, alice: Person, storage: Path
) -> None:
    data = b"The invoice is payable in May."
    part = NewContentItem("doc", data=data, name="note.txt", ext="txt")
    command = AddCommand("chat:2", (NewMessage("alice", "user", NOON, (part,)),))
    with pytest.raises(EngineRefused):
        add(alice.owner, command, engine=RejectingEngine(lambda: send_without_response(stub, alice, data=data)))
    assert len(files_below(storage)) == 1
    assert retry_deliveries() == 1


def test_a_file_attached_while_orphans_are_removed_is_not_removed(alice: Person, storage: Path) -> None:
    add_message(alice, "look", data=b"taken up again")
    [attachment] = Attachment.objects.all()
    before = files_below(storage)
    Attachment.objects.all().delete()
    now = make_files_old(storage)
    is_attached = threading.Event()

    def attach() -> None:
        with transaction.atomic():
            MemoryUser.objects.select_for_update().get(pk=alice.user_pk)
            attachment.save(force_insert=True)
            is_attached.set()
            time.sleep(1)
        connections.close_all()

    other = threading.Thread(target=attach)
    other.start()
    is_attached.wait(10)
    removed = orphans.clear(now)
    other.join()
    assert (removed, files_below(storage)) == (0, before)


def test_message_files_count_toward_the_quota_of_files(
    alice: Person, bob: Person, storage: Path, settings: Any
) -> None:
    settings.MEMORY_GATEWAY_QUOTA_FILES = 2
    add_message(alice, "look", data=b"one")
    assert upload(alice, b"two").status_code == 200
    with pytest.raises(NoSpace, match="files, and the limit is"):
        add_message(alice, "look", data=b"three")
    assert upload(alice, b"three").status_code == 507
    add_message(alice, "look again", data=b"one")
    assert upload(bob, b"two").status_code == 200


def test_message_files_count_toward_the_quota_of_bytes(alice: Person, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_QUOTA_BYTES = 10
    add_message(alice, "look", data=b"seven..")
    with pytest.raises(NoSpace, match="bytes of files, this one has"):
        add_message(alice, "look", data=b"four")
    assert len(files_below(storage)) == 1


def test_memories_of_an_unconfirmed_flush_are_copied_without_another_flush(stub: StubUpstream, alice: Person) -> None:
    add_message(alice, "the bicycle is red")
    stub.fault("flush", Fault(acts=True, reset=True))
    assert get_engine().flush(alice.owner, "chat:1").degraded
    retry_deliveries(timedelta(seconds=5))
    assert not stub.calls("get")  # the caller may still be waiting for it
    retry_deliveries(timedelta(minutes=1))
    assert "the bicycle is red" in Memory.objects.get(memory_type="episode", is_covered=False).text
    assert get_engine().flush(alice.owner, "chat:1").status == "extracted"
    retry_deliveries()
    assert len(stub.calls("get")) == 2


def test_a_file_whose_memories_are_listed_late_gets_its_searchable_time(
    stub: StubUpstream, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remote.flush.SEARCHABLE_SECONDS", 0.5)
    stub.fault("get", Fault(body={"request_id": "x", "data": {"episodes": [], "total_count": 0}}), times=1000)
    assert upload(alice, b"The bicycle is red.").json()["status"] == "extracted"
    assert Resource.objects.get().searchable_at is None
    retry_deliveries(timedelta(minutes=1))
    assert Resource.objects.get().searchable_at is None
    stub.heal("get")
    retry_deliveries(timedelta(minutes=7))
    assert Resource.objects.get().searchable_at == Session.objects.get().searchable_at is not None


def test_open_flushes_are_checked_at_intervals(stub: StubUpstream, alice: Person) -> None:
    add_message(alice, "the bicycle is red")
    stub.fault("flush", Fault(acts=True, reset=True))
    assert get_engine().flush(alice.owner, "chat:1").degraded
    now = [timezone.now() + timedelta(minutes=1)]
    retry, run = DeliveryRetry(), Round(clock=lambda: now[0])
    for seconds, checks in ((0, 1), (10, 1), (31, 2)):
        now[0] += timedelta(seconds=seconds)
        retry(run)
        assert len(stub.calls("get")) == checks


def test_an_unconfirmed_flush_is_retried_without_another_flush(stub: StubUpstream, alice: Person) -> None:
    add_message(alice, "the bicycle is red")
    stub.fault("flush", Fault(status=504))
    assert get_engine().flush(alice.owner, "chat:1").degraded
    retry_deliveries(timedelta(minutes=1))
    assert len(stub.calls("flush")) == 1  # the caller may still be waiting for it
    retry_deliveries(timedelta(minutes=9))
    assert len(stub.calls("flush")) == 2
    assert "the bicycle is red" in Memory.objects.get(memory_type="episode", is_covered=False).text


def test_retries_of_unconfirmed_calls_back_off_and_end_after_seven_days(stub: StubUpstream, alice: Person) -> None:
    for fault in ("add", "flush"):
        stub.fault(fault, Fault(status=504), times=200)
    add_message(alice, "the bicycle is red")
    fail_to_send(alice)
    stub.heal("add")
    add_message(alice, "the rent is due", "chat:2")
    send(alice, "chat:2")
    stub.fault("add", Fault(status=504), times=200)
    assert get_engine().flush(alice.owner, "chat:2").degraded
    began = timezone.now()
    now = [began]
    retry, run = DeliveryRetry(), Round(clock=lambda: now[0])
    before = len(stub.calls("add")) + len(stub.calls("flush"))
    retries = []
    while now[0] < began + timedelta(days=9):
        now[0] += max(timedelta(minutes=10), (now[0] - began) / 20)
        calls = len(stub.calls("add")) + len(stub.calls("flush"))
        retry(run)
        retries += [now[0] - began] * (len(stub.calls("add")) + len(stub.calls("flush")) - calls)
    assert 10 <= len(retries) <= 60
    assert timedelta(days=5) < max(retries) <= timedelta(days=7, minutes=10)
    assert before == 3


def test_a_session_that_cannot_be_listed_does_not_delay_others(stub: StubUpstream, alice: Person) -> None:
    for session_id in ("chat:1", "chat:2"):
        add_message(alice, f"the bicycle of {session_id}", session_id)
        stub.fault("flush", Fault(acts=True, reset=True))
        assert get_engine().flush(alice.owner, session_id).degraded
    stub.fault("get", Fault(status=422, body={}))
    retry_deliveries(timedelta(minutes=1))
    assert Memory.objects.filter(memory_type="episode", is_covered=False).count() == 1
