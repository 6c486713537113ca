"""A language model by rules, behind an OpenAI-compatible address. It fails when told to, and may obey what it reads."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from engines.embedded.llm.framing import END, START
from tests.server import free_port
from tests.stub_http import answering_posts

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

    def respond(path: str, headers: Mapping[str, str], body: Any) -> tuple[int, bytes]:
        stub.bodies.append(body)
        stub.headers.append(dict(headers))
        return stub.answer(body) if path == "/v1/chat/completions" else (404, b"{}")

    with answering_posts(stub.port, respond):
        yield stub
