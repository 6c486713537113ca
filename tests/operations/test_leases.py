"""Leases: one holder at a time, renewal, expiry and release."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from core.background.leases import new_holder
from operations.models import Lease

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LASTS = timedelta(seconds=30)


def test_one_holder_at_a_time() -> None:
    assert Lease.objects.take("task", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert not Lease.objects.take("task", "elsewhere:2:b", now=NOW, lasts=LASTS)
    assert Lease.objects.take("other task", "elsewhere:2:b", now=NOW, lasts=LASTS)


def test_the_holder_renews_the_lease() -> None:
    Lease.objects.take("task", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert Lease.objects.take("task", "elsewhere:1:a", now=NOW + LASTS / 2, lasts=LASTS)
    assert Lease.objects.get().leased_until == NOW + LASTS * 1.5


def test_a_lease_expires_without_renewal() -> None:
    Lease.objects.take("task", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert Lease.objects.take("task", "elsewhere:2:b", now=NOW + LASTS + timedelta(seconds=1), lasts=LASTS)
    assert not Lease.objects.take("task", "elsewhere:1:a", now=NOW + LASTS + timedelta(seconds=1), lasts=LASTS)


def test_the_lease_of_a_dead_process_is_taken_over_immediately() -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    Lease.objects.take("task", f"{host}:{pid}:of-an-earlier-process", now=NOW, lasts=LASTS)
    assert Lease.objects.take("task", new_holder(), now=NOW, lasts=LASTS)


def test_release_frees_only_the_holders_own_lease() -> None:
    Lease.objects.take("task", "elsewhere:1:a", now=NOW, lasts=LASTS)
    Lease.objects.release("task", "elsewhere:2:b")
    assert not Lease.objects.take("task", "elsewhere:2:b", now=NOW, lasts=LASTS)
    Lease.objects.release("task", "elsewhere:1:a")
    assert Lease.objects.take("task", "elsewhere:2:b", now=NOW, lasts=LASTS)


def test_the_context_manager_holds_and_releases_the_lease() -> None:
    with Lease.objects.held("task", LASTS) as is_held:
        assert is_held
        with Lease.objects.held("task", LASTS) as is_held_twice:
            assert not is_held_twice
        assert Lease.objects.filter(name="task").exists()
    assert not Lease.objects.exists()
