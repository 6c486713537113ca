"""OpenTelemetry by its SDK, which reads the standard variables (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_…`)."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from opentelemetry import propagate
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, get_current_span

from core import monitoring

NAME = "memory-gateway"
_MAX_STATEMENT_CHARS = 1000


class Telemetry:
    """Implements `core.monitoring.Tracer`. Spans and metrics are sent in batches by threads of the SDK."""

    def __init__(self) -> None:
        resource = Resource({SERVICE_NAME: NAME}).merge(OTELResourceDetector().detect())
        self._traces = TracerProvider(resource=resource)
        self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
        self._tracer = self._traces.get_tracer(NAME)
        connection_created.connect(_trace_statements)
        meter = self._metrics.get_meter(NAME)
        self._histogram = cast(Callable[[str], Histogram], cache(lambda name: meter.create_histogram(name, unit="s")))

    @contextmanager
    def span(self, name: str, attributes: monitoring.Attributes, link: object) -> Iterator[None]:
        links = [Link(link.get_span_context())] if isinstance(link, Span) else []
        # The SDK would record the messages of errors, which may contain private text.
        with self._tracer.start_as_current_span(
            name, attributes=attributes, links=links, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", type(error).__name__)
                raise

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[None]:
        parent = propagate.extract(headers)
        with self._tracer.start_as_current_span(
            method, context=parent, kind=SpanKind.SERVER, record_exception=False, set_status_on_exception=False
        ):
            yield

    def annotate(self, name: str, attributes: monitoring.Attributes) -> None:
        span = get_current_span()
        span.update_name(name)
        span.set_attributes(attributes)

    def current(self) -> Span:
        return get_current_span()

    def record_seconds(self, name: str, seconds: float, attributes: monitoring.Attributes) -> None:
        self._histogram(name).record(seconds, attributes)

    def stop(self, timeout_seconds: float) -> None:
        """Send what is pending, and give up what the collector does not take in time."""
        ending = [threading.Thread(target=one.shutdown, daemon=True) for one in (self._traces, self._metrics)]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join(timeout_seconds)


def _trace_statements(connection: BaseDatabaseWrapper, **_: object) -> None:
    connection.execute_wrappers.append(_traced_statement)


def _traced_statement(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Run a statement in a span that shows its text, which has placeholders instead of values."""
    text = " ".join(sql.split())
    attributes = {"db.system.name": context["connection"].vendor, "db.query.text": text[:_MAX_STATEMENT_CHARS]}
    with monitoring.span(text.partition(" ")[0], attributes):
        return execute(sql, params, many, context)
