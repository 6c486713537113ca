"""Traces and metrics as a collector of OpenTelemetry receives them from a running gateway."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.server import free_port, running_server, wait_until

SECRET_TEXT = "xylophone-marker"
TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SERVER, INTERNAL = Span.SpanKind.SPAN_KIND_SERVER, Span.SpanKind.SPAN_KIND_INTERNAL


class Collector:
    """Keeps what is sent to it, by path."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Span]:
        sent = [ExportTraceServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/traces"]
        groups = [scope for one in sent for group in one.resource_spans for scope in group.scope_spans]
        return [span for scope in groups for span in scope.spans]

    def metrics(self) -> set[str]:
        sent = [ExportMetricsServiceRequest.FromString(body) for path, body in self.bodies if path == "/v1/metrics"]
        groups = [scope for one in sent for group in one.resource_metrics for scope in group.scope_metrics]
        return {metric.name for scope in groups for metric in scope.metrics}


@pytest.fixture
def collector() -> Iterator[Collector]:
    started = Collector()
    yield started
    started.stop()


def attributes(span: Span) -> dict[str, str | int]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def test_a_request_its_engine_call_and_its_statements_are_one_trace(tmp_path: Path, collector: Collector) -> None:
    with running_server(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="100") as server:
        key = requests.post(f"{server.url}/users", json={"user_id": "ann"}, timeout=10).json()["user_key"]
        caller = {"Authorization": f"Bearer {key}"}
        file = {"file": ("note.txt", SECRET_TEXT.encode())}
        uploaded = requests.post(f"{server.url}/resources", files=file, headers=caller, timeout=60)
        assert uploaded.json()["status"] == "extracted", uploaded.text
        broken = {"file": (f"{SECRET_TEXT}.pdf", b"%PDF-1.4 broken")}
        refused = requests.post(f"{server.url}/resources", files=broken, headers=caller, timeout=60)
        assert refused.json()["status"] == "failed", refused.text
        body = {"query": SECRET_TEXT, "scope": ["resources"]}
        traced = caller | {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}
        found = requests.post(f"{server.url}/memories/search", json=body, headers=traced, timeout=30).json()["results"]
        assert found
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        mcp = caller | {"Accept": "application/json, text/event-stream"}
        assert requests.post(f"{server.url}/mcp", json=message, headers=mcp, timeout=30).ok
        wait_until(lambda: {"POST /mcp", "task ingest_text"} <= {span.name for span in collector.spans()}, seconds=30)
        server.stop()
    spans = {span.span_id: span for span in collector.spans()}
    in_trace = [span for span in spans.values() if span.trace_id.hex() == TRACE_ID]
    [request] = [span for span in in_trace if span.kind == SERVER]
    assert request.name == "POST /memories/search"
    assert attributes(request)["http.response.status_code"] == 200
    [engine] = [span for span in in_trace if span.name == "embedded search"]
    assert engine.parent_span_id == request.span_id
    statements = [span for span in in_trace if "db.query.text" in attributes(span)]
    assert {span.parent_span_id for span in statements} == {request.span_id, engine.span_id}
    [task] = [span for span in spans.values() if span.name == "task ingest_text"]
    [link] = task.links
    assert spans[link.span_id].name == "POST /resources"
    [failed] = [span for span in spans.values() if span.name == "embedded add" and "error.type" in attributes(span)]
    assert attributes(failed)["error.type"] == "Unreadable"
    assert collector.metrics() >= {"http.server.request.duration", "memory_gateway.engine.duration"}
    sent = b"".join(body for _path, body in collector.bodies)
    assert SECRET_TEXT.encode() not in sent
    assert key.encode() not in sent
    assert b"ann" not in sent


def test_a_collector_that_is_away_delays_no_request_and_no_stop(tmp_path: Path) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    with running_server(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=away, OTEL_BSP_SCHEDULE_DELAY="100") as server:
        for _ in range(5):
            assert requests.get(f"{server.url}/resources", timeout=5).status_code == 401
        server.stop()
