"""Create data that older versions did not record. Each kind can be repeated at any time without duplicates."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from django.conf import settings
from django.core.management.base import CommandParser
from django.db.models import Exists, Model, OuterRef, QuerySet

from accounts.models import MemoryUser
from accounts.services import find_user
from core.errors import EngineError, InvalidInput
from engines.registry import attached_remote, local_engine
from operations.commands import Answer, OperationsCommand, Report
from resources.models import Attachment, Resource
from store import derived_memories, rollups
from store.models import IS_PURGED, PendingEmbedding, PendingMedia, Session, State, owned_by
from store.port import Remote
from store.types import Owner
from store.vectors import fill
from store.vectors.client import wanted_model

Counts = dict[str, int]
_Row = TypeVar("_Row", bound=Model)
_BATCH = 200
_SECONDS = 10.0
"""The duration of a step, after which progress is reported."""


def attachments(user_pk: UUID | None, report: Report) -> Counts:
    """Attach each live file to its session, as an upload does. Files of older messages were not recorded."""
    attached = Attachment.objects.filter(resource=OuterRef("pk"))
    missing = _filter_user(Resource.objects.filter(~Exists(attached), state=State.LIVE), user_pk)
    total, done = missing.count(), 0
    for batch in _batches(missing):
        Attachment.objects.bulk_create((one.new_attachment() for one in batch), ignore_conflicts=True)
        done += len(batch)
        report("Attaching files", done, total)
    return {"attachments": done}


def sessions(user_pk: UUID | None, report: Report) -> Counts:
    """Create sessions that the remote had before the gateway was installed, and copy their memories.

    Raises: `InvalidInput` without a remote, and the engine's errors.
    """
    engine, created = _remote(), 0
    users = MemoryUser.objects.order_by("pk")
    owners = []
    for user in users if user_pk is None else users.filter(pk=user_pk):
        known = Session.objects.filter(user=user).order_by().values_list("app_id", "project_id").distinct()
        owners += [Owner(user.pk, user.user_id, *scope) for scope in sorted({("default", "default"), *known})]
    for done, owner in enumerate(owners, start=1):
        for count in engine.find_sessions(owner):
            created += count
            report("Checking users", done, len(owners))
    return {"sessions": created, **memories(user_pk, report)}


def memories(user_pk: UUID | None, report: Report) -> Counts:
    """Copy memories of the remote that the store lacks.

    A session that the remote cannot list is counted and skipped. Raises: `InvalidInput`, and the engine's errors if it
    is unavailable.
    """
    engine, copied, failed, done = _remote(), 0, 0, 0
    found = _filter_user(Session.objects.exclude(IS_PURGED), user_pk).select_related("user")
    total = found.count()
    for batch in _batches(found):
        for session in batch:
            try:
                copied += engine.copy_memories(session.owner, session)
            except EngineError as error:
                if not error.is_permanent:
                    raise
                failed += 1
            done += 1
            report("Checking sessions", done, total)
    return {"memories": copied, "failed": failed}


def recount(_user_pk: UUID | None, report: Report) -> Counts:
    """Rebuild the rollups, always of all users, in one transaction."""
    rollups.recount(report=report)
    return {}


def embeddings(user_pk: UUID | None, report: Report) -> Counts:
    """Compute missing vectors. Raises: `InvalidInput` without an endpoint, or for one user alone."""
    if user_pk is not None:
        raise InvalidInput("Vectors are computed for all users. Omit --user.")
    if wanted_model() is None:
        raise InvalidInput("No embedding endpoint is configured. Add embedding=… to MEMORY_GATEWAY_MODELS.")
    fill.mark_missing_pending()
    total, computed = PendingEmbedding.objects.count(), 0
    while count := fill.fill(_SECONDS):
        computed += count
        report("Computing vectors", computed, max(total, computed))
    return {"vectors": computed, "failed": PendingEmbedding.objects.count()}


def extractions(user_pk: UUID | None, report: Report) -> Counts:
    """Extract memories from messages without derived memories. Raises: `InvalidInput` without an LLM endpoint."""
    if "llm" not in settings.MEMORY_GATEWAY_MODELS:
        raise InvalidInput("No LLM endpoint is configured. Add llm=… to MEMORY_GATEWAY_MODELS.")
    engine = local_engine()
    engine.queue_extraction(user_pk)
    total, processed = derived_memories.extraction_backlog()["pending"], 0
    while count := engine.extract(_SECONDS):
        processed += count
        report("Extracting memories", processed, max(total, processed))
    backlog = derived_memories.extraction_backlog()
    return {"answers": processed, "failed": backlog["pending"] + backlog["given_up"]}


def media(user_pk: UUID | None, report: Report) -> Counts:
    """Have models read pictures and recordings that they have not read, and those given up.

    Raises: `InvalidInput` without an endpoint.
    """
    kinds = [kind for kind in PendingMedia.Kind if kind in settings.MEMORY_GATEWAY_MODELS]
    if not kinds:
        raise InvalidInput("No endpoint is configured. Add vision=… or transcription=… to MEMORY_GATEWAY_MODELS.")
    engine = local_engine()
    found = _filter_user(Resource.objects.filter(content_type__in=["image", "audio"], state=State.LIVE), user_pk)
    found = found.exclude(storage_path="").select_related("user")
    total, done, queued = found.count(), 0, 0
    for batch in _batches(found):
        for resource in batch:
            session = Session.objects.filter(owned_by(resource.owner), session_id=resource.session_id).first()
            if session is not None:
                queued += engine.queue_media(session, resource.file_key, resource.mime_type)
        done += len(batch)
        report("Queuing files", done, total)
    read = 0
    for kind in kinds:
        while count := engine.read_media(kind, _SECONDS):
            read += count
            report("Reading files", read, max(queued, read))
    return {"files": read, "failed": PendingMedia.objects.filter(kind__in=kinds).count()}


KINDS: Final[Mapping[str, Callable[[UUID | None, Report], Counts]]] = {
    "attachments": attachments,
    "sessions": sessions,
    "memories": memories,
    "rollups": recount,
    "embeddings": embeddings,
    "extractions": extractions,
    "media": media,
}


def _filter_user(rows: QuerySet[_Row], user_pk: UUID | None) -> QuerySet[_Row]:
    return rows if user_pk is None else rows.filter(user_id=user_pk)


def _batches(rows: QuerySet[_Row]) -> Iterator[list[_Row]]:
    """Yield the rows in lists by primary key.

    No statement stays open: SQLite would refuse this connection's writes after a write by another.
    """
    rows = rows.order_by("pk")
    batch = list(rows[:_BATCH])
    while batch:
        yield batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:_BATCH])


def _remote() -> Remote:
    engine = attached_remote()
    if engine is None:
        raise InvalidInput("No remote is attached. Set MEMORY_GATEWAY_BACKEND_BASE_URL.")
    return engine


class Command(OperationsCommand):
    help = (
        "Create missing data: attachments of older files, sessions and memories from the remote, dashboard counts, "
        "vectors, or memories that models derive from messages, pictures and recordings. Can be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=sorted(KINDS), help="kind of data")
        parser.add_argument("--user", metavar="USER_ID", help="limit to one user")

    def run(self, *, kind: str, user: str | None, **options: Any) -> Answer:
        user_pk = find_user(user).pk if user else None
        counts = KINDS[kind](user_pk, self.report)
        text = ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "done"
        return Answer({"kind": kind, **counts}, f"{kind}: {text}", not counts.get("failed"))
