"""Erasing a person: everything the gateway has of them, with a receipt that says what it could not reach.

With the first commit they are gone for everybody: their keys end, and their name is free for somebody new. What a crash
leaves of the rest is finished by the sweeper, or by the same call.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser, RpcToken, UserKey
from core.errors import EngineError, NotFound
from core.times import isoformat
from engines.port import Engine
from engines.registry import get_engine
from operations import compaction, files, row_removal
from operations.commands import Report, Stop, no_report
from operations.models import Job
from store.external import residue
from store.index import keyword
from store.models import Memory, Session
from store.types import Owner

logger = logging.getLogger("memory_gateway.erase")

Receipt = dict[str, Any]
BEGUN = "user.erase_begin"
ERASED = "user.erase"
# No user id that anybody can choose begins so.
_MARK = "!"
_LOGS = "Lines already written to the request log name the user id and paths until the logs are rotated away."
_UPSTREAM = (
    "The memory service behind this gateway has no deletion: it still holds what `upstream` names. No user of this "
    "gateway can reach it any more, whatever their name."
)
_BACKUPS = "Backups and archives made before hold what they held."


@dataclass(frozen=True, slots=True)
class _Begun:
    """An erasure under way. `user` carries the name that they had."""

    user: MemoryUser
    event: AuditEvent

    @property
    def actor(self) -> Actor:
        return Actor(self.event.actor_kind, self.event.actor)


def plan(user_pk: UUID) -> dict[str, int]:
    """How many rows of each table, and files, would go. Errors: `NotFound`."""
    user = MemoryUser.objects.filter(pk=user_pk).first()
    if user is None:
        raise NotFound("There is no such user.")
    return {**row_removal.counts(user), "files": files.count_of(user_pk)}


def erase(
    user_pk: UUID,
    *,
    actor: Actor,
    engine: Engine | None = None,
    however_large: bool = False,
    report: Report = no_report,
    stop: Stop | None = None,
) -> Receipt:
    """Removes everything of a user and returns the receipt. Once begun it can only be finished.

    A SQLite file of more than 512 MiB is rewritten `however_large` alone; the receipt says so. Errors: `NotFound`,
    `EngineUnavailable` (begun or not, the sweeper finishes it), `Stopped`.
    """
    keyword.require_current_version()
    return _carry_out(_begin(user_pk, actor), engine or get_engine(), report, stop, however_large=however_large)


def find(user_id: str) -> UUID:
    """The user of that name; one whose erasure broke off first. Errors: `NotFound`."""
    for event in _events().filter(user_id=user_id):
        # Also a name that is marked: an archive can bring a trail that speaks of anybody.
        if MemoryUser.objects.filter(pk=event.subject_id, user_id__startswith=_MARK).exists():
            return UUID(event.subject_id)
    user = MemoryUser.objects.filter(user_id=user_id).first()
    if user is None:
        raise NotFound("There is no such user.")
    return user.pk


def erased(user_pks: Collection[UUID]) -> set[UUID]:
    """Which of them were users of this gateway and were erased."""
    keys = [str(pk) for pk in user_pks]
    # Events that an archive brought name their user; this one names nobody.
    events = AuditEvent.objects.filter(action=ERASED, user_id="", subject_type="user", subject_id__in=keys)
    return {UUID(key) for key in events.values_list("subject_id", flat=True)}


def unfinished(begun_before: datetime) -> list[UUID]:
    """Users whose erasure was begun before and has not ended."""
    users = MemoryUser.objects.filter(user_id__startswith=_MARK).values_list("pk", flat=True)
    old = set(_events().filter(at__lt=begun_before).values_list("subject_id", flat=True)) if users else set()
    return [pk for pk in users if str(pk) in old]


def finish(user_pk: UUID, *, engine: Engine | None = None) -> Receipt | None:
    """Ends an erasure that broke off; None if somebody else just did."""
    try:
        return erase(user_pk, actor=Actor.system("erase"), engine=engine)
    except NotFound:
        return None


def _begin(user_pk: UUID, actor: Actor) -> _Begun:
    """Takes the keys and the name away, and writes down what there was."""
    with transaction.atomic():
        user = MemoryUser.objects.select_for_update().filter(pk=user_pk).first()
        if user is None:
            raise NotFound("There is no such user.")
        if user.user_id.startswith(_MARK):
            event = _events().filter(subject_id=str(user_pk)).latest("pk")
            user.user_id = event.user_id
            return _Begun(user, event)
        detail = {"removed": row_removal.counts(user), "upstream": _left_upstream(user)}
        name = {"subject_type": "user", "subject_id": str(user_pk), "user_id": user.user_id}
        record(actor, BEGUN, **name, detail=detail)
        _forget_admin_log(user)
        _forget_jobs_of_rows(user)
        UserKey.objects.filter(user=user).delete()
        RpcToken.objects.filter(user=user).delete()
        MemoryUser.objects.filter(pk=user_pk).update(user_id=f"{_MARK}{user_pk.hex}")
        return _Begun(user, _events().filter(subject_id=str(user_pk)).latest("pk"))


def _events() -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(action=BEGUN)


def _left_upstream(user: MemoryUser) -> dict[str, Any] | None:
    """What an upstream was given of the user, under the names that it knows; None if it was never asked."""
    mirrored = Memory.objects.filter(user=user, origin=Memory.Origin.UPSTREAM)
    if not get_engine().is_external and not mirrored.exists():
        return None
    sessions = list(Session.objects.filter(user=user))
    residue.record_user(user.user_id, sessions)
    messages = mirrored.filter(memory_type=Memory.Type.UNPROCESSED_MESSAGE).count()
    return {
        "base_url": settings.MEMORY_GATEWAY_BACKEND_BASE_URL or None,
        "user_id": user.user_id,
        "agents": f"*+{user.pk.hex}",
        "sessions": sorted({session.engine_session_id for session in sessions}),
        "messages": messages,
        "memories": mirrored.count() - messages,
    }


def _carry_out(begun: _Begun, engine: Engine, report: Report, stop: Stop | None, *, however_large: bool) -> Receipt:
    compaction.overwrite_deleted()
    removed = begun.event.detail["removed"]
    total, done = sum(removed.values()), 0

    def between(count: int) -> None:
        nonlocal done
        done += count
        report("Erasing rows", min(done, total), total)
        if stop:
            stop.check()

    between(0)
    _ask_engine(begun.user, engine)
    row_removal.remove_rows(begun.user, between=between)
    count, size = files.remove_all(begun.user)
    _finish(begun)
    late_count, late_size = files.remove_all(begun.user)  # what was being written beside; from now on nothing is
    count, size = count + late_count, size + late_size
    report("Compacting the database", 0, 0)
    residue = compaction.compact(however_large=however_large)
    logger.info("Erased user %s: %d rows, %d files", begun.user.pk, total, count)
    return _receipt(begun, removed, {"count": count, "bytes": size}, residue)


def _ask_engine(user: MemoryUser, engine: Engine) -> None:
    """What the engine refuses for good stands in the receipt; what it cannot do now ends this try."""
    for session in Session.objects.filter(user=user, deleted_at__isnull=True):
        owner = Owner(user.pk, user.user_id, session.app_id, session.project_id)
        try:
            engine.delete(owner, session.session_id)
        except EngineError as error:
            if not error.is_permanent:
                raise


def _finish(begun: _Begun) -> None:
    """What came in meanwhile goes too, then the user and every trace of them beside."""
    user = begun.user
    with transaction.atomic():
        if MemoryUser.objects.select_for_update().filter(pk=user.pk).first() is None:
            return  # another process ended it
        row_removal.remove_rows(user)
        _forget_jobs(user)
        row_removal.remove_user(user, until_event=begun.event.pk)
        _forget_mentions(user)
        detail = {"rows": sum(begun.event.detail["removed"].values())}
        record(begun.actor, ERASED, subject_type="user", subject_id=str(user.pk), detail=detail)


def _forget_admin_log(user: MemoryUser) -> None:
    keys = [*user.keys.values_list("pk", flat=True), *user.rpc_tokens.values_list("pk", flat=True), user.pk]
    LogEntry.objects.filter(Q(object_id__in=[str(key) for key in keys]) | Q(object_repr=user.user_id)).delete()


def _forget_jobs(user: MemoryUser) -> None:
    """Jobs about this user alone, or with their name or text in what was asked for."""
    asked = Job.objects.annotate(asked=Cast("params", TextField()), answered=Cast("result", TextField()))
    mentions = Q()
    for name in (str(user.pk), user.pk.hex, json.dumps(user.user_id)):
        mentions |= Q(asked__contains=name) | Q(answered__contains=name)
    asked.filter(mentions).delete()


def _forget_jobs_of_rows(user: MemoryUser) -> None:
    """Jobs about some memories by their rows, where one is this user's: call before these go."""
    for job in Job.objects.filter(params__target__has_key="rows"):
        if Memory.objects.filter(pk__in=job.params["target"]["rows"], user=user).exists():
            job.delete()


def _forget_mentions(user: MemoryUser) -> None:
    """Events about several users at once name this one no more."""
    names = frozenset({user.user_id, str(user.pk)})
    mentions = Q()
    for name in names:
        mentions |= Q(told__contains=json.dumps(name))
    for event in AuditEvent.objects.annotate(told=Cast("detail", TextField())).filter(mentions).iterator():
        AuditEvent.objects.filter(pk=event.pk).update(detail=_without(event.detail, names))


def _without(detail: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Without the names, what was asked about them, and the words in which somebody said why."""
    kept: dict[str, Any] = {}
    for name, value in detail.items():
        if isinstance(value, list):
            kept[name] = [item for item in value if item not in names]
        elif name != "reason" and not _names(value, names):
            kept[name] = value
    return kept


def _names(value: Any, names: frozenset[str]) -> bool:
    if isinstance(value, dict):
        return any(_names(item, names) for item in value.values())
    return isinstance(value, str) and value in names


def _receipt(begun: _Begun, removed: Mapping[str, int], stored: Mapping[str, int], residue: list[str]) -> Receipt:
    upstream = begun.event.detail["upstream"]
    if upstream:
        residue = [_UPSTREAM, *residue]
    return {
        "receipt_id": str(uuid.uuid4()),
        "user_id": begun.user.user_id,
        "begun_at": isoformat(begun.event.at),
        "erased_at": isoformat(timezone.now()),
        "by": {"kind": begun.event.actor_kind, "name": begun.event.actor},
        "removed": dict(removed),
        "files": dict(stored),
        "upstream": upstream,
        "residue": [*residue, _LOGS, _BACKUPS],
    }
