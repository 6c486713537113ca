"""Lists by key: every row once, in order, there and back, while others come."""

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
_SHOWN = {
    "audit/?action=test.": re.compile(r"<code>subject-(\d+)</code>"),
    "jobs/": re.compile(r'data-row><th[^>]+><a href="/admin/memory/jobs/([0-9a-f-]{36})/'),
    "resources/": re.compile(r'href="/admin/memory/resources/(r_[0-9a-f]{32})/"'),
}


def make(path: str, alice: Person, numbers: range) -> None:
    """Many at the same moment: the key decides between them."""
    now = timezone.now()
    for number in numbers:
        if path.startswith("audit"):
            record(Actor.system("s"), "test.event", subject_type="test", subject_id=f"subject-{number}")
        elif path.startswith("jobs"):
            job = Job.objects.create(kind="delete", actor_kind="operator")
            Job.objects.filter(pk=job.pk).update(created_at=now)
        else:
            file = Resource.objects.create(user_id=alice.user_pk, session_id=f"s{number}", filename=f"{number}.pdf")
            Resource.objects.filter(pk=file.pk).update(created_at=now)


def read(client: Client, path: str) -> tuple[list[str], dict[str, str]]:
    page = client.get(path).content.decode()
    query = path.partition("memory/")[2].partition("&after")[0].partition("&before")[0]
    pattern = next(pattern for name, pattern in _SHOWN.items() if query.startswith(name.rstrip("/")))
    links = {name: found[1].replace("&amp;", "&") for name, link in _LINKS.items() if (found := link.search(page))}
    return pattern.findall(page), links


@pytest.mark.django_db
@pytest.mark.parametrize("path", _SHOWN)
def test_every_row_comes_once_there_and_back(admin_client: Client, alice: Person, path: str) -> None:
    make(path, alice, range(120))
    first, links = read(admin_client, f"/admin/memory/{path}")
    assert "prev" not in links
    make(path, alice, range(120, 130))
    second, links = read(admin_client, links["next"])
    third, back = read(admin_client, links["next"])
    assert [len(first), len(second), len(third)] == [50, 50, 20]
    assert len({*first, *second, *third}) == 120
    assert "next" not in back
    again, links = read(admin_client, back["prev"])
    assert again == second
    assert read(admin_client, links["prev"])[0] == first
