"""Ingesting many resources from a shell: which ones, and how each ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Exists, OuterRef
from django.utils import timezone

from engine.models import Memory, Session, owned_by
from engine.port import Engine
from engine.registry import get_engine
from engine.upstream_engine import UpstreamEngine
from resources.models import Resource
from resources.services.claims import heal_empty
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


def verify_empty(
    *,
    user_id: str | None = None,
    report: Callable[[Progress], None],
    should_stop: Callable[[], bool],
    engine: Engine | None = None,
    clock: Callable[[], datetime] = timezone.now,
) -> None:
    """Ask EverOS for the memories of files that were settled as `empty`, and make those `extracted` that have some;
    `report` is told of these. Nothing is sent again. Errors: those of the engine's list call."""
    engine = engine or get_engine()
    if not isinstance(engine, UpstreamEngine):
        return
    empty = _empty_in_everos(user_id)
    for done, resource in enumerate(empty, start=1):
        if should_stop():
            break
        owner = resource.owner
        session = Session.objects.get(owned_by(owner), session_id=resource.session_id)
        if engine.recover(owner, session) and heal_empty(resource, session.searchable_at, clock()):
            resource.refresh_from_db()
            report(Progress(done, len(empty), resource))


def _empty_in_everos(user_id: str | None) -> list[Resource]:
    given = Memory.objects.filter(
        user_id=OuterRef("user_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        session__session_id=OuterRef("session_id"),
        session__deleted_at__isnull=True,
        memory_type=Memory.Type.UNPROCESSED_MESSAGE,
        origin=Memory.Origin.UPSTREAM,
    )
    empty = Resource.objects.filter(Exists(given), status=Resource.Status.EMPTY, deleted_at__isnull=True)
    if user_id is not None:
        empty = empty.filter(user__user_id=user_id)
    return list(empty.select_related("user").order_by("created_at", "resource_id")[:BATCH])
