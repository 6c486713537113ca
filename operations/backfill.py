"""Making up for what was not written down at its time: each kind may be run again at any moment and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import MemoryUser
from core.errors import EngineError, InvalidInput
from engines.port import ExternalEngine
from engines.registry import external_engine, local_engine
from operations.commands import Report, Stop
from resources import storage
from resources.models import Attachment, Resource
from store import derived_memories, rollups
from store.models import OwedEmbedding, Session
from store.types import Owner
from store.vectors import fill
from store.vectors.client import wanted_model

Counts = dict[str, int]
_BATCH = 200
_SECONDS = 10.0


def attachments(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Ties each live file to its session, as its upload does now; files of former messages are not known."""
    attached = Attachment.objects.filter(resource=OuterRef("pk"))
    missing = Resource.objects.filter(~Exists(attached), deleted_at__isnull=True)
    missing = _of(missing, user_pk).order_by("pk")
    total, done, last = missing.count(), 0, ""
    while batch := list(missing.filter(pk__gt=last)[:_BATCH]):
        stop.check()
        Attachment.objects.bulk_create([_attachment(resource) for resource in batch], ignore_conflicts=True)
        done, last = done + len(batch), batch[-1].pk
        report("attachments", done, total)
    return {"attachments": done}


def sessions(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Makes known what an upstream held before the gateway came, and copies its memories. Errors: `InvalidInput`
    without an upstream, and the engine's."""
    engine, made = _upstream(), 0
    owners = list(_owners(user_pk))
    for done, owner in enumerate(owners, start=1):
        for count in engine.find_sessions(owner):
            made += count
            stop.check()
        report("users", done, len(owners))
    return {"sessions": made, **memories(user_pk, report, stop)}


def memories(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Copies what an upstream made of each session and the mirror lacks. Errors: `InvalidInput`, and the engine's if
    it is away; a session that it cannot list is counted and left."""
    engine, made, failed, done = _upstream(), 0, 0, 0
    found = _of(Session.objects.filter(deleted_at__isnull=True), user_pk).select_related("user").order_by("pk")
    total, last = found.count(), 0
    # No statement stays open while others write: SQLite would refuse what is written here from then on.
    while batch := list(found.filter(pk__gt=last)[:_BATCH]):
        for session in batch:
            stop.check()
            owner = Owner(session.user_id, session.user.user_id, session.app_id, session.project_id)
            try:
                made += engine.copy_memories(owner, session)
            except EngineError as error:
                if not error.is_permanent:
                    raise
                failed += 1
            done, last = done + 1, session.pk
            report("sessions", done, total)
    return {"memories": made, "failed": failed}


def recount(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Counts anew what dashboards show: in one transaction, which a stop would only undo."""
    stop.check()
    rollups.recount(user_pk, report=report)
    return {}


def embeddings(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Makes the vectors that memories lack. Errors: `InvalidInput` without an endpoint, or for one user alone."""
    if user_pk is not None:
        raise InvalidInput("Vectors are made for all users: leave --user away.")
    if wanted_model() is None:
        raise InvalidInput("No embedding endpoint is set: MEMORY_GATEWAY_EMBEDDING_BASE_URL names one.")
    fill.owe_what_is_lacking()
    total, made = OwedEmbedding.objects.count(), 0
    while count := fill.fill(_SECONDS):
        made += count
        report("vectors", made, max(total, made))
        stop.check()
    return {"vectors": made, "failed": OwedEmbedding.objects.count()}


def extractions(user_pk: UUID | None, report: Report, stop: Stop) -> Counts:
    """Has the LLM read what was said and nothing was made of. Errors: `InvalidInput` without an endpoint."""
    if not settings.MEMORY_GATEWAY_LLM_BASE_URL:
        raise InvalidInput("No LLM endpoint is set: MEMORY_GATEWAY_LLM_BASE_URL names one.")
    engine = local_engine()
    engine.queue_extraction(user_pk)
    total, read = derived_memories.extraction_backlog()["owed"], 0
    while count := engine.extract(_SECONDS, should_end=stop.is_set):
        read += count
        report("answers", read, max(total, read))
        stop.check()
    stop.check()
    left = derived_memories.extraction_backlog()
    return {"answers": read, "failed": left["owed"] + left["given_up"]}


KINDS: Final[Mapping[str, Callable[[UUID | None, Report, Stop], Counts]]] = {
    "attachments": attachments,
    "sessions": sessions,
    "memories": memories,
    "rollups": recount,
    "embeddings": embeddings,
    "extractions": extractions,
}


def _of(rows: QuerySet[Any], user_pk: UUID | None) -> QuerySet[Any]:
    return rows if user_pk is None else rows.filter(user_id=user_pk)


def _owners(user_pk: UUID | None) -> Iterator[Owner]:
    """Each user in the default scope and in every other that the user's sessions are in."""
    users = MemoryUser.objects.order_by("pk")
    for user in users if user_pk is None else users.filter(pk=user_pk):
        known = Session.objects.filter(user=user).order_by().values_list("app_id", "project_id").distinct()
        for app_id, project_id in sorted({("default", "default"), *known}):
            yield Owner(user.pk, user.user_id, app_id, project_id)


def _upstream() -> ExternalEngine:
    engine = external_engine()
    if engine is None:
        raise InvalidInput("There is no upstream to ask: MEMORY_GATEWAY_BACKEND_BASE_URL is empty.")
    return engine


def _attachment(resource: Resource) -> Attachment:
    is_upload = resource.origin == Resource.Origin.UPLOAD
    return Attachment(
        user_id=resource.user_id,
        app_id=resource.app_id,
        project_id=resource.project_id,
        session_id=resource.session_id,
        resource=resource,
        source=Attachment.Source.UPLOAD if is_upload else Attachment.Source.EXTERNAL_RESOURCE,
        type=resource.content_type,
        name=resource.filename,
        internal_uri=storage.resolve(resource.storage_path).as_uri() if is_upload else resource.source_uri,
        sha256=resource.sha256,
    )
