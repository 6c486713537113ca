"""The migration to the outbox refuses while a process of an older version runs."""

from __future__ import annotations

import importlib
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from operations.models import Lease

require_stopped = importlib.import_module("remote.migrations.0001_initial").require_stopped
NOW = timezone.now


@pytest.mark.django_db
def test_a_running_process_is_named() -> None:
    Lease.objects.create(name="clock:seen", leased_until=NOW() + timedelta(days=1))  # of no process
    Lease.objects.create(name="old", lease_holder="host:1:x", leased_until=NOW() - timedelta(seconds=1))
    editor = SimpleNamespace(connection=connection)
    require_stopped(apps, editor)
    Lease.objects.filter(name="old").update(leased_until=NOW() + timedelta(seconds=20))
    with pytest.raises(CommandError, match=r"\(host:1:x\). Stop all gateways and workers"):
        require_stopped(apps, editor)
