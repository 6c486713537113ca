"""A plain WSGI application behind our bridge, as a separate ASGI server with short timeouts.

Run by `uvicorn tests.memory_gateway.bridge_app:application`; the tests of the bridge talk to it over real sockets.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson

from core.errors import GatewayError
from core.logs import request_id
from memory_gateway.server.request_body import BodyError, ClientTimeouts, Scope
from memory_gateway.server.wsgi_bridge import Answer, WSGIBridge

MAX_BODY_BYTES = 30 * 2**20
TIMEOUTS = ClientTimeouts(stall_seconds=1.0, grace_seconds=1.5, bytes_per_second=4096, linger_seconds=5.0)
EVENTS: list[str] = []

Start = Callable[[str, list[tuple[str, str]]], Any]


class Stream:
    """A response like Django's streaming ones."""

    streaming = True

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        EVENTS.append("closed")


def app(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    views = {
        "/ping": ping,
        "/echo": echo,
        "/ignore": ping,
        "/sleep": sleep,
        "/stream": stream,
        "/break-early": break_early,
        "/break-late": break_late,
        "/raise": fail,
        "/empty": empty,
        "/events": events,
        "/large": large,
    }
    return views.get(environ["PATH_INFO"], show_environ)(environ, start)


def ping(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "4")])
    return [b"pong"]


def echo(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """Return the number of bytes that the application read, their digest and its pool. Events end with the query."""
    who = environ["QUERY_STRING"]
    EVENTS.append(f"entered {who}")
    left, digest, size = int(environ["CONTENT_LENGTH"]), hashlib.sha256(), 0
    try:
        while left and (part := environ["wsgi.input"].read(min(left, 65536))):
            size, left = size + len(part), left - len(part)
            digest.update(part)
    except BodyError as error:
        EVENTS.append(f"{type(error).__name__} {who}")
        raise
    EVENTS.append(f"read {who}")
    start("200 OK", [("Content-Type", "application/json")])
    answer = {"size": size, "sha256": digest.hexdigest(), "thread": threading.current_thread().name}
    return [json.dumps(answer).encode()]


def show_environ(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    start("200 OK", [("Content-Type", "application/json")])
    shown = {name: value for name, value in environ.items() if isinstance(value, str)}
    return [json.dumps({**shown, "request_id": request_id.get()}).encode()]


def sleep(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    time.sleep(float(environ["QUERY_STRING"]))
    return ping(environ, start)


def stream(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """QUERY_STRING parts, one every 50 ms."""
    start("200 OK", [("Content-Type", "text/plain")])
    return Stream(_parts(int(environ["QUERY_STRING"])))


def _parts(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield b"part %d\n" % number
        time.sleep(0.05)


def large(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    size = 64 * 2**20
    start("200 OK", [("Content-Length", str(size))])
    return Stream(iter([bytes(2**20)] * 64))


def break_early(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    start("200 OK", [])
    return Stream(_raise_after(0))


def break_late(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    start("200 OK", [])
    return Stream(_raise_after(2))


def _raise_after(parts: int) -> Iterator[bytes]:
    yield from [b"part"] * parts
    raise RuntimeError("the stream broke")


def fail(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    raise RuntimeError("the application broke")


def empty(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    """A careless application: a body where none may be."""
    start(f"{environ['QUERY_STRING']} Nothing", [("Content-Length", "4")])
    return [b"body"]


def events(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
    start("200 OK", [])
    return [json.dumps(EVENTS).encode()]


def refuse(scope: Scope, error: GatewayError) -> Answer:
    body = orjson.dumps({"code": error.code, "detail": error.detail})
    return Answer(error.status, [(b"content-type", b"application/problem+json")], body)


application = WSGIBridge(
    app, refuse=refuse, max_body_bytes=MAX_BODY_BYTES, threads=4, upload_threads=2, timeouts=TIMEOUTS
)
