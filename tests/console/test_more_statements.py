"""What the pages of files, people, trash, jobs, audit and health cost, whatever the number of rows."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from accounts.services import create_user
from memories.services import decisions
from operations import bulk
from operations.models import Job
from resources.models import Attachment, Resource
from store.types import Owner
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_statements import UNSETTLED, statements

ACTOR = Actor.operator("op")
PAGES = {
    "resources/": 13,
    "resources/?state=failed&user=alice": 11,
    "resources/{file}/": 13,
    "users/": 11,
    "users/{user}/": 21 + UNSETTLED,
    "users/{user}/?view=sessions": 10,
    "users/{user}/?view=audit": 9,
    "users/{user}/erase/": 28,
    "trash/": 13,
    "trash/?kind=sessions": 12,
    "jobs/": 7,
    "jobs/{job}/": 8,
    "audit/": 7,
    "health/": 20,
}


def grow(owner: Owner, number: int) -> None:
    session_id = f"resource:{owner.user_id}:r_{number:032x}"
    row = remember(owner, f"Tea number {number}", session_id=session_id).row
    file = Resource.objects.create(
        resource_id=f"r_{number:032x}", user_id=owner.user_pk, session_id=session_id, filename=f"tea-{number}.pdf",
        status="failed" if number else "extracted", error_message=f"Cause {number % 7}",
    )  # fmt: skip
    Attachment.objects.create(
        user_id=owner.user_pk, session_id=session_id, resource=file, source="upload", type="pdf", name=file.filename,
        internal_uri=f"resource://{number}",
    )  # fmt: skip
    remember(owner, "Gone", session_id=f"chat:gone-{number}")
    decisions.delete_session(owner, f"chat:gone-{number}", actor=ACTOR)
    if number:
        bulk.start("delete", bulk.of_rows([row]), {}, actor=ACTOR)
    record(ACTOR, "memory.view", subject_type="memory", subject_id="m", user_id=owner.user_id, detail={"a": 1})


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_a_page_costs_the_same_with_more_rows(admin_client: Client, alice: Person, bob: Person, path: str) -> None:
    for number in range(3):
        grow(alice.owner, number)
    named = {"file": f"r_{0:032x}", "user": MemoryUser.objects.get(user_id="alice").pk, "job": Job.objects.first()}
    address = path.format(**{**named, "job": named["job"] and named["job"].pk})
    statements(admin_client, address)
    few = statements(admin_client, address)
    for number in range(3, 20):
        grow(bob.owner if number % 2 else alice.owner, number)
        create_user(f"person-{number}", actor=ACTOR)
    assert statements(admin_client, address) == few == PAGES[path]
