"""The page of the log of searches, which agents and applications made."""

from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from console import queries
from console.access import VIEW, page, record_list, render
from console.filters import SearchFilters
from console.forms import unknown_user
from console.keyset import newest_first
from memories.models import LoggedSearch
from store.types import MAX_TOP_K

VIEW_SEARCHES: Final = "memories.view_loggedsearch"


@page(VIEW_SEARCHES)
def searches(request: HttpRequest) -> HttpResponseBase:
    filters = SearchFilters(reverse("console:searches"), request.GET)
    values = filters.cleaned_data
    user_pk = queries.user_pk(values["user"]) if values["user"] else None
    conditions = {
        "user": user_pk,
        "agent_id": values["agent"],
        "interface": values["interface"],
        "at__gte": values["since"],
        "at__lt": values["until"],
    }
    found = LoggedSearch.objects.select_related("user").filter(
        **{name: value for name, value in conditions.items() if value}
    )
    if values["hits"]:
        found = found.filter(hits=0)
    if values["user"] and user_pk is None:
        filters.problems.append(unknown_user(values["user"]))
        found = found.none()
    shown = newest_first(found, filters, time="at")
    record_list(request, "search.list", filters, (one.user.user_id for one in shown.rows))
    # The words of a search tell as much as the memories that it found.
    has_words = request.user.has_perm(VIEW)
    context = {
        "title": _("Search log"),
        "filters": filters,
        **shown._asdict(),
        "rows": [{"search": one, "explain": _lab_url(one) if has_words else ""} for one in shown.rows],
        "has_words": has_words,
        "days": settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS,
        "logs_words": settings.MEMORY_GATEWAY_LOG_QUERIES,
    }
    return render(request, "console/searches.html", context)


def _lab_url(one: LoggedSearch) -> str:
    """Return the address of the same search in the lab; empty if not all of it is known."""
    if one.has_filters or one.query_chars != len(one.query) or one.top_k > MAX_TOP_K:
        return ""
    agent = "agent" if one.interface == LoggedSearch.Interface.REST else "reader"
    values: dict[str, Any] = {
        "q": one.query,
        "user": one.user.user_id,
        "conversation": one.conversation_id,
        agent: one.agent_id,
        "method": one.method,
        "top_k": one.top_k,
        "radius": "" if one.radius is None else one.radius,
        "app": one.app_id,
        "project": one.project_id,
        **dict.fromkeys(one.scopes.split(), "1"),
    }
    return f"{reverse('console:lab')}?{urlencode({name: value for name, value in values.items() if value != ''})}"
