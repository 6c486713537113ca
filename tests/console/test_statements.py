"""How many statements each page costs, whatever the number of rows; four of them are the operator's session,
one counts the failures in the navigation."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.conftest import Person
from tests.console.people import remember

PAGES = {
    "": 36,
    "list/": 21,
    "list/?tab=full": 22,
    "list/?tab=all&user=alice&importance_min=0.1": 22,
    "m/{row}/": 12,
    "m/{row}/edit/": 8,
    "add/": 15,
    "search/?q=tea&user=alice": 23,
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
