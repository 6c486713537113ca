"""The dashboard: how much was written, of what kind, by whom, and whether the gateway does well."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_GET

from console import charts, queries, reads
from console.access import VIEW, page, render
from console.filters import ALL_TAB, RANGES, DashboardState
from core.times import to_ms
from engines.port import Health
from engines.registry import get_engine
from store import browse, categories
from store.browse import Count, Dashboard, Selection

_HEALTH_SECONDS = 0.5
_TITLES = {
    "user": gettext_lazy("User memories"),
    "self": gettext_lazy("Self-improving memories"),
    "full": gettext_lazy("Full context"),
}
_KINDS = {
    "user": pgettext_lazy("kind of memory", "User"),
    "self": pgettext_lazy("kind of memory", "Self-improving"),
    "full": pgettext_lazy("kind of memory", "Full context"),
}
_UNITS = {
    "hour": gettext_lazy("Written per hour"),
    "day": gettext_lazy("Written per day"),
    "month": gettext_lazy("Written per month"),
}
_BANDS = (
    ("low", gettext_lazy("Low, under 0.34")),
    ("mid", gettext_lazy("Middle, 0.34 to 0.67")),
    ("high", gettext_lazy("High, 0.67 and up")),
)
_STATES = {
    "pending": gettext_lazy("pending"),
    "ingesting": gettext_lazy("ingesting"),
    "extracted": gettext_lazy("extracted"),
    "failed": gettext_lazy("failed"),
    "empty": gettext_lazy("empty"),
}


@page(VIEW)
@require_GET
def dashboard(request: HttpRequest) -> HttpResponseBase:
    state = DashboardState.read(reverse("console:dashboard"), request.GET)
    now = timezone.now()
    user_pk = queries.user_pk(state.user) if state.user else None
    problems = list(state.problems)
    if state.user and user_pk is None:
        problems.append(_("There is no user %(user)s.") % {"user": state.user})
    elif state.is_backwards(now):
        problems.append(_("The start lies after the end."))
    context: dict[str, Any] = {"title": _("Dashboard"), "state": state, "chips": state.chips()}
    if not problems or problems == list(state.problems):
        context |= _numbers(state, now, user_pk)
        reads.listed(request, "memory.dashboard", state, [state.user] if state.user else ())
    return render(request, "console/dashboard.html", {**context, "problems": problems, **_health(state, user_pk)})


def _numbers(state: DashboardState, now: datetime, user_pk: UUID | None) -> dict[str, Any]:
    since, until = _span(state, now)
    found = charts.edges(since, until)
    selection = state.selection(now, user_pk)
    # Clock hours and days, the first and the last cut where the time that was asked for begins and ends.
    bounds = [to_ms(since), *found.ms[1:-1], to_ms(until)]
    shown = browse.dashboard(selection, bounds)
    before = _before(selection, bounds)
    lists = _Links(state)
    trend = charts.trend(found, shown.buckets, [sum(bucket.values()) for bucket in before.buckets], lists.between)
    return {
        "options": browse.facets(
            Selection(user_pk=user_pk, app_id=selection.app_id, project_id=selection.project_id), limit=100
        ),
        "since": since,
        "until": until,
        "trend": trend,
        "trend_title": _UNITS[found.unit],
        "kpis": _kpis(shown, before),
        "kinds": [_kind(tab, shown, lists) for tab in categories.TABS],
        "bands": _bands(shown, lists),
        "unrated": shown.total - sum(count for _low, _high, count in shown.importance_bands),
        "average": shown.average_importance,
        "tops": _tops(shown, lists),
    }


def _span(state: DashboardState, now: datetime) -> tuple[datetime, datetime]:
    """What the dashboard shows; an end without a start looks back two years."""
    since, until = state.span(now)
    until = until or now
    return since or until - RANGES["2y"], until


def _before(selection: Selection, bounds: Sequence[int]) -> Dashboard:
    """The same length of time right before."""
    length = bounds[-1] - bounds[0]
    earlier = replace(selection, since_ms=None, until_ms=None)
    return browse.dashboard(earlier, [edge - length for edge in bounds], tops=("agents", "sessions"))


def _kpis(shown: Dashboard, before: Dashboard) -> list[dict[str, Any]]:
    tabs = [charts.by_tab(bucket) for bucket in shown.buckets]
    cards = [_kpi(_("All memories"), "", shown.total, before.total, [sum(bucket.values()) for bucket in shown.buckets])]
    for tab, label in _KINDS.items():
        now, earlier = shown.by_tab.get(tab, 0), before.by_tab.get(tab, 0)
        cards.append(_kpi(label, tab, now, earlier, [bucket[tab] for bucket in tabs]))
    cards.append(_kpi(_("Agents"), "", shown.unique_agents, before.unique_agents, ()))
    return [*cards, _kpi(_("Sessions"), "", shown.unique_sessions, before.unique_sessions, ())]


def _kpi(label: Any, kind: str, now: int, before: int, values: Sequence[int]) -> dict[str, Any]:
    return {
        "label": label,
        "kind": kind,
        "now": now,
        "change": charts.change(now, before),
        "spark": charts.spark(values),
    }


class _Links:
    """Addresses of lists that show what a number counts: the dashboard's own filters and one more."""

    def __init__(self, state: DashboardState) -> None:
        self._path = reverse("console:memories")
        given = dict(state.parameters())
        if not state.has_own_times:
            given["range"] = state.range
        self._given = given

    def of(self, **more: str) -> str:
        return f"{self._path}?{urlencode({**self._given, **more})}"

    def between(self, since: datetime, until: datetime) -> str:
        """All memories of a time, whatever the dashboard's own."""
        given = {name: value for name, value in self._given.items() if name not in {"range", "from", "to"}}
        given |= {"tab": ALL_TAB, "from": f"{since:%Y-%m-%dT%H:%M}", "to": f"{until:%Y-%m-%dT%H:%M}"}
        return f"{self._path}?{urlencode(given)}"


def _of(health: Health, part: str) -> Mapping[str, Any]:
    """What an engine says of a part of itself; each says what it likes."""
    found = health.data.get(part)
    return found if isinstance(found, dict) else {}


def _kind(tab: str, shown: Dashboard, lists: _Links) -> dict[str, Any]:
    counts = {category: shown.by_category.get(category, 0) for category in categories.TABS[tab]}
    total = sum(counts.values())
    rows = [
        {
            "label": capfirst(str(categories.label(category)).rpartition(" · ")[2]),
            "count": count,
            "share": count / total,
            "width": count / total,
            "url": lists.of(tab=tab, category=category),
        }
        for category, count in sorted(counts.items(), key=lambda pair: -pair[1])
        if count
    ]
    return {"tab": tab, "title": _TITLES[tab], "total": total, "rows": rows, "url": lists.of(tab=tab)}


def _bands(shown: Dashboard, lists: _Links) -> list[dict[str, Any]]:
    """From high to low, each with the list behind it and its place in the strip."""
    rated = sum(count for _low, _high, count in shown.importance_bands) or 1
    bands, start = [], 0.0
    for (name, label), (low, high, count) in zip(_BANDS, shown.importance_bands, strict=True):
        share = count / rated
        limits = {"importance_min": str(low) if low else "", "importance_max": str(high - 0.000001) if high < 1 else ""}
        url = lists.of(tab=ALL_TAB, **{key: value for key, value in limits.items() if value})
        bands.append({"name": name, "label": label, "count": count, "share": share, "x": start, "url": url})
        start += share
    return bands[::-1]


def _tops(shown: Dashboard, lists: _Links) -> list[dict[str, Any]]:
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
                    "label": f"{one.label} · {one.user_id}" if one.user_id else one.label,
                    "count": one.count,
                    "share": one.count / (shown.total or 1),
                    "width": one.count / counts[0].count,
                    "url": lists.of(**{"tab": ALL_TAB, **named(one)}),
                }
                for one in counts
            ],
        }
        for title, counts, named in found
    ]


def _health(state: DashboardState, user_pk: UUID | None) -> dict[str, Any]:
    health = get_engine().health(_HEALTH_SECONDS)
    states = queries.resource_states(user_pk, state.app, state.project)
    return {
        "health": health,
        "index": _of(health, "index").get("status", ""),
        "failing": [error for part in ("embeddings", "llm") if (error := _of(health, part).get("error"))],
        "capabilities": get_engine().capabilities(),
        "states": [(label, states[name], name) for name, label in _STATES.items() if states.get(name)],
        "failures": queries.failures_waiting(),
    }
