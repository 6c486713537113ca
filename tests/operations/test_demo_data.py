"""`manage.py demo_data`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from memories.models import Override, Tombstone
from resources.models import Resource
from resources.services import ingestion_pool
from store.models import Memory
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet(storage: Path) -> Iterator[None]:
    yield
    assert ingestion_pool().wait_until_idle(30)


def run(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("demo_data", "--json", *arguments, stdout=out, stderr=StringIO())
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def found(key: str, query: str) -> list[str]:
    client = Client(headers={"Authorization": f"Bearer {key}"})
    body = {"query": query, "scope": ["all_user_memory", "resources"], "method": "keyword"}
    answer = client.post("/memories/search", body, "application/json").json()
    return [item["text"] for item in answer["results"]]


def test_there_is_something_of_every_kind_to_look_at() -> None:
    made = run()
    assert found(made["user_key"], "when is the rent due")
    assert "花生" in "".join(found(made["user_key"], "她对什么过敏"))
    assert any("12,500" in text for text in found(made["user_key"], "kitchen budget euros"))
    assert {"user_memory_fact", "self_improving_learnings"} <= set(Memory.objects.values_list("category", flat=True))
    assert Tombstone.objects.count() == Override.objects.count() == 1


def test_a_second_time_adds_nothing() -> None:
    first = run()
    rows = Memory.objects.count()
    assert run() == first
    assert Memory.objects.count() == rows
    assert Resource.objects.count() == 2


def test_it_works_with_an_upstream_too(settings: Any) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        made = run("--user", "dora")
        assert made["user_id"] == "dora"
        assert found(made["user_key"], "fitter Lyon")


def test_an_impossible_name_is_refused() -> None:
    with pytest.raises(CommandError, match="1 to 64 characters"):
        run("--user", "a b")
