from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Exists, OuterRef
from django.utils import timezone

from accounts.services import find_user
from core.background.tasks import Round
from engines.registry import attached_remote
from operations.commands import Answer, OperationsCommand
from operations.external.delivery_retry import DeliveryRetry
from remote.models import OutboxEntry
from resources.models import Resource
from resources.services.claims import mark_extracted
from resources.services.ingestion import try_ingest
from resources.services.unfinished import UNFINISHED, Kind, unfinished_ingestions
from store.models import Session, State, owned_by
from store.port import Engine

BATCH = 10_000
Step = tuple[int, int, Resource]
"""The number of a resource, the total, and the resource."""


def ingest_unfinished(
    *, kinds: Collection[Kind] = UNFINISHED, user_id: str | None = None, engine: Engine | None = None
) -> Iterator[Step]:
    """Ingest the pending resources one after another; yield each, except those that another process ingests."""
    pending = unfinished_ingestions(timezone.now(), BATCH, kinds=kinds, user_id=user_id)
    for done, item in enumerate(pending, start=1):
        if try_ingest(item.resource_id, engine=engine):
            yield done, len(pending), Resource.objects.select_related("user").get(pk=item.resource_id)


def recover_empty(*, user_id: str | None = None) -> Iterator[Step]:
    """Ask the remote for the memories of `empty` files; set files with memories to `extracted` and yield them.

    No file is sent again. Raises: the errors of the engine's list call.
    """
    engine = attached_remote()
    if engine is None:
        return
    sent = OutboxEntry.objects.filter(
        user_id=OuterRef("user_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        session__session_id=OuterRef("session_id"),
    ).exclude(session__state=State.PURGED)
    found = Resource.objects.filter(Exists(sent), state=State.LIVE, status=Resource.Status.EMPTY)
    if user_id is not None:
        found = found.filter(user__user_id=user_id)
    empty = list(found.select_related("user").order_by("created_at", "resource_id")[:BATCH])
    for done, resource in enumerate(empty, start=1):
        session = Session.objects.get(owned_by(resource.owner), session_id=resource.session_id)
        if engine.recover(resource.owner, session) and mark_extracted(resource, session.searchable_at, timezone.now()):
            resource.refresh_from_db()
            yield done, len(empty), resource


class Command(OperationsCommand):
    help = "Ingest pending resources: not started, interrupted, or due for a retry. Exit code 1 if one of them failed."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pending", action="store_true", help="only resources that were not started")
        parser.add_argument(
            "--stale", action="store_true", help="only interrupted resources; also check `empty` ones with the remote"
        )
        parser.add_argument(
            "--failed", action="store_true", help="only failed resources, due or not; also retry unconfirmed messages"
        )
        parser.add_argument("--user", metavar="USER_ID", help="limit to one user")

    def run(self, *, user: str | None, **options: Any) -> Answer:
        if user is not None:
            find_user(user)
        self._statuses: Counter[str] = Counter()
        self._failures: dict[str, str] = {}
        kinds = {kind for kind in (Kind.PENDING, Kind.STALE, Kind.FAILED) if options[kind.value]}
        self._take(ingest_unfinished(kinds=kinds or UNFINISHED, user_id=user))
        if options["stale"]:
            self._take(recover_empty(user_id=user))
        retries_deliveries = options["failed"] and user is None
        if retries_deliveries and (arrived := DeliveryRetry()(Round(should_end=self.stop.is_set), is_forced=True)):
            self.stderr.write(f"{arrived} unconfirmed messages were delivered")
        counts = dict(sorted(self._statuses.items()))
        data = {"ingested": sum(counts.values()), "statuses": counts, "failures": self._failures}
        text = ", ".join(f"{count} {status}" for status, count in counts.items()) or "Nothing is pending."
        return Answer(data, text, is_ok=not self._failures)

    def _take(self, steps: Iterator[Step]) -> None:
        """Count and print each resource, until a signal asks for an end."""
        while not self.stop.is_set() and (step := next(steps, None)):
            done, total, resource = step
            self._statuses[resource.public_status] += 1
            self._failures.pop(resource.resource_id, None)
            if resource.public_status == Resource.Status.FAILED:
                self._failures[resource.resource_id] = resource.error_message
            reason = f": {resource.error_message}" if resource.error_message else ""
            self.stderr.write(f"{done}/{total} {resource.resource_id} {resource.public_status}{reason}")
