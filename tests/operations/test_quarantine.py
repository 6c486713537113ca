"""Files that no row refers to: moved into quarantine, kept for 30 days, never too many at once."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.ids import new_resource_id
from operations import erase, operator_jobs, orphans
from operations.backup import backup
from operations.doctor import Doctor
from operations.export import export
from operations.worker import FILES_EVERY, MaintenanceTask
from resources import quarantine, queries
from resources.models import Resource
from resources.services import storage_binding
from tests.conftest import Person
from tests.fake_engine import RecordingEngine
from tests.operations.stored import fill, write
from tests.resources.forms import files_below, stored_resource

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


def orphan(storage: Path, user_pk: UUID, number: int = 1) -> list[Path]:
    return [write(storage / str(user_pk) / new_resource_id() / "content.txt") for _ in range(number)]


def attachment(storage: Path, user_pk: UUID) -> Path:
    return write(storage / str(user_pk) / "memory_attachments" / ("a" * 64) / "content.png")


def in_quarantine(storage: Path) -> list[str]:
    return [path for path in files_below(storage) if path.startswith(".quarantine/")]


def findings(check: str, **options: Any) -> list[tuple[str, str]]:
    return [(found.status, found.text) for found in Doctor(**options).examine() if found.check == check]


def test_each_file_is_moved_with_the_time_in_its_place_and_one_line(
    alice: Person, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored_resource(alice)
    (upload,), picture, unknown = orphan(storage, alice.user_pk), attachment(storage, alice.user_pk), uuid4()
    (foreign,) = orphan(storage, unknown)
    now = timezone.now()
    assert orphans.clear(now) == 3
    at = f"{now:%Y%m%dT%H%M%S%f}Z"
    assert in_quarantine(storage) == sorted(
        [
            f".quarantine/{alice.user_pk}/{at}/{upload.parent.name}/content.txt",
            f".quarantine/{alice.user_pk}/{at}/memory_attachments/{'a' * 64}/content.png",
            f".quarantine/{unknown}/{at}/{foreign.parent.name}/content.txt",
        ]
    )
    assert not picture.exists()
    assert len([line for line in caplog.messages if line.startswith("Moved ")]) == 3
    ((status, text),) = findings("storage")[1:]
    assert status == "warning"
    assert "3 files are in quarantine" in text
    assert f"{alice.user_pk} 2" in text


def test_a_moved_folder_comes_back_by_moving_it_back(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    Resource.objects.filter(pk=resource.pk).update(user_id=alice.user_pk, deleted_at=timezone.now())
    write(storage / resource.storage_path)
    assert orphans.clear(timezone.now()) == 1
    (moved,) = in_quarantine(storage)
    Resource.objects.filter(pk=resource.pk).update(deleted_at=None)
    (storage / moved).parent.rename((storage / resource.storage_path).parent)
    download = alice.client.get(f"/resources/{resource.pk}/content")
    assert (download.status_code, b"".join(download.streaming_content)) == (200, b"text")  # type: ignore[attr-defined]


def test_it_is_removed_after_thirty_days_and_not_before(alice: Person, storage: Path) -> None:
    orphan(storage, alice.user_pk)
    attachment(storage, alice.user_pk)
    now = timezone.now()
    assert orphans.clear(now) == 2
    assert orphans.clear(now + timedelta(days=30) - timedelta(seconds=1)) == 0
    assert len(in_quarantine(storage)) == 2
    assert orphans.clear(now + timedelta(days=30)) == 2
    assert list((storage / ".quarantine").iterdir()) == []


def test_what_a_row_names_again_is_not_removed(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    Resource.objects.filter(pk=resource.pk).update(deleted_at=timezone.now())
    write(storage / resource.storage_path)
    now = timezone.now()
    assert orphans.clear(now) == 1
    Resource.objects.filter(pk=resource.pk).update(deleted_at=None)
    assert orphans.clear(now + timedelta(days=31)) == 0
    assert len(in_quarantine(storage)) == 1


def objected(storage: Path, caplog: pytest.LogCaptureFixture) -> bool:
    """Sweep, and return whether nothing was moved for one error in the log, which the doctor repeats."""
    caplog.clear()
    orphans.clear(timezone.now())
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    problems = [text for status, text in findings("files") if status == "problem" and "nothing was moved" in text]
    assert len(errors) == len(problems)
    assert bool(errors) == (in_quarantine(storage) == [])
    return bool(errors)


@pytest.mark.parametrize(("number", "is_refused"), [(100, False), (101, True)])
def test_more_than_a_hundred_are_not_moved(
    storage: Path, caplog: pytest.LogCaptureFixture, number: int, is_refused: bool
) -> None:
    fill(files=200)
    user_pk = Resource.objects.values_list("user_id", flat=True)[0]
    orphan(storage, user_pk, number)
    assert objected(storage, caplog) == is_refused
    if is_refused:
        call_command("doctor", "--fix", "--any-number", stdout=StringIO(), stderr=StringIO())
        assert len(in_quarantine(storage)) == number


@pytest.mark.parametrize(("number", "is_refused"), [(10, False), (11, True)])
def test_all_files_of_a_user_with_more_than_ten_are_not_moved(
    storage: Path, caplog: pytest.LogCaptureFixture, number: int, is_refused: bool
) -> None:
    fill(files=20)
    orphan(storage, uuid4(), number)
    assert objected(storage, caplog) == is_refused


def test_a_sweep_over_another_storage_does_nothing(
    alice: Person, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = timezone.now()
    task = MaintenanceTask(engine=RecordingEngine(), clock=lambda: now)
    storage_binding.bind()
    orphan(storage, alice.user_pk)
    old = write(storage / ".incoming" / "old")
    (storage / storage_binding.FILE).write_text(f"{uuid4()}\n")
    before = files_below(storage)
    task.run_once()
    now += FILES_EVERY
    task.run_once()
    assert files_below(storage) == before
    assert old.exists()
    assert "belongs to another database" in caplog.text


def test_nothing_of_it_is_counted_exported_or_backed_up(alice: Person, storage: Path, tmp_path: Path) -> None:
    stored_resource(alice)
    orphan(storage, alice.user_pk)
    attachment(storage, alice.user_pk)
    assert orphans.clear(timezone.now()) == 2
    assert queries.usage_of(alice.user_pk).files == 1
    assert export([alice.user_pk], tmp_path / "alice.tar", actor=ACTOR).files == 1
    assert backup(tmp_path / "backup.tar").files == 1


def test_erasing_empties_the_quarantine_of_the_user(alice: Person, bob: Person, storage: Path) -> None:
    stored_resource(alice)
    for person in (alice, bob):
        orphan(storage, person.user_pk)
    orphans.clear(timezone.now())
    assert erase.plan(alice.user_pk)["files"] == 2
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    assert receipt["files"]["count"] == 2
    assert [path.split("/")[1] for path in in_quarantine(storage)] == [str(bob.user_pk)]


def test_what_is_left_of_an_erased_user_is_removed_at_once(alice: Person, storage: Path) -> None:
    erase.erase(alice.user_pk, actor=ACTOR)
    orphan(storage, alice.user_pk, 20)
    assert orphans.clear(timezone.now()) == 20
    assert files_below(storage) == []


def test_old_archives_go_and_nothing_else_that_lies_in_a_folder_of_that_name(alice: Person, storage: Path) -> None:
    ours = write(storage / str(alice.user_pk) / "exports" / f"{uuid4()}.tar")
    foreign = write(storage / "photos" / "exports" / "holiday.tar")
    later = datetime.now(tz=timezone.get_current_timezone()) + timedelta(days=2)
    assert operator_jobs.remove_old_archives(later) == 1
    assert (ours.exists(), foreign.exists()) == (False, True)


def test_adopting_leaves_a_line_in_the_trail(storage: Path) -> None:
    call_command("adopt_storage", "--yes", stdout=StringIO(), stderr=StringIO())
    event = AuditEvent.objects.get(action="storage.adopt")
    assert event.subject_id == str(storage_binding.database_id()) == str(storage_binding.storage_id())


def test_the_name_of_the_folder_is_the_one_in_the_documents() -> None:
    text = (Path(__file__).parents[2] / "docs" / "lifecycle.md").read_text(encoding="utf-8")
    assert f"`{quarantine.FOLDER}/" in text
