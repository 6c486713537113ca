"""After a jump of the clock nothing is purged for a week, so that an operator can notice it."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.background.tasks import Round
from core.persistence.files import create_temporary, old_temporaries
from operations import jobs, operator_jobs
from operations.cleanup import purge
from operations.doctor import Doctor
from operations.models import Job
from operations.tasks import clean_up, purge_trash
from resources import storage as files
from tests.conftest import Person
from tests.operations.sample_data import create_sample_data
from tests.operations.test_purge_trash import make_older
from tests.operations.test_quarantine import create_orphans, in_quarantine
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db(transaction=True)
DAY = timedelta(days=1)


def purge_at(day: float) -> int:
    """Run the purge task as if `day` days had passed; return the number of audit events."""
    before = AuditEvent.objects.count()
    assert not purge_trash(Round(clock=lambda: timezone.now() + day * DAY))
    return AuditEvent.objects.count() - before


def test_a_clock_jump_delays_the_purge_for_a_week(
    alice: Person, storage: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_sample_data(alice)
    assert purge_at(-31) == 0
    make_older(31)
    assert purge_at(0) == 0
    assert "Check the clock" in caplog.text
    found = [(item.status, item.text) for item in Doctor().examine() if item.check == "clock"]
    assert "Nothing is purged before" in found[0][1]
    assert [purge_at(0.9 * number) for number in range(1, 9)] == [0, 0, 0, 0, 0, 0, 0, 3]


def test_a_clock_jump_removes_no_quarantined_files_archives_or_jobs(alice: Person, storage: Path) -> None:
    stored_resource(alice)
    create_orphans(storage, alice.user_pk)
    clean_up(Round())
    assert len(in_quarantine(storage)) == 1
    job = jobs.run_now(operator_jobs.export_user(alice.user_pk, actor=Actor.command("tests")))
    assert job.status == Job.Status.DONE
    later = timezone.now() + 400 * DAY
    clean_up(Round(clock=lambda: later))
    assert len(in_quarantine(storage)) == 1
    operator_jobs.open_archive(job).close()
    assert Job.objects.filter(pk=job.pk).exists()


def test_a_clock_that_goes_back_delays_the_purge_too(alice: Person, storage: Path) -> None:
    now = timezone.now()
    assert purge.may_purge(now)
    assert not purge.may_purge(now + 2 * DAY)
    assert not purge.may_purge(now)
    for day in range(1, 7):
        assert not purge.may_purge(now + day * DAY)
    assert purge.may_purge(now + 7 * DAY)


def test_open_temporary_files_are_not_removed_after_a_clock_jump(alice: Person) -> None:
    descriptor, path = create_temporary()
    try:
        hours_ago = time.time() - 7200  # the clock jumped two hours forward
        os.utime(path, (hours_ago, hours_ago))
        assert files.remove_old_temporaries(time.time() - 3600) == 0
        assert old_temporaries(time.time() + 60) == [path]
    finally:
        os.close(descriptor)
