"""Links between the pages of memories, sessions, files, users and audit events."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from django.test import Client

from accounts.audit import Actor, record
from accounts.models import AuditEvent, MemoryUser
from console.queries import MAX_CAUSES
from operations import bulk
from resources.models import Attachment, Resource
from tests.conftest import Person
from tests.console.people import remember

ACTOR = Actor.operator("op")


def content(client: Client, path: str) -> str:
    page = client.get(f"/admin/memory/{path}").content.decode()
    return page[page.index('id="content"') :]


@pytest.mark.django_db
def test_find_shows_jobs_and_at_last_memories(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "She moved to Trieste.")
    job = bulk.start("delete", bulk.of_rows([remember(alice.owner).row]), {}, actor=ACTOR)
    for query in ("move", str(job.pk)[:8]):
        page = content(admin_client, f"find/?q={query}")
        assert f'<a href="/admin/memory/jobs/{job.pk}/">' in page
    page = content(admin_client, "find/?q=move")
    assert page.index("Jobs</h2>") < page.index("Memories</h2>") < page.index("She moved to Trieste.")
    part = admin_client.get("/admin/memory/find/?part=1&q=Trieste").content.decode()
    assert f'href="/admin/memory/m/{memory.row}/"><bdi>She moved to Trieste.</bdi>' in part
    assert "<html" not in part
    assert "Pages</h2>" in admin_client.get("/admin/memory/find/?part=1").content.decode()
    assert "No matches" in admin_client.get("/admin/memory/find/?part=1&q=zzz").content.decode()
    unknown = admin_client.get(f"/admin/memory/find/?part=1&q={uuid4()}").content.decode()
    assert "No matches" in unknown
    assert "<html" not in unknown


@pytest.mark.django_db
def test_a_file_links_to_its_user_and_session(admin_client: Client, alice: Person) -> None:
    file = Resource.objects.create(user_id=alice.user_pk, session_id="resource:alice:r_1", filename="f.pdf")
    page = content(admin_client, f"resources/{file.pk}/")
    assert f'href="/admin/memory/users/{alice.user_pk}/"' in page
    assert 'href="/admin/memory/list/?tab=all&amp;user=alice&amp;session=resource%3Aalice%3Ar_1"' in page


@pytest.mark.django_db
def test_a_memory_links_to_its_user(admin_client: Client, alice: Person) -> None:
    page = content(admin_client, f"m/{remember(alice.owner).row}/")
    assert f'href="/admin/memory/users/{alice.user_pk}/"' in page


@pytest.mark.django_db
def test_the_dashboard_links_to_lists_of_files(admin_client: Client, alice: Person) -> None:
    Resource.objects.create(user_id=alice.user_pk, session_id="s", filename="f.pdf", status="failed")
    page = content(admin_client, "?user=alice")
    assert 'href="/admin/memory/resources/?state=failed&amp;user=alice"' in page
    assert '<a href="/admin/memory/resources/?state=failed">1</a>' in page


@pytest.mark.django_db
def test_the_numbers_of_the_dashboard_add_up_to_its_totals(admin_client: Client, alice: Person) -> None:
    for importance, category in ((0.9, "user_memory_fact"), (None, "user_memory_fact"), (None, "")):
        remember(alice.owner, importance=importance, category=category)
    page = content(admin_client, "?user=alice&from=2026-11-01&to=2026-11-20")
    assert "<dt>Not rated</dt><dd>2</dd>" in page
    cells = [re.findall("<td[^>]*>([0-9,]+)</td>", row) for row in page.split("<tr>") if "<td" in row]
    counted = [[int(number) for number in row] for row in cells]
    assert [2, 0, 0, 1, 3] in counted
    assert all(sum(parts) == total for *parts, total in counted)


@pytest.mark.django_db
def test_types_of_audited_subjects_are_translated(admin_client: Client) -> None:
    for kind in ("memory", "key", "gadget"):
        record(ACTOR, f"{kind}.view", "1")
    page = admin_client.get("/admin/memory/audit/?tab=read", headers={"accept-language": "zh-hans"}).content.decode()
    labels = [subject.split()[0] for subject in re.findall('class="mg-subject">([^<]*)', page)]
    assert sorted(labels) == ["API", "gadget", "记忆"]  # "API 密钥" and its short name


@pytest.mark.django_db
def test_the_audit_trail_links_to_subjects(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner)
    for kind, subject_id in (("memory", memory.memory_id), ("user", str(alice.user_pk)), ("userkey", "uk_1")):
        record(ACTOR, f"{kind}.view", subject_id, user_id="alice")
    page = content(admin_client, "audit/?tab=read")
    assert f'href="/admin/memory/find/?q={memory.memory_id}"' in page
    assert f'href="/admin/memory/find/?q={alice.user_pk}"' in page
    assert "find/?q=uk_1" not in page
    answer = admin_client.get(f"/admin/memory/find/?q={alice.user_pk}")
    assert answer.headers["Location"] == f"/admin/memory/users/{alice.user_pk}/"


@pytest.mark.django_db
def test_sessions_with_the_same_id_link_to_the_session_of_their_user(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    for person in (alice, bob):
        remember(person.owner)
    page = content(admin_client, "list/")
    assert "?tab=all&amp;user=alice&amp;session=chat%3Ac1" in page
    assert "?tab=all&amp;user=bob&amp;session=chat%3Ac1" in page


@pytest.mark.django_db
def test_an_unknown_id_is_reported_before_it_is_searched_as_text(admin_client: Client, alice: Person) -> None:
    unknown = "0F0e0d0c-0b0a-0908-0706-050403020100"
    page = content(admin_client, f"find/?q={unknown}")
    assert "No memory, user, session, file or job" in page
    assert f'href="/admin/memory/list/?tab=all&amp;q={unknown}"' in page
    for query in (f"{unknown}0", f"about {unknown}"):
        assert (
            admin_client.get("/admin/memory/find/", {"q": query}).headers["Location"].startswith("/admin/memory/list")
        )


@pytest.mark.django_db
def test_a_part_of_a_name_finds_users_keys_sessions_files_and_pages(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    remember(bob.owner, session_id="chat:alignment")
    file = Resource.objects.create(user_id=bob.user_pk, session_id="resource:bob:r_1", filename="Alice's lease.pdf")
    AuditEvent.objects.all().delete()
    page = content(admin_client, "find/?q=ALI")
    assert f'<a href="/admin/memory/users/{alice.user_pk}/"><bdi>alice</bdi></a>' in page
    assert f'<a href="/admin/memory/resources/{file.pk}/">' in page
    assert '?tab=all&amp;user=bob&amp;session=chat%3Aalignment"><bdi>chat:alignment</bdi></a>' in page
    event = AuditEvent.objects.get()
    assert (event.action, event.detail) == ("panel.find", {"q_chars": 3})
    assert sorted(event.subjects.values_list("user_id", flat=True)) == ["alice", "bob"]
    page = content(admin_client, f"find/?q={bob.user_key}")
    assert f'<a href="/admin/memory/users/{bob.user_pk}/"><bdi>{bob.user_key[:7]}…</bdi></a>' in page
    assert bob.user_key[7:] not in page
    assert '<a href="/admin/memory/trash/"><bdi>Trash</bdi></a>' in content(admin_client, "find/?q=tra")
    assert '<a href="/admin/memory/resources/upload/"><bdi>Upload files</bdi></a>' in content(
        admin_client, "find/?q=fil"
    )
    MemoryUser.objects.filter(pk=alice.user_pk).update(user_id="!erasing")
    assert "!erasing" not in content(admin_client, "find/?q=ALI")


@pytest.mark.django_db
def test_a_file_links_to_the_sessions_it_is_attached_to(admin_client: Client, alice: Person) -> None:
    file = Resource.objects.create(user_id=alice.user_pk, session_id="resource:alice:r_1", filename="f.pdf")
    Attachment.objects.create(user_id=alice.user_pk, session_id="chat:c7", resource=file, name="f.pdf")
    page = content(admin_client, f"resources/{file.pk}/")
    assert 'href="/admin/memory/list/?tab=all&amp;user=alice&amp;session=chat%3Ac7"' in page


@pytest.mark.django_db
def test_failures_of_rare_causes_are_summed_up(admin_client: Client, alice: Person) -> None:
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
    assert 'href="/admin/memory/resources/?state=failed">Show all failures' in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "query"), [("", ""), ("sessions", "?kind=sessions"), ("auto-hidden", "?kind=auto-hidden")]
)
def test_an_empty_trash_of_one_user_links_to_the_trash_of_all_users(
    admin_client: Client, alice: Person, kind: str, query: str
) -> None:
    page = content(admin_client, f"trash/?kind={kind}&user=alice")
    assert "No matches" in page
    assert "The trash is empty" not in page
    assert page.count(f'href="/admin/memory/trash/{query}">Clear filters') == 3
