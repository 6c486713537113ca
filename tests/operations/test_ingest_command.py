"""`manage.py ingest`."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from core.errors import EngineUnavailable
from operations.ingestion import ingest_owed
from resources.models import Resource
from resources.services import storage_binding
from resources.services.ingestion import MAX_ATTEMPTS
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db(transaction=True)


def run(*arguments: str) -> tuple[str, str]:
    """What it prints on stdout and on stderr."""
    out, err = StringIO(), StringIO()
    call_command("ingest", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_it_ingests_what_is_owed_and_shows_progress(alice: Person) -> None:
    made = [stored_resource(alice).resource_id for _ in range(2)]
    out, err = run()
    assert out == "2 extracted\n"
    assert err.splitlines() == [f"1/2 {made[0]} extracted", f"2/2 {made[1]} extracted"]


def test_nothing_owed_is_said(alice: Person) -> None:
    assert run() == ("Nothing is owed.\n", "")


def test_a_failure_is_exit_code_1(alice: Person, storage: Path) -> None:
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


def test_kinds_narrow(alice: Person) -> None:
    pending = stored_resource(alice)
    stale = stored_resource(alice, status="ingesting", lease_holder="elsewhere:1:x", leased_until=timezone.now())
    later = timezone.now() + timedelta(hours=1)
    failed = [stored_resource(alice, status="failed", retry_at=at) for at in (None, later)]
    for kind, wanted in (
        ("--stale", {stale.pk}),
        ("--failed", {item.pk for item in failed}),
        ("--pending", {pending.pk}),
    ):
        before = done()
        run(kind)
        assert done() - before == wanted


def test_without_a_kind_permanent_failures_and_later_tries_stay(alice: Person) -> None:
    stored_resource(alice, status="failed")
    stored_resource(alice, status="failed", retry_at=timezone.now() + timedelta(hours=1))
    assert run()[0] == "Nothing is owed.\n"


def test_a_user_narrows(alice: Person, bob: Person) -> None:
    stored_resource(alice)
    wanted = stored_resource(bob)
    run("--user", "bob")
    assert done() == {wanted.pk}


def test_an_unknown_user_is_an_error(alice: Person) -> None:
    with pytest.raises(CommandError, match="no user 'nobody'"):
        run("--user", "nobody")


def test_a_watcher_ends_cleanly_on_sigterm(alice: Person) -> None:
    stored_resource(alice)
    killer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    killer.start()
    before = signal.getsignal(signal.SIGTERM)
    assert run("--watch")[0] == "1 extracted\n"
    assert signal.getsignal(signal.SIGTERM) is before
    killer.join()


def test_several_workers_share_the_work_and_count_their_own(alice: Person) -> None:
    made = {stored_resource(alice).resource_id for _ in range(20)}
    engine = RecordingEngine(during_add=lambda: time.sleep(0.01))
    seen: list[str] = []

    def work() -> None:
        ingest_owed(
            report=lambda progress: seen.append(progress.resource.resource_id),
            should_stop=lambda: False,
            engine=engine,
        )
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(seen) == sorted(made)
    assert len(engine.added) == len(made)


def test_it_gives_up_visibly_and_can_be_told_to_try_again(alice: Person) -> None:
    resource = stored_resource(alice, status="failed", retry_at=timezone.now(), attempts=MAX_ATTEMPTS - 1)
    engine = RecordingEngine(failures={"add": [EngineUnavailable("The memory service is away.")] * 3})
    ingest_owed(report=lambda _: None, should_stop=lambda: False, engine=engine)
    resource.refresh_from_db()
    assert (resource.status, resource.retry_at) == ("failed", None)
    assert resource.error_message.startswith("The memory service is away. Given up after 200 tries")
    assert run()[0] == "Nothing is owed.\n"
    assert run("--failed")[0] == "1 extracted\n"


def done() -> set[str]:
    return set(Resource.objects.filter(status="extracted").values_list("pk", flat=True))
