"""Purge the trash: remove memories, sessions and resources permanently that were deleted long ago.

A row without text remains of each memory, so that neither the same message nor the next copy of the remote's
memories recreates it. The tombstone remains too, and hides the id.

After a jump of the system clock, the server purges nothing for seven days. Two rows of `Lease` record when the clock is
read next, and from when on purges are due.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.audit import Actor, record
from core.errors import EngineError, InvalidInput
from core.messages import Translatable as _
from core.persistence.file_keys import MESSAGE_FILES, is_key
from core.persistence.files import stored_files
from engines.registry import get_engine
from memories.models import Override, Tombstone
from memories.queries import restorable
from memories.services import lookup
from operations import files
from operations.cleanup import compaction
from operations.commands import Report, no_report
from operations.models import Lease
from operations.reingest.messages import clear_entry, clear_source_messages
from remote import deletions
from resources.models import Attachment, Resource
from resources.services import deletion
from store import derived_memories, writes
from store.index import keyword
from store.models import IS_PURGED, Memory, Session, State, owned_by, owner_columns
from store.port import Engine
from store.types import Owner

logger = logging.getLogger("memory_gateway.purge")

_SCOPE = {name: OuterRef(name) for name in ("user_id", "app_id", "project_id")}
_OF_SESSION = {**_SCOPE, "session_id": OuterRef("session_id")}
"""The conditions on rows of a tombstone's session."""


@dataclass(slots=True)
class Counts:
    """The number of purged objects.

    `failed` are sessions that the engine could not delete; they refuse writes, and the next purge retries them.
    `forgotten` are purged resources whose names and addresses were removed.
    """

    memories: int = 0
    sessions: int = 0
    resources: int = 0
    forgotten: int = 0
    failed: int = 0


def retention() -> timedelta | None:
    """Return how long deletions stay in the trash; None: forever."""
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
) -> Counts:
    """Purge deletions older than `older_than` (default: the setting), oldest first, at most `limit`.

    Raises: `InvalidInput` if the setting keeps the trash forever, `Stopped`.
    """
    age = retention() if older_than is None else older_than
    if age is None:
        raise InvalidInput(_("MEMORY_GATEWAY_TRASH_DAYS is 0, so the trash is kept forever. Give a minimum age."))
    before = timezone.now() - age
    found = due(user_pk).filter(created_at__lte=before)
    engine = engine or get_engine()
    of_user = Q() if user_pk is None else Q(user_id=user_pk)
    # Sessions whose purge was interrupted are marked as deleted, but still have memories or attachments.
    closed = Exists(Session.objects.filter(**_OF_SESSION, state=State.PURGED))
    memories = Memory.objects.filter(**_SCOPE, session__session_id=OuterRef("session_id"))
    remains = Exists(memories) | Exists(Attachment.objects.filter(**_OF_SESSION))
    tombstones = Tombstone.objects.filter(of_user, closed, remains, undone_at__isnull=True, memory_id="")
    interrupted = list(tombstones.select_related("user"))
    deleted = Resource.objects.filter(of_user, state_since__lte=before)
    in_trash = deleted.filter(state=State.TRASHED).order_by("state_since", "resource_id")
    counts = _purge(found[:limit] if limit else found, actor, engine, report)
    oldest = in_trash[:limit] if limit else in_trash
    counts.resources += purge_resources(oldest, actor=actor, engine=engine, report=report)
    for tombstone in interrupted:
        _clear_session(tombstone, actor, engine, counts)
    purged = deleted.filter(state=State.PURGED, retry_at__isnull=True)
    counts.forgotten = purged.exclude(filename="").update(
        filename="", title=None, description=None, sha256="", source_uri="", error_message="", size_bytes=None
    )
    return counts


def purge_memory(tombstone_ids: Collection[str], *, user_pk: UUID | None = None, actor: Actor) -> Counts:
    """Purge some deletions of any age; ignore tombstones that are not in the trash."""
    return _purge(due(user_pk).filter(pk__in=list(tombstone_ids)), actor, get_engine(), no_report)


def purge_resources(
    resources: QuerySet[Resource], *, actor: Actor, engine: Engine | None = None, report: Report = no_report
) -> int:
    """Purge resources in the trash; return their number.

    Those that were restored meanwhile are skipped, even if they were deleted again.
    """
    compaction.overwrite_deleted()
    deletions = list(resources.values_list("pk", "state_since"))
    purged = 0
    for number, (resource_id, at) in enumerate(deletions, 1):
        report("Purging files", number, len(deletions))
        unchanged = Q(state=State.TRASHED, state_since=at)
        purged += deletion.purge(resource_id, actor=actor, condition=unchanged, engine=engine) is not None
    return purged


def due(user_pk: UUID | None) -> QuerySet[Tombstone]:
    """Return the tombstones in the trash, which can still be restored, oldest first."""
    of_user = Q() if user_pk is None else Q(user_id=user_pk)
    return restorable(of_user).select_related("user").order_by("created_at", "tombstone_id")


def _purge(found: QuerySet[Tombstone], actor: Actor, engine: Engine, report: Report) -> Counts:
    compaction.overwrite_deleted()
    counts = Counts()
    tombstones = list(found)
    for number, tombstone in enumerate(tombstones, 1):
        report("Purging the trash", number, len(tombstones))
        owner = tombstone.owner
        with transaction.atomic():
            lookup.lock_user(owner.user_pk)
            current = due(owner.user_pk).filter(pk=tombstone.pk).first()
            if current is None:
                continue  # restored meanwhile
            if current.row_id:
                _purge_memory(owner, Memory.objects.select_for_update().get(pk=current.row_id))
                _record(actor, "memory", tombstone)
                counts.memories += 1
            else:  # a session marked as deleted can neither be restored nor written to
                session = Session.objects.filter(owned_by(owner), session_id=tombstone.session_id)
                session.update(state=State.PURGED, state_since=timezone.now())
        if not current.row_id:
            _clear_session(tombstone, actor, engine, counts)
    return counts


def empty(owner: Owner, rows: Collection[int]) -> int:
    """Replace memories by rows without text, whatever their state. Call in a transaction. Return their number."""
    found = list(Memory.objects.select_for_update().filter(~IS_PURGED, owned_by(owner), pk__in=rows))
    for row in found:
        _purge_memory(owner, row)
    return len(found)


_KEPT: Final = frozenset({"id", "memory_id", "created_at_ms"})
_EMPTIED: Final = frozenset(field.name for field in Memory._meta.concrete_fields) - _KEPT  # noqa: SLF001


def _purge_memory(owner: Owner, row: Memory) -> None:
    """Replace a memory by a row without text; remove derived memories and the text of its source messages."""
    for derived in derived_memories.repeated_by_remote(owner, row):
        _purge_memory(owner, derived)
    deletions.queue_memory(owner, row)
    derived_memories.purge(owner, row.memory_id)
    clear_source_messages(owner, row)
    clear_entry(owner, row)
    former = {row.pk: keyword.entry_of(row)} if row.is_indexed else {}
    emptied = Memory(
        pk=row.pk,
        **owner_columns(owner),
        memory_id=row.memory_id,
        session_id=row.session_id,
        memory_type=Memory.Type.UNPROCESSED_MESSAGE,
        state=State.PURGED,
        seq=row.seq,
        created_at_ms=row.created_at_ms,
        origin=Memory.Origin.REMOTE,
        state_since=timezone.now(),
    )
    writes.replace(owner, former, [emptied], _EMPTIED)
    Override.objects.filter(row=row).delete()
    Tombstone.objects.filter(row=row).update(row=None, reason="")
    Tombstone.ledger.filter(row=row).delete()  # what followed from other decisions


def _clear_session(tombstone: Tombstone, actor: Actor, engine: Engine, counts: Counts) -> None:
    """Remove a session that is marked as deleted, with its resource and the files of its messages."""
    owner, session_id = tombstone.owner, tombstone.session_id
    of_session = owned_by(owner) & Q(session_id=session_id)
    for resource in Resource.objects.filter(of_session).exclude(state=State.PURGED):
        purged = deletion.purge(resource.resource_id, actor=actor, condition=of_session, engine=engine)
        counts.resources += purged is not None
    try:
        engine.delete(owner, session_id)
    except EngineError as error:
        logger.warning("A session in the trash could not be purged: %s", error.detail)
        counts.failed += 1
        return
    with transaction.atomic():
        lookup.lock_user(owner.user_pk)
        Override.objects.filter(of_session).delete()
        attachments = Attachment.objects.filter(of_session)
        referenced = set(filter(is_key, attachments.values_list("internal_uri", flat=True)))
        attachments.delete()
        # Files are removed inside the transaction: after a crash the attachments still exist for the next purge.
        folder = f"{owner.user_pk}/{MESSAGE_FILES}/"
        own = {key for key in referenced if key.startswith(folder)}
        for key in own.difference(files.of_rows(tombstone.user)):  # no other attachment refers to it
            stored_files().remove(key)
        Tombstone.objects.filter(of_session).update(reason="")
        _record(actor, "session", tombstone)
    counts.sessions += 1


def _record(actor: Actor, subject: str, tombstone: Tombstone) -> None:
    record(
        actor,
        f"{subject}.purge",
        tombstone.memory_id or tombstone.session_id,
        user_id=tombstone.user.user_id,
        detail={"tombstone_id": tombstone.tombstone_id},
    )


PURGE_PAUSE: Final = timedelta(days=7)
"""The pause of purges after a jump, in which an operator can correct the clock."""
MAX_GAP: Final = timedelta(days=1)
_READ_INTERVAL: Final = timedelta(minutes=5)
_READ_CLOCK: Final = "read_clock"
_PURGE: Final = "purge"


def may_purge(now: datetime) -> bool:
    """Record the time; return True unless the clock jumped by more than a day in the last seven days.

    A stop of the gateway for more than a day looks the same, and also pauses purges.
    """
    due_at = Lease.objects.due_times([_READ_CLOCK])[_READ_CLOCK]
    last_read = due_at - _READ_INTERVAL if due_at else None
    if last_read is not None and abs(now - last_read) > MAX_GAP:
        logger.error(
            "The clock shows %s, but the last recorded time is %s: the clock jumped, or the gateway was stopped. "
            "Nothing is purged before %s. Check the clock.",
            *(f"{at:%Y-%m-%d %H:%M}" for at in (now, last_read, now + PURGE_PAUSE)),
        )
        Lease.objects.set_due(_PURGE, now + PURGE_PAUSE)  # written first: otherwise a process in between would purge
    if last_read is None or abs(now - last_read) > _READ_INTERVAL:
        Lease.objects.set_due(_READ_CLOCK, now + _READ_INTERVAL)
    return purges_paused_until(now) is None


def purges_paused_until(now: datetime) -> datetime | None:
    """Return the end of the pause of purges, None if there is none."""
    due_at = Lease.objects.due_times([_PURGE])[_PURGE]
    return due_at if due_at is not None and now < due_at else None
