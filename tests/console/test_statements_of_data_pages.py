"""The number of SQL statements of the pages of files, users, trash, jobs, audit and health, for any number of rows."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor, record
from accounts.models import MemoryUser
from accounts.services import create_user
from memories.models import LoggedSearch
from memories.services import decisions
from operations import bulk
from operations.models import Job
from resources.models import Attachment, Resource
from store.types import Owner
from tests.agents.oauth.flow import connect
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_statements import statement_count

ACTOR = Actor.operator("op")
PAGES = {
    "resources/": 17,
    "resources/?state=failed&user=alice": 15,
    "resources/{file}/": 19,
    "users/": 16,
    "users/{user}/": 27,
    "users/{user}/?view=timeline": 18,
    "users/{user}/transcript/?session=chat:0": 16,
    "users/{user}/?view=sessions": 16,
    "users/{user}/?view=audit": 14,
    "users/{user}/erase/": 60,
    "trash/": 17,
    "trash/?kind=sessions": 16,
    "trash/?kind=resources": 15,
    "jobs/": 11,
    "jobs/{job}/": 12,
    "searches/": 12,
    "audit/": 13,
    "health/": 24,
}


def add_data(owner: Owner, number: int) -> None:
    session_id = f"resource:{owner.user_id}:r_{number:032x}"
    row = remember(owner, f"Tea number {number}", session_id=session_id).row
    remember(owner, f"Coffee number {number}", session_id="chat:0")
    file = Resource.objects.create(
        resource_id=f"r_{number:032x}", user_id=owner.user_pk, session_id=session_id, filename=f"tea-{number}.pdf",
        status="failed" if number else "extracted", error_message=f"Cause {number % 7}",
    )  # fmt: skip
    Attachment.objects.create(
        user_id=owner.user_pk, session_id=session_id, resource=file, source="upload", type="pdf", name=file.filename,
        internal_uri=f"resource://{number}",
    )  # fmt: skip
    Resource.objects.create(
        user_id=owner.user_pk, session_id=f"resource:{owner.user_id}:gone-{number}", filename=f"gone-{number}.pdf",
        status="extracted", state="trashed", state_since=timezone.now(),
    )  # fmt: skip
    remember(owner, "Gone", session_id=f"chat:gone-{number}")
    decisions.delete_session(owner, f"chat:gone-{number}", actor=ACTOR)
    if number:
        bulk.start("delete", bulk.of_rows([row]), {}, actor=ACTOR)
    connect(owner.user_pk, None, "Agent")
    LoggedSearch.objects.create(
        user_id=owner.user_pk, app_id="default", project_id="default", at=timezone.now(), interface="rest",
        scopes="resources", method="keyword", top_k=8, has_filters=False, hits=number % 3, ms=1.5, query_chars=3,
    )  # fmt: skip
    record(ACTOR, "memory.view", "m", user_id=owner.user_id, detail={"a": 1})


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_more_rows_do_not_need_more_statements(admin_client: Client, alice: Person, bob: Person, path: str) -> None:
    for number in range(3):
        add_data(alice.owner, number)
    values = {"file": f"r_{0:032x}", "user": MemoryUser.objects.get(user_id="alice").pk, "job": Job.objects.first()}
    address = path.format(**{**values, "job": values["job"] and values["job"].pk})
    statement_count(admin_client, address)
    few = statement_count(admin_client, address)
    for number in range(3, 9):
        add_data(bob.owner if number % 2 else alice.owner, number)
        create_user(f"person-{number}", actor=ACTOR)
    statement_count(admin_client, address)  # the first view of other users has its own event
    assert statement_count(admin_client, address) == few == PAGES[path]
