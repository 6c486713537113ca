from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from core.leases import new_holder
from operations.leases import release, take
from operations.models import Lease

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LASTS = timedelta(seconds=30)


def test_one_holder_at_a_time() -> None:
    assert take("duty", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert not take("duty", "elsewhere:2:b", now=NOW, lasts=LASTS)
    assert take("other duty", "elsewhere:2:b", now=NOW, lasts=LASTS)


def test_its_holder_renews_it() -> None:
    take("duty", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert take("duty", "elsewhere:1:a", now=NOW + LASTS / 2, lasts=LASTS)
    assert Lease.objects.get().expires_at == NOW + LASTS * 1.5


def test_it_lapses_when_nobody_renews_it() -> None:
    take("duty", "elsewhere:1:a", now=NOW, lasts=LASTS)
    assert take("duty", "elsewhere:2:b", now=NOW + LASTS + timedelta(seconds=1), lasts=LASTS)
    assert not take("duty", "elsewhere:1:a", now=NOW + LASTS + timedelta(seconds=1), lasts=LASTS)


def test_a_dead_process_of_this_machine_is_succeeded_at_once() -> None:
    host, pid, _ = new_holder().rsplit(":", 2)
    take("duty", f"{host}:{pid}:of-an-earlier-process", now=NOW, lasts=LASTS)
    assert take("duty", new_holder(), now=NOW, lasts=LASTS)


def test_release_frees_only_the_holders_own_lease() -> None:
    take("duty", "elsewhere:1:a", now=NOW, lasts=LASTS)
    release("duty", "elsewhere:2:b")
    assert not take("duty", "elsewhere:2:b", now=NOW, lasts=LASTS)
    release("duty", "elsewhere:1:a")
    assert take("duty", "elsewhere:2:b", now=NOW, lasts=LASTS)
