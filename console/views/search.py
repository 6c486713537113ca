"""The search lab, the normal search as one user with the scores of every step; and the log of searches."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import tenants
from console import queries
from console.access import VIEW, address_of_gateway, page, record_list, render
from console.filters import LabFilters, SearchFilters
from console.forms import unknown_user
from console.hidden import reasons_of
from console.keyset import newest_first
from console.views.logged_search import VIEW_SEARCHES, lab_address
from core.errors import GatewayError
from core.localization import localized
from engines.registry import get_engine
from memories.models import LoggedSearch
from memories.services.scoped_hits import SCOPES
from memories.services.search import find_hidden_hits, search
from store import browse
from store.browse import Selection
from store.text.tokens import query_tokens, required_tokens
from store.types import Hit, Owner

_SHOWN_CHARS: Final = 600
_LOOKED_AT, _MOST_FREQUENT = 2_000, 10
_COUNTED_TERMS, _MAX_COUNTED = 12, 1_000
_LEG_LABELS: Final = {
    "keyword": gettext_lazy("keyword"),
    "vector": gettext_lazy("vector"),
    "tokens": gettext_lazy("words by meaning"),
    "fused": gettext_lazy("fused"),
    "remote": gettext_lazy("remote"),
}
_PART_LABELS: Final = {
    "terms": gettext_lazy("matched terms"),
    "related": gettext_lazy("related words"),
    "context_window": gettext_lazy("terms in context"),
    "neighbors": gettext_lazy("adjacent turns"),
    "speaker": gettext_lazy("speaker match"),
}


@page(VIEW, reach="lists")
def lab(request: HttpRequest) -> HttpResponseBase:
    filters = LabFilters(reverse("console:lab"), request.GET)
    scopes = filters.scopes()
    context: dict[str, Any] = {
        "title": _("Search lab"),
        "filters": filters,
        "scopes": [(scope, scope in scopes) for scope in SCOPES],
        "has_options": filters.has_options,
        "options": browse.facets(Selection(), limit=100),
    }
    status = 200
    values = filters.cleaned_data
    if values["q"] and values["user"]:
        pk = queries.user_pk(values["user"])
        if pk is None:
            filters.complain_about_user(unknown_user(values["user"]))
        else:
            record_list(request, "lab.search", filters, [values["user"]], subject_type="memory")
            try:
                owner = Owner(pk, values["user"], values["app"] or "default", values["project"] or "default")
                context |= _results(filters, owner)
                context["curl"] = _curl(filters, address_of_gateway(request))
            except GatewayError as error:
                filters.problems.append(localized(error.detail))
                status = error.status
    elif values["q"]:
        filters.complain_about_user(_("Choose a user to search."))
    return render(request, "console/lab.html", context, status=status)


def _results(filters: LabFilters, owner: Owner) -> dict[str, Any]:
    started_at = time.perf_counter()
    command = filters.command(owner.user_pk)
    answer = search(owner, command)
    took_ms = round((time.perf_counter() - started_at) * 1000, 1)
    missing = [] if command.as_of else find_hidden_hits(owner, command)
    rows = queries.stored_of((owner, found.hit.memory_id) for found in answer.results)
    before = queries.originals(found.override_id for found in answer.results if found.override_id)
    hits = [
        {
            **_explained(found.hit),
            "found": found,
            "memory": rows.get((owner, found.hit.memory_id)),
            "before": before.get(found.override_id or ""),
        }
        for found in answer.results
    ]
    reasons = reasons_of([item.memory for item in missing if item.memory])
    hidden = [
        {
            **_explained(item.hit),
            "hidden": item,
            "memory": item.memory,
            "why_hidden": item.memory and reasons.get(item.memory.row),
        }
        for item in missing
    ]
    # Bars show each score relative to the best score of the same leg.
    best: dict[str, float] = {}
    scored = [(str(item["label"]), item) for row in (*hits, *hidden) for item in (*row["legs"], row)]
    for kind, item in scored:
        best[kind] = max(best.get(kind, 0.0), item["score"] or 0.0)
    for kind, item in scored:
        item["share"] = (item["score"] or 0.0) / (best[kind] or 1.0)
    return {
        "answer": answer,
        "took_ms": took_ms,
        "engine": get_engine().label,
        "hits": hits,
        "missing": hidden,
        # An engine that stores decisions in its own table excludes hidden memories before it counts.
        "reports": [
            (scope, report, max(report.hidden, sum(item.scope == scope for item in missing)))
            for scope in SCOPES
            if (report := answer.scopes.get(scope))
        ],
        "degraded": sorted({localized(report.degraded) for report in answer.scopes.values() if report.degraded}),
        "tokens": query_tokens(filters.cleaned_data["q"]),
        **({} if hits else _term_counts(owner, filters.cleaned_data["q"])),
    }


def _term_counts(owner: Owner, query: str) -> dict[str, Any]:
    """Return how many memories of the owner contain each term of a query without results, and their number in all."""
    every = Selection(user_pk=owner.user_pk, app_id=owner.app_id, project_id=owner.project_id)
    terms = required_tokens(query)[:_COUNTED_TERMS]
    return {
        "counts": [(term, browse.count(replace(every, words=(term,)), at_most=_MAX_COUNTED)) for term in terms],
        "total": browse.count(every),
    }


def _explained(hit: Hit) -> dict[str, Any]:
    """Return the text of a hit, the terms of the query and related words in it, and what each leg contributed."""
    legs: list[dict[str, Any]] = []
    for name, leg in hit.legs.items():
        if isinstance(leg, Mapping):
            score, parts = leg.get("score"), leg.get("parts")
            shares = dict(parts) if isinstance(parts, Mapping) else {}
            legs.append(
                {
                    "label": _LEG_LABELS.get(name, name),
                    "score": score if isinstance(score, int | float) else None,
                    "rank": leg.get("rank"),
                    "matched": leg.get("matched") or (),
                    "related": leg.get("related") or (),
                    "parts": [(_PART_LABELS.get(part, part), value) for part, value in shares.items() if value],
                }
            )
    matched, related = (
        list(dict.fromkeys(str(term) for leg in legs for term in leg[kind])) for kind in ("matched", "related")
    )
    text = hit.text if len(hit.text) <= _SHOWN_CHARS else f"{hit.text[:_SHOWN_CHARS]}…"
    return {"label": "", "score": hit.score, "text": text, "legs": legs, "matched": matched, "related": related}


def _curl(filters: LabFilters, base: str) -> str:
    """Return the `curl` command for the same search by the API."""
    body = {**filters.given(), "scope": filters.scopes(), "explain": True}
    body |= {f"{name}_id": value for name in ("app", "project") if (value := filters.cleaned_data[name])}
    written = json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
    return (
        f"curl -sS {base}/memories/search -H 'Content-Type: application/json' "
        f"-H \"Authorization: Bearer $USER_KEY\" -d '{written}'"
    )


@page(VIEW_SEARCHES, reach="lists")
def searches(request: HttpRequest) -> HttpResponseBase:
    filters = SearchFilters(reverse("console:searches"), request.GET)
    values, found = filters.cleaned_data, narrowed(filters)
    shown = newest_first(found, filters, time="at")
    record_list(request, "search.list", filters, (one.user.user_id for one in shown.rows))
    # The words of a search tell as much as the memories that it found.
    has_words = request.user.has_perm(VIEW)
    context = {
        "title": _("Search log"),
        "filters": filters,
        **shown._asdict(),
        "rows": [{"search": one, "explain": lab_address(one) if has_words else ""} for one in shown.rows],
        "has_words": has_words,
        "frequent": _frequent_without_hits(found) if has_words and values["hits"] else (),
        "looked_at": _LOOKED_AT,
        "days": settings.MEMORY_GATEWAY_SEARCH_LOG_DAYS,
        "logs_words": settings.MEMORY_GATEWAY_LOG_QUERIES,
    }
    return render(request, "console/searches.html", context)


def narrowed(filters: SearchFilters) -> QuerySet[LoggedSearch]:
    """Return the searches that the filters leave, none for an unknown user, which becomes a problem of the filters."""
    values = filters.cleaned_data
    user_pk = queries.user_pk(values["user"])
    found = queries.narrowed(
        tenants.reachable(LoggedSearch.objects.select_related("user")),
        user=user_pk,
        agent_id=values["agent"],
        interface=values["interface"],
        at__gte=values["since"],
        at__lt=values["until"],
    )
    if values["hits"]:
        found = found.filter(hits=0)
    if values["user"] and user_pk is None:
        filters.problems.append(unknown_user(values["user"]))
        return found.none()
    return found


def _frequent_without_hits(found: QuerySet[LoggedSearch]) -> list[tuple[str, int, int]]:
    """Return words, number and latest key of the most frequent of the latest searches, with equal words as one.

    Those without words are looked at too: where words are not stored, the database would read the whole log for some.
    """
    counts, latest = Counter[str](), dict[str, tuple[str, int]]()
    recent = found.order_by("-at", "-pk").values_list("pk", "query")[:_LOOKED_AT]
    for pk, query in ((pk, query) for pk, query in recent if query):
        words = " ".join(query.casefold().split())
        counts[words] += 1
        latest.setdefault(words, (query, pk))
    return [(latest[words][0], count, latest[words][1]) for words, count in counts.most_common(_MOST_FREQUENT)]
