"""Keyset pagination: each row is shown once, forward and back, while rows are added."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor, record
from operations.models import Job
from resources.models import Resource
from tests.conftest import Person

_LINKS = {"next": re.compile(r'href="([^"]+)" rel="next"'), "prev": re.compile(r'href="([^"]+)" rel="prev"')}
_ROW_IDS = {
    "audit/?action=test.": re.compile(r"<code>subject-(\d+)</code>"),
    "jobs/": re.compile(r'data-row>\s*<th[^>]+>\s*<a href="/admin/memory/jobs/([0-9a-f-]{36})/'),
    "resources/": re.compile(r'href="/admin/memory/resources/(r_[0-9a-f]{32})/"'),
}


def add_rows(path: str, alice: Person, numbers: range) -> None:
    """Add rows with the same time, which are ordered by key."""
    now = timezone.now()
    for number in numbers:
        if path.startswith("audit"):
            record(Actor.system("s"), "test.event", f"subject-{number}")
        elif path.startswith("jobs"):
            job = Job.objects.create(kind="delete", actor_kind="operator")
            Job.objects.filter(pk=job.pk).update(created_at=now)
        else:
            file = Resource.objects.create(user_id=alice.user_pk, session_id=f"s{number}", filename=f"{number}.pdf")
            Resource.objects.filter(pk=file.pk).update(created_at=now)


def rows_and_links(client: Client, path: str) -> tuple[list[str], dict[str, str]]:
    page = client.get(path).content.decode()
    query = re.split("&(after|before|start)", path.partition("memory/")[2])[0]
    pattern = next(pattern for name, pattern in _ROW_IDS.items() if query.startswith(name.rstrip("/")))
    addresses = {name: found[1].replace("&amp;", "&") for name, link in _LINKS.items() if (found := link.search(page))}
    return pattern.findall(page), addresses


@pytest.mark.django_db
@pytest.mark.parametrize("path", _ROW_IDS)
def test_paging_forward_and_back_shows_each_row_once(admin_client: Client, alice: Person, path: str) -> None:
    add_rows(path, alice, range(120))
    first, addresses = rows_and_links(admin_client, f"/admin/memory/{path}")
    assert "prev" not in addresses
    add_rows(path, alice, range(120, 130))
    second, addresses = rows_and_links(admin_client, addresses["next"])
    third, back = rows_and_links(admin_client, addresses["next"])
    assert [len(first), len(second), len(third)] == [50, 50, 20]
    assert len({*first, *second, *third}) == 120
    assert "next" not in back
    again, addresses = rows_and_links(admin_client, back["prev"])
    assert again == second
    assert rows_and_links(admin_client, addresses["prev"])[0] == first
