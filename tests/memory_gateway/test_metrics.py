"""`GET /metrics`."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from django.test import Client
from django.utils import timezone

from operations.models import Job
from resources.models import Resource
from store.models import Memory
from tests.conftest import Person
from tests.resources.forms import stored_resource
from tests.server import running_server

pytestmark = pytest.mark.django_db

TOKEN = "f3Vw9KqZ1xT7mNb5RcL2pYhJ8sDgE4uA"


@pytest.fixture
def scrape(settings: Any, client: Client) -> Any:
    settings.MEMORY_GATEWAY_METRICS_TOKEN = TOKEN

    def look() -> dict[str, float]:
        answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        lines = (line.rpartition(" ") for line in answer.content.decode().splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    return look


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer ", f"Basic {TOKEN}", f"bearer x{TOKEN}"])
def test_outsiders_get_nothing(client: Client, settings: Any, header: str | None) -> None:
    settings.MEMORY_GATEWAY_METRICS_TOKEN = TOKEN
    answer = client.get("/metrics", headers={"Authorization": header} if header else {})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert b"memory_gateway_" not in answer.content


def test_without_a_token_in_the_settings_no_bearer_is_let_in(client: Client) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer x"}).status_code == 401


def test_a_users_key_opens_nothing(alice: Person) -> None:
    assert alice.client.get("/metrics").status_code == 401


def test_wrong_tokens_are_counted_and_the_right_one_passes(settings: Any) -> None:
    settings.MEMORY_GATEWAY_METRICS_TOKEN = TOKEN
    settings.FAILED_AUTHENTICATIONS_PER_MINUTE = 8
    client = Client(REMOTE_ADDR="203.0.113.8")
    wrong = {"Authorization": "Bearer wrong"}
    answers = [client.get("/metrics", headers=wrong) for _ in range(10)]
    assert [answer.status_code for answer in answers] == [401] * 8 + [429] * 2
    assert int(answers[-1]["Retry-After"]) > 0
    assert client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_signed_in_staff_may_look(admin_client: Client) -> None:
    assert admin_client.get("/metrics").status_code == 200


def test_it_is_only_read(client: Client) -> None:
    assert client.post("/metrics").status_code == 405


def test_requests_are_counted_by_route_and_status(scrape: Any, alice: Person) -> None:
    name = 'memory_gateway_requests_total{{method="GET",route="/resources/<str:resource_id>/content",status="{}"}}'
    before = scrape()
    for number in range(3):
        alice.client.get(f"/resources/r_{number:032}/content")
    alice.client.get("/nothing/at/all")
    after = scrape()
    assert after[name.format(404)] - before.get(name.format(404), 0) == 3
    assert 'memory_gateway_requests_total{method="GET",route="none",status="404"}' in after
    assert not any("/nothing" in line for line in after)


def test_engine_calls_are_counted_with_their_outcome(scrape: Any, alice: Person) -> None:
    calls = 'memory_gateway_engine_calls_total{{call="search",engine="embedded",outcome="{}"}}'
    before = scrape()
    body = {"query": "tea", "scope": ["all_user_memory"], "method": "keyword"}
    alice.client.post("/memories/search", body, "application/json")
    alice.client.post("/memories/search", {**body, "method": "agentic"}, "application/json")
    after = scrape()
    assert after[calls.format("ok")] - before.get(calls.format("ok"), 0) == 1
    assert after[calls.format("invalid_input")] - before.get(calls.format("invalid_input"), 0) == 1
    assert after['memory_gateway_engine_seconds_count{call="search",engine="embedded"}'] >= 2


def test_what_is_pending_is_shown_with_its_age(scrape: Any, alice: Person, storage: Path) -> None:
    stored_resource(alice)
    old = stored_resource(alice)
    stored_resource(alice, status="extracted")
    stored_resource(alice, status="failed", retry_at=timezone.now())
    for state in ("trashed", "purged"):
        stored_resource(alice, state=state)
        stored_resource(alice, state=state, status="failed", retry_at=timezone.now())
    Resource.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(hours=1))
    Memory.objects.create(user_id=alice.user_pk, memory_id="m", memory_type="episode", text="tea", created_at_ms=1)
    seen = scrape()
    assert seen['memory_gateway_ingestions{state="pending"}'] == 2
    assert seen['memory_gateway_ingestions{state="failed"}'] == 0
    assert seen['memory_gateway_ingestions{state="retrying"}'] == 1
    assert 3600 <= seen['memory_gateway_ingestion_oldest_seconds{state="pending"}'] < 3700
    assert seen["memory_gateway_index_pending"] == 1


def test_the_age_of_the_oldest_pending_job_is_shown(scrape: Any) -> None:
    name = 'memory_gateway_pending_oldest_seconds{queue="jobs"}'
    assert scrape()[name] == 0
    Job.objects.create(kind="k", actor_kind="command", status="done")
    Job.objects.create(kind="k", actor_kind="command")
    Job.objects.update(created_at=timezone.now() - timedelta(hours=1))
    Job.objects.create(kind="k", actor_kind="command")
    assert 3600 <= scrape()[name] < 3700


def test_a_scrape_takes_eight_statements(scrape: Any, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(8):
        scrape()


@pytest.mark.slow
def test_several_processes_count_together(tmp_path: Path) -> None:
    with running_server(tmp_path, "--workers", "2", MEMORY_GATEWAY_METRICS_TOKEN=TOKEN) as server:
        for _ in range(10):
            requests.get(f"{server.url}/api/schema/", timeout=30)
        answer = requests.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
    line = r'memory_gateway_requests_total\{method="GET",route="/api/schema/",status="200"\} (\S+)'
    [count] = re.findall(line, answer.text)
    assert float(count) == 10
