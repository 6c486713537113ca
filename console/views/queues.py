"""The queues: what waits for the judgment of a person, each counted and linked to the list that shows it."""

from datetime import timedelta
from typing import Final, NamedTuple

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from accounts.admin_base import actor_of
from accounts.audit import record
from console import cases
from console.access import VIEW, page, render
from console.queues import MOST, QUEUES

_PERIOD: Final = timedelta(days=7)


class _Waiting(NamedTuple):
    """A queue on the page; `waiting` is None beyond `MOST`."""

    label: Promise
    act: Promise
    url: str
    waiting: int | None


@page(VIEW, reach="lists")
def queues(request: HttpRequest) -> HttpResponseBase:
    listed = list(cases.open_cases()[: cases.SHOWN])
    record(actor_of(request), "queue.list", subject_type="queue", users={one.user.user_id for one in listed})
    since = timezone.now() - _PERIOD
    found = [
        _Waiting(one.label, one.act, one.url(since), count if (count := one.count(since)) <= MOST else None)
        for one in QUEUES
        if request.user.has_perm(one.permission)
    ]
    context = {
        "title": _("Queues"),
        "queues": found,
        "most": MOST,
        "cases": [(one, cases.address_of(one), one.assignee_id == request.user.pk) for one in listed],
    }
    return render(request, "console/queues.html", context)
