"""Words in the lists of memories: all that match, over all users, marked, paged, and changed together."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client

from accounts.models import AuditEvent
from core.times import to_ms
from operations import jobs
from operations.models import Job
from store import browse, sessions, writes
from store.browse import Selection
from store.index.keyword import entry_of
from store.models import Memory
from store.text.tokens import required_tokens
from store.types import Owner
from tests.conftest import Person
from tests.console.people import NOON, remember

pytestmark = pytest.mark.django_db

LIST, BULK = "/admin/memory/list/", "/admin/memory/bulk/"
ABOUT_TEA = Selection(words=required_tokens("green tea"))


def content(client: Client, **query: str) -> str:
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return answer.content.decode()


def rows_on(page: str) -> list[int]:
    return [int(row) for row in re.findall(r'name="id" value="(\d+)"', page)]


def marks_on(page: str) -> list[str]:
    return [unescape(word) for word in re.findall(r"<mark>(.*?)</mark>", page)]


def remember_many(owner: Owner, number: int, text: str = "Green teas, number") -> None:
    made = [
        Memory(memory_id=f"{text}-{one}", memory_type="episode", category="user_memory_fact",
               sender_id=owner.user_id, text=f"{text} {one}", created_at_ms=to_ms(NOON) - one * 1000)
        for one in range(number)
    ]  # fmt: skip
    with transaction.atomic():
        session = sessions.locked(owner, "chat:many")
        for memory in made:
            memory.session = session
        writes.insert(owner, made, [entry_of(memory) for memory in made])


def test_other_filters_and_tabs_hide_no_match(admin_client: Client, alice: Person) -> None:
    """Before, the 100 best hits of each user took all places."""
    fox = remember(alice.owner, f"She once met a fox {'on one of her long walks in autumn ' * 20}")
    for number in range(120):
        remember(alice.owner, f"fox {number}", category="full_context_user")
    page = content(admin_client, q="foxes")
    assert rows_on(page) == [fox.row]
    assert "1 match" in page
    assert "120 matching messages" in content(admin_client, tab="full", q="fox")
    nothing = content(admin_client, q="fox", importance_min="0.9")
    assert "No matches" in nothing
    assert "0 matches" in nothing


def test_every_user_is_searched_and_every_page_has_its_rows(admin_client: Client, alice: Person, bob: Person) -> None:
    remember_many(alice.owner, 120)
    of_bob = remember(bob.owner, "He prefers green tea.")
    seen: list[int] = []
    page = content(admin_client, q="green tea")
    assert "121 matches" in page
    while True:
        seen += rows_on(page)
        following = re.search(r'href="([^"]+)" rel="next"', page)
        if following is None:
            break
        page = admin_client.get(unescape(following[1])).content.decode()
    assert len(seen) == len(set(seen)) == 121
    assert of_bob.row in seen
    assert rows_on(content(admin_client, q="green tea", user="bob")) == [of_bob.row]


def test_words_are_marked_whatever_their_form(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "Deliveries: <b>delivery</b> of contract.pdf, DELIVERED 付款合同。")
    assert marks_on(content(admin_client, q="delivery")) == ["Deliveries", "delivery"]
    assert marks_on(content(admin_client, q="contract 合同")) == ["contract", "合同"]
    assert marks_on(content(admin_client)) == []


def test_a_long_text_is_cut_where_the_word_stands(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "One of many. " * 400 + "Then a zebra came. " + "And more. " * 400)
    page = content(admin_client, q="zebras")
    assert marks_on(page) == ["zebra"]
    whole = admin_client.get(f"/admin/memory/m/{memory.row}/text/?q=zebras").content.decode()
    assert marks_on(whole) == ["zebra"]


def test_a_text_without_words_finds_nothing_and_says_so(admin_client: Client, alice: Person) -> None:
    remember(alice.owner)
    page = content(admin_client, q="\u200b")
    assert "contains no words" in page
    assert rows_on(page) == []
    assert 'name="target"' not in page


def test_memories_that_wait_for_the_index_are_announced(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "green tea")
    Memory.objects.update(is_indexed=False)
    page = content(admin_client, q="tea")
    assert "1 memory is not indexed yet" in page
    assert "not indexed yet" not in content(admin_client)


@pytest.mark.parametrize("number", [300, pytest.param(10_000, marks=pytest.mark.torture)])
def test_all_that_match_are_deleted_after_a_preview_and_undone_once(
    admin_client: Client, alice: Person, bob: Person, number: int
) -> None:
    remember_many(alice.owner, number)
    others = [remember(bob.owner, "black tea").row, remember(alice.owner, "greenhouse").row]
    page = content(admin_client, q="green tea", tab="user")
    assert f"Select all {number:,} matches" in page
    target = re.search(r'name="target" value="([^"]+)"', page)
    assert target
    later = remember(alice.owner, "green tea, later").row
    given = {"do": "delete", "matching": "1", "target": target[1]}
    preview = admin_client.post(BULK, given, follow=True).content.decode()
    assert f"Move {number:,} memories to trash?" in preview
    assert browse.count(ABOUT_TEA) == number + 1
    admin_client.post(BULK, {**given, "confirmed": "1"})
    job = jobs.run_now(Job.objects.get())
    assert (job.status, job.result["changed"]) == ("done", number)
    assert browse.count(ABOUT_TEA) == 1
    assert all(browse.get(row).state == "live" for row in (*others, later))
    assert "green" not in str(AuditEvent.objects.filter(action="job.delete").get().detail)
    assert "green tea" in admin_client.get(f"/admin/memory/jobs/{job.pk}/").content.decode()
    admin_client.post(f"/admin/memory/jobs/{job.pk}/undo/")
    jobs.run_now(Job.objects.get(kind=jobs.UNDO))
    assert browse.count(ABOUT_TEA) == number + 1


def test_operators_need_the_same_permissions_as_without_words(client: Client, alice: Person) -> None:
    remember_many(alice.owner, 3)
    operator = User.objects.create_user("olga", password="x", is_staff=True)
    client.force_login(operator)
    assert client.get(LIST, {"q": "tea"}).status_code == 403
    operator.user_permissions.add(Permission.objects.get(codename="view_memory"))
    page = content(client, q="tea")
    assert len(rows_on(page)) == 3
    target = re.search(r'name="target" value="([^"]+)"', page)
    assert target
    given = {"do": "delete", "matching": "1", "target": target[1], "confirmed": "1"}
    assert client.post(BULK, given).status_code == 403
    assert browse.count(ABOUT_TEA) == 3
