"""Check that the states of all rows are what their open decisions say, and make them so."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.models import MemoryUser
from core.ids import parse_session_id
from resources.models import Resource
from resources.states import RESOURCES
from store import expiry
from store.ledger import Override, Tombstone
from store.models import IS_PURGED, Memory, Session, State
from store.states import MEMORIES, SESSIONS, Target

_TARGETS: Final[tuple[tuple[Target, type[Any]], ...]] = (
    (MEMORIES, Memory),
    (SESSIONS, Session),
    (RESOURCES, Resource),
)
_BATCH: Final = 500
_SCOPE: Final = ("user_id", "app_id", "project_id")
_SAME: Final = {name: OuterRef(name) for name in _SCOPE}
_ACTOR: Final = {"actor_kind": "system", "actor": "upgrade"}
_Kind = Tombstone.Kind
Key = tuple[str, str, str]
"""App, project and memory id, of one user."""


class Reason(NamedTuple):
    """Why a memory of an old archive is hidden: the kind of its tombstone, and the newer memory if it has one."""

    kind: str
    newer_id: str = ""


def differences(user: MemoryUser | None = None) -> Iterator[str]:
    """Yield what differs from the open decisions of a user, or of all users."""
    for target, model in _TARGETS:
        for part in target.suspects(_rows(model, user)):
            for row, columns in target.wrong(part):
                wrong = {name: getattr(row, name) for name, value in columns.items() if getattr(row, name) != value}
                yield f"{model._meta.verbose_name} {row.pk}: {wrong} instead of {dict(columns)}"  # noqa: SLF001
    ended = Tombstone.ledger.filter(undone_at__isnull=False).values("pk")
    following = _rows(Tombstone, user).exclude(kind=_Kind.DELETED)  # a copy may stay deleted alone
    for one in following.filter(undone_at__isnull=True, cause__in=ended):
        yield f"tombstone {one.pk}: open, but {one.cause} has ended"
    yield from expiry.differences(user)


def repair() -> None:
    """Add a tombstone for each row that only its state hides, then set the states. Nothing hidden is shown."""
    add_missing()
    refresh()


def add_missing(user: MemoryUser | None = None) -> None:
    """Add a tombstone for each row that only its state hides."""
    known = Tombstone.ledger.filter(**_SAME, undone_at__isnull=True)
    of_memory = known.filter(memory_id=OuterRef("memory_id"))
    superseded = Q(kind=_Kind.SUPERSEDED)
    memories = _rows(Memory, user).select_related("session")
    _add(map(_deletion, _without(memories.filter(state=State.TRASHED), of_memory.exclude(superseded))))
    _add(map(_supersession, _without(memories.filter(state=State.SUPERSEDED), of_memory.filter(superseded))))
    resources = _rows(Resource, user).exclude(state=State.LIVE)
    _add(_tombstone(one, resource_id=one.pk) for one in _without(resources, known.filter(resource_id=OuterRef("pk"))))
    owners = resources.order_by().values_list("user", flat=True).distinct()
    _add(chain.from_iterable(map(_of_resources, owners)))
    sessions = _rows(Session, user).filter(state=State.TRASHED)
    of_session = known.filter(memory_id="", resource_id="", session_id=OuterRef("session_id"))
    _add(_tombstone(one, session_id=one.session_id) for one in _without(sessions, of_session))


def refresh(user: MemoryUser | None = None) -> None:
    """Set the states of rows to what the open tombstones say, and when the next of a user's rows expires."""
    for target, model in _TARGETS:
        for part in target.suspects(_rows(model, user)):
            with transaction.atomic():
                target.refresh(part)
    users = MemoryUser.objects.values_list("pk", flat=True) if user is None else [user.pk]
    for user_pk in list(users):
        with transaction.atomic():
            expiry.renew(user_pk)


def add_reasons(user: MemoryUser, reasons: Mapping[Key, Reason]) -> None:
    """Add the tombstones that are missing of memories of an old archive, which had the reasons in columns."""
    found = iter(reasons)
    while keys := list(islice(found, _BATCH)):
        rows = Memory.objects.filter(user=user, memory_id__in=[key[-1] for key in keys]).exclude(IS_PURGED)
        memories = [one for one in rows if (one.app_id, one.project_id, one.memory_id) in reasons]
        opened = Tombstone.ledger.filter(row__in=memories, undone_at__isnull=True)
        known = set(opened.values_list("row", "kind"))
        edits = Override.objects.filter(user=user, undone_at__isnull=True, memory_id__in=_sources(memories))
        by_key = {(*_scope(one), one.memory_id): one for one in edits}
        found_reasons = ((one, reasons[one.app_id, one.project_id, one.memory_id]) for one in memories)
        _add(_of_reason(one, why, by_key) for one, why in found_reasons if (one.pk, why.kind) not in known)


def _of_reason(memory: Memory, reason: Reason, edits: Mapping[Any, Override]) -> Tombstone:
    about = {"kind": reason.kind}
    if reason.kind == _Kind.SUPERSEDED:
        about["other_id"] = reason.newer_id
    if reason.kind == _Kind.SOURCE_CORRECTED:  # the text that it was derived from is unknown
        causes = (edits.get((*_scope(memory), name)) for name in memory.sources)
        if edit := next(filter(None, causes), None):
            about |= {"cause": edit.pk, "other_id": edit.memory_id}
    return _of_memory(memory, **about)


def hold_derived(user: MemoryUser) -> None:
    """Hide what was derived from deleted memories, except what the user restored.

    What a remote derived from messages that were deleted with another of its memories stays.
    """
    opened = Tombstone.objects.filter(user=user, undone_at__isnull=True).exclude(memory_id="")
    deleted = {(*_scope(one), one.memory_id): one for one in opened}
    purged = Memory.objects.filter(IS_PURGED, user=user).values_list(*_SCOPE, "memory_id")
    causes = dict.fromkeys(purged) | deleted
    if not causes:
        return
    restored = Tombstone.objects.filter(user=user, undone_at__isnull=False, row=OuterRef("pk"))
    derived = Memory.objects.filter(~Exists(restored) | ~Q(state=State.LIVE), user=user).exclude(sources=[])
    found = chain.from_iterable(_batches(derived.exclude(IS_PURGED)))
    by_origin = ((one, deleted if one.origin == Memory.Origin.REMOTE else causes) for one in found)
    _add(chain.from_iterable(_of_sources(one, known) for one, known in by_origin))


def _of_sources(memory: Memory, causes: Mapping[Any, Tombstone | None]) -> Iterator[Tombstone]:
    """Yield a tombstone for each source that is deleted, or that was purged without one."""
    for name in memory.sources:
        if (key := (*_scope(memory), name)) in causes:
            cause = causes[key]
            yield _of_memory(memory, kind=_Kind.SOURCE_DELETED, other_id=name, cause=cause.pk if cause else "")


def _deletion(memory: Memory) -> Tombstone:
    return _of_memory(memory, session_id=memory.session.session_id if memory.session else "")


def _supersession(memory: Memory) -> Tombstone:
    return _of_memory(memory, kind=_Kind.SUPERSEDED)


def _of_memory(memory: Memory, **about: Any) -> Tombstone:
    return _tombstone(memory, memory_id=memory.memory_id, row_id=memory.pk, **about)


def _of_resources(user: UUID) -> Iterator[Tombstone]:
    """Yield the tombstones of a user's sessions that deleted resources name, or that are named for them."""
    deletions = Tombstone.ledger.filter(user=user, undone_at__isnull=True).exclude(resource_id="")
    causes: dict[Any, Tombstone] = {one.resource_id: one for one in deletions}
    for resource in Resource.objects.filter(user=user, pk__in=list(causes)):
        causes[*_scope(resource), resource.session_id] = causes[resource.pk]
    for session in Session.objects.filter(user=user).exclude(IS_PURGED).iterator():
        name = parse_session_id(session.session_id)
        cause = causes.get((*_scope(session), session.session_id))
        if cause is None and name.kind == "resource":
            cause = causes.get(name.rest)
        if cause is not None:
            about = {"kind": _Kind.RESOURCE_DELETED, "session_id": session.session_id, "cause": cause.pk}
            yield _tombstone(session, **about, created_at=cause.created_at)


def _without(rows: QuerySet[Any], known: QuerySet[Tombstone]) -> Iterator[Any]:
    """Yield the rows that have none of the tombstones."""
    for batch in _batches(rows.filter(~Exists(known))):
        yield from batch


def _sources(memories: Iterable[Memory]) -> set[str]:
    return {name for one in memories for name in one.sources if isinstance(name, str)}


def _scope(row: Any) -> tuple[Any, str, str]:
    return row.user_id, row.app_id, row.project_id


def _tombstone(row: Any, **about: Any) -> Tombstone:
    columns = {name: getattr(row, name) for name in _SCOPE}
    return Tombstone(**columns, **_ACTOR, **{"created_at": row.state_since or timezone.now()} | about)


def _add(tombstones: Iterable[Tombstone]) -> None:
    found = iter(tombstones)
    while batch := list(islice(found, _BATCH)):
        Tombstone.ledger.bulk_create(batch, ignore_conflicts=True)


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Yield the rows in the order of their keys, each once."""
    found = rows.order_by("pk")
    while batch := list(found[:_BATCH]):
        yield batch
        found = rows.filter(pk__gt=batch[-1].pk).order_by("pk")


def _rows(model: type[Any], user: MemoryUser | None) -> QuerySet[Any]:
    return QuerySet(model).filter(Q() if user is None else Q(user=user))
