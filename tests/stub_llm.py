"""A language model by rules, behind an OpenAI-compatible address. It fails when told to, and may obey what it reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from core.network.language_model import END, START
from tests.server import free_port
from tests.stub_http import WIRE, answering_posts

Line = dict[str, Any]


ENVELOPES: dict[str, Any] = {
    "no choices": {"choices": []},
    "error": {"error": {"message": "no, sk-secret"}},
    "list": [],
    "no message": {"choices": [{}]},
    "null": {"choices": [{"message": {"role": "assistant", "content": None}}]},
}
CONTENTS: dict[str, Callable[[str], str]] = {
    "chat": lambda _: "Sure! Here you are.",
    "shape": lambda _: '{"queries": 7, "ratings": "x", "memories": {"a": 1}}',
    "cut": lambda text: text[: len(text) // 2],
    "NUL": lambda text: (
        text[:-1] + ', "summary": "\\u0000", "memories": [{"kind": "fact", "text": "a\\u0000b", '
        '"messages": [1]}], "queries": ["\\u0000"]}'
    ),
}
"""What a model writes into an answer that is whole, made of the right text."""
FAULTS: tuple[int | str, ...] = (500, 502, 503, 429, 401, 404, *WIRE, *ENVELOPES, *CONTENTS)
FAILURES = tuple(fault for fault in FAULTS if fault != "reset after")
"""Those after which there is no answer."""


class StubLlm:
    """`failure` is None, a status, or a name of `WIRE`, `ENVELOPES` or `CONTENTS`; `failures` draws one for each call.

    `rewrite`, `judge`, `topics` and `extract` make the answers of the data's lines; `bodies` are those of all calls.
    """

    def __init__(self) -> None:
        self.delay_seconds = 0.0
        self.failure: int | str | None = None
        self.failures: Callable[[], int | str | None] | None = None
        self.failing: Callable[[str], bool] = lambda _: True
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: set[str] = set()
        self.rewrite: Callable[[list[Line]], Any] = lambda lines: {"queries": [lines[0]["question"]]}
        self.judge: Callable[[list[Line]], Any] = lambda lines: {
            "ratings": [{"number": line["number"], "rating": 5} for line in lines[1:]]
        }
        self.topics: Callable[[list[Line]], Any] = lambda _: {"texts": []}
        self.extract: Callable[[list[Line]], Any] = lambda _: {"memories": []}
        self.wrap: Callable[[str], str] = lambda text: text
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def tasks(self, kind: str) -> list[dict[str, Any]]:
        """The calls of a kind: "rewrite", "judge", "topics" or "extract"."""
        return [body for body in self.bodies if kind_of(body) == kind]

    def answer(self, body: dict[str, Any]) -> tuple[int | str, bytes]:
        kind = kind_of(body)
        failure = (self.failures() if self.failures else self.failure) if self.failing(kind) else None
        if isinstance(failure, int):
            return failure, b'{"error": {"message": "no, sk-secret"}}'
        if failure in ENVELOPES:
            return 200, json.dumps(ENVELOPES[failure]).encode()
        text = self.wrap(json.dumps(getattr(self, kind)(lines_of(body))))
        if failure in CONTENTS:
            text = CONTENTS[failure](text)
        answer = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        return failure if failure in WIRE else 200, json.dumps(answer).encode()


def kind_of(body: dict[str, Any]) -> str:
    task = body["messages"][0]["content"]
    if "never remembered" in task:
        return "topics"
    return "rewrite" if "search queries" in task else "judge" if "You judge" in task else "extract"


def lines_of(body: dict[str, Any]) -> list[Line]:
    """The data of a call, which has to stand between the markers alone."""
    start, *lines, end = body["messages"][1]["content"].split("\n")
    assert (start, end) == (START, END)
    return [json.loads(line) for line in lines]


@contextmanager
def running_llm() -> Iterator[StubLlm]:
    stub = StubLlm()

    def respond(path: str, headers: Mapping[str, str], body: Any) -> tuple[int | str, bytes]:
        stub.bodies.append(body)
        stub.paths.add(path)
        stub.headers.append(dict(headers))
        time.sleep(stub.delay_seconds)
        return stub.answer(body) if path == "/v1/chat/completions" else (404, b"{}")

    with answering_posts(stub.port, respond, lambda: bool(stub.failure or stub.failures)):
        yield stub
