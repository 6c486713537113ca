"""Erase all data of a user, with a receipt that names the copies outside the gateway's control.

The first transaction revokes the keys, ends the webhooks and releases the user id. If the erasure is then interrupted,
the worker or the same call finishes it.
"""

import json
import logging
import re
import uuid
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from accounts import oauth, services
from accounts.audit import Actor, record, release
from accounts.models import AuditEvent, MemoryUser, RpcToken, UserKey
from accounts.services import find_user
from core.errors import EngineError, NotFound, existing
from core.ids import ERASED_ID, ERASED_PREFIX, user_id_form
from core.messages import Translatable as _
from core.times import isoformat
from engines.registry import attached_remote, get_engine
from operations import erased_jobs, files, receipts, tables
from operations.cleanup import compaction
from operations.commands import Report, no_report
from operations.external import engine_deletion
from remote import deletions, residue
from store.models import IS_PURGED, Session
from store.port import Engine
from store.types import Owner
from webhooks.models import Webhook

logger = logging.getLogger("memory_gateway.erase")

Receipt = dict[str, Any]
BEGUN = "user.erase_begin"
ERASED = "user.erase"
SIGNED = "user.erase_receipt"
_LOGS = _("The request log contains the user id and paths until it is rotated.")
_REMOTE_SECONDS = 20.0
"""The seconds that an erasure waits for the remote; the worker sends the rest."""
_BACKUPS = _("Backups and archives that were made before still contain the user's data.")


def plan(user_pk: UUID) -> dict[str, int]:
    """Return how many rows of each table, and files, would be removed. Raises: `NotFound`."""
    user = existing(MemoryUser.objects.filter(pk=user_pk), _("There is no such user."))
    return {**_counts(user), "files": files.count_of(user_pk)}


def _counts(user: MemoryUser) -> dict[str, int]:
    """Return how many rows of each table would be removed, applications of no other user, and rows of shared jobs."""
    clients = {"oauth_clients": oauth.clients_only_of(user).count()}
    return {**tables.counts(user), **clients, **erased_jobs.counts(user)}


def erase(
    user_pk: UUID,
    *,
    actor: Actor,
    engine: Engine | None = None,
    however_large: bool = False,
    report: Report = no_report,
) -> Receipt:
    """Remove all data of a user and return the receipt. An erasure that has begun cannot be stopped, only finished.

    A SQLite file of more than 512 MiB is rewritten only if `however_large`; the receipt says so. Raises: `NotFound`,
    `EngineUnavailable` (the worker finishes the erasure), `Stopped`.
    """
    user, event = _begin(user_pk, actor)
    compaction.overwrite_deleted()
    removed = event.detail["removed"]
    total, done = sum(removed.values()), 0

    def on_batch(count: int) -> None:
        nonlocal done
        done += count
        report("Erasing rows", min(done, total), total)

    on_batch(sum(removed.get(name, 0) for name in ("oauth_clients", "jobs", "job_rows")))  # removed first
    for session in Session.objects.filter(~IS_PURGED, user=user):
        try:
            owner = Owner(user.pk, user.user_id, session.app_id, session.project_id)
            (engine or get_engine()).delete(owner, session.session_id)
        except EngineError as error:
            if not error.is_permanent:  # a permanent refusal goes into the receipt
                raise
    tables.remove_rows(user, on_batch=on_batch)
    deleted = None
    if deletions.is_enabled() and (remote := attached_remote()):
        engine_deletion.delete_of_user(user.pk, _REMOTE_SECONDS, remote)
        deleted = deletions.counts(user.pk)
    stored = files.remove_all(user)
    _finish(user, event)
    stored += files.remove_all(user)  # files written meanwhile; from now on no writes are accepted
    in_files = compaction.compact(however_large=however_large)
    logger.info("Erased user %s: %d rows, %d files", user.pk, total, len(stored))
    remaining = event.detail["remote"]
    receipt = receipts.signed({
        "receipt_id": str(uuid.uuid4()),
        "user_id": user.user_id,
        "begun_at": isoformat(event.at),
        "erased_at": isoformat(timezone.now()),
        "by": {"kind": event.actor_kind, "name": event.actor},
        "removed": dict(removed),
        "files": {"count": len(stored), "bytes": sum(stored)},
        "remote": remaining and {**remaining, "deletions": deleted},
        "residue": [*(residue.sentences(deleted) if remaining else []), *in_files, _LOGS, _BACKUPS],
    })  # fmt: skip
    actor, trace = Actor(event.actor_kind, event.actor), receipts.trace(receipt)
    record(actor, SIGNED, receipt["receipt_id"], subject_type="receipt", detail=trace)
    return receipt


def find(user_id: str) -> UUID:
    """Return the key of the user with that id, preferably one whose erasure was interrupted. Raises: `NotFound`."""
    marked = MemoryUser.objects.filter(user_id__startswith=ERASED_PREFIX, user_id__regex=ERASED_ID)
    for event in _events().filter(user_id=user_id_form(user_id)):
        # Require a marked user: an imported archive may contain such an event about any user.
        if marked.filter(pk=event.subject_id).exists():
            return UUID(event.subject_id)
    return find_user(user_id).pk


def erased(user_pks: Collection[UUID]) -> set[UUID]:
    """Return which of these users were erased from this gateway."""
    keys = [str(pk) for pk in user_pks]
    # Imported events name a user; the event of an erasure here names none.
    events = AuditEvent.objects.filter(action=ERASED, user_id="", subject_type="user", subject_id__in=keys)
    return {UUID(key) for key in events.values_list("subject_id", flat=True)}


def unfinished(begun_before: datetime) -> list[UUID]:
    """Return users whose erasure began before that time and has not ended."""
    marked = MemoryUser.objects.filter(user_id__startswith=ERASED_PREFIX, user_id__regex=ERASED_ID)
    users = marked.values_list("pk", flat=True)
    old = set(_events().filter(at__lt=begun_before).values_list("subject_id", flat=True)) if users else set()
    return [pk for pk in users if str(pk) in old]


def finish(user_pk: UUID) -> Receipt | None:
    """Finish an interrupted erasure; return None if another process just did."""
    try:
        return erase(user_pk, actor=Actor.system("erase"))
    except NotFound:
        return None


def _begin(user_pk: UUID, actor: Actor) -> tuple[MemoryUser, AuditEvent]:
    """Remove the keys, the webhooks and the user id, or continue an interrupted erasure.

    Return the user with their former id, and the audit event with the counts of their rows.
    """
    with transaction.atomic():
        user = existing(MemoryUser.objects.select_for_update().filter(pk=user_pk), _("There is no such user."))
        if re.match(ERASED_ID, user.user_id):
            event = _events().filter(subject_id=str(user_pk)).latest("pk")
            user.user_id = event.user_id
            return user, event
        detail = {"removed": _counts(user), "remote": residue.of_user(user)}
        deletions.queue_user(user.pk, user.user_id)
        record(actor, BEGUN, str(user_pk), user_id=user.user_id, detail=detail)
        keys = [*user.keys.values_list("pk", flat=True), *user.rpc_tokens.values_list("pk", flat=True), user.pk]
        LogEntry.objects.filter(Q(object_id__in=[str(key) for key in keys]) | Q(object_repr=user.user_id)).delete()
        erased_jobs.remove(user)
        oauth.clients_only_of(user).delete()  # before the keys, with which connections go
        UserKey.objects.filter(user=user).delete()
        RpcToken.objects.filter(user=user).delete()
        Webhook.objects.filter(user=user).delete()
        erased = dict.fromkeys(services.PERSON, "") | {"user_id": f"{ERASED_PREFIX}{user_pk.hex}"}
        MemoryUser.objects.filter(pk=user_pk).update(**erased, expiry_days=None)
        return user, _events().filter(subject_id=str(user_pk)).latest("pk")


def _events() -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(action=BEGUN)


def _finish(user: MemoryUser, event: AuditEvent) -> None:
    """Remove rows written meanwhile and the user; remove their names from jobs and events about several users."""
    with transaction.atomic():
        if MemoryUser.objects.select_for_update().filter(pk=user.pk).first() is None:
            return  # another process has finished it
        tables.remove_rows(user)
        deletions.forget_accepted(timezone.now(), user.pk)
        erased_jobs.remove(user)  # what was started meanwhile
        # What an operator wrote into an event about several users may be about this one.
        with_reason = AuditEvent.objects.filter(subjects__user_id=user.user_id, user_id="", detail__has_key="reason")
        for other in with_reason.filter(pk__lte=event.pk).iterator():
            _redact(other, ())
        tables.remove_user(user, until_event=event.pk)
        for other in _mentioning(AuditEvent.objects.all(), "detail", user).iterator():
            _redact(other, {user.user_id, str(user.pk)})
        actor, detail = Actor(event.actor_kind, event.actor), {"rows": sum(event.detail["removed"].values())}
        record(actor, ERASED, str(user.pk), detail=detail)


def _redact(event: AuditEvent, names: Collection[str]) -> None:
    """Remove names and the reason from an event; its digest no longer covers it."""
    row = AuditEvent.objects.filter(pk=event.pk)
    release(row)
    row.update(detail=_without(event.detail, names), salt="")


def _mentioning(rows: QuerySet[AuditEvent], column: str, user: MemoryUser) -> QuerySet[AuditEvent]:
    """Return the rows whose JSON column contains the user's key or id."""
    mentions = Q()
    for name in (str(user.pk), user.pk.hex, json.dumps(user.user_id)):
        mentions |= Q(text_of_json__contains=name)
    return rows.alias(text_of_json=Cast(column, TextField())).filter(mentions)


def _without(detail: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return an event's detail without the names, without values that contain them, and without the reason."""

    def is_about(value: Any) -> bool:
        if isinstance(value, dict):
            return any(map(is_about, value.values()))
        return isinstance(value, str) and value in names

    return {
        key: [item for item in value if item not in names] if isinstance(value, list) else value
        for key, value in detail.items()
        if isinstance(value, list) or (key != "reason" and not is_about(value))
    }
