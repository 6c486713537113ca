"""Words looked for in the lists."""

from __future__ import annotations

import pytest
from django.test import Client

from console.finding import TOP_K
from tests.conftest import Person
from tests.console.people import remember

SHORT = "there may be more"


@pytest.mark.django_db
def test_a_list_says_when_better_hits_of_another_tab_took_all_places(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, f"She once met a fox {'on one of her long walks in autumn ' * 20}")
    for number in range(TOP_K + 1):
        remember(alice.owner, f"fox {number}", category="")
    pages = {tab: admin_client.get(f"/admin/memory/list/?tab={tab}&user=alice&q=fox") for tab in ("user", "all")}
    assert SHORT in pages["user"].content.decode()
    assert SHORT not in pages["all"].content.decode()
    assert SHORT not in admin_client.get("/admin/memory/list/?tab=user&user=alice&q=autumn").content.decode()
