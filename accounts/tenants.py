"""The tenants to which an operator is limited: the one place that decides whose data the panel shows.

A page of such an operator runs in `limited_to`, and queries of the panel start from `reachable` or from a
`store.browse.Selection`, which takes the tenants from here. Without a limit, as in requests of users and in workers,
nothing is left out.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest

from accounts.audit import Actor, record
from accounts.models import AuditEvent, AuditSubject, MemoryUser, OperatorTenant

Tenants = tuple[str, ...] | None
_Row = TypeVar("_Row", bound=Model)
_current: Final[ContextVar[Tenants]] = ContextVar("tenants", default=None)


def current() -> Tenants:
    """Return the tenants to which this request is limited, None for no limit."""
    return _current.get()


@contextmanager
def limited_to(tenants: Tenants) -> Iterator[None]:
    token = _current.set(tenants)
    try:
        yield
    finally:
        _current.reset(token)


def tenants_of(operator: User | AnonymousUser) -> Tenants:
    """Return the tenants of an operator, None for superusers and for those without a limit. One statement."""
    if operator.pk is None or operator.is_superuser:
        return None
    names = OperatorTenant.objects.filter(operator=operator.pk).order_by("tenant").values_list("tenant", flat=True)
    return tuple(names) or None


def of_request(request: HttpRequest) -> Tenants:
    """Return the tenants of the operator of a request. One statement for a request."""
    if not hasattr(request, "tenants"):
        request.tenants = tenants_of(request.user)  # type: ignore[attr-defined]
    found: Tenants = request.tenants  # type: ignore[attr-defined]
    return found


def is_unlimited(request: HttpRequest) -> bool:
    return of_request(request) is None


def reachable(rows: QuerySet[_Row], path: str = "user") -> QuerySet[_Row]:
    """Return the rows of users whom the operator may see. `path` leads to the user, empty for rows of users."""
    tenants = current()
    if tenants is None:
        return rows
    condition: dict[str, Any] = {f"{path}__tenant__in" if path else "tenant__in": tenants}
    return rows.filter(**condition)


def subjects_of_events() -> QuerySet[AuditSubject]:
    """Return the users of events, without those whom the operator may not see."""
    rows = AuditSubject.objects.all()
    return rows if current() is None else rows.filter(user_id__in=_user_ids())


def reachable_events(events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
    """Return the events that show or concern a user whom the operator may see."""
    if current() is None:
        return events
    return events.filter(Exists(subjects_of_events().filter(event=OuterRef("pk"))))


def without_others(events: QuerySet[AuditEvent]) -> QuerySet[AuditEvent]:
    """Return the events without those that also concern users whom the operator may not see."""
    return events if current() is None else events.exclude(Exists(_others().filter(event=OuterRef("pk"))))


def hide_others(events: Collection[AuditEvent]) -> None:
    """Blank subject and detail of events that also concern users whom the operator may not see. One statement."""
    if current() is None or not events:
        return
    shared = set(_others().filter(event__in=events).values_list("event", flat=True))
    for event in events:
        if event.pk in shared:
            event.user_id, event.subject_id, event.detail = "", "", {}


def _user_ids() -> QuerySet[MemoryUser, str]:
    return reachable(MemoryUser.objects.all(), "").values_list("user_id", flat=True)


def _others() -> QuerySet[AuditSubject]:
    return AuditSubject.objects.exclude(user_id__in=_user_ids())


def limit(operator: User, tenants: Iterable[str], *, actor: Actor) -> None:
    """Limit an operator to tenants; without any, end the limit."""
    wanted = sorted(set(tenants))
    with transaction.atomic():
        known = OperatorTenant.objects.filter(operator=operator)
        before = list(known.order_by("tenant").values_list("tenant", flat=True))
        if wanted == before:
            return
        known.delete()
        OperatorTenant.objects.bulk_create(OperatorTenant(operator=operator, tenant=name) for name in wanted)
        detail = {"before": before, "after": wanted}
        record(actor, "operator.limit", operator.get_username(), detail=detail)
