"""`manage.py ingest`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from core.background.tasks import Round
from core.errors import EngineUnavailable, OutcomeUnknown
from core.times import to_ms
from engines.registry import attached_remote, get_engine
from operations.external.delivery_retry import DeliveryRetry
from operations.management.commands.ingest import ingest_unfinished
from remote.models import OutboxEntry
from resources.models import Resource
from resources.services import storage_binding
from resources.services.unfinished import Kind
from store.models import Memory, Session
from store.types import ContentItem, Message
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import stored_resource
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> tuple[str, str]:
    """Return stdout and stderr."""
    out, err = StringIO(), StringIO()
    call_command("ingest", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_pending_resources_are_ingested_with_progress(alice: Person) -> None:
    created = [stored_resource(alice).resource_id for _ in range(2)]
    out, err = run()
    assert out == "2 extracted\n"
    assert err.splitlines() == [f"1/2 {created[0]} extracted", f"2/2 {created[1]} extracted"]


def test_an_empty_backlog_is_reported(alice: Person) -> None:
    assert run() == ("Nothing is pending.\n", "")


def test_a_failed_ingestion_is_exit_code_1(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    storage_binding.bind()
    (storage / resource.storage_path).unlink()
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("ingest", "--json", stdout=out, stderr=StringIO())
    assert ended.value.code == 1
    answer = json.loads(out.getvalue())
    assert (answer["ingested"], answer["statuses"]) == (1, {"failed": 1})
    assert "missing" in answer["failures"][resource.resource_id]


def test_json_is_one_line(alice: Person) -> None:
    stored_resource(alice)
    assert run("--json")[0] == '{"ingested": 1, "statuses": {"extracted": 1}, "failures": {}}\n'


def test_options_select_the_kinds_of_resources(alice: Person) -> None:
    pending = stored_resource(alice)
    stale = stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=timezone.now())
    later = timezone.now() + timedelta(hours=1)
    failed = [stored_resource(alice, status="failed", retry_at=at) for at in (None, later)]
    for kind, expected in (
        ("--stale", {stale.pk}),
        ("--failed", {item.pk for item in failed}),
        ("--pending", {pending.pk}),
    ):
        before = extracted_pks()
        run(kind)
        assert extracted_pks() - before == expected


def test_permanent_failures_and_later_retries_are_not_ingested_by_default(alice: Person) -> None:
    stored_resource(alice, status="failed")
    stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert run()[0] == "Nothing is pending.\n"


def test_the_user_option_selects_one_user(alice: Person, bob: Person) -> None:
    stored_resource(alice)
    expected = stored_resource(bob)
    run("--user", "bob")
    assert extracted_pks() == {expected.pk}


def test_an_unknown_user_is_an_error(alice: Person) -> None:
    with pytest.raises(CommandError, match="no such user"):
        run("--user", "nobody")


def test_several_workers_share_the_work_and_count_their_own(alice: Person) -> None:
    created = {stored_resource(alice).resource_id for _ in range(20)}
    engine = RecordingEngine(during_add=lambda: time.sleep(0.01))
    seen: list[str] = []

    def work() -> None:
        seen.extend(resource.resource_id for _, _, resource in ingest_unfinished(engine=engine))
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(seen) == sorted(created)
    assert len(engine.added) == len(created)


def test_a_given_up_ingestion_is_reported_and_can_be_retried(alice: Person) -> None:
    week_ago = timezone.now() - timedelta(days=7)
    resource = stored_resource(
        alice, status="failed", retry_at=timezone.now(), attempts=21, first_failed_at=week_ago, error_message="x"
    )
    engine = RecordingEngine(failures={"add": [EngineUnavailable("The memory engine is away.")] * 3})
    list(ingest_unfinished(engine=engine))
    resource.refresh_from_db()
    assert (resource.status, resource.retry_at) == ("failed", None)
    assert resource.error_message.startswith("The memory engine is away. The ingestion failed 22 times")
    assert run()[0] == "Nothing is pending.\n"
    assert run("--failed")[0] == "1 extracted\n"


def test_a_retry_by_an_operator_starts_another_seven_days(alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    resource = stored_resource(alice, status="failed", attempts=22)
    engine = RecordingEngine(failures={"add": [EngineUnavailable("The memory engine is away.")]})
    list(ingest_unfinished(kinds={Kind.FAILED}, engine=engine))
    resource.refresh_from_db()
    assert resource.attempts == 1
    assert resource.retry_at is not None
    assert resource.retry_at < timezone.now() + timedelta(seconds=10)


# --- --stale and --failed with EverOS ---------------------------------------------------------------------------------


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def test_stale_corrects_empty_files_whose_memories_everos_lists(stub: StubUpstream, alice: Person) -> None:
    """Earlier versions stored `empty` if a proxy returned 504 while EverOS completed the flush."""
    created = [stored_resource(alice, text) for text in ("The bicycle is red.", "The rent is due.")]
    assert run()[0] == "2 extracted\n"
    Memory.objects.filter(memory_type="episode", is_covered=False).delete()
    Resource.objects.update(status="empty", searchable_at=None)
    stub.store.episodes[:] = [one for one in stub.store.episodes if "bicycle" in one["episode"]]
    out, err = run("--stale")
    assert out == "1 extracted\n"
    assert err == f"1/2 {created[0].pk} extracted\n"
    assert [row.status for row in Resource.objects.order_by("created_at")] == ["extracted", "empty"]
    corrected = Resource.objects.get(pk=created[0].pk)
    assert corrected.searchable_at is not None
    episode = Memory.objects.get(memory_type="episode", is_covered=False)
    message = Memory.objects.get(is_covered=True, session=episode.session)
    assert episode.batch_id == message.batch_id
    assert (len(stub.calls("add")), len(stub.calls("flush"))) == (2, 2)
    assert run("--stale")[0] == "Nothing is pending.\n"


def test_failed_retries_unconfirmed_messages_of_any_age(stub: StubUpstream, alice: Person, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    stub.fault("add", Fault(status=504))
    message = Message("alice", "user", to_ms(timezone.now()), (ContentItem("text", text="The bicycle is red."),))
    get_engine().add(alice.owner, "chat:1", [message])
    remote = attached_remote()
    assert remote is not None
    with pytest.raises(OutcomeUnknown):
        remote.send(alice.owner, Session.objects.get())
    OutboxEntry.objects.update(sent_at=timezone.now() - timedelta(days=8))
    assert DeliveryRetry()(Round()) == 0
    assert run("--failed") == ("Nothing is pending.\n", "1 unconfirmed messages were delivered\n")
    assert len(stub.calls("add")) == 2


def extracted_pks() -> set[str]:
    return set(Resource.objects.filter(status="extracted").values_list("pk", flat=True))
