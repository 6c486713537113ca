"""All tables with data of users: how they are exported, imported and erased.

Rows refer to stored files by their keys. Archives of older versions have paths and addresses below `{storage}`.

A test fails if a model with a reference to a user is missing here.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from accounts.audit import release
from accounts.models import (
    AuditEvent,
    AuditSubject,
    Case,
    Controls,
    IdempotencyKey,
    MemoryUser,
    OAuthConnection,
    OAuthToken,
    Pause,
    PortalLink,
    RefusedMessage,
    RpcToken,
    SavedView,
    UserKey,
)
from core.errors import InvalidInput
from core.persistence.file_keys import KEY
from memories.models import LoggedSearch, Override, OverrideRevision, ReturnedMemory, Tombstone
from operations.models import UnmatchedDecision
from profiles.models import ProfileMemory, ProfileRevision
from remote.models import OutboxEntry, Resend
from resources.models import Attachment, RefusedUpload, Resource
from store import writes
from store.models import (
    Attribute,
    Embedding,
    ExternalId,
    FactPage,
    IndexStatistics,
    Memory,
    PendingEmbedding,
    PendingExtraction,
    PendingMedia,
    Session,
    TokenVectors,
    VectorPage,
)
from store.types import Owner
from webhooks.models import Webhook, WebhookDelivery

_ROOT = "{storage}/"
_STORED = re.compile(rf"(?:file://)?/(?:.*/)?(?P<path>{KEY})", re.DOTALL)
UPLOAD = re.compile(rf"(?P<path>{KEY})?")
PACKED = re.compile(rf"(?:(?:file://)?{re.escape(_ROOT)})?(?P<path>{KEY})")
Row = dict[str, Any]
Change = Callable[[str], str]


def unpack(location: str, user_pk: UUID, allowed: re.Pattern[str] | None) -> str:
    """Return the key of a stored file, also from the paths and addresses of older archives; other values unchanged.

    Raises: `InvalidInput` for a path that is not `allowed`, or another user's.
    """
    if allowed and not allowed.fullmatch(location):
        raise InvalidInput(f"references the file {location[:100]!r}, which is not in the archive")
    packed = PACKED.fullmatch(location)
    found = packed or _STORED.fullmatch(location) or UPLOAD.fullmatch(location)
    if found and found["path"] and not found["path"].startswith(f"{user_pk}/"):
        raise InvalidInput(f"references the file {location[:100]!r}, which is not this user's")
    return packed["path"] if packed else location


def change_message(row: Row, change: Change) -> Row:
    """Change the paths of files in an outbox entry."""
    message = row.get("message")
    items = message.get("content") if isinstance(message, dict) else None
    if not isinstance(items, list) or not any(isinstance(item, dict) and item.get("file") for item in items):
        return row
    changed = [
        {**item, "file": change(str(item["file"]))} if isinstance(item, dict) and item.get("file") else item
        for item in items
    ]
    return {**row, "message": {**message, "content": changed}}  # type: ignore[dict-item]


OF_INCOGNITO = Exists(
    Session.objects.filter(
        incognito_until__isnull=False,
        **{name: OuterRef(name) for name in ("user", "app_id", "project_id", "session_id")},
    )
)
"""The condition of rows that name an incognito session."""
_SCOPED_SESSION = ("app_id", "project_id", "session_id")
_SCOPED_MEMORY = ("app_id", "project_id", "memory_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of users' rows.

    `user` looks up the user's key, or the user id if `is_by_name`. `order` is a total order, which an import keeps.
    `key` is the natural key among the user's rows, empty if the primary key is not generated. Fields in `left_out` are
    not exported; those in `cleared_by_purge` may be empty after a purge. An import makes rows storable if
    `is_repaired`; else one row that cannot be stored refuses its user. `change_paths` changes the paths of files in a
    row; `allowed_paths` are those that an archive may contain. Archives have no rows that are `not_archived`.
    """

    name: str
    model: type[Model]
    user: str = "user"
    is_by_name: bool = False
    order: tuple[str, ...] = ("pk",)
    key: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    is_repaired: bool = False
    cleared_by_purge: frozenset[str] = frozenset()
    change_paths: Callable[[Row, Change], Row] = lambda row, _: row
    allowed_paths: re.Pattern[str] | None = None
    select: Callable[[str], Q] | None = None  # the condition for the rows of a user id, instead of `user`
    not_archived: Q | Exists | None = None
    dump: Callable[[Any, Row], Row] = lambda _, row: row  # changes a row for the archive

    def rows(self, user: MemoryUser) -> QuerySet[Any]:
        """Return all rows of a user, sorted."""
        owner = user.user_id if self.is_by_name else user.pk
        condition = self.select(user.user_id) if self.select else Q(**{self.user: owner})
        return QuerySet(self.model).filter(condition).order_by(*self.order)


USER = Table(name="user", model=MemoryUser, user="pk", left_out=frozenset({"next_expiry_at"}))
KEYS = Table(name="keys", model=UserKey, order=("created_at", "pk"))
MEMORIES = Table(
    name="memories",
    model=Memory,
    key=_SCOPED_MEMORY,
    left_out=frozenset({"is_indexed", "token_count"}),
    is_repaired=True,
    cleared_by_purge=frozenset({"text"}),
    not_archived=Q(session__incognito_until__isnull=False),
)
OUTBOX = Table(name="outbox", model=OutboxEntry, is_repaired=True, change_paths=change_message, allowed_paths=PACKED)
RESENDS = Table(name="resends", model=Resend)
SESSIONS = Table(name="sessions", model=Session, key=_SCOPED_SESSION, left_out=frozenset({"retry_at"}))
RESOURCES = Table(
    name="resources",
    model=Resource,
    order=("created_at", "pk"),
    left_out=frozenset({"lease_holder", "leased_until", "first_failed_at", "sealed_ingest_uri"}),
    cleared_by_purge=frozenset({"filename"}),
    change_paths=lambda row, change: {**row, "storage_path": change(row["storage_path"])},
    allowed_paths=UPLOAD,
)
ATTACHMENTS = Table(
    name="attachments",
    model=Attachment,
    change_paths=lambda row, change: {**row, "internal_uri": change(row["internal_uri"])},
    not_archived=OF_INCOGNITO,
)
EXTERNAL_IDS = Table(name="external_ids", model=ExternalId)
CONTROLS: tuple[Table, ...] = (
    Table(name="controls", model=Controls),
    Table(name="pauses", model=Pause, order=("began_at", "source")),
    Table(name="refused_messages", model=RefusedMessage, order=("refused_at", "digest")),
)
"""The controls of a person over remembering. Of two states, an import keeps the stricter one."""
EXPORTED, IMPORTED = "archive.export", "archive.import"


def _trail(user_id: str) -> Q:
    """Return the condition for the trail of a user, without moves by archive: each would change the next archive."""
    return Q(subjects__user_id=user_id) & ~Q(action__in=(EXPORTED, IMPORTED))


def _own_event(event: AuditEvent, row: Row) -> Row:
    """Return an event as this user's alone: the detail of one about several users may name the others."""
    return row if event.user_id else {**row, "detail": {}}


AUDIT = Table(
    name="audit",
    model=AuditEvent,
    user="user_id",
    is_by_name=True,
    left_out=frozenset({"digest", "salt"}),
    select=_trail,
    dump=_own_event,
    is_repaired=True,
)

PORTABLE: tuple[Table, ...] = (
    USER,
    KEYS,
    *CONTROLS,
    SESSIONS,
    MEMORIES,
    EXTERNAL_IDS,
    OUTBOX,
    RESENDS,
    RESOURCES,
    ATTACHMENTS,
    Table(
        name="tombstones",
        model=Tombstone,
        order=("created_at", "pk"),
        not_archived=Q(row__session__incognito_until__isnull=False),
    ),
    Table(
        name="overrides",
        model=Override,
        order=("created_at", "pk"),
        not_archived=Q(row__session__incognito_until__isnull=False),
    ),
    Table(
        name="override_revisions",
        model=OverrideRevision,
        user="override__user",
        order=("override__created_at", "override_id", "number"),
        not_archived=Q(override__row__session__incognito_until__isnull=False),
    ),
    Table(name="profiles", model=ProfileMemory, user="owner", order=("memory_type",), is_repaired=True),
    Table(
        name="profile_revisions",
        model=ProfileRevision,
        user="profile__owner",
        order=("profile__memory_type", "version"),
        is_repaired=True,
    ),
    AUDIT,
)
"""The tables of an archive. A table comes after those that it refers to."""

LOCAL: tuple[Table, ...] = (
    Table(name="index_statistics", model=IndexStatistics),
    Table(name="index_pages", model=FactPage),
    Table(name="attributes", model=Attribute, user="memory__user"),
    Table(name="embeddings", model=Embedding, user="memory__user"),
    Table(name="token_vectors", model=TokenVectors, user="memory__user"),
    Table(name="pending_embeddings", model=PendingEmbedding, user="memory__user"),
    Table(name="vector_pages", model=VectorPage),
    Table(name="pending_extractions", model=PendingExtraction),
    Table(name="pending_media", model=PendingMedia, user="memory__user"),
    Table(name="rpc_tokens", model=RpcToken),
    Table(name="oauth_tokens", model=OAuthToken, user="connection__user"),
    Table(name="oauth_connections", model=OAuthConnection),
    Table(name="portal_links", model=PortalLink),
    Table(name="saved_views", model=SavedView),
    Table(name="cases", model=Case),
    Table(name="idempotency_keys", model=IdempotencyKey),
    Table(name="unmatched_decisions", model=UnmatchedDecision),
    Table(name="refused_uploads", model=RefusedUpload),
    Table(name="returned_memories", model=ReturnedMemory, user="search__user"),
    Table(name="logged_searches", model=LoggedSearch),
    Table(name="webhook_deliveries", model=WebhookDelivery),
    Table(name="webhooks", model=Webhook),
)
"""Tables that are not exported, because they can be rebuilt or hold what only this gateway may use; they are erased."""

ALL: tuple[Table, ...] = PORTABLE + LOCAL

_BATCH_ROWS = 500
# Local tables come last, because the removal of memories writes to them.
_REMOVAL_ORDER = (*(table for table in reversed(PORTABLE) if table not in {AUDIT, USER}), *LOCAL)


def counts(user: MemoryUser) -> dict[str, int]:
    """Return how many rows each table has of the user."""
    return {table.name: table.rows(user).count() for table in ALL}


def remove_rows(user: MemoryUser, *, on_batch: Callable[[int], None] = lambda _: None) -> None:
    """Remove all rows except the user and their audit trail.

    May be interrupted and called again; `on_batch` receives the size of each batch.
    """
    for table in _REMOVAL_ORDER:
        while batch := list(table.rows(user)[:_BATCH_ROWS]):
            if table is MEMORIES:
                _remove_memories(user, batch)
            elif table is SESSIONS:
                _remove_sessions(user, batch)
            else:
                QuerySet(table.model).filter(pk__in=[row.pk for row in batch]).delete()
            on_batch(len(batch))


def remove_user(user: MemoryUser, *, until_event: int | None = None) -> None:
    """Remove the user and their audit trail, up to an event if given. Call after `remove_rows`, in a transaction.

    Events about several users stay, without this one.
    """
    until = {} if until_event is None else {"pk__lte": until_event}
    own = AuditEvent.objects.filter(user_id=user.user_id, **until)
    release(own)
    own.delete()
    shared = AuditEvent.objects.filter(subjects__user_id=user.user_id, **until)
    shared.update(digest="")
    AuditSubject.objects.filter(user_id=user.user_id, event__in=shared).delete()
    MemoryUser.objects.filter(pk=user.pk).delete()


def _remove_sessions(user: MemoryUser, batch: Sequence[Session]) -> None:
    """Remove sessions, with memories that were added after the others were removed."""
    with transaction.atomic():
        locked = list(Session.objects.select_for_update().filter(pk__in=[session.pk for session in batch]))
        _remove_memories(user, list(Memory.objects.filter(session__in=locked)))
        Session.objects.filter(pk__in=[session.pk for session in locked]).delete()


def _remove_memories(user: MemoryUser, batch: Sequence[Memory]) -> None:
    scopes: dict[Owner, list[Memory]] = {}
    for memory in batch:
        owner = Owner(user.pk, user.user_id, memory.app_id, memory.project_id)
        scopes.setdefault(owner, []).append(memory)
    for owner, memories in scopes.items():
        writes.remove(owner, memories)
