"""An erasure takes the user's rows out of jobs about several users: the others keep their job record and their undo."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from accounts.audit import Actor
from memories.models import Tombstone
from operations import bulk, erase, jobs, operator_jobs
from operations.models import Job, JobStep
from store.browse import Selection
from store.models import Memory
from tests.conftest import Person
from tests.memories.test_manual import add_memory

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.operator("olga")


@pytest.fixture
def rows(alice: Person, bob: Person) -> dict[str, list[int]]:
    """Three memories of alice and two of bob, by row id."""
    of_alice = [add_memory(alice, f"alice's {n}").row for n in range(3)]
    return {"alice": of_alice, "bob": [add_memory(bob, f"bob's {n}").row for n in range(2)]}


def erase_user(person: Person) -> dict[str, Any]:
    return erase.erase(person.user_pk, actor=OLGA)


def shown(person: Person) -> int:
    return Memory.objects.filter(user=person.user_pk, state="live").count()


def test_others_keep_their_undo_and_the_record_of_the_job(
    alice: Person, bob: Person, rows: dict[str, list[int]]
) -> None:
    job = bulk.start("delete", bulk.of_rows([*rows["alice"], *rows["bob"]]), {"reason": "walnut"}, actor=OLGA)
    assert job.result == {"changed": 5, "left": 0}

    planned = erase.plan(alice.user_pk)
    receipt = erase_user(alice)

    assert (planned["jobs"], planned["job_rows"]) == (0, 3)
    assert (receipt["removed"]["jobs"], receipt["removed"]["job_rows"]) == (0, 3)
    job.refresh_from_db()
    assert job.params["target"]["rows"] == rows["bob"]
    assert (job.total, job.done, job.result) == (2, 2, {"changed": 2, "left": 0})
    assert (job.cursor["seen"], job.cursor["changed"]) == (2, 2)
    assert "reason" not in job.params
    assert [change[0] for step in job.steps.all() for change in step.changes] == rows["bob"]
    assert shown(bob) == 0
    undo = jobs.run_now(jobs.undo(job.pk, actor=OLGA))
    assert undo.result == {"undone": 2, "left": 0}
    assert shown(bob) == 2


def test_a_job_about_the_user_alone_goes_with_its_undo(alice: Person, bob: Person, rows: dict[str, list[int]]) -> None:
    job = bulk.start("delete", bulk.of_rows(rows["alice"]), {}, actor=OLGA)
    jobs.run_now(jobs.undo(job.pk, actor=OLGA))
    of_filter = bulk.start("delete", bulk.freeze(Selection(user_pk=alice.user_pk)), {}, actor=OLGA)
    kept = bulk.start("delete", bulk.of_rows(rows["bob"]), {"reason": "chestnut"}, actor=OLGA)
    assert of_filter.result["changed"] == 3
    assert erase.plan(alice.user_pk)["jobs"] == 3
    erase_user(alice)
    assert [job.pk for job in Job.objects.all()] == [kept.pk]
    assert Job.objects.get().params["reason"] == "chestnut"


def test_a_job_of_a_filter_keeps_the_rows_of_others(alice: Person, bob: Person, rows: dict[str, list[int]]) -> None:
    job = bulk.start("delete", bulk.freeze(Selection(words=("walnut", "alice"))), {}, actor=OLGA)
    assert job.result["changed"] == 0
    job = bulk.start("delete", bulk.freeze(Selection(tab="user")), {"reason": "all of alice and bob"}, actor=OLGA)
    undo = jobs.run_now(jobs.undo(job.pk, actor=OLGA))
    erase_user(alice)
    job.refresh_from_db()
    undo.refresh_from_db()
    assert (job.total, job.done, job.result) == (2, 2, {"changed": 2, "left": 0})
    assert (undo.total, undo.done, undo.result) == (2, 2, {"undone": 2, "left": 0})
    assert "alice" not in json.dumps(list(Job.objects.values_list("params", "result", "error")))
    assert {change[0] for changes in JobStep.objects.values_list("changes", flat=True) for change in changes} == set(
        rows["bob"]
    )


def test_a_running_job_goes_on_with_the_rows_of_others(alice: Person, bob: Person, rows: dict[str, list[int]]) -> None:
    target = bulk.of_rows([*rows["alice"], *rows["bob"]])
    job = jobs.submit("delete", {"target": target.as_json(), "reason": "chestnut"}, actor=OLGA, total=5)
    erase_user(alice)
    done = jobs.run_now(job)
    assert (done.total, done.done, done.result) == (2, 2, {"changed": 2, "left": 0})
    assert set(Tombstone.objects.filter(user=bob.user_pk).values_list("reason", flat=True)) == {"chestnut"}


def test_lists_of_a_purge_keep_what_is_of_others(alice: Person, bob: Person, rows: dict[str, list[int]]) -> None:
    bulk.start("delete", bulk.of_rows([*rows["alice"], *rows["bob"]]), {}, actor=OLGA)
    ids = {
        person.user_pk: list(Tombstone.objects.filter(user=person.user_pk).values_list("pk", flat=True))
        for person in (alice, bob)
    }
    queued = operator_jobs.purge_sessions([*ids[alice.user_pk], *ids[bob.user_pk]], actor=OLGA)
    running = operator_jobs.purge_sessions([*ids[alice.user_pk], *ids[bob.user_pk]], actor=OLGA)
    Job.objects.filter(pk=running.pk).update(status="running", cursor={"seen": 4, "purged": 4})
    only = operator_jobs.purge_sessions(ids[alice.user_pk], actor=OLGA)
    erase_user(alice)
    assert not Job.objects.filter(pk=only.pk).exists()
    queued.refresh_from_db()
    assert (queued.params["tombstones"], queued.total) == (ids[bob.user_pk], 2)
    running.refresh_from_db()
    assert len(running.params["tombstones"]) == 5  # its cursor counts along the list


def test_an_import_of_several_users_keeps_the_undo_of_others(alice: Person, bob: Person) -> None:
    job = Job.objects.create(
        kind="import_gateway",
        status="done",
        actor_kind="command",
        done=9,
        total=9,
        params={"path": "/x", "storage": "/y"},
        result={"made": 3, "left": 6, "new": {"users": 2, "keys": 1}},
    )
    changes = [["user", str(alice.user_pk)], ["user", str(bob.user_pk)]]
    JobStep.objects.create(job=job, number=0, changes=changes)
    erase_user(alice)
    job.refresh_from_db()
    assert [step.changes for step in job.steps.all()] == [[["user", str(bob.user_pk)]]]
    assert job.result["new"] == {"users": 1, "keys": 1}


def test_names_leave_the_texts_of_jobs(alice: Person, bob: Person, rows: dict[str, list[int]]) -> None:
    job = bulk.start("delete", bulk.of_rows(rows["bob"]), {"reason": "as alice wished"}, actor=OLGA)
    other = bulk.start("restore", bulk.of_rows(rows["bob"], in_trash=True), {"reason": "of alices"}, actor=OLGA)
    Job.objects.filter(pk=job.pk).update(error="Refused for alice.")
    erase_user(alice)
    job.refresh_from_db()
    other.refresh_from_db()
    assert ("reason" in job.params, job.error) == (False, "")
    assert other.params["reason"] == "of alices"
    assert jobs.can_undo(job)


def test_the_preview_of_an_erasure_names_jobs(
    client: Client, alice: Person, bob: Person, rows: dict[str, list[int]]
) -> None:
    bulk.start("delete", bulk.of_rows([*rows["alice"], *rows["bob"]]), {}, actor=OLGA)
    client.force_login(User.objects.create_superuser("olga"))
    page = client.get(f"/admin/memory/users/{alice.user_pk}/erase/").content.decode()
    assert "Rows in jobs of several users" in page
