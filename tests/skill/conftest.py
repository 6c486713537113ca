"""The skill's client in this process, and a gateway that answers as told and keeps what it was asked."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

SKILL = Path(__file__).resolve().parent.parent.parent / "skill" / "memory-gateway-agent"
SCRIPT = SKILL / "scripts" / "memory_gateway.py"


def load_client() -> ModuleType:
    """The script under another name than the project's package."""
    spec = importlib.util.spec_from_file_location("memory_gateway_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CLIENT = load_client()


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """`declared_bytes`: a Content-Length that promises more than comes."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    declared_bytes: int | None = None


class StubGateway:
    """Give the set answers in turn, and the last one for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers = [Answer()]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def only(self) -> Asked:
        """The one request that came."""
        assert len(self.asked) == 1, self.asked
        return self.asked[0]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                stub.asked.append(Asked(self.command, self.path, dict(self.headers), body))
                answer = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
                self.send_response(answer.status)
                declared = len(answer.body) if answer.declared_bytes is None else answer.declared_bytes
                for name, value in {"Content-Length": str(declared), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        return Handler


@pytest.fixture
def stub() -> Iterator[StubGateway]:
    gateway = StubGateway()
    yield gateway
    gateway.close()


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run of the client: exit code, stdout, stderr and the seconds it would have slept."""

    code: int
    out: str
    err: str
    slept: list[float]

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(stub: StubGateway, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the client against the stub as u_123; keywords are environment variables without MEMORY_GATEWAY_."""

    def _run(*arguments: str, stdin: str = "", **settings: str) -> Outcome:
        given = {"BASE_URL": stub.url, "USER_ID": "u_123", "USER_KEY": "uk_secret", **settings}
        environ = {f"MEMORY_GATEWAY_{name}": value for name, value in given.items()}
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        slept: list[float] = []
        try:
            code = CLIENT.main(arguments, environ, sleep=slept.append)
        except SystemExit as ended:  # argparse
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err, slept)

    return _run
