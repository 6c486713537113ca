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

from core.background import tasks
from memories.models import Override, Tombstone
from resources.models import Resource
from store.models import Memory
from tests.stub_upstream import StubUpstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def wait_for_tasks(storage: Path) -> Iterator[None]:
    yield
    assert tasks.wait_until_idle(30)


def run(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("demo_data", "--json", *arguments, stdout=out, stderr=StringIO())
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


def search_texts(key: str, query: str) -> list[str]:
    client = Client(headers={"Authorization": f"Bearer {key}"})
    body = {"query": query, "scope": ["all_user_memory", "resources"], "method": "keyword"}
    answer = client.post("/memories/search", body, "application/json").json()
    return [item["text"] for item in answer["results"]]


def test_demo_data_has_every_kind_of_memory() -> None:
    created = run()
    assert search_texts(created["user_key"], "when is the rent due")
    assert "花生" in "".join(search_texts(created["user_key"], "她对什么过敏"))
    assert any("12,500" in text for text in search_texts(created["user_key"], "kitchen budget euros"))
    assert {"user_memory_fact", "self_improving_learnings"} <= set(Memory.objects.values_list("category", flat=True))
    assert Tombstone.objects.count() == Override.objects.count() == 1


def test_a_second_run_adds_nothing() -> None:
    first = run()
    rows = Memory.objects.count()
    assert run() == first
    assert Memory.objects.count() == rows
    assert Resource.objects.count() == 2


def test_demo_data_is_created_with_an_upstream_too(settings: Any) -> None:
    with StubUpstream() as stub:
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = stub.url
        created = run("--user", "dora")
        assert created["user_id"] == "dora"
        assert search_texts(created["user_key"], "fitter Lyon")


def test_an_invalid_user_id_is_rejected() -> None:
    with pytest.raises(CommandError, match="must not begin or end with a space"):
        run("--user", "a ")
