"""A faulty proxy in front of EverOS, which keeps working behind it, and clients that retry."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.resources.people import RemotePerson
from tests.stub_upstream import Fault, StubUpstream

NOON = 1_781_172_177_000
_MAX_ATTEMPTS = 300
_MAX_PAUSE_SECONDS = 1.0


def proxy_faults(status: int, late_seconds: float) -> dict[str, Fault]:
    """Return faults of a proxy by name: before EverOS gets the call, after it, and before it works late."""
    page = {"body": b"<html>Gateway error</html>", "content_type": "text/html"}
    return {
        f"{status}": Fault(status=status, **page),
        f"{status}_after_work": Fault(status=status, acts=True, **page),
        f"{status}_before_late_work": Fault(status=status, late_seconds=late_seconds, **page),
    }


class FaultyProxy(StubUpstream):
    """An EverOS whose writes fail with a probability. Faults are equally likely; `injected` counts them."""

    def __init__(self, faults: dict[str, Fault], chance: float, *, names: Sequence[str] = ("add", "flush")) -> None:
        super().__init__()
        self.injected: Counter[str] = Counter()
        self._proxy_faults = faults
        self._chance = chance
        self._names = names
        self._rng = random.Random(7)

    def next_fault(self, name: str, body: bytes) -> Fault:
        with self.store.lock:
            if name in self._names and self._rng.random() < self._chance:
                kind = self._rng.choice(sorted(self._proxy_faults))
                self.injected[f"{name} {kind}"] += 1
                return self._proxy_faults[kind]
        return super().next_fault(name, body)

    def heal_all(self) -> None:
        self._chance = 0.0


@dataclass
class Traffic:
    """Uploads and messages of a user in sessions that are flushed sometimes, and what the gateway acknowledged."""

    person: RemotePerson
    sessions: int = 20
    flushes: bool = True
    acknowledged: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, uploads: int, adds: int, clients: int = 6) -> None:
        work = [("upload", number) for number in range(uploads)] + [("add", number) for number in range(adds)]
        random.Random(3).shuffle(work)
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda item: self._send(*item), work))

    def flush_all(self) -> None:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(self._flush, range(self.sessions)))

    def _send(self, kind: str, number: int) -> None:
        mark = f"zq{kind}{number}x"
        if kind == "upload":
            self._retry_until_accepted(
                lambda: self.person.upload("note.txt", f"Note {mark}.".encode(), Prefer="respond-async")
            )
        else:
            session = number % self.sessions
            content = {"sender_id": self.person.user_id, "role": "user", "timestamp": NOON + number * 1000}
            body = {"session_id": f"chat:{session}", "messages": [{**content, "content": f"Remember {mark}."}]}
            self._retry_until_accepted(lambda: self._call("/memories/add", body))
            if self.flushes and number % 5 == 0:
                self._flush(session)
        with self._lock:
            self.acknowledged.add(mark)

    def _flush(self, session: int) -> None:
        self._retry_until_accepted(lambda: self._call("/memories/flush", {"session_id": f"chat:{session}"}))

    def _call(self, path: str, body: dict[str, Any]) -> requests.Response:
        url = f"{self.person.server.url}{path}"
        return requests.post(url, json=body, headers=self.person.headers, timeout=120)

    @staticmethod
    def _retry_until_accepted(call: Any) -> None:
        for _ in range(_MAX_ATTEMPTS):
            answer: requests.Response = call()
            if answer.status_code in {200, 202}:
                return
            assert answer.status_code in {429, 502, 503, 507}, answer.text
            time.sleep(min(float(answer.headers.get("Retry-After") or 1), _MAX_PAUSE_SECONDS))
        raise AssertionError(f"never accepted: {answer.text}")


def duplicated_and_missing(traffic: Traffic, texts: str) -> tuple[list[str], list[str]]:
    """Return acknowledged texts that are in more than one memory, and those that are in none."""
    counts = {mark: texts.count(mark + ".") for mark in traffic.acknowledged}
    return sorted(mark for mark, count in counts.items() if count > 1), sorted(
        mark for mark, count in counts.items() if not count
    )
