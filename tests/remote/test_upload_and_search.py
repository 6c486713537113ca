"""Upload, search and deletion over REST with EverOS as the engine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.audit import Actor
from core.background import tasks
from remote import outbox
from remote.models import OutboxEntry
from resources.services import purge
from resources.services.ingestion import enqueue_ingestion
from tests.conftest import Person
from tests.memories.calls import call
from tests.resources.forms import stored_resource, upload
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def upstream(settings: Any, stub: StubUpstream, storage: Path) -> Iterator[None]:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    yield
    assert tasks.wait_until_idle(30)


def search(person: Person, query: str, **values: Any) -> list[dict[str, Any]]:
    body = {"query": query, "scope": ["resources"], **values}
    response = person.client.post("/memories/search", body, content_type="application/json")
    assert response.status_code == 200, response.content
    results: list[dict[str, Any]] = response.json()["results"]
    return results


def test_an_uploaded_file_is_found_until_it_is_deleted(alice: Person, charlie: Person, stub: StubUpstream) -> None:
    answer = upload(alice, "付款期限为收到发票后 30 天内。".encode(), "合同.txt").json()
    assert answer["status"] == "extracted"
    [found] = search(alice, "付款期限", filters={"type": "Conversation"})
    assert (found["resource_id"], found["session_id"]) == (answer["resource_id"], answer["session_id"])
    assert [file["name"] for file in found["attachments"]] == ["合同.txt"]
    assert search(charlie, "付款期限", scope=["resources", "all_user_memory"]) == []
    everywhere = ["resources", "all_user_memory"]
    before, calls = search(alice, "付款期限", scope=everywhere), len(stub.calls("add"))
    assert alice.client.delete(f"/resources/{answer['resource_id']}").status_code == 200
    assert search(alice, "付款期限", scope=everywhere) == []
    assert call(alice, "post", f"/resources/{answer['resource_id']}/restore") == answer
    assert search(alice, "付款期限", scope=everywhere) == before
    assert len(stub.calls("add")) == calls
    assert alice.client.delete(f"/resources/{answer['resource_id']}").status_code == 200
    assert purge(answer["resource_id"], actor=Actor.command("tests"))
    assert search(alice, "付款期限", scope=everywhere) == []


def test_an_unconfirmed_file_is_not_sent_again_from_the_trash(alice: Person) -> None:
    answer = upload(alice, b"The rent is 700 euros.", "rent.txt").json()
    OutboxEntry.objects.update(state="unconfirmed", call_id="call", sent_at=timezone.now())
    later = timezone.now() + timedelta(hours=1)
    due = timezone.now() - timedelta(days=1), later, later
    assert [session.session_id for session in outbox.unconfirmed_sessions(*due, 10)] == [answer["session_id"]]
    assert alice.client.delete(f"/resources/{answer['resource_id']}").status_code == 200
    assert outbox.unconfirmed_sessions(*due, 10) == []
    call(alice, "post", f"/resources/{answer['resource_id']}/restore")
    assert [session.session_id for session in outbox.unconfirmed_sessions(*due, 10)] == [answer["session_id"]]


def test_a_slow_upstream_receives_several_files_concurrently(alice: Person, stub: StubUpstream) -> None:
    stub.latency_seconds = 0.5
    resources = [stored_resource(alice, f"The rent of {number} is due.") for number in range(6)]
    for resource in resources:
        enqueue_ingestion(resource)
    assert tasks.wait_until_idle(60)
    assert len(stub.store.episodes) == 6
    assert stub.most_at_once["add"] > 2


def test_a_short_outage_is_retried_and_nothing_is_stored_twice(alice: Person, stub: StubUpstream) -> None:
    stub.fault("add", Fault(reset=True, acts=True))
    stub.fault("flush", Fault(acts=True, reset=True))
    assert upload(alice, b"The rent is 700 euros.", "rent.txt").json()["status"] == "extracted"
    assert len(search(alice, "rent")) == len(stub.store.episodes) == 1


REFUSED = Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "secret of the upstream"}})


def test_a_file_that_everos_refuses_is_found_if_it_was_read_here(alice: Person, stub: StubUpstream) -> None:
    stub.fault("add", REFUSED)
    answer = upload(alice, b"The rent is 700 euros.", "rent.txt").json()
    assert answer["status"] == "extracted"
    detail = alice.client.get(f"/resources/{answer['resource_id']}").json()["resources"][0]
    assert detail["status"] == "extracted"
    assert "secret of the upstream" not in str(detail)
    assert [hit["resource_id"] for hit in search(alice, "rent")] == [answer["resource_id"]]
    assert OutboxEntry.objects.get().state == "refused"
    assert len(stub.calls("add")) == 1


def test_a_file_without_a_reader_fails_permanently(alice: Person, stub: StubUpstream) -> None:
    stub.fault("add", REFUSED, times=2)
    answer = upload(alice, b"%PDF-1.7 damaged", "rent.pdf").json()
    detail = alice.client.get(f"/resources/{answer['resource_id']}").json()["resources"][0]
    assert detail["status"] == "failed"
    assert "secret of the upstream" not in str(detail)
    assert OutboxEntry.objects.get().state == "refused"
    assert len(stub.calls("add")) == 1
