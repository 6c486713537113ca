"""A stub upstream for each test, mocked responses for tests that need no socket, and a client that does not wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
import responses
from django.utils import timezone

from core.background.tasks import Round
from engines.attached import AttachedEngine
from operations.external.delivery_retry import DeliveryRetry
from remote import remote_sessions
from remote.client.client import Client
from remote.client.resilience import Retry
from remote.everos import EverOS
from store.types import ContentItem, Message, Owner, Role
from tests.stub_upstream import StubUpstream


@pytest.fixture
def stub(settings: Any) -> Iterator[StubUpstream]:
    """Run a stub that is attached: what it derives covers its messages."""
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


EVEROS_URL = "http://everos.invalid"


class MockedEverOS(responses.RequestsMock):
    """Respond with the given answers in their order, then repeat the last one."""

    def answer(self, path: str, *answers: Any, status: int = 200, **options: Any) -> None:
        """Answer calls to a path below `/api/v1/` with JSON objects or bytes."""
        method = responses.GET if path.startswith("tasks/") else responses.POST
        for answer in answers:
            body = {"body": answer} if isinstance(answer, bytes) else {"json": answer}
            options.setdefault("content_type", "application/json")
            self.add(method, f"{EVEROS_URL}/api/v1/{path}", status=status, **body, **options)

    @property
    def names(self) -> list[str]:
        """Return the last path segments of the calls received so far."""
        return [str(call.request.url).rpartition("/")[2] for call in self.calls]


@pytest.fixture
def mocked() -> Iterator[MockedEverOS]:
    with MockedEverOS(assert_all_requests_are_fired=False) as mocked_calls:
        yield mocked_calls


NOON = 1_781_172_177_000


def no_wait(_: float) -> None:
    """Replace `time.sleep`."""


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
    return Client(url, timeout_seconds=timeout_seconds, retry=retry, settle_seconds=settle_seconds, clock=clock)


@pytest.fixture
def client(stub: StubUpstream) -> Client:
    return make_client(stub)


def make_engine(stub: StubUpstream, *, attempts: int = 1, timeout_seconds: float = 5.0) -> AttachedEngine:
    """Return an engine that does not wait between checks of the stub."""
    client = make_client(stub, attempts=attempts, timeout_seconds=timeout_seconds)
    return AttachedEngine(EverOS(client, batch_size=3, sleep=no_wait))


@pytest.fixture
def engine(stub: StubUpstream) -> AttachedEngine:
    return make_engine(stub)


Run = Callable[[timedelta], int]


@pytest.fixture
def run_deliveries(engine: AttachedEngine, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the function that runs the periodic task of deliveries as if so much time had passed.

    It returns the number of unconfirmed messages that arrived.
    """
    monkeypatch.setattr("operations.external.delivery_retry.attached_remote", lambda: engine.remote)
    return lambda later: DeliveryRetry()(Round(clock=lambda: timezone.now() + later))


def message_of(owner: Owner, text: str, timestamp_ms: int = NOON, role: Role = "user", sender_id: str = "") -> Message:
    """Return a message of the owner, or of the agent `sender_id`."""
    return Message(sender_id or owner.user_id, role, timestamp_ms, (ContentItem("text", text=text),))


def deliver(engine: AttachedEngine, owner: Owner, session_id: str = "chat:1") -> None:
    """Send what waits of a session, after what is unconfirmed, as the periodic task does."""
    session = remote_sessions.find(owner, session_id)
    assert session is not None
    engine.remote.retry_unconfirmed(owner, session)
    engine.remote.send(owner, session)


def add_and_send(engine: AttachedEngine, owner: Owner, session_id: str, messages: Sequence[Message]) -> None:
    engine.add(owner, session_id, messages)
    deliver(engine, owner, session_id)
