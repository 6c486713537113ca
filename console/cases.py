"""Cases: what operators note about the subject of a page, who takes care of it, and whether that is done."""

from typing import Any, Final

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from accounts import tenants
from accounts.models import Case, MemoryUser
from console.access import SUBJECTS

SHOWN: Final = 100
"""The most open cases that the queues list."""
_MAX_ASSIGNEES: Final = 500


def context(request: HttpRequest, subject_type: str, subject_id: object) -> dict[str, Any]:
    """Return what the card of a case shows. Two statements."""
    of_subject = Case.objects.select_related("assignee").filter(subject_type=subject_type, subject_id=str(subject_id))
    row = of_subject.first()
    assignees = list(assignees_for(request))
    if row and row.assignee and row.assignee not in assignees:
        assignees.append(row.assignee)
    return {"case": {"row": row, "type": subject_type, "id": subject_id, "assignees": assignees}}


def assignees_for(request: HttpRequest) -> QuerySet[User]:
    """Return the operators who may get a case: for one who is limited to tenants, those of the same tenants."""
    active = User.objects.filter(is_active=True, is_staff=True)
    limit = tenants.of_request(request)
    if limit is not None:
        active = active.filter(Q(pk=request.user.pk) | Q(tenants__tenant__in=limit)).distinct()
    return active.order_by("username")[:_MAX_ASSIGNEES]


def open_cases() -> QuerySet[Case]:
    """Return the cases that are not closed, without those that the operator may not see."""
    return tenants.reachable(Case.objects.filter(is_closed=False)).select_related("user", "assignee")


def waiting_for(request: HttpRequest) -> int:
    """Return the number of open cases of the operator."""
    with tenants.limited_to(tenants.of_request(request)):
        return open_cases().filter(assignee=request.user.pk).order_by().count()


def address_of(case: Case) -> str:
    name = "searches-one" if case.subject_type == Case.Subject.SEARCH else case.subject_type
    return reverse(f"console:{name}", args=[case.subject_id])


def user_of(subject_type: str, subject_id: str) -> MemoryUser | None:
    """Return the user of a subject that the operator may see, None without such a subject. One statement."""
    model, _name, path = SUBJECTS[subject_type]
    try:
        row: Any = tenants.reachable(model._default_manager.filter(pk=subject_id), path).first()  # noqa: SLF001
    except (ValueError, ValidationError):
        return None
    user: MemoryUser | None = row.user if path and row else row
    return user
