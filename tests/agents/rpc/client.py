"""A low-level RPC client: it sends any frame, and receives every frame and the close."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.server import RunningServer

WAIT_SECONDS = 10.0
_ids = itertools.count(1)


@dataclass(frozen=True)
class Closed:
    """The close frame that the client received."""

    code: int
    reason: str


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.hello: dict[str, Any] = {}

    def send(self, frame: Any) -> None:
        self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def receive(self, seconds: float = WAIT_SECONDS) -> Any:
        """Return the next frame, or `Closed`. Raises: TimeoutError."""
        try:
            return json.loads(self.socket.recv(timeout=seconds))
        except ConnectionClosed as closed:
            frame = closed.rcvd
            return Closed(frame.code if frame else 1006, frame.reason if frame else "")

    def receive_response(self, request_id: str, seconds: float = WAIT_SECONDS) -> Any:
        """Return the response to a request; skip events. Raises: TimeoutError."""
        until = time.monotonic() + seconds
        while True:
            frame = self.receive(max(until - time.monotonic(), 0))
            if isinstance(frame, Closed) or frame.get("id") == request_id:
                return frame

    def request(self, method: str, params: Any = None, **frame_fields: Any) -> Any:
        """Return the response to a request; `Closed`, if the server has closed the connection, before it too."""
        request_id = f"r{next(_ids)}"
        frame = {"type": "req", "id": request_id, "method": method, **frame_fields}
        try:
            self.send(frame if params is None else {**frame, "params": params})
        except ConnectionClosed:
            return self.receive()
        return self.receive_response(request_id)

    def call(self, method: str, **params: Any) -> Any:
        """Send a request that must succeed, and return its payload."""
        answer = self.request(method, params)
        assert answer["ok"], answer
        return answer["payload"]

    def connect(self, **params: Any) -> Any:
        return self.request("connect", connect_params(**params))

    def is_alive(self) -> bool:
        return bool(self.call("health")["ok"])


def connect_params(token: str | None = None, *, protocol: int = 4, **others: Any) -> dict[str, Any]:
    """Return the parameters with which the plugin's panel connects."""
    return {
        "minProtocol": protocol,
        "maxProtocol": protocol,
        "client": {"id": "openclaw-control-ui", "version": "memory-panel", "platform": "web", "mode": "ui"},
        "role": "operator",
        "scopes": ["operator.admin"],
        "auth": {"token": token} if token else {},
        **others,
    }


@contextmanager
def open_connection(server: RunningServer, path: str = "/", **options: Any) -> Iterator[Client]:
    """Open a socket and receive the challenge."""
    url = server.url.replace("http", "ws", 1) + path
    with connect(url, max_size=2**26, compression=None, ping_interval=None, **options) as socket:
        client = Client(socket)
        challenge = client.receive()
        assert challenge["event"] == "connect.challenge"
        yield client


@contextmanager
def connected(server: RunningServer, token: str, **params: Any) -> Iterator[Client]:
    with open_connection(server) as client:
        answer = client.connect(token=token, **params)
        assert answer["ok"], answer
        client.hello = answer["payload"]
        yield client
