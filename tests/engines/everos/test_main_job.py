"""The main job over REST with an upstream behind: upload, search, delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.services import ingestion_pool
from tests.conftest import Person
from tests.resources.forms import stored_resource, upload
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def upstream(settings: Any, stub: StubUpstream, storage: Path) -> Iterator[None]:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.01
    yield
    assert ingestion_pool().wait_until_idle(30)


def search(person: Person, query: str, **values: Any) -> list[dict[str, Any]]:
    body = {"query": query, "scope": ["resources"], **values}
    response = person.client.post("/memories/search", body, content_type="application/json")
    assert response.status_code == 200, response.content
    results: list[dict[str, Any]] = response.json()["results"]
    return results


def test_an_uploaded_file_is_found_with_its_attachment_until_it_is_deleted(alice: Person, charlie: Person) -> None:
    answer = upload(alice, "付款期限为收到发票后 30 天内。".encode(), "合同.txt").json()
    assert answer["status"] == "extracted"
    [found] = search(alice, "付款期限", filters={"type": "Conversation"})
    assert (found["resource_id"], found["session_id"]) == (answer["resource_id"], answer["session_id"])
    assert [file["name"] for file in found["attachments"]] == ["合同.txt"]
    assert search(charlie, "付款期限", scope=["resources", "all_user_memory"]) == []
    assert alice.client.delete(f"/resources/{answer['resource_id']}").status_code == 200
    assert search(alice, "付款期限", scope=["resources", "all_user_memory"]) == []


def test_an_upstream_that_takes_its_time_is_given_several_files_at_once(alice: Person, stub: StubUpstream) -> None:
    stub.latency_seconds = 0.5
    resources = [stored_resource(alice, f"The rent of {number} is due.") for number in range(6)]
    for resource in resources:
        ingestion_pool().submit(resource.resource_id, alice.user_pk)
    assert ingestion_pool().wait_until_idle(60)
    assert len(stub.store.episodes) == 6
    assert stub.most_at_once["add"] > 2


def test_a_short_outage_is_ridden_out_and_nothing_is_stored_twice(alice: Person, stub: StubUpstream) -> None:
    stub.fault("add", Fault(reset=True, acts=True))
    stub.fault("flush", Fault(acts=True, reset=True))
    assert upload(alice, b"The rent is 700 euros.", "rent.txt").json()["status"] == "extracted"
    assert len(search(alice, "rent")) == len(stub.store.episodes) == 1


def test_what_the_upstream_refuses_is_failed_for_good(alice: Person, stub: StubUpstream) -> None:
    stub.fault("add", Fault(status=422, body={"error": {"code": "INVALID_INPUT", "message": "secret of the upstream"}}))
    answer = upload(alice, b"The rent is 700 euros.", "rent.txt").json()
    detail = alice.client.get(f"/resources/{answer['resource_id']}").json()["resources"][0]
    assert detail["status"] == "failed"
    assert "secret of the upstream" not in str(detail)
    assert len(stub.calls("add")) == 1
