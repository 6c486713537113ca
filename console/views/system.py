"""The pages of the system: the audit trail; and health: engine, model endpoints, backlog, worker and disk."""

import csv
import json
import shutil
from collections.abc import Iterator
from typing import Any, Final

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import tenants
from accounts.admin_base import actor_of
from accounts.audit import record
from accounts.audit_export import EXPORTED, EXPORTED_AT_ONCE, exported
from accounts.models import AuditEvent
from console import queries
from console.access import VIEW, page, record_list, render
from console.filters import AuditFilters
from console.keyset import newest_first
from console.views.users import AUDIT
from core.errors import BadRequest
from core.persistence import files
from engines.registry import get_engine
from memories.services.decisions import EVENTS
from operations.cleanup import purge
from operations.models import Job, Lease
from operations.worker import MAINTENANCE
from resources.queries import pending_cleanups, unfinished
from store import derived
from store.models import DayCount, PendingEmbedding

ENGINE_SECONDS: Final = 2.0


class _Echo:
    """A file for `csv.writer`, whose `writerow` then returns the line."""

    def write(self, text: str) -> str:
        return text


@page(AUDIT, reach="lists")
def audit(request: HttpRequest) -> HttpResponseBase:
    filters = AuditFilters(reverse("console:audit"), request.GET)
    if filters.data["actor"] != request.GET.get("actor", "").strip():  # a pasted key must not stand in the page
        return redirect(filters.url())
    tab = _audit_tab(filters)
    # Ordered by key only: the clock of SQLite is too coarse to order events.
    found = newest_first(_events(filters, tab), filters)
    shown = queries.name_people(found.rows, first=filters.data["user"])
    queries.name_actors(found.rows)
    record_list(request, "audit.list", filters, shown)
    tabs = filters.links("tab", [*AuditEvent.Kind.choices, ("all", _("All"))])
    context = {
        "title": _("Audit trail"),
        "days": settings.MEMORY_GATEWAY_AUDIT_DAYS,
        "filters": filters,
        "tabs": [{**link, "is_on": link["name"] == tab} for link in tabs],
        "export_url": reverse("console:audit-export", query={**filters.parameters(), "tab": tab}),
        **found._asdict(),
    }
    return render(request, "console/audit.html", context)


@page(AUDIT, reach="lists")
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Send all events that match the filters, newest first, as CSV or with `format=json` as JSON lines."""
    if request.GET.get("format", "csv") not in {"csv", "json"}:
        raise BadRequest(_("The format must be csv or json."))
    filters = AuditFilters(reverse("console:audit"), request.GET)
    events = _events(filters, _audit_tab(filters)).order_by("-pk")
    users = tenants.subjects_of_events().filter(event__in=events.order_by()).order_by()
    with transaction.atomic():
        names = users.values_list("user_id", flat=True).distinct()
        record(actor_of(request), "audit.export", users=names, detail={"filter": filters.parameters()})
    is_json = request.GET.get("format") == "json"
    kind, name = ("application/x-ndjson", "audit.jsonl") if is_json else ("text/csv; charset=utf-8", "audit.csv")
    lines = _in_reach(_json_lines(events) if is_json else _csv_lines(events), tenants.current())
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(lines, content_type=kind, headers=headers)


def _in_reach(lines: Iterator[str | bytes], limit: tenants.Tenants) -> Iterator[str | bytes]:
    """Send lines after the page has ended with the tenants of its operator."""
    with tenants.limited_to(limit):
        yield from lines


def _json_lines(events: QuerySet[AuditEvent]) -> Iterator[str | bytes]:
    for values in exported(events.iterator(chunk_size=EXPORTED_AT_ONCE)):
        yield orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def _csv_lines(events: QuerySet[AuditEvent]) -> Iterator[str | bytes]:
    writer = csv.writer(_Echo())
    yield writer.writerow(EXPORTED)
    for values in exported(events.iterator(chunk_size=EXPORTED_AT_ONCE)):
        values["detail"] = json.dumps(values["detail"], ensure_ascii=False) if values["detail"] else ""
        values["users"] = " ".join(values["users"])
        yield writer.writerow([_without_formula(str(value)) for value in values.values()])


def _without_formula(text: str) -> str:
    """Quote a text that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _audit_tab(filters: AuditFilters) -> str:
    """Return the tab. A link to an action or a subject is about all its events, the page itself about changes."""
    values = filters.cleaned_data
    return values["tab"] or ("all" if values["action"] or values["subject"] else AuditEvent.Kind.CHANGE)


def _events(filters: AuditFilters, tab: str) -> QuerySet[AuditEvent]:
    values = filters.cleaned_data
    kind, user_id = "" if tab == "all" else tab, values["user"]
    events = queries.narrowed(
        queries.trail_of(user_id, kind) if user_id else tenants.reachable_events(AuditEvent.objects.all()),
        kind="" if user_id else kind,
        actor_kind=values["kind"],
        action__startswith=values["action"],
        at__gte=values["since"],
        at__lt=values["until"],
    )
    if actor := values["actor"]:
        events = events.filter(queries.actor_condition(actor))
    if subject_id := values["subject"]:
        # Events about this subject, and decisions about many that have its id, or the id of its job, in their details.
        detail_matches = Q(detail__job=subject_id)
        # SQLite stores JSON with escapes, PostgreSQL without.
        for quoted in {json.dumps(subject_id), json.dumps(subject_id, ensure_ascii=False)}:
            detail_matches |= Q(detail__memory_ids__icontains=quoted) | Q(detail__session_ids__icontains=quoted)
        events = tenants.without_others(events)
        events = events.filter(Q(subject_id=subject_id) | (Q(action__in=EVENTS) & detail_matches))
    return events


def engine_state(timeout_seconds: float) -> dict[str, Any]:
    """Return the context of the engine's health, and the number of files whose failure waits for an operator."""
    engine = get_engine()
    health = engine.health(timeout_seconds)
    # Which parts are reported depends on the engine.
    parts = {name: part for name, part in health.data.items() if isinstance(part, dict)}
    return {
        "health": health,
        "parts": parts,
        "index": parts.get("index", {}).get("status", ""),
        "capabilities": engine.capabilities(),
        "failures": queries.failures_waiting(),
    }


@page(VIEW)
def health(request: HttpRequest) -> HttpResponseBase:
    state = engine_state(ENGINE_SECONDS)
    folder = files.root()
    while not folder.exists():
        folder = folder.parent
    usage = shutil.disk_usage(folder)
    floor: int = settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES
    rows = {
        row["status"]: row
        for row in unfinished(Q()).order_by().values("status").annotate(count=Count("pk"), oldest=Min("created_at"))
    }
    lease = Lease.objects.filter(name=MAINTENANCE).first()
    is_at_work = lease is not None and lease.is_held(timezone.now())
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Health"),
        **state,
        "endpoints": [
            {
                "label": label,
                "configured": settings.MEMORY_GATEWAY_MODELS.get(kind),
                "state": state["parts"].get(reported, {}),
            }
            for kind, reported, label in (
                ("embedding", "embeddings", _("Embedding model")),
                ("llm", "llm", _("Language model")),
                ("vision", "vision", _("Vision model")),
                ("transcription", "transcription", _("Transcription model")),
                ("rerank", "rerank", _("Reranker")),
            )
        ],
        "backlog": {
            "index": derived.pending_count(),
            "embeddings": PendingEmbedding.objects.count(),
            "rollups": DayCount.objects.exclude(delta=0).count(),
            "pending": rows.get("pending"),
            "ingesting": rows.get("ingesting"),
            "failed": rows.get("failed"),
            "deletions": pending_cleanups().count(),
        },
        "lease": lease,
        "is_at_work": is_at_work,
        "disk": {
            "free": usage.free,
            "total": usage.total,
            "used_share": 1 - usage.free / usage.total,
            "floor": floor,
            "is_low": usage.free < floor,
        },
        "jobs": Job.objects.filter(status__in=[Job.Status.QUEUED, Job.Status.RUNNING]).count(),
        "days": retention.days if retention else None,
    }
    return render(request, "console/health.html", context)
