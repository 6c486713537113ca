"""The audit trail has the results that Find lists and opens, and the users that a bulk preview shows."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from accounts.models import AuditEvent
from console.signed_values import sign_target
from operations import bulk
from tests.conftest import Person
from tests.console.people import remember

pytestmark = pytest.mark.django_db
FIND = "/admin/memory/find/"


def users_of(event: AuditEvent) -> list[str]:
    return sorted(event.subjects.values_list("user_id", flat=True))


def test_the_palette_writes_one_event_for_each_opening(admin_client: Client, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        remember(person.owner, f"Tea of {person.user_id}")
    for query in ("a", "al", "bo", "tea"):
        admin_client.get(FIND, {"part": "1", "q": query, "opening": "m1234567"})
    event = AuditEvent.objects.get(action="panel.find")
    assert users_of(event) == ["alice", "bob"]
    admin_client.get(FIND, {"part": "1", "q": "al", "opening": "m7654321"})
    assert AuditEvent.objects.filter(action="panel.find").count() == 2


def test_the_result_that_is_opened_is_recorded(admin_client: Client, alice: Person) -> None:
    results = admin_client.get(FIND, {"part": "1", "q": "al", "opening": "m1234567"}).content.decode()
    chosen = unescape(re.findall('data-chosen="([^"]+)"', results)[0])
    answer = admin_client.post(f"{FIND}chosen/", {"chosen": chosen, "opening": "m1234567"})
    assert answer.status_code == 204
    event = AuditEvent.objects.get(action="panel.choose")
    assert (event.subject_id, users_of(event)) == (f"/admin/memory/users/{alice.user_pk}/", ["alice"])
    assert event.detail == {"opening": "m1234567"}
    assert admin_client.post(f"{FIND}chosen/", {"chosen": f"{chosen}x"}).status_code == 400


def test_a_preview_of_a_bulk_action_is_recorded_with_its_examples(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    rows = [remember(person.owner, "Tea with milk").row for person in (alice, bob)]
    target = sign_target(bulk.of_rows(rows))
    admin_client.get("/admin/memory/bulk/preview/", {"do": "delete", "target": target})
    event = AuditEvent.objects.get(action="memory.preview")
    assert (event.detail["do"], event.detail["count"], users_of(event)) == ("delete", 2, ["alice", "bob"])
    assert "milk" not in str(event.detail)
