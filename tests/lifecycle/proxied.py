"""A proxy before EverOS that answers for it while it goes on working, and clients who try again as clients do."""

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
_MOST_TRIES = 60


def of_proxy(status: int, late_seconds: float) -> dict[str, Fault]:
    """What a proxy does with a call that it answers itself: by the name of the fault."""
    page = {"body": b"<html>Gateway error</html>", "content_type": "text/html"}
    return {
        f"{status}": Fault(status=status, **page),
        f"{status}_after_work": Fault(status=status, acts=True, **page),
        f"{status}_before_late_work": Fault(status=status, late_seconds=late_seconds, **page),
    }


class FaultyProxy(StubUpstream):
    """Each write goes wrong with a probability, each kind of fault as often as the others; `told` counts them."""

    def __init__(self, faults: dict[str, Fault], chance: float, *, names: Sequence[str] = ("add", "flush")) -> None:
        super().__init__()
        self.told: Counter[str] = Counter()
        self._faults_of_proxy = faults
        self._chance = chance
        self._names = names
        self._dice = random.Random(7)

    def next_fault(self, name: str, body: bytes) -> Fault:
        with self.store.lock:
            if name in self._names and self._dice.random() < self._chance:
                kind = self._dice.choice(sorted(self._faults_of_proxy))
                self.told[f"{name} {kind}"] += 1
                return self._faults_of_proxy[kind]
        return super().next_fault(name, body)

    def heal_all(self) -> None:
        self._chance = 0.0


@dataclass
class Traffic:
    """A user's uploads, and messages in chats that are flushed now and then; what the gateway acknowledged."""

    person: RemotePerson
    sessions: int = 20
    acknowledged: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, uploads: int, adds: int, clients: int = 6) -> None:
        work = [("upload", number) for number in range(uploads)] + [("add", number) for number in range(adds)]
        random.Random(3).shuffle(work)
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(lambda item: self._one(*item), work))

    def flush_all(self) -> None:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(self._flush, range(self.sessions)))

    def _one(self, kind: str, number: int) -> None:
        mark = f"zq{kind}{number}x"
        if kind == "upload":
            self._until_taken(lambda: self.person.upload("note.txt", f"Note {mark}.".encode(), Prefer="respond-async"))
        else:
            session = number % self.sessions
            content = {"sender_id": self.person.user_id, "role": "user", "timestamp": NOON + number * 1000}
            body = {"session_id": f"chat:{session}", "messages": [{**content, "content": f"Remember {mark}."}]}
            self._until_taken(lambda: self._call("/memories/add", body))
            if number % 5 == 0:
                self._flush(session)
        with self._lock:
            self.acknowledged.add(mark)

    def _flush(self, session: int) -> None:
        self._until_taken(lambda: self._call("/memories/flush", {"session_id": f"chat:{session}"}))

    def _call(self, path: str, body: dict[str, Any]) -> requests.Response:
        url = f"{self.person.server.url}{path}"
        return requests.post(url, json=body, headers=self.person.headers, timeout=120)

    @staticmethod
    def _until_taken(call: Any) -> None:
        for _ in range(_MOST_TRIES):
            answer: requests.Response = call()
            if answer.status_code in {200, 202}:
                return
            assert answer.status_code in {429, 502, 503, 507}, answer.text
            time.sleep(min(float(answer.headers.get("Retry-After") or 1), 5.0))
        raise AssertionError(f"never taken: {answer.text}")


def repeated_and_missing(traffic: Traffic, texts: str) -> tuple[list[str], list[str]]:
    """What is in the memories more than once, and what was acknowledged and is in none."""
    counts = {mark: texts.count(mark + ".") for mark in traffic.acknowledged}
    return sorted(mark for mark, count in counts.items() if count > 1), sorted(
        mark for mark, count in counts.items() if not count
    )
