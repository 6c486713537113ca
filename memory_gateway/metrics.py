"""Prometheus metrics (`GET /metrics`): for operators, or with `MEMORY_GATEWAY_METRICS_TOKEN` as a bearer token.

A worker has no other HTTP server: `manage.py worker --metrics HOST:PORT` starts `serve_worker`.
"""

import os
import threading
from collections.abc import Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

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
from accounts.tenants import is_unlimited
from core.errors import TooManyRequests, Unauthenticated
from core.messages import Translatable as _
from core.monitoring import REGISTRY
from core.rest import problem_http_response
from operations.models import Job
from remote import outbox
from resources.models import UNFINISHED, Resource
from store.index import keyword
from store.models import Memory, PendingEmbedding, PendingExtraction, PendingMedia, State
from webhooks.models import WebhookDelivery

_RETRYING = "retrying"


class _Backlog(Collector):
    """Gauges of pending work, read from the database at each scrape by a few queries over small indexes."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        is_retried = Q(status=Resource.Status.FAILED, retry_at__isnull=False)
        stage = Case(When(is_retried, then=Value(_RETRYING)), default=F("status"))
        found = Resource.objects.filter(state=State.LIVE, status__in=UNFINISHED).order_by().values(stage=stage)
        rows = {row["stage"]: row for row in found.annotate(count=Count("pk"), oldest=Min("created_at"))}
        now = timezone.now()
        ingestions = GaugeMetricFamily("memory_gateway_ingestions", "Unfinished ingestions.", labels=["state"])
        ages = GaugeMetricFamily(
            "memory_gateway_ingestion_oldest_seconds", "Age of the oldest unfinished ingestion.", labels=["state"]
        )
        for name in (*UNFINISHED, _RETRYING):
            row = rows.get(name)
            ingestions.add_metric([name], row["count"] if row else 0)
            ages.add_metric([name], (now - row["oldest"]).total_seconds() if row else 0)
        yield ingestions
        yield ages
        of_jobs = Job.objects.filter(status__in=[Job.Status.QUEUED, Job.Status.RUNNING])
        jobs = of_jobs.aggregate(count=Count("pk"), oldest=Min("created_at"))
        yield GaugeMetricFamily("memory_gateway_jobs_pending", "Jobs that wait or run.", jobs["count"])
        of_webhooks = WebhookDelivery.objects.filter(next_try_at__isnull=False)
        webhooks = of_webhooks.aggregate(count=Count("pk"), oldest=Min("created_at"))
        sent = outbox.backlog()
        yield GaugeMetricFamily("memory_gateway_outbox_pending", "Messages that wait for the remote.", sent.waiting)
        yield GaugeMetricFamily("memory_gateway_outbox_refused", "Messages that the remote refused.", sent.refused)
        yield GaugeMetricFamily("memory_gateway_webhooks_pending", "Webhook deliveries to send.", webhooks["count"])
        count = Memory.objects.filter(keyword.PENDING).count()
        yield GaugeMetricFamily("memory_gateway_index_pending", "Memories not yet in the keyword index.", count)
        count = PendingEmbedding.objects.count()
        yield GaugeMetricFamily("memory_gateway_embeddings_pending", "Memories without a vector.", count)
        is_pending = Q(given_up_at__isnull=True)
        backlog = {
            "pending": Count("pk", filter=is_pending),
            "given_up": Count("pk", filter=~is_pending),
            "oldest": Min("created_at", filter=is_pending),
        }
        extractions = PendingExtraction.objects.aggregate(**backlog)
        yield GaugeMetricFamily("memory_gateway_extractions_pending", "Pending extractions.", extractions["pending"])
        yield GaugeMetricFamily("memory_gateway_extractions_given_up", "Extractions given up.", extractions["given_up"])
        media = PendingMedia.objects.aggregate(**backlog)
        yield GaugeMetricFamily("memory_gateway_media_pending", "Files pending for a model.", media["pending"])
        yield GaugeMetricFamily("memory_gateway_media_given_up", "Files given up by a model.", media["given_up"])
        ages = GaugeMetricFamily("memory_gateway_pending_oldest_seconds", "Age of the oldest one.", labels=["queue"])
        for queue, read in (("extraction", extractions), ("media", media), ("jobs", jobs), ("webhooks", webhooks)):
            ages.add_metric([queue], (now - read["oldest"]).total_seconds() if read["oldest"] else 0)
        ages.add_metric(["outbox"], sent.age_seconds(now))
        yield ages


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    try:
        _require_allowed(request)
    except (TooManyRequests, Unauthenticated) as error:
        return problem_http_response(error, request)
    process, backlog = REGISTRY, CollectorRegistry()
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:  # several worker processes: of all of them, from a shared folder
        process = CollectorRegistry()
        MultiProcessCollector(process)  # type: ignore[no-untyped-call]
    backlog.register(_Backlog())
    return HttpResponse(generate_latest(process) + generate_latest(backlog), content_type=CONTENT_TYPE_LATEST)


def _require_allowed(request: HttpRequest) -> None:
    """Check that the request may read metrics.

    Raises: `Unauthenticated`; `TooManyRequests` if the address sent too many wrong tokens.
    """
    if given := _bearer(request.headers.get("Authorization", "")):
        if _is_token(given):
            return
        limits.count_failure(address_of(request))
    elif request.user.is_authenticated and request.user.is_active and request.user.is_staff and is_unlimited(request):
        return
    raise Unauthenticated(_("Sign in as an operator, or send the metrics token as a bearer token."))


def _bearer(header: str) -> str:
    kind, _space, given = header.partition(" ")
    return given if kind.lower() == "bearer" else ""


def _is_token(given: str) -> bool:
    token: str = settings.MEMORY_GATEWAY_METRICS_TOKEN
    return bool(token) and constant_time_compare(given, token)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    timeout = 10  # seconds that a connection may be idle

    def log_message(self, *_arguments: Any) -> None: ...


def serve_worker(host: str, port: int) -> None:
    """Answer Prometheus in a thread, until the process ends. Raises: `OSError` if the address is not available."""
    server = make_server(host, port, _answer, server_class=_Server, handler_class=_Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def _answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return the metrics of this process, to callers with the metrics token."""
    if not _is_token(_bearer(environ.get("HTTP_AUTHORIZATION", ""))):
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Length", "0")])
        return [b""]
    body = generate_latest(REGISTRY)
    start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST), ("Content-Length", str(len(body)))])
    return [body]
