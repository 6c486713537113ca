"""An engine that keeps a ledger of what it was asked, and fails when told to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import EngineError
from store.port import AddResult, FlushResult, Health
from store.types import Message, Owner, SearchRequest, SearchResult


@dataclass
class RecordingEngine:
    """`failures` holds, per verb, the errors of the next calls; an empty list means success. `during_add` runs inside
    each add. `added` keeps (owner, session, messages) of every add that succeeded.
    """

    failures: dict[str, list[EngineError]] = field(default_factory=dict)
    during_add: Callable[[], object] = lambda: None
    flush_status: str = "extracted"
    is_up: bool = True
    added: list[tuple[Owner, str, tuple[Message, ...]]] = field(default_factory=list)
    flushed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, owner: Owner, session_id: str, messages: Sequence[Message], **_: object) -> AddResult:
        self._call("add", session_id)
        self.during_add()
        with self._lock:
            self.added.append((owner, session_id, tuple(messages)))
        return AddResult("accumulated", len(messages), "add")

    def flush(self, owner: Owner, session_id: str) -> FlushResult:
        self._call("flush", session_id)
        with self._lock:
            self.flushed.append(session_id)
        is_extracted = self.flush_status == "extracted"
        return FlushResult("extracted" if is_extracted else "no_extraction", int(is_extracted), "flush", None)

    def search(self, owner: Owner, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        return [SearchResult((), "keyword") for _ in requests]

    def describe(self, owner: Owner, session_id: str, message: Message) -> bool:
        return False

    def delete(self, owner: Owner, session_id: str) -> None:
        self._call("delete", session_id)
        with self._lock:
            self.deleted.append(session_id)

    def health(self, timeout_seconds: float) -> Health:
        return Health("ok" if self.is_up else "unavailable", None)

    def capabilities(self) -> Mapping[str, bool]:
        return {"keyword": True}

    def _call(self, verb: str, session_id: str) -> None:
        with self._lock:
            self.calls.append((verb, session_id))
            if failures := self.failures.get(verb):
                raise failures.pop(0)
