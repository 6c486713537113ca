"""The migration by which rows of leases that stored times become times at which work is due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from operations.cleanup import purge

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, AFTER = ("operations", "0002_roles"), ("operations", "0003_due_times")


def migrate(target: tuple[str, str]) -> Any:
    """Migrate the app and return its model of leases."""
    return MigrationExecutor(connection).migrate([target]).apps.get_model("operations", "Lease")


@pytest.fixture
def former() -> Iterator[Any]:
    yield migrate(BEFORE)
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_a_pause_of_purges_outlives_the_upgrade_and_the_way_back(former: Any) -> None:
    now = timezone.now()
    jumped_at = now - timedelta(days=6)
    for name, at in (("clock:seen", now), ("clock:steady", jumped_at)):
        former.objects.create(name=name, leased_until=at)
    migrate(AFTER)
    assert purge.purges_paused_until(now) == jumped_at + timedelta(days=7)
    assert not purge.may_purge(now)
    assert purge.may_purge(now + timedelta(days=1))
    back = migrate(BEFORE)
    assert dict(back.objects.values_list("name", "leased_until"))["clock:steady"] == jumped_at
