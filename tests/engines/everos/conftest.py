"""A stand-in upstream for each test, mocked responses where no socket matters, and a client that neither sleeps nor
throws dice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import responses

from engines.everos.adapter import EverOSEngine
from engines.everos.client.client import Client, Options
from engines.everos.client.resilience import Retry
from store.types import ContentItem, Message, Owner, Role
from tests.stub_upstream import StubUpstream


@pytest.fixture
def stub() -> Iterator[StubUpstream]:
    with StubUpstream() as running:
        yield running


EVEROS_URL = "http://everos.invalid"


class MockedEverOS(responses.RequestsMock):
    """Responses in the order in which they are given, the last one for ever; `names` are the calls that were made."""

    def answer(self, path: str, *answers: Any, status: int = 200, **options: Any) -> None:
        """Answer calls below `/api/v1/` with this JSON, or with these bytes."""
        method = responses.GET if path.startswith("tasks/") else responses.POST
        for answer in answers:
            body = {"body": answer} if isinstance(answer, bytes) else {"json": answer}
            options.setdefault("content_type", "application/json")
            self.add(method, f"{EVEROS_URL}/api/v1/{path}", status=status, **body, **options)

    @property
    def names(self) -> list[str]:
        return [str(call.request.url).rpartition("/")[2] for call in self.calls]


@pytest.fixture
def mocked() -> Iterator[MockedEverOS]:
    with MockedEverOS(assert_all_requests_are_fired=False) as mocked_calls:
        yield mocked_calls


NOON = 1_781_172_177_000


def no_wait(_: float) -> None:
    """Instead of sleeping."""


def make_client(
    stub: StubUpstream | str = EVEROS_URL,
    *,
    timeout_seconds: float = 5.0,
    attempts: int = 1,
    clock: Callable[[], float] = time.monotonic,
    settle_seconds: float = 0.0,
) -> Client:
    retry = Retry(attempts=attempts, delay_seconds=0.01, sleep=no_wait, jitter=lambda: 0.0)
    url = stub if isinstance(stub, str) else stub.url
    return Client(Options(url, timeout_seconds, retry, settle_seconds, clock, no_wait))


@pytest.fixture
def client(stub: StubUpstream) -> Client:
    return make_client(stub)


def make_engine(stub: StubUpstream, *, attempts: int = 1, timeout_seconds: float = 5.0) -> EverOSEngine:
    """`sleep` lets the time of the stand-in pass: nothing there takes any."""
    client = make_client(stub, attempts=attempts, timeout_seconds=timeout_seconds)
    return EverOSEngine(client, batch_size=3, sleep=no_wait)


@pytest.fixture
def engine(stub: StubUpstream) -> EverOSEngine:
    return make_engine(stub)


def told(owner: Owner, text: str, timestamp_ms: int = NOON, role: Role = "user", sender_id: str = "") -> Message:
    """A message of the owner, or of an agent."""
    return Message(sender_id or owner.user_id, role, timestamp_ms, (ContentItem("text", text=text),))
