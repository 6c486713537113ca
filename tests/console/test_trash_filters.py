"""The trash by words, by time of deletion and by the operator who deleted."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from memories.models import Tombstone
from memories.services import decisions
from operations import jobs
from operations.models import Job
from resources.models import Resource
from store import browse
from store.browse import Selection
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember

pytestmark = pytest.mark.django_db
TRASH = "/admin/memory/trash/"
DAY = timedelta(days=1)


def content(client: Client, **query: str) -> str:
    page = client.get(TRASH, query).content.decode()
    return page[page.index('id="content"') :]


def rows_on(page: str) -> list[int]:
    return [int(row) for row in re.findall(r'name="id" value="(\d+)"', page)]


@pytest.fixture
def trashed(alice: Person, bob: Person) -> dict[str, int]:
    """Green tea that ana deleted two days ago, black tea that ben deleted now, 绿茶 of another user, coffee by ana."""
    rows = {
        "green": remember(alice.owner, "She drinks green teas.").row,
        "black": remember(alice.owner, "Black tea at four.").row,
        "chinese": remember(bob.owner, "我喜欢绿茶").row,
        "coffee": remember(alice.owner, "Coffee at ten.").row,
    }
    remember(alice.owner, "Green tea that is not deleted.")
    decisions.delete_many([rows["green"], rows["coffee"]], actor=Actor.operator("ana"))
    decisions.delete_many([rows["black"], rows["chinese"]], actor=Actor.operator("ben"))
    Memory.objects.filter(pk=rows["green"]).update(state="trashed", state_since=timezone.now() - 2 * DAY)
    return rows


def test_words_find_deleted_memories_and_are_marked(admin_client: Client, trashed: dict[str, int]) -> None:
    page = content(admin_client, q="green tea")
    assert rows_on(page) == [trashed["green"]]
    assert "<mark>teas</mark>" in page
    assert set(rows_on(content(admin_client, q="tea"))) == {trashed["green"], trashed["black"]}
    assert rows_on(content(admin_client, q="绿茶")) == [trashed["chinese"]]
    assert "No matches" in content(admin_client, q="zebra")
    assert "contains no words" in content(admin_client, q="\u200b")


def test_the_time_of_deletion_and_the_operator_narrow_the_trash(admin_client: Client, trashed: dict[str, int]) -> None:
    yesterday = f"{timezone.localtime() - DAY:%Y-%m-%dT%H:%M}"
    assert rows_on(content(admin_client, to=yesterday)) == [trashed["green"]]
    assert trashed["green"] not in rows_on(content(admin_client, **{"from": yesterday}))
    of_ana = content(admin_client, actor="ana")
    assert set(rows_on(of_ana)) == {trashed["green"], trashed["coffee"]}
    assert ">2</span>" in of_ana
    assert rows_on(content(admin_client, actor="ana", q="tea")) == [trashed["green"]]
    assert 'name="matching"' not in of_ana
    assert "Recent bulk deletions" not in of_ana


def test_all_that_match_words_are_restored_together(admin_client: Client, trashed: dict[str, int]) -> None:
    page = content(admin_client, q="tea")
    target = re.search(r'name="target" value="([^"]+)"', page)
    assert target
    given = {"do": "restore", "in_trash": "1", "matching": "1", "target": target[1]}
    admin_client.post("/admin/memory/bulk/", given)
    for job in Job.objects.filter(status="queued"):
        jobs.run_now(job)
    assert set(rows_on(content(admin_client))) == {trashed["chinese"], trashed["coffee"]}


def test_a_selection_by_time_of_deletion_survives_as_json() -> None:
    selection = Selection(in_trash=True, hidden_since_ms=1, hidden_until_ms=2)
    assert Selection.from_json(selection.as_json()) == selection
    assert browse.count(selection) == 0


def test_sessions_and_files_are_narrowed_too(admin_client: Client, alice: Person) -> None:
    for name in ("chat:harbor", "chat:office"):
        remember(alice.owner, session_id=name)
        decisions.delete_session(alice.owner, name, actor=Actor.operator(name[5:8]))
    Tombstone.objects.filter(session_id="chat:harbor").update(created_at=timezone.now() - 2 * DAY)
    yesterday = f"{timezone.localtime() - DAY:%Y-%m-%dT%H:%M}"
    for query in ({"q": "HARB"}, {"actor": "har"}, {"to": yesterday}):
        page = content(admin_client, kind="sessions", **query)
        assert "chat:harbor" in page
        assert "chat:office" not in page
    for name in ("map.pdf", "list.pdf"):
        Resource.objects.create(
            user_id=alice.user_pk, session_id=name, filename=name, status="extracted", state="trashed",
            state_since=timezone.now(),
        )  # fmt: skip
    page = content(admin_client, kind="resources", q="map")
    assert "map.pdf" in page
    assert "list.pdf" not in page
