"""A receiver of webhooks: a real local HTTP server that keeps what arrives and answers as told."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Mapping[str, str]]


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    def is_signed_by(self, secret: str) -> bool:
        """Verify as the specification says, with code that shares nothing with the gateway's."""
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        key = base64.b64decode(secret[len("whsec_") :])
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in self.headers["webhook-signature"].split(" ")


class Receiver:
    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Answer] = lambda _: (204, {})

    @property
    def types(self) -> list[str]:
        return [request.event["type"] for request in self.requests]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, body)
        self.server.receiver.requests.append(request)
        status, answered = self.server.receiver.answer(request)
        self.send_response(status)
        for name, value in {"Content-Length": "0", **answered}.items():
            self.send_header(name, value)
        self.end_headers()

    def handle(self) -> None:
        with suppress(ConnectionError):  # a sender that gave up
            super().handle()

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    receiver: Receiver


@contextmanager
def running_receiver(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        origin = f"{'https://localhost' if tls else 'http://127.0.0.1'}:{server.server_address[1]}"
        server.receiver = Receiver(f"{origin}/hook/?tenant=7")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.receiver
        finally:
            server.shutdown()
            thread.join()
