"""The number of SQL statements of the pages of memories, for any number of rows.

Four of them are for the operator's session, one looks for what has expired, and three are for the navigation: the
failures, if a remote was attached, and the saved views.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conftest import Person
from tests.console.people import remember

PAGES = {
    "": 37,
    "list/": 20,
    "list/?tab=full": 21,
    "list/?tab=all&user=alice&importance_min=0.1": 21,
    "m/{row}/": 20,
    "m/{row}/edit/": 13,
    "add/": 14,
    "search/?q=tea&user=alice": 27,
}


def statement_count(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/admin/memory/{path}").status_code == 200
    # PostgreSQL has a lock for the audit event; SQLite has one writer.
    return sum("pg_advisory_xact_lock" not in query["sql"] for query in queries)


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_more_rows_do_not_need_more_statements(admin_client: Client, alice: Person, bob: Person, path: str) -> None:
    row = remember(alice.owner).row
    counts = []
    for numbers in (range(12), range(12, 40)):
        for number in numbers:
            owner = bob.owner if number % 2 else alice.owner
            category = "full_context_user" if number % 3 else "user_memory_fact"
            session_id, batch_id = f"chat:{number % 5}", f"b{number % 4}"
            remember(owner, f"Tea number {number}", session_id=session_id, category=category, batch_id=batch_id)
        statement_count(admin_client, path.format(row=row))  # the first view of a user has its own event
        counts.append(statement_count(admin_client, path.format(row=row)))
    assert counts == [PAGES[path]] * 2


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "list/", "search/", "add/", "import/", "resources/upload/"])
def test_fields_for_a_user_suggest_the_users(admin_client: Client, alice: Person, bob: Person, path: str) -> None:
    page = admin_client.get(f"/admin/memory/{path}").content.decode()
    users = page.partition('<datalist id="d-user">')[2].partition("</datalist>")[0]
    assert [name for name in ("alice", "bob", "carl") if f'value="{name}"' in users] == ["alice", "bob"]
