"""What a job was asked to do, as its page says it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone, translation

from console.scope import in_words
from operations.models import Job
from store.browse import Selection
from tests.conftest import Person

NOON_MS = 1_795_176_000_000  # 2026-11-20 12:00 UTC


@pytest.mark.django_db
def test_a_filter_is_said_in_words(alice: Person) -> None:
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
        assert in_words(selection.as_json()) == [
            ("User", "alice"),
            ("Kind", "User"),
            ("Category", "Fact, Decision"),
            ("Origin", "by hand"),
            ("Importance at least", "0.5"),
            ("From", "2026-11-20 20:00"),
            ("In trash", "yes"),
            ("Put there by", "people"),
        ]


@pytest.mark.django_db
def test_a_filter_is_said_in_chinese() -> None:
    with translation.override("zh-hans"):
        assert in_words(Selection(tab="self", in_trash=True).as_json()) == [
            ("记忆种类", "自进化记忆"),
            ("在回收站", "是"),
        ]


@pytest.mark.django_db
def test_what_is_unknown_is_shown_as_it_is() -> None:
    gone = str(uuid4())
    assert in_words({"user_pk": gone, "shape": "round"}) == [("User", gone), ("shape", "round")]


@pytest.mark.django_db
def test_the_page_of_a_job_says_its_filter(admin_client: Client, alice: Person) -> None:
    target = {"selection": Selection(user_pk=alice.user_pk).as_json()}
    job = Job.objects.create(kind="delete", params={"target": target}, actor_kind="operator", actor="op")
    page = admin_client.get(f"/admin/memory/jobs/{job.pk}/").content.decode()
    assert "User <b>alice</b>" in page
