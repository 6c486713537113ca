"""Keep deleted what an archive, or the user whom it replaces, has deleted.

Rows of an archive may contradict each other. A decision, session or memory that matches nothing refuses its user,
because it is unknown what it hid. Otherwise a deletion holds: it hides its row, whatever else the archive says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

from django.db.models import Exists, F, Model, OuterRef, Q

from accounts.audit import Actor
from accounts.models import MemoryUser
from core.errors import InvalidInput
from core.ids import parse_session_id
from memories.models import Tombstone
from memories.services import decisions
from operations import ledger
from operations.tables import Row
from remote.engine_ids import unique_session_id
from resources.models import Resource
from resources.services import deletion
from store import states
from store.models import ExternalId, Memory, Session, State

_ACTIVE: Final = Q(undone_at__isnull=True)
_DERIVED: Final = (Memory.Origin.EXTRACTED, Memory.Origin.REMOTE)
_OF_SESSION: Final = (Memory.Type.EPISODE, Memory.Type.UNPROCESSED_MESSAGE)


@dataclass(frozen=True, slots=True)
class Matches:
    """Checks that the rows of one user match each other, as far as deletions depend on it, in the archive's order."""

    _sessions: set[tuple[str, ...]] = field(default_factory=set)

    def check(self, row: Model, data: Row) -> None:
        """Check an unsaved row. Raises: `InvalidInput`."""
        if isinstance(row, Session):
            self._sessions.add((row.app_id, row.project_id, row.session_id))
        elif isinstance(row, Tombstone):
            self._check_tombstone(row, data.get("row"))
        elif isinstance(row, Memory):
            self._check_memory(row, data.get("session"))

    def _check_tombstone(self, row: Tombstone, memory: list[str] | None) -> None:
        if memory is not None and memory[:2] != [row.app_id, row.project_id]:
            raise InvalidInput("row is of another app or project than the tombstone")
        if memory is None and row.memory_id.isspace():
            raise InvalidInput("memory_id is blank: it is unknown what the tombstone deletes")
        is_of_session = row.undone_at is None and row.target == "session"
        if is_of_session and (row.app_id, row.project_id, row.session_id) not in self._sessions:
            raise InvalidInput(
                f"the session {row.session_id!r} that it deletes is not in the archive. If the gateway that wrote the "
                "archive has no such session, export the user again with this version"
            )

    def _check_memory(self, row: Memory, session: list[str] | None) -> None:
        if session is None and not _needs_no_session(row):
            raise InvalidInput("session: a memory of this kind has one")
        if session is not None and session[:2] != [row.app_id, row.project_id]:
            raise InvalidInput("session is of another app or project than the memory")


def _needs_no_session(row: Memory) -> bool:
    """Return True for what a model derives from many sessions, such as a profile, and for what a purge left."""
    is_of_many = row.origin in _DERIVED and row.memory_type not in _OF_SESSION and not row.batch_id
    return is_of_many or row.state == State.PURGED


def sessions_of_tombstones(user: MemoryUser) -> Iterator[Session]:
    """Yield an unsaved session for each tombstone of a session that the gateway does not have.

    An import of an older archive, or of another gateway, leaves such tombstones.
    """
    same = {name: OuterRef(name) for name in ("user_id", "app_id", "project_id", "session_id")}
    found = Tombstone.objects.filter(_ACTIVE, ~Exists(Session.objects.filter(**same)), user=user, memory_id="")
    for one in found.order_by("created_at", "pk"):
        scope = {"app_id": one.app_id, "project_id": one.project_id}
        is_taken = Session.objects.filter(**scope, engine_session_id=one.session_id).exists()
        yield Session(
            user=user,
            **scope,
            session_id=one.session_id,
            engine_session_id=unique_session_id(one.session_id, user.pk) if is_taken else one.session_id,
            kind=parse_session_id(one.session_id).kind,
            created_at=one.created_at,
            state=State.TRASHED,
            state_since=one.created_at,
        )


def hold(user: MemoryUser, reasons: Mapping[ledger.Key, ledger.Reason]) -> None:
    """Hide what has an active tombstone, and what its row says is deleted, with all that follows from it.

    An old archive lacks tombstones of files, and of what follows from a decision: `reasons` are those that it has in
    columns. Call in the transaction that saves the rows.
    """
    _name_their_rows(user)
    for model in (Memory, Session, Resource):  # those whose time contradicts their state
        states.trash_with_time(model.objects.filter(user=user))
    ledger.hold_derived(user)
    ledger.add_reasons(user, reasons)
    ledger.add_missing(user)
    ledger.hold_derived(user)
    ledger.refresh(user)


def _name_their_rows(user: MemoryUser) -> None:
    """Let each tombstone name the memory that it refers to, whatever its ID says."""
    found = Tombstone.objects.filter(user=user, row__isnull=False).exclude(memory_id=F("row__memory_id"))
    for pk, row, memory_id in list(found.values_list("pk", "row", "row__memory_id")):
        named = Tombstone.objects.filter(_ACTIVE, row=row, memory_id=memory_id)
        if not named.exists():
            Tombstone.objects.filter(pk=pk).update(memory_id=memory_id)


@dataclass(frozen=True, slots=True)
class Deletions:
    """The deletions of a replaced user.

    These are active tombstones, the ids of the purged ones among them, the times of files in the trash by resource id,
    the ids of purged files, and the external ids of memories that are not live.
    """

    tombstones: list[Tombstone]
    purged: frozenset[str]
    resources: dict[str, datetime | None]
    purged_resources: frozenset[str]
    external_ids: list[ExternalId]

    @classmethod
    def of(cls, user: MemoryUser) -> Self:
        tombstones = list(Tombstone.objects.filter(_ACTIVE, user=user))
        closed = Session.objects.filter(user=user, state=State.PURGED)
        scopes = set(closed.values_list("app_id", "project_id", "session_id"))
        purged = frozenset(
            one.pk
            for one in tombstones
            if (one.row_id is None if one.memory_id else (one.app_id, one.project_id, one.session_id) in scopes)
        )
        resources = Resource.objects.filter(user=user)
        in_trash = dict(resources.filter(state=State.TRASHED).values_list("pk", "state_since"))
        purged_resources = frozenset(resources.filter(state=State.PURGED).values_list("pk", flat=True))
        same = {name: OuterRef(name) for name in ("user_id", "app_id", "project_id", "memory_id")}
        live = Memory.objects.filter(**same, state=State.LIVE)
        external_ids = list(ExternalId.objects.filter(~Exists(live), user=user))
        return cls(tombstones, purged, in_trash, purged_resources, external_ids)

    def repeat(self, user: MemoryUser, actor: Actor) -> None:
        """Repeat the deletions on imported rows. Call in the transaction that saves them."""
        restored = Resource.objects.filter(user=user, state=State.LIVE, pk__in=self.resources)
        for resource_id in list(restored.values_list("pk", flat=True)):
            deletion.delete_as(user.pk, user.user_id, resource_id, actor=actor, at=self.resources[resource_id])
        brought_back = Resource.objects.filter(user=user, pk__in=self.purged_resources)
        for resource_id in list(brought_back.values_list("pk", flat=True)):
            deletion.purge(resource_id, actor=actor, condition=Q())
        decisions.reinstate(user, self.tombstones)
        for one in self.external_ids:
            one.pk, one.user = None, user
        ExternalId.objects.bulk_create(self.external_ids, ignore_conflicts=True)
