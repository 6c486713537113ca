"""Have models describe pictures and transcribe recordings, in the background, after the file was stored.

The add of a file queues it, in the same transaction, and does not wait. What a model says becomes derived memories,
with the memory of the file's name as their source: they are hidden, restored and purged with it. Their ids depend on
the file's, so a repeated call stores nothing twice. A failing endpoint leaves the file as it is and is tried again.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid5

from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.utils import timezone

from accounts import expiry
from accounts.models import MemoryUser
from core.background.leases import Claim
from core.background.model_calls import call, in_parallel, is_due
from core.errors import StorageUnavailable
from core.messages import Translatable as _
from core.network.model_endpoint import EndpointError
from core.persistence.checked_rows import repair_row
from core.persistence.database_errors import database_errors
from core.persistence.file_keys import FileKey, file_key
from core.persistence.files import stored_files
from documents.mime_types import is_picture, is_sound
from engines.embedded import media_models
from engines.embedded.media_models import Model, Passage, TranscriptionModel
from store import sessions, topic_model, writes
from store.admission import is_held_memory, never_kept_of
from store.models import Memory, PendingMedia, Session, State
from store.types import METADATA, TAGS, Owner

logger = logging.getLogger("memory_gateway.llm")

MAX_CALLS: Final = 2
"""The calls of a kind that a process makes at once, unless `run` gets another number."""
LEASE: Final = timedelta(seconds=30)
_COPIED: Final = (
    "role",
    "sender_name",
    "content_type",
    "filename",
    "title",
    "mime_type",
    "resource_id",
    TAGS,
    METADATA,
)
_Kind = PendingMedia.Kind
_Prepared = tuple[PendingMedia, Callable[[], list[Passage]]]
_UNREADABLE: Final = _("The stored file cannot be read. It is tried again later.")


IS_LIVE: Final = Q(
    Q(memory__session=None) | Q(memory__session__state=State.LIVE),
    memory__memory_type=Memory.Type.EPISODE,
    memory__state=State.LIVE,
)
"""Pending files that a user has flushed and not deleted."""


def pending_of(file: FileKey | Path, mime_type: str | None) -> PendingMedia | None:
    """Return the unsaved row for a stored file, without its memory; None if no configured model reads its type."""
    kind = _Kind.VISION if is_picture(mime_type) else _Kind.TRANSCRIPTION if is_sound(mime_type) else None
    if isinstance(file, Path) or kind not in media_models.configured():
        return None
    return PendingMedia(kind=kind, file_key=file, mime_type=mime_type or "")


def queue(session: Session, key: FileKey, mime_type: str | None) -> bool:
    """Queue the file of a session with one file, unless it is pending or was read. Queue again what was given up."""
    pending = pending_of(key, mime_type)
    if pending is None or Memory.objects.filter(session=session, origin=Memory.Origin.EXTRACTED).exists():
        return False
    with database_errors(), transaction.atomic():
        memory = Memory.objects.filter(session=session, origin=Memory.Origin.EMBEDDED, chunk_index=0).first()
        if memory is None:
            return False
        given_up = PendingMedia.objects.filter(memory=memory, given_up_at__isnull=False)
        if given_up.update(given_up_at=None, retry_at=None, last_error="", attempts=0, refusals=0):
            return True
        pending.memory = memory
        is_pending = PendingMedia.objects.filter(memory=memory).exists()
        PendingMedia.objects.bulk_create([pending], ignore_conflicts=True)
        return not is_pending


def run(
    kind: PendingMedia.Kind,
    seconds: float,
    *,
    clock: Callable[[], datetime] = timezone.now,
    should_end: Callable[[], bool] = lambda: False,
    call_seconds: float | None = None,
    calls: int = MAX_CALLS,
) -> int:
    """Process pending files of a kind, starting none after `seconds`; return the number of answers that were used.

    Several processes share the work: each claims one file of some users, who take turns. A failing endpoint ends the
    run without an error; `/health` reports it. Calls in progress are abandoned when `should_end` returns True.
    """
    model = media_models.configured().get(kind)
    if model is None:
        return 0
    deadline, done, served = time.monotonic() + seconds, 0, set[UUID]()
    claim: Claim[PendingMedia] = Claim(LEASE, clock)

    def take(limit: int) -> list[_Prepared]:
        if time.monotonic() >= deadline or model.endpoint.pause.left_seconds():
            return []
        expiry.end_all_due()
        taken = claim.take(_due(kind, clock()).exclude(memory__user__in=served), limit)
        if not taken and served:
            served.clear()
            taken = claim.take(_due(kind, clock()), limit)
        served.update(pending.memory.user_id for pending in taken)
        return [(pending, _prepared(pending, model, call_seconds)) for pending in taken]

    def ask(prepared: _Prepared) -> list[Passage] | EndpointError:
        return call(*prepared, model.endpoint, model.probe)

    with database_errors(), closing(claim):
        for (pending, _), answer in in_parallel(take, ask, calls, should_end):
            done += _settle(pending, answer, clock())
            claim.release(pk=pending.pk)
    return done


def due_files(kind: PendingMedia.Kind, now: datetime) -> QuerySet[PendingMedia]:
    """Return the files that can be read now: no pause of the person holds them."""
    return PendingMedia.objects.filter(is_due(now), kind=kind).exclude(is_held_memory("memory__"))


def _due(kind: PendingMedia.Kind, now: datetime) -> QuerySet[PendingMedia]:
    """Return the oldest due file of each user, without deleted and unflushed ones."""
    due = due_files(kind, now).filter(IS_LIVE)
    firsts = due.order_by().values("memory__user").annotate(first=Min("pk")).values("first")
    return due.filter(pk__in=firsts).select_related("memory__user", "memory__session").order_by("pk")


def _prepared(pending: PendingMedia, model: Model, seconds: float | None) -> Callable[[], list[Passage]]:
    """Return the call of the model for a pending file, which needs no more of the database."""
    memory, limits = pending.memory, {} if seconds is None else {"seconds": seconds}
    # Text that OCR recognized is not stored a second time.
    has_text = _parts(memory).filter(origin=Memory.Origin.EMBEDDED, chunk_index__gt=0).exists()

    def ask() -> list[Passage]:
        try:
            with stored_files().open_key(file_key(pending.file_key)) as file:
                data = file.read(model.max_bytes + 1)
        except (OSError, StorageUnavailable) as error:
            raise EndpointError(_UNREADABLE) from error
        if not 0 < len(data) <= model.max_bytes:
            return []
        if isinstance(model, TranscriptionModel):
            return model.transcribe(data, pending.mime_type, **limits)
        names = {name: memory.payload.get(key) for name, key in (("name", "filename"), ("title", "title"))}
        return model.describe(data, pending.mime_type, names, with_text=not has_text, **limits)

    return ask


def _settle(seen: PendingMedia, answer: list[Passage] | EndpointError, now: datetime) -> bool:
    """Store an answer, or schedule another try; return True if the answer was used.

    A file that was deleted meanwhile stays pending until it is restored or purged.
    """
    if not isinstance(answer, EndpointError) and topic_model.is_set():
        never_kept_of(seen.memory.user_id, [passage.text for passage in answer], ask_seconds=topic_model.SECONDS)
    with transaction.atomic():
        if not MemoryUser.objects.select_for_update(no_key=True).filter(pk=seen.memory.user_id).exists():
            return False
        mine = PendingMedia.objects.select_for_update().filter(pk=seen.pk, lease_holder=seen.lease_holder)
        pending = mine.first()
        if pending is None:
            return False
        if isinstance(answer, EndpointError):
            pending.note_failure(answer, now)
            if pending.given_up_at is not None:
                logger.warning("A file was given up by the %s model: %s", pending.kind, answer.detail)
            pending.save()
            return False
        memory = Memory.objects.select_related("user", "session").get(pk=pending.pk)
        owner = Owner(memory.user_id, memory.user.user_id, memory.app_id, memory.project_id)
        session = sessions.existing(owner, memory.session.session_id) if memory.session else None
        if session is None or session.state != State.LIVE or memory.state != State.LIVE:
            return False
        _write(owner, memory, answer)
        pending.delete()
        return True


def _write(owner: Owner, memory: Memory, passages: Sequence[Passage]) -> None:
    first = 1 + _parts(memory).filter(chunk_index__gt=0).count()
    rows = [_row(memory, number, first + number, passage) for number, passage in enumerate(passages)]
    known = writes.known(owner, [row.memory_id for row in rows])
    refused = never_kept_of(owner.user_pk, [row.text for row in rows])
    new = [row for place, row in enumerate(rows) if row.memory_id not in known and place not in refused]
    for row in new:
        repair_row(row)  # a model's answer cannot be refused
    writes.insert(owner, new)


def _row(memory: Memory, position: int, chunk_index: int, passage: Passage) -> Memory:
    """Return an unsaved memory without owner, beside the memory of the file."""
    payload: dict[str, Any] = {name: memory.payload[name] for name in _COPIED if name in memory.payload}
    payload["position"] = position
    if passage.seconds:
        payload["second"], payload["until_second"] = (round(second, 2) for second in passage.seconds)
    return Memory(
        memory_id=str(uuid5(UUID(memory.memory_id), f"media {position}")),
        memory_type=Memory.Type.EPISODE,
        session_id=memory.session_id,
        sender_id=memory.sender_id,
        agent_id=memory.agent_id,
        text=passage.text,
        original_text=passage.text,
        batch_id=memory.batch_id,
        seq=memory.seq,
        chunk_index=chunk_index,
        created_at_ms=memory.created_at_ms,
        origin=Memory.Origin.EXTRACTED,
        sources=[memory.memory_id],
        payload=payload,
    )


def _parts(memory: Memory) -> QuerySet[Memory]:
    """Return the memories of the same file, which share its time."""
    return Memory.objects.filter(session=memory.session_id, created_at_ms=memory.created_at_ms)
