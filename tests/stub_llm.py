"""A language model by rules, behind an OpenAI-compatible address. It fails when told to, and may obey what it reads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from engine.llm.framing import END, START
from tests.server import free_port

Line = dict[str, Any]


class StubLlm:
    """`failure` is None, a status, "slow", "text", "envelope", "chat", "shape" or "cut".

    `rewrite`, `judge` and `extract` make the answers of the data's lines; `asked` keeps the bodies of all calls.
    """

    def __init__(self) -> None:
        self.failure: int | str | None = None
        self.failing: Callable[[str], bool] = lambda _: True
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.rewrite: Callable[[list[Line]], Any] = lambda lines: {"queries": [lines[0]["question"]]}
        self.judge: Callable[[list[Line]], Any] = lambda lines: {
            "ratings": [{"number": line["number"], "rating": 5} for line in lines[1:]]
        }
        self.extract: Callable[[list[Line]], Any] = lambda _: {"memories": []}
        self.wrap: Callable[[str], str] = lambda text: text
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def tasks(self, kind: str) -> list[dict[str, Any]]:
        """The calls of a kind: "rewrite", "judge" or "extract"."""
        return [body for body in self.bodies if kind_of(body) == kind]

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        kind = kind_of(body)
        failure = self.failure if self.failing(kind) else None
        if isinstance(failure, int):
            return failure, b'{"error": {"message": "no, sk-secret"}}'
        if failure == "text":
            return 200, b"<html>not found</html>"
        if failure == "envelope":
            return 200, b'{"choices": []}'
        if failure == "slow":
            time.sleep(30)
        words = {"chat": "Sure! Here you are.", "shape": '{"queries": 7, "ratings": "x", "memories": {"a": 1}}'}
        text = words.get(str(failure)) or self.wrap(json.dumps(getattr(self, kind)(lines_of(body))))
        if failure == "cut":
            text = text[: len(text) // 2]
        return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def kind_of(body: dict[str, Any]) -> str:
    task = body["messages"][0]["content"]
    return "rewrite" if "search queries" in task else "judge" if "You judge" in task else "extract"


def lines_of(body: dict[str, Any]) -> list[Line]:
    """The data of a call, which has to stand between the markers alone."""
    start, *lines, end = body["messages"][1]["content"].split("\n")
    assert (start, end) == (START, END)
    return [json.loads(line) for line in lines]


@contextmanager
def running_llm() -> Iterator[StubLlm]:
    stub = StubLlm()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.bodies.append(body)
            stub.headers.append(dict(self.headers))
            status, raw = stub.answer(body) if self.path == "/v1/chat/completions" else (404, b"{}")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: Any) -> None:
            """A caller who did not wait."""

    server = Server(("127.0.0.1", stub.port), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
