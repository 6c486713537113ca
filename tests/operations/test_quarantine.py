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
from core.background.tasks import Round
from core.ids import new_resource_id
from operations import erase, files
from operations.archives.backup import backup
from operations.archives.export import export
from operations.cleanup import orphans
from operations.doctor import Doctor
from operations.tasks import CLEAN_UP_EVERY, clean_up
from resources import quarantine, queries
from resources.models import Resource
from resources.services import storage_binding
from tests.conftest import Person
from tests.operations.stored_files import create_stored_files, write_old_file
from tests.resources.forms import files_below, stored_resource
from tests.resources.test_delete import delete

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor.command("tests")


def create_orphans(storage: Path, user_pk: UUID, number: int = 1) -> list[Path]:
    return [write_old_file(storage / str(user_pk) / new_resource_id() / "content.txt") for _ in range(number)]


def create_attachment(storage: Path, user_pk: UUID) -> Path:
    return write_old_file(storage / str(user_pk) / "memory_attachments" / ("a" * 64) / "content.png")


def in_quarantine(storage: Path) -> list[str]:
    return [path for path in files_below(storage) if path.startswith(".quarantine/")]


def findings(check: str, **options: Any) -> list[tuple[str, str]]:
    return [(found.status, found.text) for found in Doctor(**options).examine() if found.check == check]


def test_each_orphan_is_moved_to_a_dated_folder_and_logged(
    alice: Person, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored_resource(alice)
    (upload,), picture, unknown = (
        create_orphans(storage, alice.user_pk),
        create_attachment(storage, alice.user_pk),
        uuid4(),
    )
    (foreign,) = create_orphans(storage, unknown)
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


def test_a_quarantined_folder_can_be_moved_back(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    Resource.objects.filter(pk=resource.pk).update(user_id=alice.user_pk, state="purged")
    write_old_file(storage / resource.storage_path)
    assert orphans.clear(timezone.now()) == 1
    (moved,) = in_quarantine(storage)
    Resource.objects.filter(pk=resource.pk).update(state="live")
    (storage / moved).parent.rename((storage / resource.storage_path).parent)
    download = alice.client.get(f"/resources/{resource.pk}/content")
    assert (download.status_code, b"".join(download.streaming_content)) == (200, b"text")  # type: ignore[attr-defined]


def test_files_in_the_trash_have_a_row(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    write_old_file(storage / resource.storage_path)
    delete(alice, resource.resource_id)
    assert orphans.clear(timezone.now()) == 0
    assert findings("files") == [("ok", "Every file has a row, and every row has its file.")]
    found = storage_binding.survey()
    assert (found.rows, found.files, found.missing, found.without_row) == (1, 1, 0, 0)
    (storage / resource.storage_path).unlink()
    assert [status for status, _ in findings("files")] == ["problem"]


def test_quarantined_files_are_removed_after_thirty_days(alice: Person, storage: Path) -> None:
    create_orphans(storage, alice.user_pk)
    create_attachment(storage, alice.user_pk)
    now = timezone.now()
    assert orphans.clear(now) == 2
    assert orphans.clear(now + timedelta(days=30) - timedelta(seconds=1)) == 0
    assert len(in_quarantine(storage)) == 2
    assert orphans.clear(now + timedelta(days=30)) == 2
    assert list((storage / ".quarantine").iterdir()) == []


def test_quarantined_files_with_a_row_are_not_removed(alice: Person, storage: Path) -> None:
    resource = stored_resource(alice)
    Resource.objects.filter(pk=resource.pk).update(state="purged")
    write_old_file(storage / resource.storage_path)
    now = timezone.now()
    assert orphans.clear(now) == 1
    Resource.objects.filter(pk=resource.pk).update(state="live")
    assert orphans.clear(now + timedelta(days=31)) == 0
    assert len(in_quarantine(storage)) == 1


def is_move_refused(storage: Path, caplog: pytest.LogCaptureFixture) -> bool:
    """Move orphans; return True if that was refused. The log and the doctor must report a refusal."""
    caplog.clear()
    orphans.clear(timezone.now())
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    problems = [text for status, text in findings("files") if status == "problem" and "Nothing was moved" in text]
    assert len(errors) == len(problems)
    assert bool(errors) == (in_quarantine(storage) == [])
    return bool(errors)


@pytest.mark.parametrize(("number", "is_refused"), [(100, False), (101, True)])
def test_more_than_a_hundred_are_not_moved(
    storage: Path, caplog: pytest.LogCaptureFixture, number: int, is_refused: bool
) -> None:
    create_stored_files(files=200)
    user_pk = Resource.objects.values_list("user_id", flat=True)[0]
    create_orphans(storage, user_pk, number)
    assert is_move_refused(storage, caplog) == is_refused
    if is_refused:
        call_command("doctor", "--fix", "--any-number", stdout=StringIO(), stderr=StringIO())
        assert len(in_quarantine(storage)) == number


@pytest.mark.parametrize(("number", "is_refused"), [(10, False), (11, True)])
def test_all_files_of_a_user_with_more_than_ten_are_not_moved(
    storage: Path, caplog: pytest.LogCaptureFixture, number: int, is_refused: bool
) -> None:
    create_stored_files(files=20)
    create_orphans(storage, uuid4(), number)
    assert is_move_refused(storage, caplog) == is_refused


def test_nothing_is_moved_in_the_storage_of_another_database(
    alice: Person, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = timezone.now()
    storage_binding.bind()
    create_orphans(storage, alice.user_pk)
    old = write_old_file(storage / ".incoming" / "old")
    (storage / storage_binding.FILE).write_text(f"{uuid4()}\n")
    before = files_below(storage)
    assert clean_up(Round()) == clean_up(Round(clock=lambda: now + CLEAN_UP_EVERY)) == 0
    assert files_below(storage) == before
    assert old.exists()
    assert "belongs to another database" in caplog.text


def test_quarantined_files_are_not_counted_exported_or_backed_up(alice: Person, storage: Path, tmp_path: Path) -> None:
    stored_resource(alice)
    create_orphans(storage, alice.user_pk)
    create_attachment(storage, alice.user_pk)
    assert orphans.clear(timezone.now()) == 2
    assert queries.usage_of(alice.user_pk).files == 1
    assert export([alice.user_pk], tmp_path / "alice.tar", actor=ACTOR).files == 1
    assert backup(tmp_path / "backup.tar").files == 1


def test_erasing_a_user_removes_quarantined_files(alice: Person, bob: Person, storage: Path) -> None:
    stored_resource(alice)
    for person in (alice, bob):
        create_orphans(storage, person.user_pk)
    orphans.clear(timezone.now())
    assert erase.plan(alice.user_pk)["files"] == 2
    receipt = erase.erase(alice.user_pk, actor=ACTOR)
    assert receipt["files"]["count"] == 2
    assert [path.split("/")[1] for path in in_quarantine(storage)] == [str(bob.user_pk)]


def test_files_of_an_erased_user_are_removed_immediately(alice: Person, storage: Path) -> None:
    erase.erase(alice.user_pk, actor=ACTOR)
    create_orphans(storage, alice.user_pk, 20)
    assert orphans.clear(timezone.now()) == 20
    assert files_below(storage) == []


def test_only_archives_of_the_gateway_are_removed(alice: Person, storage: Path) -> None:
    archive = write_old_file(storage / ".archives" / str(alice.user_pk) / f"{uuid4()}.tar")
    foreign = write_old_file(storage / "photos" / "exports" / "holiday.tar")
    later = datetime.now(tz=timezone.get_current_timezone()) + timedelta(days=2)
    assert files.remove_old_archives(later) == 1
    assert (archive.exists(), foreign.exists()) == (False, True)


def test_adopting_is_audited(storage: Path) -> None:
    call_command("adopt_storage", "--yes", stdout=StringIO(), stderr=StringIO())
    event = AuditEvent.objects.get(action="storage.adopt")
    assert event.subject_id == str(storage_binding.database_id()) == str(storage_binding.storage_id())


def test_the_documentation_names_the_quarantine_folder() -> None:
    text = (Path(__file__).parents[2] / "docs" / "operate" / "lifecycle.md").read_text(encoding="utf-8")
    assert f"`{quarantine.FOLDER}/" in text
