"""Fill the ledger from the columns that recorded what is hidden before, of an upgraded database or an old archive.

Each reason becomes the tombstone that it would have today. What hides a memory without a known decision stays: a
deletion that the trash lists, or a tombstone without a cause, which nothing ends.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

_BATCH: Final = 500
_SAME: Final = {name: OuterRef(name) for name in ("user_id", "app_id", "project_id")}
_ACTOR: Final = {"actor_kind": "system", "actor": "upgrade"}
_PURGED: Final = Q(delivery_state="purged")
_LIVE: Final = Q(state="live")
_KINDS: Final = {
    "": "deleted",
    "superseded": "superseded",
    "with_source": "source_deleted",
    "reworded": "source_corrected",
}
"""The kind of tombstone by the former reason."""


class Tables(NamedTuple):
    """The rows of one user, or of all. A migration gives the models of its time."""

    tombstones: QuerySet[Any]
    overrides: QuerySet[Any]
    memories: QuerySet[Any]
    sessions: QuerySet[Any]
    resources: QuerySet[Any]

    def open(self, **target: Any) -> QuerySet[Any]:
        """Return the open tombstones, of the outer row if `target` names it."""
        return self.tombstones.filter(undone_at__isnull=True, **target)


def fill(tables: Tables) -> None:
    """Add the tombstones that are missing. Repeat an interrupted call: it adds none twice."""
    derived = tables.memories.filter(origin="extracted", hidden_at__isnull=False).exclude(_PURGED)
    for batch in _batches(derived):
        _save(tables, _with_deleted_sources(tables, batch))
    for batch in _batches(_hidden_memories(tables).select_related("session")):
        _save(tables, _of_memories(tables, batch))
    own = tables.open(**_SAME, kind="deleted", memory_id="", resource_id="", session_id=OuterRef("session_id"))
    of_resource = tables.resources.filter(~_LIVE, **_SAME, session_id=OuterRef("session_id"))
    hidden = tables.sessions.filter(~Exists(own), ~Exists(of_resource), hidden_at__isnull=False, deleted_at=None)
    for batch in _batches(hidden):
        _save(tables, (_tombstone(tables, one, one.hidden_at, session_id=one.session_id) for one in batch))
    deleted = tables.resources.filter(~_LIVE, ~Exists(tables.open(resource_id=OuterRef("pk"))))
    for batch in _batches(deleted):
        found = ((one, one.state_since or timezone.now()) for one in batch)
        _save(tables, (_tombstone(tables, one, at, resource_id=one.pk) for one, at in found))
    _fill_sessions_of_resources(tables)


def _with_deleted_sources(tables: Tables, memories: list[Any]) -> Iterator[Any]:
    """Yield a tombstone for each open deletion of a source; those that exist are not saved twice."""
    deletions = _by_memory(tables.open(kind="deleted"), memories)
    for one in memories:
        for deletion in _of_sources(one, deletions):
            about = _about(one, "source_deleted", cause=deletion.pk, other_id=deletion.memory_id)
            yield _tombstone(tables, one, one.hidden_at, **about)


def _hidden_memories(tables: Tables) -> QuerySet[Any]:
    """Return hidden memories that lack a tombstone."""
    known = tables.open(**_SAME, memory_id=OuterRef("memory_id"))
    lacks = ~Q(superseded_by="") & ~Q(Exists(known.filter(kind="superseded")))
    for reason, kind in _KINDS.items():
        lacks |= Q(hidden_reason=reason) & ~Q(Exists(known.filter(kind=kind)))
    return tables.memories.filter(lacks, hidden_at__isnull=False).exclude(_PURGED)


def _of_memories(tables: Tables, memories: list[Any]) -> Iterator[Any]:
    """Yield the missing tombstones of hidden memories."""
    found = tables.open(memory_id__in=[one.memory_id for one in memories])
    known = {(*_scope(one), one.memory_id, one.kind) for one in found}
    edits = _by_memory(tables.overrides.filter(undone_at__isnull=True), memories)
    for one in memories:
        kinds = {_KINDS[one.hidden_reason], *(["superseded"] if one.superseded_by else [])}
        for kind in sorted(kinds):
            if (*_scope(one), one.memory_id, kind) in known:
                continue
            about = _about(one, kind)
            if kind == "deleted":
                about["session_id"] = one.session.session_id if one.session else ""
            elif kind == "superseded":
                about["other_id"] = one.superseded_by
            elif kind == "source_corrected":  # the text that it was derived from is unknown
                for edit in _of_sources(one, edits)[:1]:
                    about |= {"cause": edit.pk, "other_id": edit.memory_id}
            yield _tombstone(tables, one, one.hidden_at, **about)


def _by_memory(decisions: QuerySet[Any], memories: list[Any]) -> dict[Any, Any]:
    """Return the decisions about the sources of memories."""
    sources = {name for one in memories for name in one.sources if isinstance(name, str)}
    return {(*_scope(one), one.memory_id): one for one in decisions.filter(memory_id__in=sources)}


def _of_sources(memory: Any, decisions: dict[Any, Any]) -> list[Any]:
    keys = [(*_scope(memory), name) for name in memory.sources if isinstance(name, str)]
    return [decisions[key] for key in keys if key in decisions]


def _about(memory: Any, kind: str, **others: str) -> dict[str, Any]:
    return {"kind": kind, "memory_id": memory.memory_id, "row_id": memory.pk, **others}


def _fill_sessions_of_resources(tables: Tables) -> None:
    """Hide the sessions of deleted resources."""
    session = tables.sessions.filter(**_SAME, session_id=OuterRef("session_id"), deleted_at__isnull=True)
    follower = tables.open(**_SAME, kind="resource_deleted", session_id=OuterRef("session_id"))
    for batch in _batches(tables.resources.filter(~_LIVE, Exists(session), ~Exists(follower))):
        own = {one.resource_id: one for one in tables.open(resource_id__in=[one.pk for one in batch])}
        _save(
            tables,
            (
                _tombstone(
                    tables,
                    one,
                    own[one.pk].created_at,
                    kind="resource_deleted",
                    session_id=one.session_id,
                    cause=own[one.pk].pk,
                )
                for one in batch
            ),
        )


def _scope(row: Any) -> tuple[Any, str, str]:
    return row.user_id, row.app_id, row.project_id


def _tombstone(tables: Tables, row: Any, at: Any, **about: Any) -> Any:
    columns = {name: getattr(row, name) for name in ("user_id", "app_id", "project_id")}
    return tables.tombstones.model(**columns, **_ACTOR, created_at=at, **about)


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Yield the rows in the order of their keys, each once."""
    found = rows.order_by("pk")
    while batch := list(found[:_BATCH]):
        yield batch
        found = rows.filter(pk__gt=batch[-1].pk).order_by("pk")


def _save(tables: Tables, rows: Iterable[Any]) -> None:
    with transaction.atomic(using=tables.tombstones.db):
        tables.tombstones.bulk_create(rows, ignore_conflicts=True)
