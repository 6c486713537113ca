"""A stand-in upstream for each test, and a client that neither sleeps nor throws dice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from engine.upstream.client import Client, Options
from engine.upstream.patience import Retry
from tests.stub_upstream import StubUpstream


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


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
