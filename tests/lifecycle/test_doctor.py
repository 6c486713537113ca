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
from engine.embedded import index
from engine.models import IndexStatistics, Memory, Session
from lifecycle.doctor import Doctor
from memory_gateway.core.times import to_ms
from tests.conftest import Person
from tests.lifecycle.furnished import found, furnish
from tests.resources.forms import files_below, stored_resource

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def clean_index(db: Any) -> None:
    """Emptying Django's tables between tests leaves the index as it was."""
    index.clear()


def examined(*arguments: str) -> tuple[dict[str, list[str]], int]:
    """The statuses by check, and the exit code."""
    out, code = StringIO(), 0
    try:
        call_command("doctor", *arguments, "--json", stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    statuses: dict[str, list[str]] = {}
    for finding in json.loads(out.getvalue())["findings"]:
        statuses.setdefault(finding["check"], []).append(finding["status"])
    return statuses, code


def put(path: Path, age_seconds: float = 7200) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("left over")
    then = time.time() - age_seconds
    os.utime(path, (then, then))
    os.utime(path.parent, (then, then))
    return path


def test_a_healthy_gateway_has_no_problem(alice: Person, storage: Path) -> None:
    furnish(alice)
    statuses, code = examined()
    assert code == 0, statuses
    assert set(statuses) == {
        "settings",
        "database",
        "index",
        "files",
        "storage",
        "erasures",
        "engine",
        "deliveries",
        "clock",
        "disk",
    }
    assert statuses["files"] == statuses["index"] == statuses["engine"] == ["ok"]


def test_no_age_spares_less_than_none(alice: Person, storage: Path) -> None:
    """Files that arrive just now stay, also where somebody writes a sign too many."""
    young = put(storage / ".incoming" / "0123", age_seconds=0)
    with pytest.raises(CommandError, match="min-age: must be a whole number"):
        call_command("doctor", "--fix", "--min-age=-1", stdout=StringIO(), stderr=StringIO())
    assert young.exists()


def test_a_missing_file_is_a_problem(alice: Person, storage: Path) -> None:
    furnish(alice)
    next(storage.glob("*/r_*/content*")).unlink()
    statuses, code = examined("--fix")
    assert (statuses["files"], code) == (["problem"], 1)


def test_files_without_a_row_are_moved_into_quarantine_and_no_others(alice: Person, storage: Path) -> None:
    has = furnish(alice)
    foreign = put(storage / "photos" / "holiday.jpg")
    kept = files_below(storage)
    mine = storage / str(alice.user_pk)
    put(mine / f"r_{'0' * 32}" / "content.txt")
    put(mine / "memory_attachments" / ("0" * 64) / "content.txt")
    put(storage / "01234567-0123-0123-0123-0123456789ab" / f"r_{'1' * 32}" / "content")
    put(storage / ".incoming" / "half")
    young = put(storage / ".incoming" / "arriving", age_seconds=60)
    assert examined()[0]["files"] == ["ok", "warning"]
    assert examined("--fix")[0]["files"] == ["ok", "fixed"]
    quarantined = [path for path in files_below(storage) if path.startswith(".quarantine/")]
    assert len(quarantined) == 3
    assert files_below(storage) == sorted([*kept, ".incoming/arriving", *quarantined])
    assert examined()[0]["storage"] == ["ok", "warning"]
    assert examined("--fix", "--min-age", "0")[0]["files"] == ["fixed"]
    assert not young.exists()
    assert foreign.exists()
    download = alice.client.get(f"/resources/{has.resource_id}/content")
    assert (download.status_code, b"".join(download.streaming_content)[:10]) == (200, b"The walnut")  # type: ignore[attr-defined]


@pytest.mark.parametrize("harm", ["missing", "left over", "statistics"])
def test_an_index_that_does_not_fit_is_built_anew(alice: Person, storage: Path, harm: str) -> None:
    furnish(alice)
    before = found(alice, "walnut")
    damage(harm)
    statuses, code = examined()
    assert (statuses["index"], code) == (["problem"], 1)
    assert examined("--fix")[0]["index"] == ["fixed"]
    assert examined()[0]["index"] == ["ok"]
    assert found(alice, "walnut") == before


def damage(harm: str) -> None:
    add = {"sqlite": "(rowid, tokens) VALUES (999999, 'x')", "postgresql": "VALUES (999999, 'x')"}
    empty = {"sqlite": "INSERT INTO engine_keywords (engine_keywords) VALUES ('delete-all')"}
    with connection.cursor() as cursor:
        if harm == "missing":
            cursor.execute(empty.get(connection.vendor, "DELETE FROM engine_keywords"))
        elif harm == "left over":
            cursor.execute(f"INSERT INTO engine_keywords {add[connection.vendor]}")
        else:
            IndexStatistics.objects.update(documents=0)


def test_a_silent_engine_is_a_problem(db: Any, settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = "http://127.0.0.1:9"
    statuses, code = examined()
    assert (statuses["engine"], code) == (["problem"], 1)


def test_failures_that_wait_for_an_operator_are_a_warning_and_retried_ones_are_not(
    alice: Person, storage: Path
) -> None:
    stored_resource(alice, status="failed", retry_at=timezone.now())
    assert texts(Doctor(), "deliveries") == ["No file and no message waits for an operator."]
    stored_resource(alice, status="failed")
    old = to_ms(timezone.now() - timedelta(days=8))
    session = Session.objects.create(
        user_id=alice.user_pk, session_id="chat:1", engine_session_id="chat:1", kind="chat"
    )
    Memory.objects.create(
        user_id=alice.user_pk,
        session=session,
        memory_id="m",
        memory_type="unprocessed_message",
        origin="upstream",
        text="x",
        batch_id=f"sending:{old}-x",
        created_at_ms=1,
    )
    assert [text.split(":")[0] for text in texts(Doctor(), "deliveries")] == [
        "1 files failed and are not retried",
        "1 messages are unconfirmed for seven days",
    ]


def texts(doctor: Doctor, check: str) -> list[str]:
    return [finding.text for finding in doctor.examine() if finding.check == check]


def test_a_clock_that_went_backwards_is_a_problem(alice: Person) -> None:
    AuditEvent.objects.update(at="2100-01-01T00:00:00Z")
    assert examined()[0]["clock"] == ["problem"]


def test_a_full_disk_is_a_problem(db: Any, storage: Path, settings: Any) -> None:
    settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES = 2**60
    assert set(examined()[0]["disk"]) == {"problem"}
