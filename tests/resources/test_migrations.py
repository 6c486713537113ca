"""The migrations by which `state` alone records the deletion of a resource."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from operations.models import Lease
from resources.models import Resource
from resources.queries import pending_cleanups
from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE, AFTER = ("resources", "0005_state"), ("resources", "0007_indexes_by_state")
AT = datetime(2026, 1, 1, tzinfo=UTC)
DELETED = {"status": "deleted", "deleted_at": AT}
ROWS: dict[str, dict[str, Any]] = {
    "live": {"status": "extracted", "sha256": "0" * 64},
    "retried": {"status": "failed", "retry_at": AT},
    "trashed": {**DELETED, "state": "trashed", "former_status": "extracted", "sha256": "0" * 64},
    "unread": {**DELETED, "state": "trashed", "former_status": "pending"},
    "failed": {**DELETED, "state": "trashed", "former_status": "failed", "retry_at": AT},
    "purged": {**DELETED, "state": "purged"},
    "purged with a retry": {**DELETED, "state": "purged", "cleanup_pending": True, "retry_at": AT},
    "purged half way": {**DELETED, "state": "purged", "cleanup_pending": True},
}


def migrate(target: tuple[str, str]) -> Any:
    """Migrate the app and return its model of resources."""
    executor = MigrationExecutor(connection)
    return executor.migrate([target]).apps.get_model("resources", "Resource")


@pytest.fixture
def former(alice: Person) -> Iterator[Any]:
    """Return the model of the version before, with a row of each kind, by file name."""
    model = migrate(BEFORE)
    for name, columns in ROWS.items():
        model.objects.create(resource_id=name, filename=name, user_id=alice.user_pk, session_id=name, **columns)
    try:
        yield model
    finally:
        Lease.objects.all().delete()
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())


def test_old_rows_keep_what_they_were(former: Any) -> None:
    began = timezone.now()
    migrate(AFTER)
    rows = Resource.objects.values_list("state", "status", "state_since", "retry_at")
    found = {name: rows.get(pk=name) for name in ROWS}
    due = {name: found.pop(name) for name in ("purged with a retry", "purged half way")}
    assert found == {
        "live": ("live", "extracted", None, None),
        "retried": ("live", "failed", None, AT),
        "trashed": ("trashed", "extracted", AT, None),
        "unread": ("trashed", "pending", AT, None),
        "failed": ("trashed", "failed", AT, AT),
        "purged": ("purged", "failed", AT, None),
    }
    assert {row[:3] for row in due.values()} == {("purged", "failed", AT)}
    assert all(began <= row[3] <= timezone.now() for row in due.values())
    assert set(pending_cleanups().values_list("pk", flat=True)) == set(due)


def test_the_way_back_keeps_deletions(former: Any) -> None:
    migrate(AFTER)
    model = migrate(BEFORE)
    columns = ("state", "status", "former_status", "deleted_at", "cleanup_pending")
    for name, expected in ROWS.items():
        found = model.objects.values(*columns).get(pk=name)
        defaults = {"state": "live", "former_status": "", "deleted_at": None, "cleanup_pending": False}
        assert found == defaults | {key: value for key, value in expected.items() if key in columns}, name


def test_the_upgrade_waits_for_older_processes(former: Any) -> None:
    Lease.objects.create(name="worker", lease_holder="host:1", leased_until=timezone.now() + timedelta(seconds=30))
    with pytest.raises(CommandError, match="A process of an older version uses this database \\(host:1\\)"):
        migrate(AFTER)
    Lease.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    migrate(AFTER)
