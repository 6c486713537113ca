"""Emptying the trash for good: what was deleted long enough ago cannot be restored, and nothing brings it back.

Of a memory a bare row stays, without words, as of a message that nobody kept: so that neither the same message sent
again nor the next copy of what an upstream holds makes it anew. The tombstone stays too and goes on hiding the id.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from core.errors import EngineError, InvalidInput
from engines.port import Engine
from engines.registry import get_engine
from memories.models import Override, Tombstone
from memories.services import lookup
from operations import compaction, files
from operations.commands import Report, Stop, no_report
from operations.moves import purged
from resources.models import Attachment, Resource
from resources.services.deletion import delete_as
from store import derived_memories
from store.external import staging
from store.index import keyword
from store.models import BARE, Memory, Session, owned_by
from store.types import Owner

logger = logging.getLogger("memory_gateway.purge")

BATCH = 200


@dataclass(slots=True)
class Counts:
    """What went for good; `failed` are sessions that the engine could not forget now: they are closed, and the next
    purge goes on with them. `forgotten` are resources deleted before, of which the last words went."""

    memories: int = 0
    sessions: int = 0
    resources: int = 0
    forgotten: int = 0
    failed: int = 0

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def retention() -> timedelta | None:
    """How long the trash keeps what is in it; None: for ever."""
    days: int = settings.MEMORY_GATEWAY_TRASH_DAYS
    return timedelta(days=days) if days else None


def purge_trash(
    *,
    older_than: timedelta | None = None,
    user_pk: UUID | None = None,
    actor: Actor,
    engine: Engine | None = None,
    limit: int | None = None,
    report: Report = no_report,
    stop: Stop | None = None,
) -> Counts:
    """Purges what was deleted longer ago than `older_than` (the setting's time by default), oldest first, at most
    `limit`. Errors: `InvalidInput` where the setting keeps the trash for ever, `Stopped`.
    """
    age = retention() if older_than is None else older_than
    if age is None:
        raise InvalidInput("MEMORY_GATEWAY_TRASH_DAYS is 0, which keeps the trash for ever: say how old it must be.")
    before = timezone.now() - age
    found = due(user_pk).filter(created_at__lte=before)
    engine = engine or get_engine()
    cut_short = _cut_short(user_pk)
    counts = _purge(found[:limit] if limit else found, actor, engine, report, stop)
    for tombstone in cut_short:
        _clear_session(tombstone, actor, engine, counts)
    whose = Q() if user_pk is None else Q(user_id=user_pk)
    deleted = Resource.objects.filter(whose, deleted_at__lte=before, cleanup_owed=False).exclude(filename="")
    counts.forgotten = deleted.update(
        filename="", title=None, description=None, sha256="", source_uri="", error_message="", size_bytes=None
    )
    return counts


def purge_memory(tombstone_ids: Collection[str], *, user_pk: UUID | None = None, actor: Actor) -> Counts:
    """Purges some deletions however young they are; what is not in the trash is left alone."""
    return _purge(due(user_pk).filter(pk__in=list(tombstone_ids)), actor, get_engine(), no_report, None)


def due(user_pk: UUID | None) -> QuerySet[Tombstone]:
    """The trash, oldest first: what can still be restored."""
    whose = Q() if user_pk is None else Q(user_id=user_pk)
    session = Session.objects.filter(
        user_id=OuterRef("user_id"),
        app_id=OuterRef("app_id"),
        project_id=OuterRef("project_id"),
        session_id=OuterRef("session_id"),
        deleted_at__isnull=True,
    )
    restorable = Q(row__isnull=False) | Q(Exists(session), memory_id="")
    found = Tombstone.objects.filter(whose, restorable, undone_at__isnull=True).select_related("user")
    return found.order_by("created_at", "tombstone_id")


def _purge(found: QuerySet[Tombstone], actor: Actor, engine: Engine, report: Report, stop: Stop | None) -> Counts:
    compaction.overwrite_deleted()
    counts = Counts()
    tombstones = list(found)
    for number, tombstone in enumerate(tombstones, 1):
        if stop:
            stop.check()
        if tombstone.memory_id:
            _purge_memory(tombstone, actor, counts)
        else:
            _purge_session(tombstone, actor, engine, counts)
        report("Purging", number, len(tombstones))
    return counts


def _owner(tombstone: Tombstone) -> Owner:
    return Owner(tombstone.user.pk, tombstone.user.user_id, tombstone.app_id, tombstone.project_id)


def _purge_memory(tombstone: Tombstone, actor: Actor, counts: Counts) -> None:
    """Unless it was restored a moment ago."""
    owner = _owner(tombstone)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        row = Memory.objects.select_for_update().filter(owned_by(owner), memory_id=tombstone.memory_id).first()
        if row is None or not due(owner.user_pk).filter(pk=tombstone.pk).exists():
            return
        derived_memories.purge(owner, row.memory_id)
        purged.forget_messages(owner, row)
        _make_bare(owner, row)
        Override.objects.filter(row=row).delete()
        Tombstone.objects.filter(row=row).update(row=None, reason="")
        _record(actor, "memory", tombstone)
        counts.memories += 1


def _make_bare(owner: Owner, row: Memory) -> None:
    """Nothing of what it said, neither here nor in the index."""
    if row.is_indexed:
        keyword.remove(owner, {row.pk: keyword.entry_of(row)})
    row.text = row.category = row.sender_id = row.speaker = row.agent_id = ""
    row.payload, row.importance, row.chunk_index = {}, None, None
    row.is_indexed, row.token_count = False, 0
    row.origin, row.memory_type, row.batch_id = Memory.Origin.UPSTREAM, Memory.Type.UNPROCESSED_MESSAGE, BARE
    row.save()


def _purge_session(tombstone: Tombstone, actor: Actor, engine: Engine, counts: Counts) -> None:
    """Unless it was restored a moment ago. Once closed nobody can restore it or write to it; what a crash leaves of it
    the next purge clears away."""
    owner = _owner(tombstone)
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        if not due(owner.user_pk).filter(pk=tombstone.pk).exists():
            return
        session = Session.objects.filter(owned_by(owner), session_id=tombstone.session_id)
        session.update(deleted_at=timezone.now())
    _clear_session(tombstone, actor, engine, counts)


def _cut_short(user_pk: UUID | None) -> list[Tombstone]:
    """Deletions of sessions whose purge left something behind."""
    whose = Q() if user_pk is None else Q(user_id=user_pk)
    closed = Tombstone.objects.filter(whose, undone_at__isnull=True, memory_id="")
    scope = {name: OuterRef(name) for name in ("user_id", "app_id", "project_id")}
    sessions = Session.objects.filter(session_id=OuterRef("session_id"), deleted_at__isnull=False, **scope)
    held = Memory.objects.filter(session__session_id=OuterRef("session_id"), **scope)
    left = Exists(held) | Exists(Attachment.objects.filter(session_id=OuterRef("session_id"), **scope))
    return list(closed.filter(Exists(sessions), left).select_related("user"))


def _clear_session(tombstone: Tombstone, actor: Actor, engine: Engine, counts: Counts) -> None:
    """With the file that it was made for, and the files that came in it."""
    owner, session_id = _owner(tombstone), tombstone.session_id
    whose = Q(user_id=owner.user_pk, session_id=session_id, app_id=owner.app_id, project_id=owner.project_id)
    for resource in Resource.objects.filter(whose, deleted_at__isnull=True):
        delete_as(owner.user_pk, owner.user_id, resource.resource_id, actor=actor, engine=engine)
        counts.resources += 1
    try:
        engine.delete(owner, session_id)
    except EngineError as error:
        logger.warning("A session in the trash could not be purged: %s", error.detail)
        counts.failed += 1
        return
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        staging.discard_for(Session.objects.get(whose))
        Override.objects.filter(whose).delete()
        attachments = Attachment.objects.filter(whose)
        dropped = files.of_attachments(attachments.values_list("internal_uri", flat=True))
        attachments.delete()
        _drop_files(tombstone.user, dropped)
        Tombstone.objects.filter(whose).update(reason="")
        _record(actor, "session", tombstone)
    counts.sessions += 1


def _drop_files(user: MemoryUser, dropped: set[str]) -> None:
    """Remove the files of purged attachments, unless another one refers to them.

    Call in the transaction that deletes the attachments: after a crash they are still there to be purged again.
    """
    of_messages = {path for path in dropped if path.startswith(f"{user.pk}/") and files.OF_MESSAGES in path}
    for path in of_messages.difference(files.of_rows(user)):
        files.remove(path)


def _record(actor: Actor, subject: str, tombstone: Tombstone) -> None:
    record(
        actor,
        f"{subject}.purge",
        subject_type=subject,
        subject_id=tombstone.memory_id or tombstone.session_id,
        user_id=tombstone.user.user_id,
        detail={"tombstone_id": tombstone.tombstone_id},
    )
