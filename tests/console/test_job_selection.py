"""The description of a job's selection on its page."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone, translation

from console.views.jobs import describe_selection
from operations.models import Job
from store.browse import Selection
from tests.conftest import Person

NOON_MS = 1_795_176_000_000  # 2026-11-20 12:00 UTC


@pytest.mark.django_db
def test_a_selection_is_described(alice: Person) -> None:
    selection = Selection(
        user_pk=alice.user_pk,
        tab="user",
        categories=("user_memory_fact", "user_memory_decision"),
        origin="panel",
        importance_min=0.5,
        since_ms=NOON_MS,
        in_trash=True,
        hidden_by="user",
    )
    with timezone.override("Asia/Shanghai"):
        assert describe_selection(selection.as_json()) == [
            ("User", "alice"),
            ("Kind", "User"),
            ("Category", "Fact, Decision"),
            ("Origin", "added manually"),
            ("Minimum importance", "0.5"),
            ("From", "2026-11-20 20:00"),
            ("In trash", "yes"),
            ("Hidden by", "a person"),
        ]


@pytest.mark.django_db
def test_the_description_of_a_selection_is_translated() -> None:
    with translation.override("zh-hans"):
        assert describe_selection(Selection(tab="self", in_trash=True).as_json()) == [
            ("记忆种类", "自进化记忆"),
            ("在回收站中", "是"),
        ]


@pytest.mark.django_db
def test_unknown_users_and_conditions_are_shown_unchanged() -> None:
    erased_user = str(uuid4())
    assert describe_selection({"user_pk": erased_user, "shape": "round"}) == [("User", erased_user), ("shape", "round")]


@pytest.mark.django_db
def test_the_page_of_a_job_describes_its_selection(admin_client: Client, alice: Person) -> None:
    target = {"selection": Selection(user_pk=alice.user_pk).as_json()}
    job = Job.objects.create(kind="delete", params={"target": target}, actor_kind="operator", actor="op")
    page = admin_client.get(f"/admin/memory/jobs/{job.pk}/").content.decode()
    assert "User <b>alice</b>" in page
