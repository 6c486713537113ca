"""An embeddings endpoint that means something: words of one meaning lie in one direction. It fails when told to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from store.vectors.scripts import TRIAL
from tests.server import free_port
from tests.stub_http import answering_posts

MEANINGS = [{"car", "automobile", "vehicle"}, {"doctor", "physician"}, {"happy", "glad"}, {"汽车", "轿车"}]
"""Words that only a model knows to be the same."""


class StubEmbeddings:
    """`failure` is None, a status, "slow", "text", "short" or "count"; `refused` is a word whose texts get 400.

    `asked` keeps the inputs of every call, `bodies` the calls themselves.
    """

    def __init__(self, *, dimensions: int = 64, knows_chinese: bool = False) -> None:
        self.dimensions = dimensions
        self.knows_chinese = knows_chinese
        self.failure: int | str | None = None
        self.refused = ""
        self.bodies: list[dict[str, Any]] = []
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
        return [text for texts in self.asked for text in texts if text not in TRIAL]

    def vector(self, text: str) -> np.ndarray:
        if self.knows_chinese and text in TRIAL:
            text = f"trial {TRIAL.index(text) // 2}"
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

    def respond(_path: str, _headers: Mapping[str, str], body: Any) -> tuple[int, bytes]:
        stub.bodies.append(body)
        return _answer(stub, body["input"])

    with answering_posts(stub.port, respond):
        yield stub


def _answer(stub: StubEmbeddings, texts: list[str]) -> tuple[int, bytes]:
    if isinstance(stub.failure, int):
        return stub.failure, b'{"error": {"message": "no"}}'
    if stub.failure == "text":
        return 200, b"<html>not found</html>"
    if stub.refused and any(stub.refused in text for text in texts):
        return 400, b"{}"
    if stub.failure == "slow":
        time.sleep(30)
    vectors = [stub.vector(text)[: 3 if stub.failure == "short" else None] for text in texts]
    data = [{"index": index, "embedding": vector.tolist()} for index, vector in enumerate(vectors)]
    return 200, json.dumps({"data": data[1:] if stub.failure == "count" else data}).encode()
