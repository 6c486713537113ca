"""The form of a case."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.models import Case
from console import cases
from console.access import CHANGE, next_address, page
from console.forms import CaseForm
from core.errors import InvalidInput, NotFound


@page(CHANGE, "POST", reach="lists")
def save(request: HttpRequest) -> HttpResponseBase:
    """Save note, assignee and state of the case of a subject, which begins with its first note or assignee."""
    form = CaseForm(request.POST, assignees=cases.assignees_for(request))
    if not form.is_valid():
        raise InvalidInput(" ".join(str(error) for errors in form.errors.values() for error in errors))
    values = form.cleaned_data
    subject = {"subject_type": values.pop("subject_type"), "subject_id": values.pop("subject_id")}
    user = cases.user_of(**subject)
    if user is None:
        raise NotFound(_("There is no such page."))
    assignee, is_closed = values["assignee"], values["is_closed"]
    case, _is_new = Case.objects.update_or_create(**subject, defaults={"user": user, **values})
    detail = {"assignee": assignee.get_username() if assignee else "", "is_closed": is_closed}
    record(actor_of(request), "case.save", str(case.pk), user_id=user.user_id, detail=detail)
    messages.success(request, _("Case closed.") if is_closed else _("Case saved. It is among the queues."))
    return redirect(next_address(request, cases.address_of(case)))
