"""Error responses of EverOS or a proxy to an ingestion: permanent failures, and the times of retries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from resources.models import Resource
from resources.services import ingest
from resources.tasks import Reconciler
from tests.conftest import Person
from tests.remote.conftest import make_engine
from tests.resources.forms import stored_resource
from tests.stub_upstream import Fault, StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stub(settings: Any, storage: Path) -> Iterator[StubUpstream]:
    settings.MEMORY_GATEWAY_BACKEND_RETRY_DELAY_SECONDS = 0.001
    settings.MEMORY_GATEWAY_BACKEND_INGEST_ATTEMPTS = 1
    with StubUpstream() as running:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = running.url
        yield running


def left_to_everos(alice: Person) -> Resource:
    """Create a pending resource at an address, which only EverOS reads."""
    return stored_resource(alice, origin="external", source_uri="https://example.org/notes.txt")


PERMANENT = [(413, ""), (415, "UNSUPPORTED_FORMAT"), (422, "INVALID_INPUT"), (503, "CAPABILITY_UNAVAILABLE")]
RETRIED = [
    *[(status, "") for status in (201, 204, 301, 302, 307, 308, 400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 418)],
    *[(status, "") for status in (425, 429, 451, 500, 501, 502, 503, 504, 507, 520, 524, 599)],
    *[(500, "INTERNAL_ERROR"), (500, "SYSTEM_ERROR"), (503, "EXTERNAL_SERVICE_UNAVAILABLE"), (429, "QUEUE_SATURATED")],
]


@pytest.mark.parametrize("call", ["add", "flush"])
@pytest.mark.parametrize(("status", "code"), [*PERMANENT, *RETRIED])
def test_only_some_error_responses_are_permanent(
    stub: StubUpstream, alice: Person, call: str, status: int, code: str
) -> None:
    stub.fault(call, Fault(status=status, body={"error": {"code": code}} if code else None))
    engine = make_engine(stub)  # which does not sleep
    failed = ingest(left_to_everos(alice).resource_id, engine=engine)
    assert failed.status == "failed"
    if (status, code) in PERMANENT:
        assert failed.retry_at is None
        return
    assert failed.retry_at is not None
    assert failed.retry_at <= timezone.now() + timedelta(seconds=10)
    assert str(status) in failed.error_message or status < 300
    assert ingest(failed.resource_id, engine=engine).status == "extracted"
    assert len(stub.store.episodes) == 1


def test_an_hour_of_401_is_survived_without_an_operator(stub: StubUpstream, alice: Person) -> None:
    resource = stored_resource(alice)
    now = [timezone.now()]
    outage_end = now[0] + timedelta(hours=1)
    stub.fault("*", Fault(status=401, body=b"Who are you?", content_type="text/plain"), times=10_000)
    ingest(resource.resource_id, clock=lambda: now[0])
    tries = _retry_until(outage_end, resource, now)
    assert tries <= 12
    stub.heal("*")
    _retry_until(outage_end + timedelta(hours=2), resource, now)
    assert Resource.objects.get().status == "extracted"


def _retry_until(end: datetime, resource: Resource, now: list[datetime]) -> int:
    """Run the retries that are due before `end`; return their number."""
    tries = 0
    while (due := Resource.objects.get().retry_at) is not None and due < end:
        now[0], tries = due, tries + 1
        ingest(resource.resource_id, clock=lambda: now[0])
    now[0] = end
    return tries


def test_after_an_outage_failures_are_retried_at_once(stub: StubUpstream, alice: Person) -> None:
    later = timezone.now() + timedelta(hours=10)
    stored_resource(alice, status="failed", retry_at=later, attempts=14, first_failed_at=timezone.now())
    Resource.objects.update(updated_at=timezone.now() - timedelta(hours=1))
    reconciler = Reconciler()
    stub.fault("health", Fault(status=401))
    assert reconciler.ingest(timezone.now()) == []
    assert Resource.objects.get().status == "failed"
    [future] = reconciler.ingest(timezone.now())
    future.result(30)
    assert Resource.objects.get().status == "extracted"


def test_the_panel_shows_the_error_and_the_time_of_the_retry(
    stub: StubUpstream, alice: Person, admin_client: Client
) -> None:
    stub.fault("add", Fault(status=401))
    failed = ingest(left_to_everos(alice).resource_id)
    page = admin_client.get(f"{reverse('console:resource', args=[failed.resource_id])}").content.decode()
    assert "it returned status 401." in page
    assert "Next automatic retry:" in page
    rows = admin_client.get(reverse("console:resources")).content.decode()
    assert "it returned status 401." in rows
    assert "next retry" in rows
