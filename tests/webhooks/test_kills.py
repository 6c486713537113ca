"""A gateway that is killed between a change and its delivery delivers the event when it runs again."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from tests.resources.people import eventually
from tests.server import RunningServer, running_server
from tests.webhooks.receiver import Receiver

EVENTS = 10


def make_due(server: RunningServer) -> None:
    """End the backoff of deliveries that failed twice on a slow machine: it is five minutes then."""
    server.write("UPDATE webhooks_webhookdelivery SET next_try_at = created_at WHERE next_try_at IS NOT NULL")


@pytest.mark.slow
def test_a_kill_loses_no_event(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = lambda _: (503, {})
    with running_server(tmp_path) as server:
        key = requests.post(f"{server.url}/users", json={"user_id": "alice"}, timeout=30).json()["user_key"]
        headers = {"Authorization": f"Bearer {key}"}
        body = {"url": receiver.url, "events": ["resource.created"]}
        secret = requests.post(f"{server.url}/webhooks", json=body, headers=headers, timeout=30).json()["secret"]
        created = set()
        for number in range(EVENTS):
            file = {"file": ("a.txt", f"Text {number}.".encode(), "text/plain")}
            answer = requests.post(f"{server.url}/resources", files=file, headers=headers, timeout=30)
            created.add(answer.json()["resource_id"])
        server.kill()
        make_due(server)
        receiver.requests.clear()
        receiver.answer = lambda _: (200, {})
        server.start()
        arrived = lambda: {request.event["data"]["resource_id"] for request in receiver.requests}  # noqa: E731
        assert eventually(lambda: arrived() == created)
        assert all(request.is_signed_by(secret) for request in receiver.requests)
        assert {request.event["sequence"] for request in receiver.requests} <= set(range(1, EVENTS + 1))
