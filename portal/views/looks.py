"""The trail of a person: who read, exported or changed what is stored of them, and when."""

from typing import Final

from django.db.models import Count, Max, Q
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import AuditEvent
from console import queries
from memories.models import LoggedSearch
from portal.access import Visit, page, render
from portal.views.memories import row_in

ROWS: Final = 50
AGENTS: Final = 20
_LOOKS: Final = Q(kind=AuditEvent.Kind.READ) | Q(
    action__in=(
        "archive.export",
        "archive.download",
        "memory.export",
        "user.export",
        "controls.pause",
        "controls.resume",
        "portal_link.create",
        "portal_link.open",
        "key.reveal",
    )
)


@page()
def looks(request: Visit) -> HttpResponseBase:
    """List the events that show the person, newest first: looks of others, or all events."""
    user, is_all = request.link.user, request.GET.get("all") == "1"
    events = queries.trail_of(user.user_id)
    if not is_all:
        events = events.filter(_LOOKS)
    if before := row_in(request.GET.get("before", "")):
        events = events.filter(pk__lt=before)
    found = list(events.order_by("-pk")[: ROWS + 1])
    shown = found[:ROWS]
    queries.name_actors(shown)
    more = {"all": "1"} if is_all else {}
    here = reverse("portal:looks")
    searches = LoggedSearch.objects.filter(user=user).order_by().values("interface", "agent_id")
    context = {
        "title": _("Who looked"),
        "events": shown,
        "is_all": is_all,
        "tabs": [(here, _("Looks"), not is_all), (f"{here}?all=1", _("All events"), is_all)],
        "following": reverse("portal:looks", query={**more, "before": shown[-1].pk}) if len(found) > ROWS else "",
        "searches": list(searches.annotate(number=Count("pk"), last=Max("at")).order_by("-last")[:AGENTS]),
        "interfaces": dict(LoggedSearch.Interface.choices),
    }
    return render(request, "looks.html", context)
