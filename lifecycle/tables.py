"""Every table that holds something of a person, and what becomes of it when the person moves or is erased.

A test compares this list with the models: a new one that leads to a user and stands nowhere here fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, QuerySet

from accounts.models import AuditEvent, MemoryUser, RpcToken, UserKey
from engine.extraction_models import OwedExtraction
from engine.index_models import Embedding, FactPage, OwedEmbedding, VectorPage
from engine.models import IndexStatistics, Memory, Session
from lifecycle import places
from lifecycle.models import UnmatchedDecision
from memories.models import Override, OverrideRevision, Tombstone
from profiles.models import ProfileMemory, ProfileRevision
from resources.models import Attachment, Resource

_SCOPED_SESSION = ("app_id", "project_id", "session_id")
_SCOPED_MEMORY = ("app_id", "project_id", "memory_id")
Row = dict[str, Any]


def _same(row: Row) -> Row:
    return row


def _none(_row: Row) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of people's rows.

    `user` is the look-up that leads to the user's key, or to the user id where `is_by_name`. `order` is a total order
    that an import keeps. `key` names a row of the user where the primary key is this database's own. Fields in
    `left_out` belong to this gateway alone; those in `emptied` lose their words by a purge. `pack` and `unpack` change
    what names a place on this machine; `places` are those in a row of an archive.
    """

    name: str
    model: type[Model]
    user: str = "user"
    is_by_name: bool = False
    order: tuple[str, ...] = ("pk",)
    key: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()
    pack: Callable[[Row], Row] = _same
    unpack: Callable[[Row], Row] = _same
    places: Callable[[Row], Iterable[str]] = _none

    def rows(self, user: MemoryUser) -> QuerySet[Any]:
        """All rows of a user, in their order."""
        owner = user.user_id if self.is_by_name else user.pk
        return QuerySet(self.model).filter(**{self.user: owner}).order_by(*self.order)


USER = Table(name="user", model=MemoryUser, user="pk")
KEYS = Table(name="keys", model=UserKey, order=("created_at", "pk"))
MEMORIES = Table(
    name="memories",
    model=Memory,
    key=_SCOPED_MEMORY,
    left_out=frozenset({"is_indexed", "token_count"}),
    emptied=frozenset({"text"}),
    pack=places.pack_message,
    unpack=places.unpack_message,
    places=places.of_message,
)
SESSIONS = Table(name="sessions", model=Session, key=_SCOPED_SESSION, left_out=frozenset({"retry_at"}))
RESOURCES = Table(
    name="resources",
    model=Resource,
    order=("created_at", "pk"),
    left_out=frozenset({"lease_holder", "leased_until", "first_failed_at"}),
    emptied=frozenset({"filename"}),
    places=places.of_upload,
)
ATTACHMENTS = Table(
    name="attachments",
    model=Attachment,
    pack=places.pack_uri,
    unpack=places.unpack_uri,
    places=places.of_attachment,
)
AUDIT = Table(name="audit", model=AuditEvent, user="user_id", is_by_name=True)

PORTABLE: tuple[Table, ...] = (
    USER,
    KEYS,
    SESSIONS,
    MEMORIES,
    RESOURCES,
    ATTACHMENTS,
    Table(name="tombstones", model=Tombstone, order=("created_at", "pk")),
    Table(name="overrides", model=Override, order=("created_at", "pk")),
    Table(
        name="override_revisions",
        model=OverrideRevision,
        user="override__user",
        order=("override__created_at", "override_id", "number"),
    ),
    Table(name="profiles", model=ProfileMemory, user="owner", order=("memory_type",)),
    Table(
        name="profile_revisions",
        model=ProfileRevision,
        user="profile__owner",
        order=("profile__memory_type", "version"),
    ),
    AUDIT,
)
"""What an archive holds: what is referred to stands before what refers to it."""

LOCAL: tuple[Table, ...] = (
    Table(name="index_statistics", model=IndexStatistics),
    Table(name="index_pages", model=FactPage),
    Table(name="embeddings", model=Embedding, user="memory__user"),
    Table(name="owed_embeddings", model=OwedEmbedding, user="memory__user"),
    Table(name="vector_pages", model=VectorPage),
    Table(name="owed_extractions", model=OwedExtraction),
    Table(name="rpc_tokens", model=RpcToken),
    Table(name="unmatched_decisions", model=UnmatchedDecision),
)
"""What is made anew where the rows go, or is worth nothing elsewhere: erased with its user, in no archive."""

ELSEWHERE: dict[str, str] = {
    "accounts.SignInThrottle": "addresses, and digests of operators' names",
    "engine.EmbeddingSpace": "one row for each model",
    "engine.HourCount": "counts that the database's own triggers take away with the rows",
    "engine.IndexVersion": "one row for all",
    "engine.LeftUpstream": "digests of names, so that nobody comes to what an upstream holds of erased people",
    "engine.SessionCount": "as HourCount",
    "lifecycle.Job": "names users in its parameters: `lifecycle.erase` looks for them",
    "lifecycle.JobStep": "goes with its job",
    "lifecycle.Lease": "processes",
    "resources.StorageIdentity": "one row for all",
}
"""Our other tables, and why nothing of a person is left there."""

ALL: tuple[Table, ...] = PORTABLE + LOCAL
