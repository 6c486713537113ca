"""Whether the gateway does well: engine, endpoints, what is owed, who sweeps, how much disk is left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db.models import Count, Min
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from console import queries
from console.access import VIEW, page, render
from core.leases import is_dead
from engines.registry import get_engine
from operations import purge, worker
from operations.models import Job, Lease
from resources import storage
from resources.models import Resource
from store.index import rebuild
from store.models import HourCount, OwedEmbedding, SessionCount

ENGINE_SECONDS: Final = 2.0
_UNFINISHED: Final = (Resource.Status.PENDING, Resource.Status.INGESTING, Resource.Status.FAILED)


@page(VIEW)
@require_GET
def health(request: HttpRequest) -> HttpResponseBase:
    engine = get_engine()
    answer, owed = engine.health(ENGINE_SECONDS), _owed()
    disk, holder = _disk(), _sweeper()
    retention = purge.retention()
    context: dict[str, Any] = {
        "title": _("Health"),
        "health": answer,
        "index": _index(answer.data),
        "capabilities": engine.capabilities(),
        "endpoints": _endpoints(answer.data),
        "owed": owed,
        "failures": queries.failures_waiting(),
        "sweeper": holder,
        "disk": disk,
        "jobs": Job.objects.filter(status__in=[Job.Status.QUEUED, Job.Status.RUNNING]).count(),
        "days": retention.days if retention else None,
        "is_well": answer.status == "ok" and holder["is_at_work"] and not disk["is_low"],
    }
    return render(request, "console/health.html", context)


def _index(data: Any) -> str:
    found = data.get("index", {})
    return str(found.get("status", "")) if isinstance(found, dict) else ""


def _endpoints(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the settings name, and what the engine says of it; their keys are nobody's business here."""
    return [
        {
            "label": label,
            "address": getattr(settings, f"MEMORY_GATEWAY_{name}_BASE_URL", ""),
            "model": getattr(settings, f"MEMORY_GATEWAY_{name}_MODEL", ""),
            "state": found if isinstance(found := data.get(reported), dict) else {},
        }
        for name, reported, label in (
            ("EMBEDDING", "embeddings", _("Embeddings")),
            ("LLM", "llm", _("Language model")),
        )
    ]


def _owed() -> dict[str, Any]:
    """What was accepted and is not done yet."""
    found = Resource.objects.filter(status__in=_UNFINISHED, deleted_at__isnull=True).order_by().values("status")
    rows = {row["status"]: row for row in found.annotate(count=Count("pk"), oldest=Min("created_at"))}
    unsettled = HourCount.objects.exclude(delta=0).count() + SessionCount.objects.exclude(delta=0).count()
    return {
        "index": rebuild.owed(),
        "embeddings": OwedEmbedding.objects.count(),
        "rollups": unsettled,
        "pending": rows.get("pending"),
        "ingesting": rows.get("ingesting"),
        "failed": rows.get("failed"),
        "deletions": Resource.objects.filter(cleanup_owed=True).count(),
    }


def _sweeper() -> dict[str, Any]:
    """Who finishes what a crash or an outage left, if anybody does."""
    lease = Lease.objects.filter(name=worker.MaintenanceTask.lease_name).first()
    is_at_work = lease is not None and lease.expires_at >= timezone.now() and not is_dead(lease.holder)
    return {"lease": lease, "is_at_work": is_at_work}


def _disk() -> dict[str, Any]:
    root = storage.root()
    while not root.exists():
        root = root.parent
    usage = shutil.disk_usage(root)
    floor: int = settings.MEMORY_GATEWAY_MIN_FREE_DISK_BYTES
    return {
        "free": usage.free,
        "total": usage.total,
        "used_share": 1 - usage.free / usage.total,
        "floor": floor,
        "is_low": usage.free < floor,
    }
