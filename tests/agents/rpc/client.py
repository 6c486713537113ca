"""A client that says exactly what a test wants said, and hears every frame and the close."""

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
    """How a socket ended, as the client saw it."""

    code: int
    reason: str


class Client:
    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.hello: dict[str, Any] = {}

    def send(self, frame: Any) -> None:
        self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    def hear(self, seconds: float = WAIT_SECONDS) -> Any:
        """The next frame, or `Closed`. Errors: TimeoutError."""
        try:
            return json.loads(self.socket.recv(timeout=seconds))
        except ConnectionClosed as closed:
            frame = closed.rcvd
            return Closed(frame.code if frame else 1006, frame.reason if frame else "")

    def hear_response(self, request_id: str, seconds: float = WAIT_SECONDS) -> Any:
        """The response to a request, passing over events, which come for ever. Errors: TimeoutError."""
        until = time.monotonic() + seconds
        while True:
            frame = self.hear(max(until - time.monotonic(), 0))
            if isinstance(frame, Closed) or frame.get("id") == request_id:
                return frame

    def ask(self, method: str, params: Any = None, **beside: Any) -> Any:
        request_id = f"r{next(_ids)}"
        frame = {"type": "req", "id": request_id, "method": method, **beside}
        self.send(frame if params is None else {**frame, "params": params})
        return self.hear_response(request_id)

    def call(self, method: str, **params: Any) -> Any:
        """The payload of a request that succeeds."""
        answer = self.ask(method, params)
        assert answer["ok"], answer
        return answer["payload"]

    def connect(self, **params: Any) -> Any:
        return self.ask("connect", connect_params(**params))

    def is_alive(self) -> bool:
        return bool(self.call("health")["ok"])


def connect_params(token: str | None = None, *, wire: int = 4, **others: Any) -> dict[str, Any]:
    """As the panel of the plugin's document connects."""
    return {
        "minProtocol": wire,
        "maxProtocol": wire,
        "client": {"id": "openclaw-control-ui", "version": "memory-panel", "platform": "web", "mode": "ui"},
        "role": "operator",
        "scopes": ["operator.admin"],
        "auth": {"token": token} if token else {},
        **others,
    }


@contextmanager
def dialled(server: RunningServer, path: str = "/", **options: Any) -> Iterator[Client]:
    """A socket that heard the challenge and said nothing yet."""
    url = server.url.replace("http", "ws", 1) + path
    with connect(url, max_size=2**26, compression=None, ping_interval=None, **options) as socket:
        client = Client(socket)
        challenge = client.hear()
        assert challenge["event"] == "connect.challenge"
        yield client


@contextmanager
def connected(server: RunningServer, token: str, **params: Any) -> Iterator[Client]:
    with dialled(server) as client:
        answer = client.connect(token=token, **params)
        assert answer["ok"], answer
        client.hello = answer["payload"]
        yield client
