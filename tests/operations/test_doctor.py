"""`manage.py doctor`."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEvent
from memories.models import Tombstone
from operations.doctor import Doctor
from remote.models import OutboxEntry
from store.index import keyword
from store.models import IndexStatistics, Memory, Session, State
from tests.conftest import Person
from tests.operations.sample_data import create_sample_data, search_texts
from tests.resources.forms import files_below, stored_resource

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def clean_index(db: Any) -> None:
    """Start each test with an empty keyword index."""
    keyword.clear()


def run_doctor(*arguments: str) -> tuple[dict[str, list[str]], int]:
    """Run the doctor; return the statuses by check, and the exit code."""
    out, code = StringIO(), 0
    try:
        call_command("doctor", *arguments, "--json", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    statuses: dict[str, list[str]] = {}
    for finding in json.loads(out.getvalue())["findings"]:
        statuses.setdefault(finding["check"], []).append(finding["status"])
    return statuses, code


def write_old_file(path: Path, age_seconds: float = 7200) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("left over")
    then = time.time() - age_seconds
    os.utime(path, (then, then))
    os.utime(path.parent, (then, then))
    return path


def test_a_healthy_gateway_has_no_problem(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    statuses, code = run_doctor()
    assert code == 0, statuses
    assert set(statuses) == {
        "settings",
        "database",
        "index",
        "files",
        "storage",
        "erasures",
        "decisions",
        "engine",
        "deliveries",
        "clock",
        "readings",
        "trail",
        "disk",
    }
    assert statuses["files"] == statuses["index"] == statuses["engine"] == ["ok"]


def test_a_negative_minimum_age_is_rejected(alice: Person, storage: Path) -> None:
    """A negative age must not remove files that are arriving now."""
    young = write_old_file(storage / ".incoming" / "0123", age_seconds=0)
    with pytest.raises(CommandError, match="min-age: must be a whole number"):
        call_command("doctor", "--fix", "--min-age=-1", stdout=StringIO(), stderr=StringIO())
    assert young.exists()


def test_a_missing_file_is_a_problem(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    next(storage.glob("*/r_*/content*")).unlink()
    statuses, code = run_doctor("--fix")
    assert (statuses["files"], code) == (["problem"], 1)


def test_only_files_without_a_row_are_moved_into_quarantine(alice: Person, storage: Path) -> None:
    sample = create_sample_data(alice)
    foreign = write_old_file(storage / "photos" / "holiday.jpg")
    kept = files_below(storage)
    user_folder = storage / str(alice.user_pk)
    write_old_file(user_folder / f"r_{'0' * 32}" / "content.txt")
    write_old_file(user_folder / "memory_attachments" / ("0" * 64) / "content.txt")
    write_old_file(storage / "01234567-0123-0123-0123-0123456789ab" / f"r_{'1' * 32}" / "content")
    write_old_file(storage / ".incoming" / "half")
    young = write_old_file(storage / ".incoming" / "arriving", age_seconds=60)
    assert run_doctor()[0]["files"] == ["ok", "warning"]
    assert run_doctor("--fix")[0]["files"] == ["ok", "fixed"]
    quarantined = [path for path in files_below(storage) if path.startswith(".quarantine/")]
    assert len(quarantined) == 3
    assert files_below(storage) == sorted([*kept, ".incoming/arriving", *quarantined])
    assert run_doctor()[0]["storage"] == ["ok", "warning"]
    assert run_doctor("--fix", "--min-age", "0")[0]["files"] == ["fixed"]
    assert not young.exists()
    assert foreign.exists()
    download = alice.client.get(f"/resources/{sample.resource_id}/content")
    assert (download.status_code, b"".join(download.streaming_content)[:10]) == (200, b"The walnut")  # type: ignore[attr-defined]


@pytest.mark.parametrize("harm", ["missing", "left over", "statistics"])
def test_an_inconsistent_index_is_rebuilt(alice: Person, storage: Path, harm: str) -> None:
    create_sample_data(alice)
    before = search_texts(alice, "walnut")
    damage(harm)
    statuses, code = run_doctor()
    assert (statuses["index"], code) == (["problem"], 1)
    assert run_doctor("--fix")[0]["index"] == ["fixed"]
    assert run_doctor()[0]["index"] == ["ok"]
    assert search_texts(alice, "walnut") == before


def damage(harm: str) -> None:
    add = {"sqlite": "(rowid, tokens) VALUES (999999, 'x')", "postgresql": "VALUES (999999, 'x')"}
    empty = {"sqlite": "INSERT INTO store_keywords (store_keywords) VALUES ('delete-all')"}
    with connection.cursor() as cursor:
        if harm == "missing":
            cursor.execute(empty.get(connection.vendor, "DELETE FROM store_keywords"))
        elif harm == "left over":
            cursor.execute(f"INSERT INTO store_keywords {add[connection.vendor]}")
        else:
            IndexStatistics.objects.update(documents=0)


def test_an_unreachable_engine_is_a_problem(db: Any, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    statuses, code = run_doctor()
    assert (statuses["engine"], code) == (["problem"], 1)


def test_only_failures_that_are_not_retried_are_a_warning(alice: Person, storage: Path) -> None:
    stored_resource(alice, status="failed", retry_at=timezone.now())
    stored_resource(alice, status="failed", state="trashed")
    stored_resource(alice, status="failed", state="purged")
    assert texts(Doctor(), "deliveries") == ["No files or messages need attention."]
    stored_resource(alice, status="failed")
    session = Session.objects.create(
        user_id=alice.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat"
    )
    OutboxEntry.objects.create(
        user_id=alice.user_pk,
        session=session,
        message_id="m",
        state="unconfirmed",
        sent_at=timezone.now() - timedelta(days=8),
        time_ms=1,
    )
    assert [text.split(".")[0] for text in texts(Doctor(), "deliveries")] == [
        "1 files failed and are no longer retried",
        "1 messages have been unconfirmed for seven days",
    ]
    OutboxEntry.objects.update(state="flushed", sent_at=None, base_url="http://elsewhere.example.org")
    assert texts(Doctor(), "deliveries")[-1] == "http://elsewhere.example.org still holds data that was sent to it."
    OutboxEntry.objects.update(state="refused", base_url="")
    assert texts(Doctor(), "deliveries")[-1] == "The remote refused 1 messages, which are kept here only."


def texts(doctor: Doctor, check: str) -> list[str]:
    return [finding.text for finding in doctor.examine() if finding.check == check]


def test_a_clock_behind_the_audit_log_is_a_problem(alice: Person) -> None:
    AuditEvent.objects.update(at="2100-01-01T00:00:00Z")
    assert run_doctor()[0]["clock"] == ["problem"]


def test_what_decisions_do_not_say_is_a_problem_and_is_repaired(alice: Person, storage: Path) -> None:
    create_sample_data(alice)
    assert run_doctor()[0]["decisions"] == ["ok"]
    Memory.objects.filter(pk=Memory.objects.earliest("pk").pk).update(state="trashed", state_since=timezone.now())
    assert run_doctor()[0]["decisions"] == ["problem"]
    assert run_doctor("--fix")[0]["decisions"] == ["fixed"]
    assert run_doctor()[0]["decisions"] == ["ok"]
    assert Memory.objects.earliest("pk").state == State.TRASHED
    assert Tombstone.objects.filter(row=Memory.objects.earliest("pk")).exists()


def test_a_full_disk_is_a_problem(db: Any, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES = 2**60
    assert set(run_doctor()[0]["disk"]) == {"problem"}
