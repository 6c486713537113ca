"""The way from a list to a row and back, and the next step that a page without rows or rights offers."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import UserKey
from documents.guards import ENCRYPTED
from memories.services import decisions
from memories.services.manual import add_by_hand
from operations import jobs
from operations.models import Job
from resources.models import Resource
from store import browse
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_access import operator_client
from tests.console.test_links_between_pages import content

pytestmark = pytest.mark.django_db
ROOT = "/admin/memory"


def links(page: str, pattern: str) -> list[str]:
    return [unescape(link) for link in re.findall(pattern, page)]


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_a_memory_leads_to_the_next_of_its_list_and_back(
    admin_client: Client, alice: Person, bob: Person, sort: str
) -> None:
    wanted = [remember(alice.owner, f"Green tea {number}").row for number in range(3)]  # newest first
    remember(alice.owner, "Coffee")
    remember(bob.owner, "Green tea too")
    rows = wanted if sort == "newest" else wanted[::-1]
    address = f"{ROOT}/list/?tab=all&q=tea&user=alice" + ("&sort=oldest" if sort == "oldest" else "")
    found = links(admin_client.get(address).content.decode(), rf'href="({ROOT}/m/\d+/\?[^"]+)"')
    assert [int(link.split("/")[4]) for link in found] == rows
    seen, link = [], found[0]
    while link:
        page = admin_client.get(link).content.decode()
        seen.append(int(link.split("/")[4]))
        back = links(page, r'aria-label="Breadcrumbs">\s*<a href="([^"]+)"')[0]
        assert links(admin_client.get(back).content.decode(), rf'href="({ROOT}/m/\d+/\?[^"]+)"') == found
        link = (links(page, r'href="([^"]+)" rel="next"') or [""])[0]
        before = links(page, r'href="([^"]+)" rel="prev"')
        assert [int(one.split("/")[4]) for one in before] == seen[-2:-1]
    assert seen == rows


def test_a_memory_without_a_list_has_no_neighbors(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner).row for _ in range(2)]
    for query in ("", "?user=nobody", "?from=2026-02-01&to=2026-01-01"):
        assert 'rel="next"' not in content(admin_client, f"m/{rows[0]}/{query}")


def test_files_that_a_retry_cannot_help_are_not_retried(admin_client: Client, alice: Person) -> None:
    for number, message in enumerate((ENCRYPTED, "The parser ran out of memory.")):
        Resource.objects.create(
            user_id=alice.user_pk, session_id=f"s{number}", status="failed", error_message=message, filename="f.pdf"
        )
    page = content(admin_client, "resources/")
    assert "Retry the 1 that can succeed" in page
    assert page.count("Upload a corrected file") == 1
    failed = Resource.objects.order_by("session_id")
    encrypted, other = (content(admin_client, f"resources/{one.pk}/") for one in failed)
    assert f'href="{ROOT}/resources/upload/?user=alice&amp;app=default&amp;project=default"' in encrypted
    assert "Try again" not in encrypted
    assert "Try again" in other
    admin_client.post(f"{ROOT}/resources/retry/", {"cause": "all"})
    assert list(Resource.objects.filter(status="failed").values_list("session_id", flat=True)) == ["s0"]
    assert "that can succeed" not in content(admin_client, "resources/")


def test_users_are_sorted_by_memories_and_last_call(admin_client: Client, alice: Person, bob: Person) -> None:
    for number in range(3):
        remember(bob.owner, f"Tea {number}")
    remember(alice.owner)
    UserKey.objects.filter(user_id=alice.user_pk).update(last_used_at=timezone.now())

    def order(query: str) -> list[str]:
        page = content(admin_client, f"users/{query}")
        assert "2 of 2" in page
        return re.findall(rf'href="{ROOT}/users/[0-9a-f-]+/">(\w+)</a>', page)

    assert order("") == ["alice", "bob"]
    assert order("?sort=memories") == ["bob", "alice"]
    assert order("?sort=used") == ["alice", "bob"]


def test_a_preview_shows_examples_and_its_job_leads_back(admin_client: Client, alice: Person) -> None:
    rows = [remember(alice.owner, f"Green tea {number}").row for number in range(30)]
    back = f"{ROOT}/list/?tab=all&user=alice"
    data = {"do": "delete", "id": rows, "next": back}
    page = admin_client.post(f"{ROOT}/bulk/", data, follow=True).content.decode()
    assert len(re.findall(r">Green tea \d+</a>", page)) == 3
    started = admin_client.post(f"{ROOT}/bulk/", {**data, "confirmed": "1"})
    assert (
        f'href="{back.replace("&", "&amp;")}">Back to the list'
        in admin_client.get(started["Location"]).content.decode()
    )
    job = jobs.run_now(Job.objects.get())
    assert "Back to the list</a>" not in content(admin_client, f"jobs/{job.pk}/?next=https://example.org/")
    assert "Kind" not in content(admin_client, "trash/")


def test_a_deletion_by_filter_is_described_in_words(admin_client: Client, alice: Person) -> None:
    for number in range(30):
        remember(alice.owner, f"Green tea {number}")
    page = admin_client.get(f"{ROOT}/list/?tab=user&q=tea&user=alice").content.decode()
    target = re.findall(r'name="target" value="([^"]+)"', page)[0]
    admin_client.post(f"{ROOT}/bulk/", {"do": "delete", "matching": "1", "target": target, "confirmed": "1"})
    jobs.run_now(Job.objects.get())
    recent = content(admin_client, "trash/")
    assert "Search text <b>tea</b>" in recent
    assert "User <b>alice</b>" in recent


def test_a_refusal_names_the_permission_and_leads_back() -> None:
    client = operator_client("view_memory")
    page = client.get(f"{ROOT}/add/", headers={"Referer": f"http://testserver{ROOT}/list/"}).content.decode()
    assert "“Can add memory” (store.add_memory)" in page
    assert f'href="http://testserver{ROOT}/list/">Go back' in page
    page = client.get(f"{ROOT}/add/", headers={"Referer": "https://example.org/"}).content.decode()
    assert f'href="{ROOT}/">Go back' in page
    assert "Go back" not in operator_client().get(f"{ROOT}/").content.decode()


def test_an_empty_list_removes_its_filters_one_by_one(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "Tea at four.")
    page = content(admin_client, "list/?tab=all&q=tea&category=user_memory_decision")
    remove = links(page, r'class="mg-btn" href="([^"]+)">Remove')
    assert remove == [f"{ROOT}/list/?category=user_memory_decision", f"{ROOT}/list/?q=tea"]
    assert "Tea" in content(admin_client, remove[1].removeprefix(f"{ROOT}/"))


def test_a_memory_that_is_gone_leads_to_the_trash(admin_client: Client) -> None:
    assert f'href="{ROOT}/trash/">Look in the trash' in content(admin_client, "m/999999/")


def test_an_expired_form_shows_the_request_id() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("op"))
    answer = client.post(f"{ROOT}/language/")
    assert answer.status_code == 403
    assert answer["X-Request-Id"] in answer.content.decode()
    assert "Open the page again" in answer.content.decode()


def test_the_numbers_of_the_dashboard_lead_to_their_rows(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, session_id="chat:c1")
    page = content(admin_client, "?range=2y")
    assert "1 memory stored in all" in page
    assert "alice · chat:c1" in page
    assert f'href="{ROOT}/list/?range=2y&amp;tab=all" aria-label="Memories written: 1"' in page
    assert 'href="#h-top-2" aria-label="Sessions: 1"' in page
    assert "stored in all" not in content(admin_client, "?range=2y&agent=coder")


def edit(client: Client, row: int, text: str, **fields: str) -> str:
    """Edit a memory. Return the page that follows."""
    address = f"{ROOT}/m/{row}/edit/"
    etag = re.findall(r'name="etag" value="([^"]+)"', client.get(address).content.decode())[-1]
    given = {"text": text, "category": "user_memory_fact", "importance": "0.5", "etag": etag, **fields}
    return client.post(address, given, follow=True).content.decode()


def test_an_edit_is_undone_to_the_text_before_it(admin_client: Client, alice: Person) -> None:
    row = remember(alice.owner, "Tea at four.").row
    edit(admin_client, row, "Tea at five.", reason="It moved")
    page = edit(admin_client, row, "Tea at six.")
    [undo] = links(page, r'action="(/admin/memory/undo/[^"]+)"')
    admin_client.post(undo)
    assert browse.get(row).text == "Tea at five."
    assert "/undo/" not in edit(admin_client, row, "Tea at five.")


def test_the_history_names_everybody_and_every_reason(admin_client: Client, alice: Person) -> None:
    added = add_by_hand(alice.owner, category="user_memory_fact", text="Tea.", agent_id="", origin="panel",
                        actor=Actor.operator("olga"))  # fmt: skip
    page = edit(admin_client, added.row, "Green tea.", reason="She said so")
    assert "“She said so”" in page
    assert "Original text" in admin_client.get(f"{ROOT}/m/{added.row}/edit/").content.decode()
    admin_client.post(f"{ROOT}/m/{added.row}/revert/")
    decisions.delete_many([added.row], actor=Actor.operator("ben"))
    decisions.restore_many([added.row], actor=Actor.operator("zoe"))
    page = content(admin_client, f"m/{added.row}/")
    history = re.sub(r"<[^>]+>|\s+", " ", page[page.index('id="h-hist"') :])
    for action, name in (
        ("Restored from trash", "zoe"), ("Moved to trash", "ben"), ("Original text restored", "admin"),
        ("Edited", "admin"), ("Written", "olga"),
    ):  # fmt: skip
        assert re.search(rf"{action} +{name} ·", history), (action, history)
