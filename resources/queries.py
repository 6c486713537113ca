"""Read queries of resources. Those that a search waits for are plain SQL."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum

from core import pagination
from core.errors import NotFound, existing
from core.messages import Translatable as _
from core.persistence import files, sql
from resources import storage
from resources.models import UNFINISHED, Resource
from store.models import Memory, Session, State, owned_by, owner_values
from store.types import Owner

READ_IN_PART: Final = Q(reading__is_partial=True)
"""The condition for files whose text is known to have gaps."""

_SAME_SESSION: Final = {name: OuterRef(name) for name in ("user", "app_id", "project_id", "session_id")}
EXPIRES_AT: Final = Subquery(Session.objects.filter(**_SAME_SESSION).values("expires_at")[:1])
"""When the session of a resource expires, which is when the resource does."""

_SEARCHABLE = """
    SELECT session_id AS value FROM resources_resource
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND state = 'live'
        AND (status = 'extracted' OR status = 'failed' AND searchable_at IS NOT NULL)
    ORDER BY created_at, resource_id
"""
_ATTACHMENTS = """
    SELECT session_id, type, name, internal_uri, resource_id FROM resources_attachment
    WHERE user_id = %s AND app_id = %s AND project_id = %s AND session_id IN ({})
    ORDER BY id
"""
_RESOURCE_ID = re.compile(r"r_[0-9a-f]{32}")


class AttachmentRow(NamedTuple):
    """An attachment as a search returns it.

    `type` is the content type ("pdf", "image", …), `name` the file name, `internal_uri` the stored file or source
    address, `resource_id` the resource of the file (None: it came with a message).
    """

    type: str
    name: str
    internal_uri: str
    resource_id: str | None = None


class Usage(NamedTuple):
    """A user's use of the quotas."""

    files: int
    size_bytes: int


class Cursor(NamedTuple):
    """The last entry of a page of a newest-first list."""

    created_at: datetime
    resource_id: str


def searchable_sessions(owner: Owner) -> tuple[str, ...]:
    """Return the sessions of the owner's undeleted resources with memories, oldest first. One statement.

    Those are the extracted ones, and failed ones whose title or description is a memory.
    """
    return sql.column(_SEARCHABLE, owner_values(owner))


def attachments_of(owner: Owner, session_ids: Iterable[str]) -> dict[str, list[AttachmentRow]]:
    """Return the attachments by session; sessions without any are left out. At most one statement."""
    wanted = list(dict.fromkeys(session_ids))
    found: defaultdict[str, list[AttachmentRow]] = defaultdict(list)
    if not wanted:
        return found
    for row in sql.rows(_ATTACHMENTS.format(sql.slots(wanted)), [*owner_values(owner), *wanted]):
        type_, name, location, resource_id = row[1:]
        found[row[0]].append(AttachmentRow(type_, name, files.address_of(location), resource_id))
    return found


def live_resources(user_pk: UUID) -> QuerySet[Resource]:
    """Return a user's undeleted resources in all scopes, newest first, joined with the user, with `expires_at`."""
    found = Resource.objects.filter(user_id=user_pk, state=State.LIVE).select_related("user")
    return found.annotate(expires_at=EXPIRES_AT)


def live_resource(user_pk: UUID, resource_id: str) -> QuerySet[Resource]:
    """Return the user's resource, or none. The database gets no text that is no resource id (with NUL, for example)."""
    return live_resources(user_pk).filter(pk=_checked(resource_id))


def trash_of(user_pk: UUID) -> QuerySet[Resource]:
    """Return a user's resources in the trash, in all scopes, newest first, joined with the user, with `expires_at`."""
    found = Resource.objects.filter(user_id=user_pk, state=State.TRASHED).select_related("user")
    return found.annotate(expires_at=EXPIRES_AT)


def deleted_resource(user_pk: UUID, resource_id: str) -> QuerySet[Resource]:
    """Return the user's resource in the trash, or none."""
    return trash_of(user_pk).filter(pk=_checked(resource_id))


def expires_at_of(resource: Resource) -> datetime | None:
    """Return when a resource of `live_resources` or `trash_of` expires; None: never."""
    found: datetime | None = resource.__dict__["expires_at"]
    return found


def _checked(resource_id: str) -> str:
    return resource_id if _RESOURCE_ID.fullmatch(resource_id) else ""


def sessions_in_trash(owner: Owner, session_ids: Iterable[str]) -> set[str]:
    """Return those of the sessions whose resource is in the trash. One statement."""
    found = Resource.objects.filter(owned_by(owner), session_id__in=list(session_ids), state=State.TRASHED)
    return set(found.values_list("session_id", flat=True))


def page_after(
    resources: QuerySet[Resource], cursor: Cursor | None, limit: int
) -> tuple[list[Resource], Cursor | None]:
    """Return at most `limit` resources after the cursor, and the next page's cursor or None."""
    if cursor is not None:
        older = Q(created_at__lt=cursor.created_at)
        resources = resources.filter(older | Q(created_at=cursor.created_at, resource_id__lt=cursor.resource_id))
    rows = list(resources[: limit + 1])
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], Cursor(rows[limit - 1].created_at, rows[limit - 1].resource_id)


def encode_cursor(cursor: Cursor) -> str:
    return pagination.encode(pagination.microseconds(cursor.created_at), cursor.resource_id)


def decode_cursor(text: str) -> Cursor:
    """Decode a cursor of `encode_cursor`. Raises: `InvalidInput` for anything else."""
    microseconds, resource_id = pagination.decode(text)
    return Cursor(pagination.moment(microseconds), resource_id)


def usage_of(user_pk: UUID) -> Usage:
    """Count a user's files in all scopes, including those in the trash and in messages. One statement."""
    kept = Resource.objects.exclude(state=State.PURGED).filter(user_id=user_pk, origin=Resource.Origin.UPLOAD)
    uploads = kept.aggregate(count=Count("pk"), size=Sum("size_bytes"))
    sizes = storage.message_file_sizes(user_pk)
    return Usage(uploads["count"] + len(sizes), (uploads["size"] or 0) + sum(sizes))


def same_content(owner: Owner, sha256: str, origin: str = Resource.Origin.UPLOAD) -> Resource | None:
    """Return the owner's undeleted resource of this origin with the same bytes."""
    live = Resource.objects.filter(owned_by(owner), origin=origin, sha256=sha256, state=State.LIVE)
    return live.select_related("user").first()


def registered(owner: Owner, source_uri: str, sha256: str) -> Resource | None:
    """Return the owner's undeleted registration of the same content.

    It has the same digest, or it is unfinished and has the same address without a different digest. Callers provide the
    digests; they are not verified.
    """
    live = Resource.objects.filter(owned_by(owner), origin=Resource.Origin.EXTERNAL, state=State.LIVE)
    same = live.filter(sha256=sha256).first() if sha256 else None
    if same is not None:
        return same
    same_address = live.filter(status__in=UNFINISHED, source_uri=source_uri)
    return (same_address.filter(sha256__in=["", sha256]) if sha256 else same_address).first()


def has_memories(owner: Owner, session_id: str) -> bool:
    """Return True if the store holds memories of the session, not counting unprocessed messages."""
    extracted = Memory.objects.filter(owned_by(owner), session__session_id=session_id)
    return extracted.exclude(memory_type=Memory.Type.UNPROCESSED_MESSAGE).exists()


def unfinished(condition: Q) -> QuerySet[Resource]:
    """Return live resources whose ingestion has not succeeded, oldest first."""
    found = Resource.objects.filter(condition, state=State.LIVE, status__in=UNFINISHED)
    return found.order_by("created_at", "resource_id")


def waiting_for_retry(now: datetime) -> QuerySet[Resource]:
    """Return failed resources whose retry is not due yet."""
    return Resource.objects.filter(state=State.LIVE, status=Resource.Status.FAILED, retry_at__gt=now)


def waiting_for_operator() -> QuerySet[Resource]:
    """Return failed resources that are not retried."""
    return Resource.objects.filter(state=State.LIVE, status=Resource.Status.FAILED, retry_at__isnull=True)


def pending_cleanups() -> QuerySet[Resource]:
    """Return purged resources whose file or engine data is still to be removed, the earliest due first."""
    return Resource.objects.filter(state=State.PURGED, retry_at__isnull=False).order_by("retry_at")


def resource_ids_with_files(resource_ids: Sequence[str]) -> set[str]:
    """Return the ids of resources that may still have a folder in the storage."""
    known = Resource.objects.filter(resource_id__in=resource_ids)
    return set(known.exclude(state=State.PURGED, retry_at__isnull=True).values_list("resource_id", flat=True))


@dataclass(frozen=True, slots=True)
class StoredContent:
    """An open file of a resource, with its name, MIME type and digest. The receiver closes the file."""

    file: BinaryIO
    resource_id: str
    filename: str
    mime_type: str
    sha256: str


def content_of(user_pk: UUID, resource_id: str) -> StoredContent:
    """Open a user's upload. Raises: `NotFound`, also for registered external files."""
    resource = existing(live_resource(user_pk, resource_id), _("There is no such resource."))
    if not resource.storage_path:
        raise NotFound(
            _("This file is stored at an external address, and the gateway has no copy. Read it from there.")
        )
    try:
        file = files.stored_files().open_key(resource.file_key)
    except FileNotFoundError:
        raise NotFound(_("The stored file is missing: upload it again.")) from None
    mime_type = resource.mime_type or "application/octet-stream"
    return StoredContent(file, resource.resource_id, resource.filename, mime_type, resource.sha256)
