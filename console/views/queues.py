"""The queues: what waits for the judgment of a person, each counted and linked to the list that shows it."""

from datetime import timedelta
from typing import Any, Final, NamedTuple

from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from console import queries
from console.access import VIEW, page, render
from console.views.logged_search import VIEW_SEARCHES
from console.views.resources import VIEW_FILES
from console.views.webhooks import VIEW_WEBHOOKS, failing
from memories.models import LoggedSearch
from resources.models import RefusedUpload, Resource
from resources.queries import READ_IN_PART
from store import browse
from store.browse import Selection
from store.models import State

MOST: Final = 1_000
"""The number up to which a queue is counted."""
_PERIOD: Final = timedelta(days=7)


class Queue(NamedTuple):
    """A queue: what it holds, what a person can do there, its list, and how many wait; None beyond `MOST`."""

    label: Promise
    act: Promise
    url: str
    waiting: int | None


@page(VIEW, reach="lists")
def queues(request: HttpRequest) -> HttpResponseBase:
    record(actor_of(request), "queue.list", subject_type="queue")
    since = timezone.now() - _PERIOD
    day = f"{timezone.localtime(since):%Y-%m-%d}"
    listed = reverse("console:memories")
    found = [
        Queue(
            gettext_lazy("Possible instructions"),
            gettext_lazy("Read who wrote them, and move to the trash what tries to steer agents."),
            f"{listed}?tab=all&mark=instruction",
            _bounded(browse.count(Selection(mark="instruction"), at_most=MOST + 1)),
        ),
        Queue(
            gettext_lazy("Superseded memories"),
            gettext_lazy("A newer memory took their place. If both are true, restore the older one."),
            f"{listed}?tab=all&mark=superseded",
            _bounded(browse.count(Selection(mark="superseded"), at_most=MOST + 1)),
        ),
        Queue(
            gettext_lazy("Memories that expire within 7 days"),
            gettext_lazy("Give those that stay true a later time."),
            f"{listed}?tab=all&mark=expiring",
            _bounded(browse.count(Selection(mark="expiring"), at_most=MOST + 1)),
        ),
    ]
    if request.user.has_perm(VIEW_FILES):
        live = tenants.reachable(Resource.objects.filter(state=State.LIVE))
        found += [
            Queue(
                gettext_lazy("Failed files"),
                gettext_lazy("Retry them, or upload another file."),
                reverse("console:resources", query={"state": "failed"}),
                _counted(queries.waiting()),
            ),
            Queue(
                gettext_lazy("Files read in part"),
                gettext_lazy("Compare the reading with the file."),
                reverse("console:resources", query={"reading": "part"}),
                _counted(live.filter(READ_IN_PART)),
            ),
            Queue(
                gettext_lazy("Uploads refused in the last 7 days"),
                gettext_lazy("Tell their users what is accepted, or change the limits."),
                reverse("console:resource-refused", query={"from": day}),
                _counted(tenants.reachable(RefusedUpload.objects.filter(at__gte=since))),
            ),
        ]
    if request.user.has_perm(VIEW_WEBHOOKS):
        found.append(
            Queue(
                gettext_lazy("Webhooks with failed deliveries"),
                gettext_lazy("Repair the address and send them again."),
                reverse("console:webhooks", query={"state": "failed"}),
                _counted(failing()),
            )
        )
    if request.user.has_perm(VIEW_SEARCHES):
        found.append(
            Queue(
                gettext_lazy("Searches without results in the last 7 days"),
                gettext_lazy("Add what is missing, or make questions of them."),
                reverse("console:searches", query={"hits": "none", "from": day}),
                _counted(tenants.reachable(LoggedSearch.objects.filter(at__gte=since, hits=0))),
            )
        )
    return render(request, "console/queues.html", {"title": _("Queues"), "queues": found, "most": MOST})


def _counted(rows: QuerySet[Any]) -> int | None:
    return _bounded(rows.order_by()[: MOST + 1].count())


def _bounded(count: int) -> int | None:
    return count if count <= MOST else None
