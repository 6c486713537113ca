"""Decisions about many memories: what was ticked, or all that a list's filter found when it was drawn."""

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

BULK = "/admin/memory/bulk/"


def drawn(client: Client, query: str) -> str:
    """The frozen selection of a list, as its form carries it."""
    page = client.get(f"/admin/memory/list/?{query}").content.decode()
    found = re.search(r'name="target" value="([^"]+)"', page)
    assert found
    return found[1]


@pytest.mark.django_db
def test_all_that_match_are_those_that_the_list_knew(admin_client: Client, alice: Person, bob: Person) -> None:
    known = [remember(alice.owner, f"Tea {number}").row for number in range(30)]
    others = remember(bob.owner).row
    target = drawn(admin_client, "user=alice")
    later = remember(alice.owner, "Tea later").row
    given = {"do": "delete", "matching": "1", "target": target, "id": [known[0], others]}
    preview = admin_client.post(BULK, given)
    assert "Move 30 memories to trash?" in preview.content.decode()
    assert Job.objects.count() == 0
    admin_client.post(BULK, {**given, "confirmed": "1", "reason": "stale"})
    job = jobs.run_now(Job.objects.get())
    assert (job.status, job.result["changed"]) == ("done", 30)
    gone = [row for row in [*known, others, later] if browse.get(row).hidden_at is not None]
    assert gone == known


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
    assert (event.action, event.detail["rows"]) == ("memory.export", 2)


@pytest.mark.django_db
def test_all_that_match_are_exported_in_few_statements(admin_client: Client, alice: Person) -> None:
    for number in range(25):
        remember(alice.owner, f"Tea {number}", category="user_memory_fact" if number % 5 else "self_improving_errors")
    answer: Any = admin_client.post(
        BULK, {"do": "export", "matching": "1", "target": drawn(admin_client, "user=alice")}
    )
    with CaptureQueriesContext(connection) as seen:
        assert len(b"".join(answer.streaming_content).splitlines()) == 20
    assert len(seen) == 3  # two for each five hundred, and one that finds no more


@pytest.mark.django_db
def test_a_few_ticked_rows_are_deleted_without_a_job_and_come_back_with_one_undo(
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
def test_more_than_a_few_ticked_rows_go_through_a_job(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(26)]
    admin_client.post(BULK, {"do": "delete", "id": rows, "confirmed": "1"})
    assert Job.objects.get().total == 26


@pytest.mark.django_db
def test_one_audit_line_of_ticked_rows_is_found_by_each_memory_id(admin_client: Client, alice: Person) -> None:
    memories = [remember(alice.owner, f"Tea {number}", memory_id=f"茶-{number}") for number in range(3)]
    AuditEvent.objects.all().delete()
    admin_client.post(BULK, {"do": "delete", "id": [memory.row for memory in memories[:2]]})
    event = AuditEvent.objects.get()
    assert (event.action, event.user_id, event.actor) == ("memory.delete", "alice", "admin")
    assert sorted(event.detail["memory_ids"]) == ["茶-0", "茶-1"]
    assert lines_about(admin_client, "茶-0") == lines_about(admin_client, "茶-1") == 1
    assert lines_about(admin_client, "茶-2") == lines_about(admin_client, "茶") == 0
    assert lines_about(admin_client, "%") == 0


def lines_about(client: Client, memory_id: str) -> int:
    page = client.get("/admin/memory/audit/", {"subject": memory_id}).content.decode()
    return page.count("<code>memory.delete</code>")


@pytest.mark.django_db
def test_audit_lines_of_a_job_are_found_by_its_id(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(2)]
    job = bulk.start("delete", bulk.of_rows(rows), {}, actor=Actor.operator("olga"))
    assert lines_about(admin_client, str(job.pk)) == 1


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["restore", "categorise"])
def test_what_was_done_at_once_is_undone_once(admin_client: Client, alice: Person, verb: str) -> None:
    rows = [remember(alice.owner, f"Tea {number}").row for number in range(3)]
    if verb == "restore":
        admin_client.post(BULK, {"do": "delete", "id": rows})
    admin_client.get("/admin/memory/list/")
    before = browse.get_many(rows)
    admin_client.post(BULK, {"do": verb, "id": rows, "category": "user_memory_decision"})
    done = browse.get_many(rows)
    assert all(was != now for was, now in zip(before, done, strict=True))
    undo = undo_address(admin_client)
    for _ in range(2):
        admin_client.post(undo)
        undone = browse.get_many(rows)
        assert [(one.category, one.hidden_at is None) for one in undone] == [
            (one.category, one.hidden_at is None) for one in before
        ]
    assert Job.objects.count() == 0


@pytest.mark.django_db
def test_nothing_ticked_is_nothing_done(admin_client: Client, alice: Person) -> None:
    remember(alice.owner)
    answer = admin_client.post(BULK, {"do": "delete", "next": "/admin/memory/list/?tab=all"})
    assert answer.headers["Location"] == "/admin/memory/list/?tab=all"
    assert browse.count(Selection(user_pk=alice.user_pk)) == 1


@pytest.mark.django_db
def test_no_category_is_asked_for_and_nothing_changes(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner).row
    answer = admin_client.post(BULK, {"do": "categorise", "id": row, "category": "", "next": "/admin/memory/list/"})
    assert answer.headers["Location"] == "/admin/memory/list/"
    assert "Choose a category." in admin_client.get("/admin/memory/list/").content.decode()
    assert Job.objects.count() == 0
