"""The metrics of a worker, which has no other HTTP server: `manage.py worker --metrics HOST:PORT`."""

import threading
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.conf import settings
from django.utils.crypto import constant_time_compare
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from core.monitoring import REGISTRY


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    timeout = 10  # seconds that a connection may be idle

    def log_message(self, *_arguments: Any) -> None: ...


def serve(host: str, port: int) -> None:
    """Answer Prometheus in a thread, until the process ends. Raises: `OSError` if the address is not available."""
    server = make_server(host, port, _answer, server_class=_Server, handler_class=_Silent)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def _answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Return the metrics of this process, to callers with the metrics token."""
    kind, _space, given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    token: str = settings.MEMORY_GATEWAY_METRICS_TOKEN
    if kind.lower() != "bearer" or not constant_time_compare(given, token):
        start_response("401 Unauthorized", [("WWW-Authenticate", "Bearer"), ("Content-Length", "0")])
        return [b""]
    body = generate_latest(REGISTRY)
    start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST), ("Content-Length", str(len(body)))])
    return [body]
