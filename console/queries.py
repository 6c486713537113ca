"""What the panel's pages read besides the services: look-ups for addresses, and what stands around memories.

Each is one statement, whatever the number of rows that it is asked about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple
from uuid import UUID

from django.db.models import Count, Q

from accounts.models import MemoryUser
from core.ids import parse_session_id
from memories.models import Override
from operations.models import Job
from resources.models import Resource
from store.models import Memory, Session, owned_by
from store.table import stored, visible
from store.types import Owner, StoredMemory


class SourceFile(NamedTuple):
    """The file that a memory was read from."""

    resource_id: str
    filename: str


def user_pk(user_id: str) -> UUID | None:
    return MemoryUser.objects.filter(user_id=user_id).values_list("pk", flat=True).first()


def user_named(words: str) -> tuple[UUID, str] | None:
    """The key and the id of the user of that id, or of that key."""
    named = Q(user_id=words)
    if (pk := _uuid(words)) is not None:
        named |= Q(pk=pk)
    return MemoryUser.objects.filter(named).values_list("pk", "user_id").first()


def is_session(session_id: str) -> bool:
    """Whether anybody has a session of that id."""
    return Session.objects.filter(session_id=session_id, deleted_at__isnull=True).exists()


def is_resource(resource_id: str) -> bool:
    return Resource.objects.filter(pk=resource_id).exists()


def job_pk(words: str) -> UUID | None:
    """The job of that id."""
    pk = _uuid(words)
    return pk if pk is not None and Job.objects.filter(pk=pk).exists() else None


def _uuid(words: str) -> UUID | None:
    try:
        return UUID(words)
    except ValueError:
        return None


def row_of(memory_id: str) -> int | None:
    """The newest memory of that id."""
    return visible(Memory.objects.filter(memory_id=memory_id)).order_by("-pk").values_list("pk", flat=True).first()


def edited(rows: Collection[int]) -> set[int]:
    """Which memories carry a correction."""
    return set(Override.objects.filter(row__in=rows, undone_at__isnull=True).values_list("row_id", flat=True))


def originals(override_ids: Iterable[str]) -> dict[str, str]:
    """What engines said before corrections, by the id of the correction."""
    return dict(Override.objects.filter(pk__in=list(override_ids)).values_list("override_id", "original_text"))


def source_files(memories: Iterable[StoredMemory]) -> dict[str, SourceFile]:
    """The files that memories were read from, by session id."""
    named = {memory.session_id: parse_session_id(memory.session_id or "") for memory in memories}
    ids = {name.rest: session_id for session_id, name in named.items() if name.kind == "resource" and session_id}
    found = Resource.objects.filter(pk__in=ids).values_list("resource_id", "filename") if ids else ()
    return {ids[resource_id]: SourceFile(resource_id, filename) for resource_id, filename in found}


def owners(user_pks: Sequence[UUID], app_id: str, project_id: str) -> list[Owner]:
    """The scopes in which those users have sessions, in the order of the users."""
    scope = {name: value for name, value in (("app_id", app_id), ("project_id", project_id)) if value}
    found = (
        Session.objects.filter(user__in=user_pks, deleted_at__isnull=True, **scope)
        .order_by("user_id", "app_id", "project_id")
        .values_list("user_id", "user__user_id", "app_id", "project_id")
        .distinct()
    )
    order = {pk: place for place, pk in enumerate(user_pks)}
    return sorted((Owner(*row) for row in found), key=lambda owner: order[owner.user_pk])


def stored_of(hits: Iterable[tuple[Owner, str]]) -> dict[tuple[Owner, str], StoredMemory]:
    """The rows of memories by owner and memory id. Asked owner by owner, each of which the index answers."""
    wanted: defaultdict[Owner, list[str]] = defaultdict(list)
    for owner, memory_id in hits:
        wanted[owner].append(memory_id)
    if not wanted:
        return {}
    of_owners = (owned_by(owner) & Q(memory_id__in=ids) for owner, ids in wanted.items())
    rows = [stored(row) for row in visible(Memory.objects.filter(reduce(or_, of_owners)))]
    return {(row.owner, row.memory_id): row for row in rows}


def around(memory: StoredMemory) -> list[StoredMemory]:
    """What stands right before and after a memory in its session, and the memory itself, in order."""
    if memory.session_id is None:
        return []
    near = Q(seq__range=(memory.seq - 1, memory.seq + 1))
    if memory.chunk_index is not None:
        near &= Q(chunk_index__range=(memory.chunk_index - 1, memory.chunk_index + 1))
    rows = Memory.objects.filter(
        owned_by(memory.owner), near, session__session_id=memory.session_id, hidden_at__isnull=True
    )
    found = visible(rows).order_by("seq", "chunk_index", "pk")[:7]
    return [stored(row) for row in found]


def failures_waiting() -> int:
    """Resources that failed and are not tried again by themselves: somebody has to look."""
    failed = Resource.objects.filter(status=Resource.Status.FAILED, retry_at__isnull=True, deleted_at__isnull=True)
    return failed.count()


def resource_states(user: UUID | None, app_id: str, project_id: str) -> dict[str, int]:
    """How many live resources are in which state."""
    given = {"user_id": user, "app_id": app_id or None, "project_id": project_id or None}
    live = Resource.objects.filter(
        deleted_at__isnull=True, **{name: value for name, value in given.items() if value is not None}
    )
    return dict(live.order_by().values_list("status").annotate(number=Count("pk")))
