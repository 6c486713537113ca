"""A stand-in upstream for each test, and a client that neither sleeps nor throws dice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from engine.port import ContentItem, Message, Owner, Role
from engine.upstream.client import Client, Options
from engine.upstream.patience import Retry
from engine.upstream_engine import UpstreamEngine
from tests.stub_upstream import StubUpstream


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


NOON = 1_781_172_177_000


def no_wait(_: float) -> None:
    """Instead of sleeping."""


def make_client(
    stub: StubUpstream,
    *,
    timeout_seconds: float = 5.0,
    attempts: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Client:
    retry = Retry(attempts=attempts, delay_seconds=0.01, sleep=no_wait, jitter=lambda: 0.0)
    return Client(Options(stub.url, timeout_seconds, retry, clock, no_wait))


@pytest.fixture
def client(stub: StubUpstream) -> Client:
    return make_client(stub)


def make_engine(stub: StubUpstream, *, attempts: int = 1, timeout_seconds: float = 5.0) -> UpstreamEngine:
    """`sleep` lets the time of the stand-in pass: nothing there takes any."""
    client = make_client(stub, attempts=attempts, timeout_seconds=timeout_seconds)
    return UpstreamEngine(client, batch_size=3, sleep=no_wait)


@pytest.fixture
def engine(stub: StubUpstream) -> UpstreamEngine:
    return make_engine(stub)


def told(owner: Owner, text: str, timestamp_ms: int = NOON, role: Role = "user", sender_id: str = "") -> Message:
    """A message of the owner, or of an agent."""
    return Message(sender_id or owner.user_id, role, timestamp_ms, (ContentItem("text", text=text),))
