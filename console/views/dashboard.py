"""The dashboard: numbers of memories by time, category, user and agent, state of the gateway, and first steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin_base import actor_of
from accounts.models import MemoryUser
from accounts.tenants import is_unlimited
from console import charts, queries
from console.access import VIEW, address_of_gateway, page, record_list, render
from console.filters import ALL_TAB, OTHER_LABEL, RANGES, TAB_LABELS, DashboardFilters
from console.views.connect import commands_of
from console.views.logged_search import VIEW_SEARCHES
from console.views.resources import VIEW_FILES
from console.views.system import engine_state
from console.views.users import ADD_USERS
from core.errors import Conflict
from core.times import to_ms
from memories.services import search_log
from operations import demo
from resources.models import Resource
from store import browse, categories
from store.browse import Count, Dashboard, Selection
from store.models import State
from store.port import MODEL_ENDPOINTS

DEMO_USER: Final = "demo"
DEMO_WAIT_SECONDS: Final = 5.0
_HEALTH_SECONDS = 0.5
_TITLES = {
    "user": gettext_lazy("User memories"),
    "self": gettext_lazy("Self-improving memories"),
    "full": gettext_lazy("Full context"),
}
_UNITS = {
    "hour": gettext_lazy("Memories per hour"),
    "day": gettext_lazy("Memories per day"),
    "month": gettext_lazy("Memories per month"),
}
_SEARCH_UNITS = {
    "hour": gettext_lazy("Searches per hour"),
    "day": gettext_lazy("Searches per day"),
    "month": gettext_lazy("Searches per month"),
}
_UPLOAD_PERIOD = timedelta(hours=24)
_MAX_UPLOADS = 5000
_BANDS = (
    ("low", gettext_lazy("Low (under 0.34)")),
    ("mid", gettext_lazy("Medium (0.34–0.67)")),
    ("high", gettext_lazy("High (0.67 and above)")),
)
Link = Callable[..., str]


@page(VIEW, reach="lists")
def dashboard(request: HttpRequest) -> HttpResponseBase:
    if not is_unlimited(request):
        return redirect("console:memories")  # the figures are those of all tenants
    filters = DashboardFilters(reverse("console:dashboard"), request.GET)
    now = timezone.now()
    user_id = filters.data["user"]
    user_pk = queries.user_pk(user_id)
    conflicts = filters.conflicts(now, user_pk)
    context: dict[str, Any] = {"title": _("Dashboard"), "filters": filters, **_health(filters, user_pk)}
    if conflicts:
        filters.problems += conflicts
    else:
        numbers = _numbers(filters, now, user_pk)
        is_for_all = not filters.parameters().keys() - {"range", "from", "to"}
        if is_for_all and not numbers["options"].categories:  # there are no memories at all
            context["start"] = first_steps(request)
        else:
            context |= numbers
            context |= _activity(request, filters, now) if is_for_all else {}
        record_list(request, "dashboard.view", filters, _shown_users(context), subject_type="memory")
    return render(request, "console/dashboard.html", context)


def _shown_users(context: Mapping[str, Any]) -> set[str]:
    """Return the users that the lists of the dashboard name."""
    return {row["user_id"] for top in context.get("tops", ()) for row in top["rows"]} - {""}


def _numbers(filters: DashboardFilters, now: datetime, user_pk: UUID | None) -> dict[str, Any]:
    since, until = filters.span(now)
    until = until or now
    since = since or until - RANGES["2y"]
    found = charts.edges(since, until)
    selection = filters.selection(now, user_pk)
    # Full hours or days, except that the first starts, and the last ends, with the selected period.
    bounds = [to_ms(since), *found.ms[1:-1], to_ms(until)]
    shown = browse.dashboard(selection, bounds)
    length = bounds[-1] - bounds[0]
    earlier = replace(selection, since_ms=None, until_ms=None)
    before = browse.dashboard(earlier, [edge - length for edge in bounds], tops=("agents", "sessions"))
    parameters = filters.parameters()
    if not filters.has_times:
        parameters["range"] = filters.data["range"]

    def memories(**more: str) -> str:
        """Return the address of a list with the dashboard's filters and one more."""
        return reverse("console:memories", query={**parameters, **more})

    def memories_between(start: datetime, end: datetime) -> str:
        others = {name: value for name, value in parameters.items() if name not in {"range", "from", "to"}}
        return _between("console:memories", start, end, **{**others, "tab": ALL_TAB})

    options = browse.facets(
        Selection(user_pk=user_pk, app_id=selection.app_id, project_id=selection.project_id), limit=100
    )
    return {
        "options": options,
        "since": since,
        "until": until,
        "trend": {
            "title": _UNITS[found.unit],
            **charts.trend(
                found,
                {tab: TAB_LABELS[tab] for tab in categories.TABS} | {"other": OTHER_LABEL},
                [charts.by_tab(bucket) for bucket in shown.buckets],
                memories_between,
                before=[sum(bucket.values()) for bucket in before.buckets],
            ),
        },
        "kpis": _kpis(shown, before, memories),
        # Facets count the memories of all times, but not by agent and session.
        "stored": sum(one.count for one in options.categories)
        if selection.agent_id is None and selection.session_id is None
        else None,
        "kinds": [_kind(tab, shown, memories) for tab in categories.TABS],
        "bands": _bands(shown, memories),
        "unrated": shown.total - sum(count for _low, _high, count in shown.importance_bands),
        "average": shown.average_importance,
        "tops": _tops(shown, memories),
    }


def _activity(request: HttpRequest, filters: DashboardFilters, now: datetime) -> dict[str, Any]:
    """Return the searches of the period and the uploads of the last day, which are counted for all users together."""
    found: dict[str, Any] = {}
    if request.user.has_perm(VIEW_SEARCHES) and settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS:
        found["searches"] = _searches(filters, now)
    if request.user.has_perm(VIEW_FILES):
        found["uploads"] = _uploads(now)
    return found


def _searches(filters: DashboardFilters, now: datetime) -> dict[str, Any]:
    since, until = filters.span(now)
    until = until or now
    since = since or until - RANGES["2y"]
    hours = search_log.hours(since, until)
    edges = charts.edges(since, until)
    total, without_hits = sum(count for _at, count, _none in hours), sum(none for *_rest, none in hours)
    return {
        "title": _SEARCH_UNITS[edges.unit],
        "total": total,
        "without_hits": without_hits,
        "share": without_hits / total if total else 0.0,
        "milliseconds": search_log.quantiles(since, until, 0.5, 0.95),
        **charts.trend(
            edges,
            {"found": gettext_lazy("With hits"), "none": gettext_lazy("No hits")},
            charts.by_bucket(edges, ((at, {"found": count - none, "none": none}) for at, count, none in hours)),
            partial(_between, "console:searches"),
        ),
    }


def _uploads(now: datetime) -> dict[str, Any]:
    since = now - _UPLOAD_PERIOD
    rows = list(
        Resource.objects.filter(created_at__gte=since, state=State.LIVE)
        .order_by("-created_at")
        .values_list("created_at", "searchable_at", "status")[:_MAX_UPLOADS]
    )
    edges = charts.edges(since, now)
    status = Resource.Status
    kinds = {status.FAILED.value: "bad", status.EXTRACTED.value: "found", status.EMPTY.value: "found"}
    seconds = sorted((ready - created).total_seconds() for created, ready, _state in rows if ready)
    return {
        "title": _("Uploads per hour, last 24 hours"),
        "total": len(rows),
        "is_cut": len(rows) == _MAX_UPLOADS,
        "week": f"{timezone.localtime(now) - timedelta(days=7):%Y-%m-%d}",
        "seconds": [seconds[int(share * (len(seconds) - 1))] for share in (0.5, 0.95) if seconds],
        **charts.trend(
            edges,
            {
                "found": gettext_lazy("Ingested"),
                "wait": gettext_lazy("Pending"),
                "bad": gettext_lazy("Failed"),
            },
            charts.by_bucket(edges, ((at, {kinds.get(state, "wait"): 1}) for at, _ready, state in rows)),
            lambda _since, _until: reverse("console:resources"),
        ),
    }


def _between(page: str, start: datetime, end: datetime, **parameters: str) -> str:
    """Return the address of a page with the rows of a period."""
    times = {"from": f"{start:%Y-%m-%dT%H:%M}", "to": f"{end:%Y-%m-%dT%H:%M}"}
    return reverse(page, query={**parameters, **times})


def _kpis(shown: Dashboard, before: Dashboard, memories: Link) -> list[dict[str, Any]]:
    def card(
        label: Any, now: int, earlier: int, url: str, *, kind: str = "", values: Sequence[int] = ()
    ) -> dict[str, Any]:
        change, spark = charts.change(now, earlier), charts.spark(values)
        return {"label": label, "kind": kind, "now": now, "change": change, "spark": spark, "url": url}

    tabs = [charts.by_tab(bucket) for bucket in shown.buckets]
    totals = [sum(bucket.values()) for bucket in tabs]
    cards = [card(_("Memories written"), shown.total, before.total, memories(tab=ALL_TAB), values=totals)]
    for tab in categories.TABS:
        now, earlier = shown.by_tab.get(tab, 0), before.by_tab.get(tab, 0)
        values = [one[tab] for one in tabs]
        cards.append(card(TAB_LABELS[tab], now, earlier, memories(tab=tab), kind=tab, values=values))
    return [
        *cards,
        card(_("Agents"), shown.unique_agents, before.unique_agents, "#h-top-1"),
        card(_("Sessions"), shown.unique_sessions, before.unique_sessions, "#h-top-2"),
    ]


def _kind(tab: str, shown: Dashboard, memories: Link) -> dict[str, Any]:
    counts = {category: shown.by_category.get(category, 0) for category in categories.TABS[tab]}
    total = sum(counts.values())
    rows = [
        {
            "label": capfirst(str(categories.label(category)).rpartition(" · ")[2]),
            "count": count,
            "share": count / total,
            "width": count / total,
            "url": memories(tab=tab, category=category),
        }
        for category, count in sorted(counts.items(), key=lambda pair: -pair[1])
        if count
    ]
    return {"tab": tab, "title": _TITLES[tab], "total": total, "rows": rows, "url": memories(tab=tab)}


def _bands(shown: Dashboard, memories: Link) -> list[dict[str, Any]]:
    """Return the bands of importance from high to low, each with its list's address and its position in the bar."""
    rated = sum(count for _low, _high, count in shown.importance_bands) or 1
    bands, start = [], 0.0
    for (name, label), (low, high, count) in zip(_BANDS, shown.importance_bands, strict=True):
        limits = {"importance_min": str(low)} if low else {}
        if high < 1:
            limits["importance_max"] = str(high - 0.000001)
        url = memories(tab=ALL_TAB, **limits)
        bands.append({"name": name, "label": label, "count": count, "share": count / rated, "x": start, "url": url})
        start += count / rated
    return bands[::-1]


def _tops(shown: Dashboard, memories: Link) -> list[dict[str, Any]]:
    found: tuple[tuple[str, list[Count], Callable[[Count], dict[str, str]]], ...] = (
        (_("Top agents"), shown.top_agents, lambda one: {"agent": one.key}),
        (_("Top sessions"), shown.top_sessions, lambda one: {"session": one.key, "user": one.user_id}),
        (_("Top users"), shown.top_users, lambda one: {"user": one.label}),
    )
    return [
        {
            "title": title,
            "rows": [
                {
                    "label": f"{one.user_id} · {one.label}" if one.user_id else one.label,
                    "count": one.count,
                    "share": one.count / (shown.total or 1),
                    "width": one.count / counts[0].count,
                    "url": memories(**{"tab": ALL_TAB, **named(one)}),
                    "user_id": named(one).get("user", ""),
                }
                for one in counts
            ],
        }
        for title, counts, named in found
    ]


def _health(filters: DashboardFilters, user_pk: UUID | None) -> dict[str, Any]:
    engine = engine_state(_HEALTH_SECONDS)
    values = filters.cleaned_data
    live = queries.narrowed(
        Resource.objects.filter(state=State.LIVE),
        user_id=user_pk,
        app_id=values["app"],
        project_id=values["project"],
    )
    states = queries.counts_by("status", live)
    return {
        **engine,
        "failing": [error for part in MODEL_ENDPOINTS if (error := engine["parts"].get(part, {}).get("error"))],
        "states": [(label, states[name], name) for name, label in Resource.Status.choices if states.get(name)],
    }


def first_steps(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the checklist. One statement."""
    base = address_of_gateway(request)
    commands = commands_of(base, DEMO_USER)
    return {
        "has_users": MemoryUser.objects.exists(),
        "demo_user": DEMO_USER,
        "commands": commands,
        "mcp": f"{base}/mcp",
    }


@page(ADD_USERS, "POST")
def demo_data(request: HttpRequest) -> HttpResponseBase:
    """Create a user with demo data."""
    if queries.user_pk(DEMO_USER) is not None:
        raise Conflict(_("The user %(user)s exists already.") % {"user": DEMO_USER})
    demo.make(DEMO_USER, actor=actor_of(request), wait_seconds=DEMO_WAIT_SECONDS)
    text = _("The user %(user)s has demo data. Its files are searchable in a moment.")
    messages.success(request, text % {"user": DEMO_USER})
    return redirect("console:dashboard")
