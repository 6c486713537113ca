from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from resources import queries
from resources.models import Attachment, Resource
from resources.queries import AttachmentRow, attachments_of, searchable_sessions
from resources.services.claims import mark_extracted, note_searchable
from tests.conftest import Person
from tests.resources.forms import stored_resource

pytestmark = pytest.mark.django_db


def test_only_the_owners_extracted_resources_are_searchable(alice: Person, bob: Person) -> None:
    wanted = [stored_resource(alice, status="extracted") for _ in range(3)]
    for status in ("pending", "ingesting", "empty", "failed"):
        stored_resource(alice, status=status)
    stored_resource(alice, status="extracted", app_id="shop")
    stored_resource(bob, status="extracted")
    stored_resource(alice, status="extracted", state="trashed")
    assert searchable_sessions(alice.owner) == tuple(made.session_id for made in wanted)


@pytest.mark.parametrize("state", ["live", "trashed", "purged"])
def test_only_live_resources_wait_for_their_ingestion(alice: Person, state: str) -> None:
    now = timezone.now()
    pending = stored_resource(alice, state=state)
    given_up = stored_resource(alice, state=state, status="failed")
    retried = stored_resource(alice, state=state, status="failed", retry_at=now + timedelta(hours=1))
    stored_resource(alice, state=state, status="extracted", retry_at=None)
    waiting = [queries.unfinished(Q()), queries.waiting_for_operator(), queries.waiting_for_retry(now)]
    expected = [[pending, given_up, retried], [given_up], [retried]] if state == "live" else [[], [], []]
    assert [list(rows) for rows in waiting] == expected
    assert list(queries.pending_cleanups()) == ([retried] if state == "purged" else [])


@pytest.mark.parametrize("state", ["live", "trashed", "purged"])
def test_only_live_resources_get_an_outcome_from_the_engine(alice: Person, state: str) -> None:
    empty = stored_resource(alice, state=state, status="empty")
    extracted = stored_resource(alice, state=state, status="extracted")
    now = timezone.now()
    note_searchable(alice.owner, extracted.session_id, now)
    assert mark_extracted(empty, now, now) is (state == "live")
    times = set(Resource.objects.values_list("searchable_at", flat=True))
    assert times == ({now} if state == "live" else {None})


def test_searchable_sessions_take_one_statement(
    alice: Person, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(5):
        stored_resource(alice, status="extracted")
    with django_assert_num_queries(1):
        assert len(searchable_sessions(alice.owner)) == 5


def test_attachments_of_many_sessions_take_one_statement(
    alice: Person, bob: Person, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    attach(alice, "chat:c1", "a.pdf")
    attach(alice, "chat:c1", "b.png")
    attach(alice, "chat:c2", "c.pdf")
    attach(bob, "chat:c1", "secret.pdf")
    attach(alice, "chat:c1", "other.pdf", app_id="shop")
    sessions = ["chat:c1", "chat:c1", *(f"chat:{number}" for number in range(2000))]
    with django_assert_num_queries(1):
        found = attachments_of(alice.owner, sessions)
    assert found == {
        "chat:c1": [AttachmentRow("pdf", "a.pdf", "file:///x/a.pdf"), AttachmentRow("pdf", "b.png", "file:///x/b.png")]
    }
    assert list(attachments_of(replace(alice.owner, app_id="shop"), ["chat:c1"])) == ["chat:c1"]


def test_attachments_are_found_by_index(alice: Person) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL plans by what the tables hold")
    with CaptureQueriesContext(connection) as captured:
        attachments_of(alice.owner, ["chat:c1", "chat:c2"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        assert "session_id=?" in cursor.fetchall()[0][3]


def test_attachments_of_no_sessions_take_no_statement(
    alice: Person, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert attachments_of(alice.owner, []) == {}


def attach(person: Person, session_id: str, name: str, **fields: str) -> None:
    Attachment.objects.create(
        user_id=person.user_pk,
        session_id=session_id,
        source="memory_add",
        type="pdf",
        name=name,
        internal_uri=f"file:///x/{name}",
        **fields,
    )
