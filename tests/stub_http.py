"""A local HTTP server for stand-ins of services that answer POSTs in JSON, and that fail on the wire when told to."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Respond = Callable[[str, Mapping[str, str], Any], tuple[int | str, bytes]]

_LARGE_BYTES = 64 * 2**20
_DRIP_SECONDS = 0.5
_BOMB = gzip.compress(b'{"data": [' + b" " * _LARGE_BYTES + b"]}", 9)
REDIRECTED_TO = "/redirected"
WIRE = (
    "busy", "reset before", "reset within", "reset after", "slow", "drip", "cut off", "half JSON", "no body", "html",
    "redirect", "large", "bomb",
)  # fmt: skip
"""The faults that `respond` can name instead of a status."""
OF_EACH_KIND = frozenset({503, 429, 400, "refused", "reset within", "half JSON", "few", "NaN", "no choices", "cut"})


def cases(faults: Iterable[int | str]) -> list[Any]:
    """Return faults as cases of a test: some of each kind, and all others for the torture."""
    return [one if one in OF_EACH_KIND else pytest.param(one, marks=pytest.mark.torture) for one in faults]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Type"] == "application/json":
            body = json.loads(body)
        status, raw = self.server.respond(self.path, dict(self.headers), body)
        if isinstance(status, int):
            self._send(status, raw)
        else:
            self._fail(status, raw)

    def _fail(self, fault: str, raw: bytes) -> None:  # noqa: C901, PLR0912 - a table
        match fault:
            case "busy":
                self._send(503, b"{}", {"Retry-After": "1"})
            case "reset before":
                self._reset()
            case "reset within":
                self._send(200, raw, most=len(raw) // 2)
                self._reset()
            case "reset after":
                self._send(200, raw)
                self._reset()
            case "slow":
                self._wait(100)
                self._send(200, raw)
            case "drip":
                self._send(200, raw, most=0)
                for byte in raw:
                    self.wfile.write(bytes([byte]))
                    self._wait(_DRIP_SECONDS)
            case "cut off":
                self._send(200, raw, most=len(raw) // 2)
                self.close_connection = True
            case "half JSON":
                self._send(200, raw[: len(raw) // 2])
            case "no body":
                self._send(200, b"")
            case "html":
                self._send(200, b"<html>Welcome to nginx!</html>", {"Content-Type": "text/html"})
            case "redirect":
                self._send(302, b"{}", {"Location": REDIRECTED_TO})
            case "large":
                self._send_endless(b'{"data": "', b"x" * 2**20, _LARGE_BYTES // 2**20)
            case "bomb":
                self._send(200, _BOMB, {"Content-Encoding": "gzip"})
            case _:
                raise ValueError(f"There is no fault {fault!r}.")

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, most: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:most])

    def _send_endless(self, start: bytes, piece: bytes, times: int) -> None:
        """Without a length, so that only counting helps."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (start, *[piece] * times, b'"}', b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.server.is_failing() and (left := until - time.monotonic()) > 0:
            time.sleep(min(0.05, left))

    def _reset(self) -> None:
        """RST instead of a goodbye."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def finish(self) -> None:
        if not self.wfile.closed:
            super().finish()

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, respond: Respond, is_failing: Callable[[], bool]) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.respond = respond
        self.is_failing = is_failing

    def handle_error(self, *_: Any) -> None:
        """A caller who did not wait."""


@contextmanager
def answering_posts(port: int, respond: Respond, is_failing: Callable[[], bool]) -> Iterator[None]:
    """Answers each POST with what `respond` makes of its path, headers and body (JSON is parsed): a status and bytes,
    or the name of a fault of `WIRE` and what it does its harm to. Slow answers go on once `is_failing` ends."""
    server = _Server(port, respond, is_failing)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
