"""The search lab names the page on which a hit stands, and says why nothing is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from documents import mime_types as mt
from engines.embedded.engine import EmbeddedEngine
from tests import bombs
from tests.conftest import Person
from tests.console.people import remember
from tests.store.conftest import file_message

pytestmark = pytest.mark.django_db


def test_a_hit_in_a_document_has_its_page(admin_client: Client, alice: Person, tmp_path: Path) -> None:
    path = tmp_path / "manual.pdf"
    path.write_bytes(bombs.pages_pdf(["the first page", "nothing here", "the boiler needs water"]))
    EmbeddedEngine().add(alice.owner, "chat:c1", [file_message(path, kind="pdf", mime_type=mt.PDF)])
    page = admin_client.get(reverse("console:lab"), {"user": alice.user_id, "q": "boiler"}).content.decode()
    assert "<span>page 3</span>" in page


def test_a_search_without_results_counts_the_memories_with_each_term(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "The parcels came.", category="full_context_user")
    remember(alice.owner, "Tea at four.")
    query = {"user": alice.user_id, "q": "parcel warehouse", "current_chat": "1", "conversation": "none"}
    answer = admin_client.get(reverse("console:lab"), query)
    assert (answer.context["counts"], answer.context["total"]) == ([("parcel", 1), ("warehous", 0)], 2)
    page = answer.content.decode()
    assert "Terms in the 2 memories of this user" in page
    assert 'class="mg-down">0</dd>' in page
    assert "counts" not in admin_client.get(reverse("console:lab"), {"user": alice.user_id, "q": "parcel"}).context


@pytest.mark.parametrize("user", ["", "nobody"])
def test_a_missing_user_is_asked_for_in_its_field(admin_client: Client, user: str) -> None:
    page = admin_client.get(reverse("console:lab"), {"user": user, "q": "boiler"}).content.decode()
    assert re.search(r'<input[^>]* name="user"[^>]* aria-invalid="true" autofocus', page)


def test_the_lab_searches_as_of_a_former_time(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "The boiler needs water.")
    query = {"user": alice.user_id, "q": "boiler"}
    then = admin_client.get(reverse("console:lab"), {**query, "as_of": "yesterday"})
    assert (then.context["hits"], then.context["missing"]) == ([], [])
    assert '"as_of": "yesterday"' in then.context["curl"]
    assert len(admin_client.get(reverse("console:lab"), {**query, "as_of": "today"}).context["hits"]) == 1
    refused = admin_client.get(reverse("console:lab"), {**query, "as_of": "2999-01-01"})
    assert refused.status_code == 422
    assert "must not be in the future" in refused.content.decode()
