"""An embeddings endpoint that means something: words of one meaning lie in one direction. It fails when told to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from store.vectors.spaces import TEST_SENTENCES
from tests.server import free_port
from tests.stub_http import WIRE, answering_posts

MEANINGS = [
    {"car", "automobile", "vehicle"},
    {"doctor", "physician"},
    {"happy", "glad"},
    {"汽车", "轿车"},
    {"cobbler", "shoemaker"},
]
"""Words that only a model knows to be the same."""


SHAPES: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "none": lambda _: {"data": []},
    "error": lambda _: {"error": {"message": "no"}},
    "few": lambda data: {"data": data[1:]},
    "many": lambda data: {"data": [*data, data[-1] | {"index": len(data)}]},
    "twice": lambda data: {"data": [item | {"index": 0} for item in data] if len(data) > 1 else data * 2},
    "short": lambda data: {"data": [item | {"embedding": item["embedding"][:3]} for item in data]},
    "ragged": lambda data: {"data": [*data[1:], data[0] | {"embedding": data[0]["embedding"] * 2 if data[1:] else []}]},
    "NaN": lambda data: {"data": [item | {"embedding": [float("nan"), *item["embedding"][1:]]} for item in data]},
    "null": lambda data: {"data": [item | {"embedding": [None, *item["embedding"][1:]]} for item in data]},
    "zeros": lambda data: {"data": [item | {"embedding": [0.0] * len(item["embedding"])} for item in data]},
    "huge": lambda data: {"data": [item | {"embedding": [1e300, *item["embedding"][1:]]} for item in data]},
    "base64": lambda data: {"data": [item | {"embedding": "AACAPwAAgD8="} for item in data]},
    "nested": lambda data: {"data": [item | {"embedding": [item["embedding"]]} for item in data]},
}
"""Answers of a wrong shape, made of the right `data`."""
FAULTS: tuple[int | str, ...] = (500, 502, 503, 429, 401, 404, *WIRE, *SHAPES)
"""All that an endpoint as such does wrong; 400 is about a text."""
FAILURES = tuple(fault for fault in FAULTS if fault != "reset after")
"""Those after which there is no answer."""


class StubEmbeddings:
    """`failure` is None, a status, or a name of `WIRE` or `SHAPES`; `failures` draws one for each call.

    `refused` is a word whose texts get 400. `asked` keeps the inputs of every call, `bodies` the calls themselves.
    """

    def __init__(self, *, dimensions: int = 64, knows_chinese: bool = False) -> None:
        self.dimensions = dimensions
        self.knows_chinese = knows_chinese
        self.delay_seconds = 0.0
        self.failure: int | str | None = None
        self.failures: Callable[[], int | str | None] | None = None
        self.refused = ""
        self.bodies: list[dict[str, Any]] = []
        self.paths: set[str] = set()
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def asked(self) -> list[list[str]]:
        return [body["input"] for body in self.bodies]

    @property
    def texts(self) -> list[str]:
        """All inputs but those of the trial."""
        return [text for texts in self.asked for text in texts if text not in TEST_SENTENCES]

    def vector(self, text: str) -> np.ndarray:
        if self.knows_chinese and text in TEST_SENTENCES:
            text = f"trial {TEST_SENTENCES.index(text) // 2}"
        words = text.lower().replace(".", " ").replace("?", " ").split()
        if self.knows_chinese:
            words += [word for meaning in MEANINGS for word in meaning if not word.isascii() and word in text]
        return np.sum([self._direction(word) for word in words or [text]], axis=0)

    def _direction(self, word: str) -> np.ndarray:
        for number, meaning in enumerate(MEANINGS):
            if word in meaning and (word.isascii() or self.knows_chinese):
                word = f"meaning {number}"
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
        return np.random.default_rng(seed).normal(size=self.dimensions)


@contextmanager
def running_embeddings(**options: Any) -> Iterator[StubEmbeddings]:
    stub = StubEmbeddings(**options)

    def respond(path: str, _headers: Mapping[str, str], body: Any) -> tuple[int | str, bytes]:
        time.sleep(stub.delay_seconds)
        stub.bodies.append(body)
        stub.paths.add(path)
        return _answer(stub, body["input"])

    with answering_posts(stub.port, respond, lambda: bool(stub.failure or stub.failures)):
        yield stub


def _answer(stub: StubEmbeddings, texts: list[str]) -> tuple[int | str, bytes]:
    failure = stub.failures() if stub.failures else stub.failure
    if isinstance(failure, int):
        return failure, b'{"error": {"message": "no"}}'
    if stub.refused and any(stub.refused in text for text in texts):
        return 400, b"{}"
    data = [{"index": index, "embedding": stub.vector(text).tolist()} for index, text in enumerate(texts)]
    shape = SHAPES.get(failure or "", lambda data: {"data": data})
    return failure if failure in WIRE else 200, json.dumps(shape(data)).encode()
