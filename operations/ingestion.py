"""Ingesting many resources from a shell: which ones, and how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from engines.port import Engine
from resources.models import Resource
from resources.services.ingestion import try_ingest
from resources.services.owed import OWED, Kind, owed_ingestions

BATCH = 10_000


@dataclass(slots=True)
class Summary:
    """How many ended in which status, and why the failed ones did, by resource id."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)

    def count(self, resource: Resource) -> None:
        self.statuses[str(resource.status)] += 1
        self.failures.pop(resource.resource_id, None)
        if resource.status == Resource.Status.FAILED:
            self.failures[resource.resource_id] = resource.error_message


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    total: int
    resource: Resource


def ingest_owed(
    *,
    kinds: Collection[Kind] = OWED,
    user_id: str | None = None,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    engine: Engine | None = None,
    clock: Callable[[], datetime] = timezone.now,
) -> None:
    """Ingests what is owed now, one after the other; `report` is told after each that was not another process's. Stops
    after the one under way when `should_stop()` says so.
    """
    owed = owed_ingestions(clock(), BATCH, kinds=kinds, user_id=user_id)
    for done, item in enumerate(owed, start=1):
        if should_stop():
            break
        if try_ingest(item.resource_id, engine=engine):
            resource = Resource.objects.select_related("user").get(pk=item.resource_id)
            report(Progress(done, len(owed), resource))
