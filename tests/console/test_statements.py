"""How many statements each page costs, whatever the number of rows; four of them are the operator's session,
one counts the failures in the navigation."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conftest import Person
from tests.console.people import remember

# What pages offer to narrow by is counted, on PostgreSQL, with what is not settled yet.
UNSETTLED = 1 if connection.vendor == "postgresql" else 0
PAGES = {
    "": 34 + UNSETTLED,
    "list/": 19 + UNSETTLED,
    "list/?tab=full": 20 + UNSETTLED,
    "list/?tab=all&user=alice&importance_min=0.1": 20 + UNSETTLED,
    "m/{row}/": 12,
    "m/{row}/edit/": 8,
    "add/": 13 + UNSETTLED,
    "search/?q=tea&user=alice": 26 + UNSETTLED,
}


def statements(client: Client, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert client.get(f"/admin/memory/{path}").status_code == 200
    return len(seen)


@pytest.mark.django_db
@pytest.mark.parametrize("path", PAGES)
def test_a_page_costs_the_same_with_more_rows(admin_client: Client, alice: Person, bob: Person, path: str) -> None:
    row = remember(alice.owner).row
    remember(alice.owner, category="full_context_user", batch_id="b")
    statements(admin_client, path.format(row=row))
    few = statements(admin_client, path.format(row=row))
    for number in range(30):
        owner = bob.owner if number % 2 else alice.owner
        category = "full_context_user" if number % 3 else "user_memory_fact"
        session_id, batch_id = f"chat:{number % 5}", f"b{number % 4}"
        remember(owner, f"Tea number {number}", session_id=session_id, category=category, batch_id=batch_id)
    assert statements(admin_client, path.format(row=row)) == few == PAGES[path]
