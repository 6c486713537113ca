"""Audit trail of changes and reads: actor, action, subject and the users concerned, without memory text and keys.

Each event has one narrow row (`AuditSubject`) per user whom it shows or concerns, so that the trail of a user is
complete and one index scan. Repeated reads and repeated failed sign-ins raise the count of one event.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Self

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac

from accounts.models import AuditDigest, AuditEvent, AuditSubject, PortalLink, Principal
from core.ids import MAX_USER_ID_CHARS
from core.logs import redact_text, request_id
from core.persistence import replica
from core.persistence.checked_rows import repair_row

SAME_FOR: Final = timedelta(minutes=10)
"""The time within which equal reads, and equal failed sign-ins, are one event."""
ANONYMOUS_KEPT: Final = timedelta(days=90)
ANONYMOUS_ACTIONS: Final = ("operator.fail_sign_in", "operator.lock_out", "provisioning.refuse")
"""The actions that need no credentials. They are deleted after 90 days."""
ANONYMOUS_EVENTS: Final = 20
"""The most events of each of them within ten minutes, and one more that counts the rest."""
MAX_CLIENT_CHARS: Final = 200
SUBJECTS_ADDED_FOR: Final = timedelta(days=2)
"""The age up to which events of older processes get their users. During a rolling upgrade they write such events."""
_SUBJECTS_AT_ONCE: Final = 5_000
# The kind of an event follows from the verb of its action. Exports are changes: they take data out.
_KINDS: Final = {
    **dict.fromkeys(("choose", "download", "find", "list", "page", "preview", "search", "view"), AuditEvent.Kind.READ),
    **dict.fromkeys(("fail_sign_in", "lock_out", "refuse", "sign_in", "sign_out", "unlock"), AuditEvent.Kind.SIGN_IN),
}


class Source(NamedTuple):
    """The origin of a request: the client's address and `User-Agent`, and what it asks for."""

    address: str = ""
    client: str = ""
    page: str = ""

    @classmethod
    def of(cls, address: str, client: str, page: str = "") -> Self:
        """Return the source with a printable client, cut, without secrets."""
        printable = "".join(char if char.isprintable() else " " for char in client[: 2 * MAX_CLIENT_CHARS])
        return cls(address[:64], redact_text(printable)[:MAX_CLIENT_CHARS], page)


source: ContextVar[Source] = ContextVar("source", default=Source())  # noqa: B039 -- immutable
"""The source of the current request; empty outside requests, in commands and workers."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of an event.

    `kind` is one of `AuditEvent.ActorKind`; `name` is the id of a key or token, an operator's name or a command.
    """

    kind: str
    name: str

    @classmethod
    def key(cls, principal: Principal) -> Self:
        return cls(AuditEvent.ActorKind.KEY, str(principal.key_id))

    @classmethod
    def operator(cls, username: str) -> Self:
        return cls(AuditEvent.ActorKind.OPERATOR, username)

    @classmethod
    def command(cls, name: str) -> Self:
        return cls(AuditEvent.ActorKind.COMMAND, name)

    @classmethod
    def person(cls, link: PortalLink) -> Self:
        """Return the actor who uses the pages of a user, by the link that opened them."""
        return cls(AuditEvent.ActorKind.PERSON, str(link.pk))

    @classmethod
    def provisioning(cls) -> Self:
        """Return the actor that creates users: anyone under `local`, else the bearer of the provisioning token."""
        return cls(AuditEvent.ActorKind.PROVISIONING, "")

    @classmethod
    def system(cls, name: str) -> Self:
        return cls(AuditEvent.ActorKind.SYSTEM, name)


def record(
    actor: Actor,
    action: str,
    subject_id: str = "",
    *,
    subject_type: str = "",
    user_id: str = "",
    users: Iterable[str] = (),
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Record an event in the caller's transaction, so that both are committed or rolled back together.

    An action is named `subject.verb`; `subject_type` is needed only if its subject is of another type. `user_id` is the
    user whose data it concerns: the event belongs to them. `users` are all users whom it shows or concerns, of any
    number. `detail` is small plain JSON. A read that equals one of the last ten minutes raises its count instead: by
    the same actor from the same place, of the same page and of the same users.
    """
    names = sorted({user_id, *users} - {""})
    event = _event(actor, action, subject_id, subject_type, detail)
    if event.kind != AuditEvent.Kind.READ:
        event.user_id = user_id[:MAX_USER_ID_CHARS]
        with replica.primary(), transaction.atomic(savepoint=False):
            _save(event, names)
        return
    event.user_id = names[0][:MAX_USER_ID_CHARS] if len(names) == 1 else ""
    identity = [actor.kind, actor.name, action, subject_id, event.detail, names, source.get()]
    _count(event, names, identity)


def record_counted(actor: Actor, action: str, subject_id: str, *, user_id: str) -> None:
    """Record what callers may repeat without limit: equal ones within ten minutes are one event, wherever from."""
    event = _event(actor, action, subject_id, "", None)
    event.user_id = user_id[:MAX_USER_ID_CHARS]
    _count(event, [user_id], [actor.kind, actor.name, action, subject_id])


def record_opening(
    actor: Actor, action: str, opening: str, users: Collection[str], *, subject_type: str, detail: Mapping[str, Any]
) -> None:
    """Record what a list that is searched while typing shows: one event for each opening, with all its users."""
    event = _event(actor, action, "", subject_type, detail)
    identity = [actor.kind, actor.name, action, opening, event.address, event.client]
    with replica.primary(), transaction.atomic(savepoint=False):
        _lock(_digest(identity))
        if not _raise_count(event, identity):
            _save(event, sorted(users))
            return
        of_opening = AuditEvent.objects.filter(digest=event.digest).latest("pk").pk
        rows = [AuditSubject(event_id=of_opening, user_id=name[:MAX_USER_ID_CHARS]) for name in sorted(users)]
        AuditSubject.objects.bulk_create(rows, ignore_conflicts=True)


def record_anonymous(
    actor: Actor, action: str, subject_id: str, *, subject_type: str, detail: Mapping[str, Any] | None = None
) -> None:
    """Record what needs no credentials, such as a failed sign-in: equal ones within ten minutes are one event.

    Beyond `ANONYMOUS_EVENTS` in that time, all others of the action are one event without subject and source.
    """
    event = _event(actor, action, subject_id, subject_type, detail)
    with replica.primary(), transaction.atomic(savepoint=False):
        _lock(action)
        if _raise_count(event, [action, subject_id, event.detail]):
            return
        recent = AuditEvent.objects.filter(kind=event.kind, action=action, at__gt=timezone.now() - SAME_FOR)
        if recent.count() < ANONYMOUS_EVENTS:
            _save(event, ())
            return
        event.subject_id = event.address = event.client = ""
        event.detail = {"others": True}
        if not _raise_count(event, [action]):
            _save(event, ())


def release(events: QuerySet[AuditEvent]) -> None:
    """Mark the digests of events that are removed or changed by right. Call it first, in the same transaction."""
    AuditDigest.objects.filter(event_id__in=events.order_by().values("pk")).update(is_released=True)


def delete_old(now: datetime) -> int:
    """Delete events that needed no credentials and are older than 90 days; return their number."""
    old = AuditEvent.objects.filter(
        kind=AuditEvent.Kind.SIGN_IN, action__in=ANONYMOUS_ACTIONS, at__lt=now - ANONYMOUS_KEPT
    )
    with transaction.atomic():
        release(old)
        return old.delete()[0]


def add_missing_subjects(now: datetime) -> int:
    """Add the rows of the users of events that processes of an older version wrote; return the number of events.

    They name their users in `user_id` and in the detail, and are found within two days.
    """
    named = ~Q(user_id="") | Q(detail__has_key="users")
    recent = AuditEvent.objects.filter(named, ~Exists(AuditSubject.objects.filter(event=OuterRef("pk"))))
    repaired = 0
    for event in list(recent.filter(at__gt=now - SUBJECTS_ADDED_FOR).order_by("pk")[:_SUBJECTS_AT_ONCE]):
        listed = event.detail.get("users")
        in_detail = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        names = {name[:MAX_USER_ID_CHARS] for name in (event.user_id, *in_detail)} - {""}
        if not names:
            continue
        with transaction.atomic():
            if not AuditEvent.objects.select_for_update().filter(pk=event.pk).exists():
                continue  # its user was erased meanwhile
            rows = [AuditSubject(event_id=event.pk, user_id=name) for name in sorted(names)]
            AuditSubject.objects.bulk_create(rows, batch_size=_SUBJECTS_AT_ONCE, ignore_conflicts=True)
            if in_detail:
                del event.detail["users"]
                event.save(update_fields=["detail"])
        repaired += 1
    return repaired


def _event(
    actor: Actor, action: str, subject_id: str, subject_type: str, detail: Mapping[str, Any] | None
) -> AuditEvent:
    subject, _dot, verb = action.rpartition(".")
    address, client, _page = source.get()
    event = AuditEvent(
        actor_kind=actor.kind,
        actor=actor.name[:150],
        action=action,
        kind=_KINDS.get(verb, AuditEvent.Kind.CHANGE),
        subject_type=subject_type or subject,
        subject_id=subject_id[:256],
        request_id=request_id.get()[:64],
        address=address,
        client=client,
        detail=dict(detail or {}),
    )
    repair_row(event)  # a name or path that cannot be stored must not stop what is recorded
    return event


def _count(event: AuditEvent, names: Collection[str], identity: Any) -> None:
    """Save an event, or raise the count of an equal one. Two or three statements, and a lock on PostgreSQL."""
    with replica.primary(), transaction.atomic(savepoint=False):
        _lock(_digest(identity))
        if not _raise_count(event, identity):
            _save(event, names)


def _raise_count(event: AuditEvent, identity: Any) -> bool:
    """Raise the count of an equal event of the last ten minutes; return False if there is none."""
    now = timezone.now()
    event.digest = _digest(identity)
    same = AuditEvent.objects.filter(digest=event.digest, at__gt=now - SAME_FOR)
    return bool(same.update(count=F("count") + 1, last_at=now))


def _lock(name: str) -> None:
    """Let equal events wait for each other until the transaction ends. SQLite has one writer anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"audit {name}"])


def _save(event: AuditEvent, names: Collection[str]) -> None:
    event.save(force_insert=True)
    rows = [AuditSubject(event_id=event.pk, user_id=name[:MAX_USER_ID_CHARS]) for name in names]
    AuditSubject.objects.bulk_create(rows, batch_size=_SUBJECTS_AT_ONCE)


def _digest(identity: Any) -> str:
    """Return a keyed digest: it covers search words and user ids, which must not be guessed from the table."""
    written = json.dumps(identity, sort_keys=True, default=str)
    return salted_hmac("accounts.audit", written, algorithm="sha256").hexdigest()[:32]
