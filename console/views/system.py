"""The pages of the system: the audit trail; and health: engine, model endpoints, backlog, worker and disk."""

import json
import shutil
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Min, Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import AuditEvent
from console import queries
from console.access import VIEW, page, render
from console.filters import AuditFilters
from console.keyset import newest_first
from console.views.users import AUDIT
from engines.registry import get_engine
from memories.services.decisions import EVENTS
from operations import purge
from operations.models import Job, Lease
from resources import storage
from resources.models import Resource
from resources.tasks import MAINTENANCE
from store.index import rebuild
from store.models import HourCount, PendingEmbedding


@page(AUDIT)
def audit(request: HttpRequest) -> HttpResponseBase:
    filters = AuditFilters(reverse("console:audit"), request.GET)
    values = filters.cleaned_data
    conditions = {
        "user_id": values["user"],
        "actor": values["actor"],
        "actor_kind": values["kind"],
        "action__startswith": values["action"],
        "at__gte": values["since"],
        "at__lt": values["until"],
    }
    events = AuditEvent.objects.filter(**{name: value for name, value in conditions.items() if value})
    if subject_id := values["subject"]:
        # Events about this subject, and decisions about many that have its id, or the id of its job, in their details.
        detail_matches = Q(detail__job=subject_id)
        # SQLite stores JSON with escapes, PostgreSQL without.
        for quoted in {json.dumps(subject_id), json.dumps(subject_id, ensure_ascii=False)}:
            detail_matches |= Q(detail__memory_ids__icontains=quoted) | Q(detail__session_ids__icontains=quoted)
        events = events.filter(Q(subject_id=subject_id) | (Q(action__in=EVENTS) & detail_matches))
    # Ordered by key only: the clock of SQLite is too coarse to order events.
    found = newest_first(events, filters)
    context = {"title": _("Audit trail"), "filters": filters, **found._asdict()}
    return render(request, "console/audit.html", context)


ENGINE_SECONDS: Final = 2.0


@page(VIEW)
def health(request: HttpRequest) -> HttpResponseBase:
    engine = get_engine()
    answer = engine.health(ENGINE_SECONDS)
    # Which parts are reported depends on the engine.
    parts = {name: part for name, part in answer.data.items() if isinstance(part, dict)}
    root = storage.root()
    while not root.exists():
        root = root.parent
    usage = shutil.disk_usage(root)
    floor: int = settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES
    status = Resource.Status
    unfinished = Resource.objects.filter(
        status__in=(status.PENDING, status.INGESTING, status.FAILED), deleted_at__isnull=True
    )
    rows = {
        row["status"]: row
        for row in unfinished.order_by().values("status").annotate(count=Count("pk"), oldest=Min("created_at"))
    }
    lease = Lease.objects.filter(name=MAINTENANCE.name).first()
    is_at_work = lease is not None and lease.is_held(timezone.now())
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Health"),
        "health": answer,
        "index": str(parts.get("index", {}).get("status", "")),
        "capabilities": engine.capabilities(),
        "endpoints": [
            {
                "label": label,
                "address": getattr(settings, f"MEMORY_GATEWAY_{name}_BASE_URL", ""),
                "model": getattr(settings, f"MEMORY_GATEWAY_{name}_MODEL", ""),
                "state": parts.get(reported, {}),
            }
            for name, reported, label in (
                ("EMBEDDING", "embeddings", _("Embedding model")),
                ("LLM", "llm", _("Language model")),
            )
        ],
        "backlog": {
            "index": rebuild.pending_count(),
            "embeddings": PendingEmbedding.objects.count(),
            "rollups": HourCount.objects.exclude(delta=0).count(),
            "pending": rows.get("pending"),
            "ingesting": rows.get("ingesting"),
            "failed": rows.get("failed"),
            "deletions": Resource.objects.filter(cleanup_pending=True).count(),
        },
        "failures": queries.failures_waiting(),
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
