"""From whatever is shown a way leads on: to its user, its session, its file, its memory."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.audit import Actor, record
from console.failures import MAX_CAUSES
from resources.models import Attachment, Resource
from tests.conftest import Person
from tests.console.people import remember

ACTOR = Actor.operator("op")


def content(client: Client, path: str) -> str:
    page = client.get(f"/admin/memory/{path}").content.decode()
    return page[page.index('id="content"') :]


@pytest.mark.django_db
def test_a_file_leads_to_its_owner_and_its_session(admin_client: Client, alice: Person) -> None:
    file = Resource.objects.create(user_id=alice.user_pk, session_id="resource:alice:r_1", filename="f.pdf")
    page = content(admin_client, f"resources/{file.pk}/")
    assert f'href="/admin/memory/users/{alice.user_pk}/"' in page
    assert 'href="/admin/memory/list/?tab=all&amp;user=alice&amp;session=resource%3Aalice%3Ar_1"' in page


@pytest.mark.django_db
def test_a_memory_leads_to_its_user(admin_client: Client, alice: Person) -> None:
    page = content(admin_client, f"m/{remember(alice.owner).row}/")
    assert f'href="/admin/memory/users/{alice.user_pk}/"' in page


@pytest.mark.django_db
def test_the_dashboards_files_lead_to_their_lists(admin_client: Client, alice: Person) -> None:
    Resource.objects.create(user_id=alice.user_pk, session_id="s", filename="f.pdf", status="failed")
    page = content(admin_client, "?user=alice")
    assert 'href="/admin/memory/resources/?state=failed&amp;user=alice"' in page
    assert '<a href="/admin/memory/resources/?state=failed">1</a>' in page


@pytest.mark.django_db
def test_the_dashboards_parts_add_up_to_its_sums(admin_client: Client, alice: Person) -> None:
    for importance, category in ((0.9, "user_memory_fact"), (None, "user_memory_fact"), (None, "")):
        remember(alice.owner, importance=importance, category=category)
    page = content(admin_client, "?user=alice&from=2026-11-01&to=2026-11-20")
    assert "<dt>Not rated</dt><dd>2</dd>" in page
    cells = [re.findall("<td[^>]*>([0-9,]+)</td>", row) for row in page.split("<tr>") if "<td" in row]
    counted = [[int(number) for number in row] for row in cells]
    assert [2, 0, 0, 1, 3] in counted
    assert all(sum(parts) == total for *parts, total in counted)


@pytest.mark.django_db
def test_the_trail_names_its_subjects_in_the_language_of_the_page(admin_client: Client) -> None:
    for kind in ("memory", "key", "gadget"):
        record(ACTOR, f"{kind}.view", subject_type=kind, subject_id="1")
    page = admin_client.get("/admin/memory/audit/", headers={"accept-language": "zh-hans"}).content.decode()
    named = [subject.split()[0] for subject in re.findall('class="mg-subject">([^<]*)', page)]
    assert sorted(named) == ["gadget", "密钥", "记忆"]


@pytest.mark.django_db
def test_the_trail_leads_to_what_was_done_to(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner)
    for kind, found in (("memory", memory.memory_id), ("user", str(alice.user_pk)), ("userkey", "uk_1")):
        record(ACTOR, f"{kind}.view", subject_type=kind, subject_id=found, user_id="alice")
    page = content(admin_client, "audit/")
    assert f'href="/admin/memory/find/?q={memory.memory_id}"' in page
    assert f'href="/admin/memory/find/?q={alice.user_pk}"' in page
    assert "find/?q=uk_1" not in page
    answer = admin_client.get(f"/admin/memory/find/?q={alice.user_pk}")
    assert answer.headers["Location"] == f"/admin/memory/users/{alice.user_pk}/"


@pytest.mark.django_db
def test_a_session_of_two_users_leads_to_that_of_one(admin_client: Client, alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        remember(person.owner)
    page = content(admin_client, "list/")
    assert "?tab=user&amp;user=alice&amp;session=chat%3Ac1" in page
    assert "?tab=user&amp;user=bob&amp;session=chat%3Ac1" in page


@pytest.mark.django_db
def test_an_id_that_is_nowhere_is_said_before_its_parts_are_looked_for(admin_client: Client, alice: Person) -> None:
    nowhere = "0F0e0d0c-0b0a-0908-0706-050403020100"
    page = content(admin_client, f"find/?q={nowhere}")
    assert "No memory, user, session, file or job" in page
    assert f'href="/admin/memory/list/?tab=all&amp;q={nowhere}"' in page
    for words in (f"{nowhere}0", f"about {nowhere}"):
        assert (
            admin_client.get("/admin/memory/find/", {"q": words}).headers["Location"].startswith("/admin/memory/list")
        )


@pytest.mark.django_db
def test_an_attachment_leads_to_the_session_that_it_hangs_on(admin_client: Client, alice: Person) -> None:
    file = Resource.objects.create(user_id=alice.user_pk, session_id="resource:alice:r_1", filename="f.pdf")
    Attachment.objects.create(user_id=alice.user_pk, session_id="chat:c7", resource=file, name="f.pdf")
    page = content(admin_client, f"resources/{file.pk}/")
    assert 'href="/admin/memory/list/?tab=all&amp;user=alice&amp;session=chat%3Ac7"' in page


@pytest.mark.django_db
def test_failures_of_rare_causes_are_counted_where_not_each_is_shown(admin_client: Client, alice: Person) -> None:
    def fail(number: int) -> None:
        Resource.objects.create(
            user_id=alice.user_pk, session_id=f"s{number}", status="failed", error_message=f"Cause {number:02}."
        )

    for number in range(MAX_CAUSES):
        fail(number)
    assert "for another cause" not in content(admin_client, "resources/")
    fail(MAX_CAUSES)
    assert "1 more file failed for another cause." in content(admin_client, "resources/")
    fail(MAX_CAUSES + 1)
    page = content(admin_client, "resources/")
    assert "2 more files failed for other causes." in page
    assert 'href="/admin/memory/resources/?state=failed">Show all that failed' in page


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "rest"), [("", ""), ("sessions", "?kind=sessions"), ("aside", "?kind=aside")])
def test_a_trash_without_anything_of_one_user_says_so_and_leads_to_everybodys(
    admin_client: Client, alice: Person, kind: str, rest: str
) -> None:
    page = content(admin_client, f"trash/?kind={kind}&user=alice")
    assert "Nothing of alice is in this list" in page
    assert "Nothing is in the trash" not in page
    assert page.count(f'href="/admin/memory/trash/{rest}">Clear all') == 2
