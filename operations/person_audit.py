"""The audit trail of a user as the user reads it: own keys by id, operators by role and number."""

from typing import Any, Final

from django.contrib.auth.models import User

from accounts.models import AuditEvent, AuditSubject
from core.times import isoformat

_OPERATOR: Final = AuditEvent.ActorKind.OPERATOR
_KEY: Final = AuditEvent.ActorKind.KEY


def events(user_id: str, *, after: int | None, limit: int) -> tuple[list[dict[str, Any]], int | None]:
    """Return events about a user, newest first, and the position of the next page. Three statements."""
    subjects = AuditSubject.objects.filter(user_id=user_id)
    if after is not None:
        subjects = subjects.filter(event_id__lt=after)
    keys = list(subjects.order_by("-event_id").values_list("event_id", flat=True)[: limit + 1])
    found = list(AuditEvent.objects.filter(pk__in=keys[:limit]).order_by("-pk"))
    names = {event.actor for event in found if event.actor_kind == _OPERATOR}
    operators = {one.username: one for one in User.objects.filter(username__in=names).prefetch_related("groups")}
    following = keys[limit - 1] if len(keys) > limit else None
    return [_event(event, user_id, operators.get(event.actor)) for event in found], following


def _event(event: AuditEvent, user_id: str, operator: User | None) -> dict[str, Any]:
    """Return an event without what concerns others: its subject and detail only if it is about this user alone."""
    is_own, is_by_key = event.user_id == user_id, event.actor_kind == _KEY
    by: dict[str, Any] = {"kind": event.actor_kind, "key_id": event.actor if is_by_key and is_own else None}
    return {
        "event_id": event.pk,
        "at": isoformat(event.at),
        "action": event.action,
        "kind": event.kind,
        "by": by | _operator(operator),
        "subject_type": event.subject_type,
        "subject_id": event.subject_id if is_own and event.subject_id else None,
        "count": event.count,
        "last_at": event.last_at and isoformat(event.last_at),
        "address": event.address if is_by_key and is_own else None,
        "detail": event.detail if is_own and event.actor_kind != _OPERATOR else {},
    }


def _operator(operator: User | None) -> dict[str, Any]:
    if operator is None:
        return {"role": None, "number": None, "name": None}
    roles = sorted(group.name for group in operator.groups.all())
    role = roles[0] if roles else "Administrator" if operator.is_superuser else None
    return {"role": role, "number": operator.pk, "name": operator.get_full_name() or None}
