"""Words in the lists of memories: all that match, over all users, marked, paged, and changed together."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from core.times import to_ms
from memories.services import decisions
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
    page = content(admin_client, q="foxes", tab="user")
    assert rows_on(page) == [fox.row]
    assert "1 match" in page
    assert "120 matches" in content(admin_client, tab="full", q="fox")
    assert "121 matches" in content(admin_client, q="fox")
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


def counts_on(page: str) -> dict[str, str]:
    tabs = page.partition('<nav class="mg-tabs"')[2].partition("</nav>")[0]
    found = re.findall(r"</i>(.*?)\n\s*(?:<span class=\"mg-count\">([\d,]+)</span>)?", tabs)
    return {label: number for label, number in found if number}


def test_a_tab_without_matches_names_those_that_have_some(admin_client: Client, alice: Person) -> None:
    for number in range(27):
        remember(alice.owner, f"adoption {number}", category="full_context_user")
    page = content(admin_client, tab="user", q="adoption")
    assert "27 in Full context" in page
    assert "No matches" not in page
    assert counts_on(page) == {"User": "0", "Self-improving": "0", "Full context": "27", "All": "27"}
    assert "27 in Full context" in content(admin_client, tab="user", origin="embedded")  # without words


def test_a_user_and_words_find_what_the_user_wrote(admin_client: Client, alice: Person, bob: Person) -> None:
    of_alice = remember(alice.owner, "We got another cat.")
    named = remember(bob.owner, "Alice has two cats.")
    remember(bob.owner, "My cat sleeps.")
    page = content(admin_client, q="alice cats")
    assert set(rows_on(page)) == {of_alice.row, named.row}
    assert "memories of alice with the other words" in page
    assert marks_on(page) == ["Alice", "cats", "cat"] or marks_on(page) == ["cat", "Alice", "cats"]
    assert set(rows_on(content(admin_client, q="alice"))) == {named.row}


def test_without_all_words_the_nearest_are_listed_and_it_says_so(admin_client: Client, alice: Person) -> None:
    cat, number = remember(alice.owner, "We got another cat."), remember(alice.owner, "Call +1 555-0123, mornings.")
    page = content(admin_client, q="two cats")
    assert rows_on(page) == [cat.row]
    assert "These have some of them" in page
    for query, marks in (("5550", ["555-0"]), ("555-0", ["555-0"]), ("555-0123", ["555-0123"]), ("morn", ["mornings"])):
        page = content(admin_client, q=query)
        assert (query, rows_on(page), marks_on(page)) == (query, [number.row], marks)
    assert "No matches" in content(admin_client, q="zebra")


def test_phrases_beginnings_and_any_word_can_be_asked_for(admin_client: Client, alice: Person) -> None:
    together = remember(alice.owner, "Green tea is best.")
    apart = remember(alice.owner, "Tea from a green tin of deliveries.")
    assert rows_on(content(admin_client, q="green tea")) == [together.row, apart.row]
    assert rows_on(content(admin_client, q='"green tea"')) == [together.row]
    assert rows_on(content(admin_client, q="“green tea”")) == [together.row]
    assert rows_on(content(admin_client, q="deliv* tea")) == [apart.row]
    assert rows_on(content(admin_client, q="best deliveries", match="any")) == [together.row, apart.row]


def test_matches_are_sorted_by_relevance_time_or_importance(admin_client: Client, alice: Person) -> None:
    newest = remember(alice.owner, f"Tea. {'And a lot more of other things. ' * 5}", importance=0.2)
    short = remember(alice.owner, "Tea.", importance=None)
    oldest = remember(alice.owner, "Tea and one more thing.", importance=0.9)
    expected = {
        "": [short, oldest, newest],
        "newest": [newest, short, oldest],
        "oldest": [oldest, short, newest],
        "importance": [oldest, newest, short],
    }
    for sort, memories in expected.items():
        assert (sort, rows_on(content(admin_client, q="tea", sort=sort))) == (sort, [one.row for one in memories])


def test_each_excerpt_shows_a_match(admin_client: Client, alice: Person) -> None:
    filler = "Nothing of interest here. " * 30
    remember(alice.owner, f"{filler}Then a zebra. {filler}A zebra met a lion. {filler}")
    remember(alice.owner, f"{filler}<relevant-memories>The lion of old.</relevant-memories> Thanks.")
    remember(alice.owner, "<relevant-memories>The zebra of old.</relevant-memories> Thanks.")
    page = content(admin_client, q="zebra lion")
    assert marks_on(page) == ["zebra", "lion"]  # the place that has both
    assert [set(marks_on(content(admin_client, q=word))) for word in ("zebra", "lion")] == [{"zebra"}, {"lion"}]
    assert len(rows_on(content(admin_client, q="lion"))) == content(admin_client, q="lion").count("<mark>lion</mark>")


def test_marks_are_filters(admin_client: Client, alice: Person) -> None:
    edited, other, expired, covered = (remember(alice.owner, f"Tea {number}") for number in range(4))
    decisions.override_many([edited.row], decisions.OverrideValues(text="Coffee"), actor=Actor.operator("op"))
    Memory.objects.filter(pk=expired.row).update(state="expired", state_since=timezone.now())
    Memory.objects.filter(pk=covered.row).update(is_covered=True)
    found = {mark: content(admin_client, mark=mark) for mark in ("edited", "expired", "covered", "superseded")}
    assert {mark: set(re.findall(r'href="/admin/memory/m/(\d+)/', page)) for mark, page in found.items()} == {
        "edited": {str(edited.row)}, "expired": {str(expired.row)}, "covered": {str(covered.row)}, "superseded": set(),
    }  # fmt: skip
    assert rows_on(found["edited"]) == [edited.row]
    assert 'name="do"' not in found["expired"]  # it is not live, so nothing changes it
    assert 'name="target"' not in found["expired"] or 'name="target" value=""' in found["expired"]
    assert other.row not in rows_on(found["edited"])


def test_categories_have_counts_with_words_too_and_columns_can_be_hidden(admin_client: Client, alice: Person) -> None:
    for text, category in (("Green tea", "user_memory_fact"), ("Green car", "user_memory_decision"), ("Tea", "")):
        remember(alice.owner, text, category=category)
    page = admin_client.get("/admin/memory/list/", {"tab": "all", "q": "green"})
    choices = dict(page.context["filters"].fields["category"].widget.choices)
    assert choices["user_memory_fact"].endswith("(1)")
    assert choices["user_memory_preference"].endswith("(0)")
    assert 'columnheader" scope="col">Category' in page.content.decode()
    hide = next(one for one in page.context["filters"].columns() if one["label"] == "Category")
    hidden = admin_client.get(hide["url"])
    assert 'columnheader" scope="col">Category' not in hidden.content.decode()
    assert hidden.context["filters"].columns()[0]["url"] == page.request["PATH_INFO"] + "?q=green"
