"""Prometheus metrics (`GET /metrics`): for operators, or with `MEMORY_GATEWAY_METRICS_TOKEN` as a bearer token."""

from __future__ import annotations

import os
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Case, Count, F, Min, Q, Value, When
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from accounts.api import limits
from accounts.api.authentication import address_of
from core.errors import TooManyRequests, Unauthenticated
from core.metrics import REGISTRY
from core.rest import problem_http_response
from resources.models import Resource
from store import derived_memories
from store.index import keyword
from store.models import Memory, OwedEmbedding

_UNFINISHED = (Resource.Status.PENDING, Resource.Status.INGESTING, Resource.Status.FAILED)
_RETRYING = "retrying"


class _Backlog(Collector):
    """Gauges of pending work, read from the database at each scrape by a few queries over small indexes."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        is_retried = Q(status=Resource.Status.FAILED, retry_at__isnull=False)
        state = Case(When(is_retried, then=Value(_RETRYING)), default=F("status"))
        found = Resource.objects.filter(status__in=_UNFINISHED).order_by().values(state=state)
        rows = {row["state"]: row for row in found.annotate(count=Count("pk"), oldest=Min("created_at"))}
        now = timezone.now()
        ingestions = GaugeMetricFamily("memory_gateway_ingestions", "Unfinished ingestions.", labels=["state"])
        ages = GaugeMetricFamily("memory_gateway_ingestion_oldest_seconds", "Age of the oldest.", labels=["state"])
        for name in (*_UNFINISHED, _RETRYING):
            row = rows.get(name)
            ingestions.add_metric([name], row["count"] if row else 0)
            ages.add_metric([name], (now - row["oldest"]).total_seconds() if row else 0)
        yield ingestions
        yield ages
        count = Memory.objects.filter(keyword.OWED).count()
        yield GaugeMetricFamily("memory_gateway_index_owed", "Memories that the keyword index lacks.", count)
        count = OwedEmbedding.objects.count()
        yield GaugeMetricFamily("memory_gateway_embeddings_owed", "Memories that wait for a vector.", count)
        read = derived_memories.extraction_backlog()
        yield GaugeMetricFamily("memory_gateway_extractions_owed", "What an LLM has still to read.", read["owed"])
        yield GaugeMetricFamily("memory_gateway_extractions_given_up", "What it could not read.", read["given_up"])


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    try:
        _require_allowed(request)
    except TooManyRequests as error:
        return problem_http_response(error)
    except Unauthenticated as error:
        response = problem_http_response(error)
        response["WWW-Authenticate"] = "Bearer"
        return response
    body = b"".join(generate_latest(registry) for registry in (_process_metrics(), _backlog_metrics()))
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST)


def _require_allowed(request: HttpRequest) -> None:
    """Check that the request may read metrics.

    Raises: `Unauthenticated`; `TooManyRequests` if the address sent too many wrong tokens.
    """
    token: str = settings.MEMORY_GATEWAY_METRICS_TOKEN
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if given and kind.lower() == "bearer":
        if token and constant_time_compare(given, token):
            return
        limits.count_failure(address_of(request))
    elif request.user.is_authenticated and request.user.is_active and request.user.is_staff:
        return
    raise Unauthenticated("For signed-in staff, or with the metrics token as a bearer.")


def _process_metrics() -> CollectorRegistry:
    """Return the metrics of this process; with several worker processes, of all of them, from a shared folder."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _backlog_metrics() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_Backlog())
    return registry
