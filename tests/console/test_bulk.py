"""Decisions about many memories: ticked rows, or all matches at the time the list was shown."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.models import Tombstone
from operations import bulk, jobs
from operations.models import Job, JobStep
from store import browse
from store.browse import Selection
from tests.conftest import Person
from tests.console.people import remember, undo_address
from tests.console.test_access import operator_client

BULK = "/admin/memory/bulk/"


def target_of_list(client: Client, query: str) -> str:
    """Return the frozen selection in the form of a list."""
    page = client.get(f"/admin/memory/list/?{query}").content.decode()
    found = re.search(r'name="target" value="([^"]+)"', page)
    assert found
    return found[1]


@pytest.mark.django_db
def test_a_selection_by_filter_excludes_memories_added_after_the_list_was_shown(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    listed = [remember(alice.owner, f"Tea {number}").row for number in range(30)]
    others = remember(bob.owner).row
    target = target_of_list(admin_client, "user=alice")
    later = remember(alice.owner, "Tea later").row
    data = {"do": "delete", "matching": "1", "target": target, "id": [listed[0], others]}
    preview = admin_client.post(BULK, data, follow=True)
    assert "Move 30 memories to trash?" in preview.content.decode()
    assert Job.objects.count() == 0
    admin_client.post(BULK, {**data, "confirmed": "1", "reason": "stale"})
    job = jobs.run_now(Job.objects.get())
    assert (job.status, job.result["changed"]) == ("done", 30)
    hidden = [row for row in [*listed, others, later] if browse.get(row).state != "live"]
    assert hidden == listed


@pytest.mark.django_db
def test_a_preview_has_an_address_to_come_back_to(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(26)]
    preview = admin_client.post(BULK, {"do": "delete", "id": rows}).headers["Location"]
    for _ in range(2):
        assert "Move 26 memories to trash?" in admin_client.get(preview).content.decode()
    assert admin_client.get(preview.replace("do=delete", "do=restore")).status_code == 400
    assert admin_client.get(f"{BULK}preview/?do=delete&target=forged").status_code == 400


@pytest.mark.django_db
def test_ticked_rows_are_exported_as_json_lines(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"茶 {number}").row for number in range(3)]
    AuditEvent.objects.all().delete()
    answer: Any = admin_client.post(BULK, {"do": "export", "id": rows[:2]})
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    assert sorted(line["text"] for line in lines) == ["茶 0", "茶 1"]
    assert {line["user_id"] for line in lines} == {"alice"}
    assert answer.headers["Content-Disposition"] == 'attachment; filename="memories.jsonl"'
    event = AuditEvent.objects.get()
    assert (event.action, event.user_id, event.detail["rows"]) == ("memory.export", "alice", 2)


@pytest.mark.django_db
def test_only_operators_who_may_export_users_export_memories(admin_client: Client, alice: Person, bob: Person) -> None:
    for number in range(26):
        remember((alice if number else bob).owner, f"Tea {number}")
    target = {"matching": "1", "target": target_of_list(admin_client, "")}
    viewer = operator_client("view_memory")
    assert viewer.post(BULK, {"do": "export", **target}).status_code == 403
    assert b"Export" not in viewer.get("/admin/memory/list/").content
    assert "Export 26 memories?" in admin_client.post(BULK, {"do": "export", **target}, follow=True).content.decode()
    AuditEvent.objects.all().delete()
    answer: Any = admin_client.post(BULK, {"do": "export", "confirmed": "1", **target})
    assert len(b"".join(answer.streaming_content).splitlines()) == 26
    event = AuditEvent.objects.get()
    assert (event.detail["rows"], sorted(event.subjects.values_list("user_id", flat=True))) == (26, ["alice", "bob"])


@pytest.mark.django_db
def test_a_selection_by_filter_is_exported_in_few_statements(admin_client: Client, alice: Person) -> None:
    for number in range(25):
        remember(alice.owner, f"Tea {number}", category="user_memory_fact" if number % 5 else "self_improving_errors")
    answer: Any = admin_client.post(
        BULK,
        {
            "do": "export",
            "matching": "1",
            "confirmed": "1",
            "target": target_of_list(admin_client, "tab=user&user=alice"),
        },
    )
    with CaptureQueriesContext(connection) as queries:
        assert len(b"".join(answer.streaming_content).splitlines()) == 20
    assert len(queries) == 3  # two for each 500 rows, and one that finds no more rows


@pytest.mark.django_db
def test_a_few_ticked_rows_are_deleted_without_a_job_and_restored_by_one_undo(
    admin_client: Client, alice: Person
) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(25)]
    admin_client.post(BULK, {"do": "delete", "id": rows, "reason": "stale"})
    assert (Job.objects.count(), JobStep.objects.count()) == (0, 0)
    assert browse.count(Selection(user_pk=alice.user_pk)) == 0
    assert set(Tombstone.objects.values_list("reason", "actor")) == {("stale", "admin")}
    page = admin_client.get("/admin/memory/list/").content.decode()
    assert "25 memories moved to trash." in page
    admin_client.post(BULK, {"do": "delete", "id": remember(alice.owner, "Tea 26").row})
    undo = undo_address(admin_client)
    assert admin_client.post(undo).status_code == 302
    assert browse.count(Selection(user_pk=alice.user_pk)) == 1
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_many_ticked_rows_are_deleted_by_a_job(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(26)]
    admin_client.post(BULK, {"do": "delete", "id": rows, "confirmed": "1"})
    assert Job.objects.get().total == 26


@pytest.mark.django_db
def test_the_audit_event_of_ticked_rows_is_found_by_each_memory_id(admin_client: Client, alice: Person) -> None:
    memories = [remember(alice.owner, f"Tea {number}", memory_id=f"茶-{number}") for number in range(3)]
    AuditEvent.objects.all().delete()
    admin_client.post(BULK, {"do": "delete", "id": [memory.row for memory in memories[:2]]})
    event = AuditEvent.objects.get()
    assert (event.action, event.user_id, event.actor) == ("memory.delete", "alice", "admin")
    assert sorted(event.detail["memory_ids"]) == ["茶-0", "茶-1"]
    assert audit_events_of(admin_client, "茶-0") == audit_events_of(admin_client, "茶-1") == 1
    assert audit_events_of(admin_client, "茶-2") == audit_events_of(admin_client, "茶") == 0
    assert audit_events_of(admin_client, "%") == 0


def audit_events_of(client: Client, memory_id: str) -> int:
    page = client.get("/admin/memory/audit/", {"subject": memory_id}).content.decode()
    return page.count('title="memory.delete"')


@pytest.mark.django_db
def test_audit_events_of_a_job_are_found_by_its_id(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(2)]
    job = bulk.start("delete", bulk.of_rows(rows), {}, actor=Actor.operator("olga"))
    assert audit_events_of(admin_client, str(job.pk)) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["restore", "categorize"])
def test_a_second_undo_changes_nothing(admin_client: Client, alice: Person, verb: str) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(3)]
    if verb == "restore":
        admin_client.post(BULK, {"do": "delete", "id": rows})
    admin_client.get("/admin/memory/list/")
    before = browse.get_many(rows)
    admin_client.post(BULK, {"do": verb, "id": rows, "category": "user_memory_decision"})
    changed = browse.get_many(rows)
    assert all(was != now for was, now in zip(before, changed, strict=True))
    undo = undo_address(admin_client)
    for _ in range(2):
        admin_client.post(undo)
        undone = browse.get_many(rows)
        assert [(one.category, one.state == "live") for one in undone] == [
            (one.category, one.state == "live") for one in before
        ]
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_an_empty_selection_changes_nothing(admin_client: Client, alice: Person) -> None:
    remember(alice.owner)
    answer = admin_client.post(BULK, {"do": "delete", "next": "/admin/memory/list/?tab=all"})
    assert answer.headers["Location"] == "/admin/memory/list/?tab=all"
    assert browse.count(Selection(user_pk=alice.user_pk)) == 1


@pytest.mark.django_db
def test_a_missing_category_is_requested_and_nothing_changes(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    answer = admin_client.post(BULK, {"do": "categorize", "id": row, "category": "", "next": "/admin/memory/list/"})
    assert answer.headers["Location"] == "/admin/memory/list/"
    assert "Choose a category." in admin_client.get("/admin/memory/list/").content.decode()
    assert Job.objects.count() == 0
