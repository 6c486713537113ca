"""A stand-in for EverOS on loopback: it speaks its envelopes, keeps what it is given, records what it is asked, and
misbehaves on demand.

In its own process: `python -m tests.stub_upstream --port 19960 --latency-ms 20`.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

from tests.stub_everos import Refused, Store


@dataclass(frozen=True)
class Fault:
    """One misbehavior. `acts`: the call is carried out before the answer goes wrong; `late_seconds`: it is carried out
    so long after the answer; `slow_seconds`: a flush takes the buffer before the
    answer and makes its memories so long after.

    `status` and `body` replace the answer; `reset` ends the connection without one; `hang_seconds` waits first;
    `drip_seconds` waits between single bytes of the answer; `truncate` ends it half way; `size_bytes` sends that much
    JSON; `bomb_bytes` sends that much packed by gzip; `raw` sends these bytes instead of HTTP.
    """

    status: int | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    acts: bool = False
    late_seconds: float = 0.0
    slow_seconds: float = 0.0
    reset: bool = False
    hang_seconds: float = 0.0
    drip_seconds: float = 0.0
    truncate: bool = False
    size_bytes: int = 0
    bomb_bytes: int = 0
    raw: bytes | None = None

    @property
    def replaces(self) -> bool:
        """Return True if the call itself is not made."""
        given = (self.status, self.body, self.raw)
        return any(value is not None for value in given) or self.reset or bool(self.size_bytes or self.bomb_bytes)


@dataclass(frozen=True)
class Recorded:
    """One call as it came. `name` is the last part of its path: add, flush, search, get, health, or a task's id."""

    name: str
    body: Any
    headers: Mapping[str, str]


class StubUpstream:
    """The server and its controls: `fault(name, ...)` for the next calls, `requests` and `store` to look at after."""

    def __init__(self, port: int = 0, latency_seconds: float = 0.0, version: str | None = "1.5.1") -> None:
        self.store = Store()
        self.requests: list[Recorded] = []
        self.connections = 0
        self.latency_seconds = latency_seconds
        self.version = version
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.most_at_once: Counter[str] = Counter()
        self._at_once: Counter[str] = Counter()
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self.failed_for: Counter[str] = Counter()
        self._fault_of_users: dict[str, Fault] = {}
        self._is_freed = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.stub = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> StubUpstream:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def fault(self, name: str, fault: Fault, times: int = 1) -> None:
        """The next `times` calls of that name ("*": of any) go wrong."""
        self._faults[name] += [fault] * times

    def heal(self, name: str) -> None:
        """Calls of that name go right from now on."""
        self._faults[name].clear()

    @contextmanager
    def failing_for(self, user_id: str, fault: Fault) -> Iterator[None]:
        """Calls in whose body the id stands go wrong meanwhile, and those that hang are answered at its end."""
        self._is_freed.clear()
        self._fault_of_users[user_id] = fault
        try:
            yield
        finally:
            del self._fault_of_users[user_id]
            self._is_freed.set()

    def pause(self, seconds: float) -> None:
        self._is_freed.wait(seconds)

    def next_fault(self, name: str, body: bytes) -> Fault:
        for user_id, fault in list(self._fault_of_users.items()):
            if user_id.encode() in body:
                self.failed_for[user_id] += 1
                return fault
        with self.store.lock:
            queue = self._faults[name] or self._faults["*"]
            return queue.pop(0) if queue else Fault()

    def calls(self, name: str) -> list[Any]:
        """The bodies of all calls of that name."""
        return [request.body for request in self.requests if request.name == name]

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        with self.store.lock:
            self._at_once[name] += 1
            self.most_at_once[name] = max(self.most_at_once[name], self._at_once[name])
        try:
            yield
        finally:
            with self.store.lock:
                self._at_once[name] -= 1

    def answer(self, name: str, body: Any) -> Any:
        """Return the answer of EverOS: the `data` of the envelope, or the whole body of /health."""
        if name == "health":
            return self._health()
        if name in self.tasks:
            states = self.tasks[name]
            return states.pop(0) if len(states) > 1 else states[0]
        if name == "openapi.json":
            return {"openapi": "3.1.0", "paths": {f"/api/v2/memory/{call}": {} for call in self._deletions()}}
        if name not in {"add", "flush", "search", "get", *self._deletions()}:
            raise Refused(404, "NOT_FOUND", "Not Found")
        return getattr(self.store, name)(body)

    def _deletions(self) -> set[str]:
        """The calls that EverOS has since 1.6."""
        numbers = (self.version or "1.0").split(".")[:2]
        return {"delete", "delete_by_ids"} if tuple(map(int, numbers)) >= (1, 6) else set()

    def _health(self) -> dict[str, Any]:
        if self.version is None:
            return {"status": "ok"}
        capabilities = dict.fromkeys(("llm", "embed", "rerank", "multimodal_llm", "parser"), True)
        return {"status": "ok", "version": self.version, "capabilities": capabilities, "cascade": {"healthy": True}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    stub: StubUpstream

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Peers that go away are what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.stub = cast(_Server, self.server).stub
        self.stub.connections += 1

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = urlsplit(self.path).path.rsplit("/", 1)[-1]
        body = json.loads(raw) if raw else None
        self.stub.requests.append(Recorded(name, body, dict(self.headers)))
        with self.stub.counted(name):
            time.sleep(self.stub.latency_seconds)
            self._answer(name, body, self.stub.next_fault(name, raw))

    def _answer(self, name: str, body: Any, fault: Fault) -> None:
        status, data = 200, fault.body
        if fault.late_seconds:
            self._later(fault.late_seconds, lambda: self._carried_out(name, body))
        if fault.slow_seconds and name == "flush":
            taken = self.stub.store.take(body)
            self._later(fault.slow_seconds, lambda: self.stub.store.extract(body, taken))
        if fault.acts or not fault.replaces:
            status, data = self._carried_out(name, body)
        self.stub.pause(fault.hang_seconds)
        if fault.status is not None or fault.body is not None:
            status, data = fault.status or 200, fault.body
        if fault.reset:
            return self._reset()
        if fault.raw is not None:
            self.wfile.write(fault.raw)
            return self._reset()
        self._send(status, data, fault)
        return None

    @staticmethod
    def _later(seconds: float, do: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, do)
        timer.daemon = True
        timer.start()

    def _carried_out(self, name: str, body: Any) -> tuple[int, Any]:
        try:
            data = self.stub.answer(name, body)
        except Refused as refusal:
            error = {"code": refusal.code, "message": refusal.message, "path": self.path}
            return refusal.status, {"request_id": uuid4().hex, "error": error}
        return 200, data if name in {"health", "openapi.json"} else {"request_id": uuid4().hex, "data": data}

    def _send(self, status: int, data: Any, fault: Fault) -> None:
        if fault.size_bytes or fault.bomb_bytes:
            return self._send_much(fault)
        payload = data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()
        head = self._head(status, {"Content-Length": str(len(payload)), **fault.headers}, fault.content_type)
        if fault.truncate:
            payload = payload[: len(payload) // 2]
            self.close_connection = True
        if not fault.drip_seconds:
            self.wfile.write(head + payload)
            return None
        for byte in head + payload:
            self.wfile.write(bytes([byte]))
            self.stub.pause(fault.drip_seconds)
        return None

    def _send_much(self, fault: Fault) -> None:
        """Without a length, so that only counting helps."""
        self.close_connection = True
        status = fault.status or 200
        if fault.size_bytes:
            self.wfile.write(self._head(status, {"Connection": "close", **fault.headers}))
            piece = b'{"data": "' + b"x" * 2**20
            for _ in range(fault.size_bytes // len(piece) + 1):
                self.wfile.write(piece)
            return
        self.wfile.write(self._head(status, {"Connection": "close", "Content-Encoding": "gzip", **fault.headers}))
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        for _ in range(fault.bomb_bytes // 2**20):
            self.wfile.write(packer.compress(b" " * 2**20))
        self.wfile.write(packer.flush())

    def _head(self, status: int, headers: Mapping[str, str], content_type: str = "application/json") -> bytes:
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {content_type}", f"X-Request-Id: {uuid4().hex}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

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


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for EverOS on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    options = parser.parse_args()
    stub = StubUpstream(options.port, options.latency_ms / 1000)
    print(stub.url, flush=True)  # noqa: T201
    stub.serve_forever()


if __name__ == "__main__":
    main()
