"""The page of the remote: figures, refused messages that operators can send again, and sessions that wait."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEvent
from remote import outbox, remote_sessions
from remote.models import OutboxEntry
from resources.models import Resource
from store.models import Residue, Session
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_access import operator_client
from tests.store.conftest import NOON_MS, text_message

pytestmark = pytest.mark.django_db

CAUSE = "The memory engine refused the request: the content is not accepted."
URL = "http://everos.invalid"


@pytest.fixture(autouse=True)
def attached(settings: Any) -> None:
    settings.MEMORY_GATEWAY_BACKEND_BASE_URL = URL


def record(person: Person, session_id: str, state: str, **fields: Any) -> Session:
    session = remote_sessions.claim(person.owner, session_id)
    message = text_message("tea", at=NOON_MS + OutboxEntry.objects.count())
    outbox.record(session, outbox.by_id(session_id, [message]), {})
    newest = OutboxEntry.objects.order_by("-pk").values_list("pk", flat=True)[0]
    OutboxEntry.objects.filter(pk=newest).update(state=state, **fields)
    return session


def page(client: Client, **query: str) -> Any:
    return client.get(reverse("console:remote"), query)


def retry(client: Client, session: Session | None) -> Any:
    return client.post(reverse("console:remote-retry"), {"session": "x" if session is None else session.pk})


def test_refused_messages_are_listed_with_their_causes(admin_client: Client, alice: Person, bob: Person) -> None:
    record(alice, "chat:1", "refused", cause=CAUSE)
    record(bob, "chat:2", "refused", cause="Another cause.")
    record(bob, "chat:3", "buffered")
    answer = page(admin_client)
    rows = answer.context["rows"]
    assert [(row.session.session_id, row.user.user_id, row.cause) for row in rows] == [
        ("chat:2", "bob", "Another cause."),
        ("chat:1", "alice", CAUSE),
    ]
    assert [count for _label, count, _oldest in answer.context["figures"]] == [0, 0, 1, 2, 0, 0]
    assert all(text in answer.content.decode() for text in (CAUSE, URL, "Try again"))
    event = AuditEvent.objects.get(action="remote.list")
    assert set(event.subjects.values_list("user_id", flat=True)) == {"alice", "bob"}


def test_waiting_sessions_are_listed_with_the_age_of_their_oldest_message(admin_client: Client, alice: Person) -> None:
    at = timezone.now() - timedelta(hours=3)
    for _ in range(2):
        session = record(alice, "chat:1", "pending", recorded_at=at)
    record(alice, "chat:2", "refused")
    answer = page(admin_client, list="waiting")
    ((row,)) = [(one["session"], *one["waiting"]) for one in answer.context["rows"]]
    assert row == (session, 2, at)
    assert "3\xa0hours" in answer.content.decode()


def test_data_at_other_addresses_and_residue_are_counted(admin_client: Client, alice: Person) -> None:
    record(alice, "chat:1", "flushed", base_url="http://former.invalid")
    Residue.objects.create(digest="0" * 64)
    answer = page(admin_client)
    assert [one.base_url for one in answer.context["summary"].others] == ["http://former.invalid"]
    assert all(text in answer.content.decode() for text in ("1 sent, 0 waiting", "1 name of an erased user"))


def test_a_refused_message_is_sent_again_and_the_decision_audited(admin_client: Client, alice: Person) -> None:
    session = record(alice, "chat:1", "refused", cause=CAUSE)
    other = record(alice, "chat:2", "refused", cause=CAUSE)
    assert retry(admin_client, session).url == reverse("console:remote")
    assert OutboxEntry.objects.get(session=session).state == "pending"
    assert OutboxEntry.objects.get(session=other).state == "refused"
    event = AuditEvent.objects.get(action="remote.retry")
    assert (event.subject_type, event.subject_id, event.user_id) == ("session", "chat:1", "alice")
    retry(admin_client, session)
    assert AuditEvent.objects.filter(action="remote.retry").count() == 1


def test_a_file_that_failed_is_ingested_again(alice: Person) -> None:
    name = f"resource:alice:r_{0:032x}"
    session = record(alice, name, "refused", cause=CAUSE)
    file = Resource.objects.create(user_id=alice.user_pk, session_id=name, filename="a.pdf", status="failed")
    assert retry(operator_client("view_memory", "change_memory"), session).status_code == 403
    assert OutboxEntry.objects.get().state == "refused"
    editor = User.objects.create_user("editor", is_staff=True)
    editor.user_permissions.set(Permission.objects.filter(codename__in=["change_memory", "change_resource"]))
    client = Client()
    client.force_login(editor)
    retry(client, session)
    file.refresh_from_db()
    assert (file.status, OutboxEntry.objects.get().state) == ("pending", "pending")


def test_a_viewer_sees_no_button(alice: Person) -> None:
    session = record(alice, "chat:1", "refused", cause=CAUSE)
    viewer = operator_client("view_memory")
    answer = page(viewer).content.decode()
    assert CAUSE in answer
    assert "Try again" not in answer
    assert retry(viewer, session).status_code == 403


def test_an_unknown_session_gives_a_404_page(admin_client: Client) -> None:
    assert retry(admin_client, None).status_code == 404


@pytest.mark.parametrize("listed", ["", "waiting"])
def test_the_page_takes_the_same_statements_for_any_number(admin_client: Client, alice: Person, listed: str) -> None:
    counts = []
    for number in range(3):
        record(alice, f"chat:{number}", "pending" if listed else "refused")
        page(admin_client, list=listed)  # the first view has its own event
        with CaptureQueriesContext(connection) as captured:
            page(admin_client, list=listed)
        counts.append(len(captured))
    assert len(set(counts)) == 1


def test_pages_follow_each_other(admin_client: Client, alice: Person) -> None:
    for number in range(51):
        record(alice, f"chat:{number}", "refused")
    first = page(admin_client)
    second = admin_client.get(first.context["following"])
    assert [len(one.context["rows"]) for one in (first, second)] == [50, 1]
    assert second.context["previous"]


def test_the_menu_has_the_page_where_a_remote_is_or_was(admin_client: Client, alice: Person, settings: Any) -> None:
    remember(alice.owner)
    link = f'href="{reverse("console:remote")}"'
    shown = []
    for url, residue in ((URL, False), ("", False), ("", True)):
        settings.MEMORY_GATEWAY_BACKEND_BASE_URL = url
        if residue:
            Residue.objects.create(digest="0" * 64)
        shown.append(link in admin_client.get(reverse("console:jobs")).content.decode())
    assert shown == [True, False, True]
    assert "No remote is attached" in page(admin_client).content.decode()
