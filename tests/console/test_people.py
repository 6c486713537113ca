"""People: name, e-mail address, labels and notes of users; the list with search, filters, order and CSV file."""

from __future__ import annotations

import csv
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import services
from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser, UserKey
from operations import erase
from resources.models import Resource
from tests.conftest import Person
from tests.console.people import remember
from tests.console.test_operators import member
from tests.roles import create_roles

pytestmark = pytest.mark.django_db
USERS = "/admin/memory/users/"
OPERATOR = Actor.operator("olga")
MELANIE = {"name": "Melanie Stone", "email": "mel@acme.example", "labels": "pilot, Berlin", "notes": "Called twice."}


def listed(client: Client, **query: str) -> list[str]:
    page = client.get(USERS, query).content.decode()
    return re.findall(r'<a class="mg-cut" href="/admin/memory/users/[0-9a-f-]{36}/">([^<]+)</a>', page)


def describe(person: Person, **values: str) -> None:
    services.describe_user(person.user_pk, values, actor=OPERATOR)


def test_an_operator_edits_what_is_known_of_a_person(admin_client: Client, alice: Person) -> None:
    address = f"{USERS}{alice.user_pk}/edit/"
    refused = admin_client.post(address, {**MELANIE, "email": "mel"})
    assert refused.status_code == 422
    assert not MemoryUser.objects.get(pk=alice.user_pk).name
    admin_client.post(address, {**MELANIE, "labels": " pilot,,Berlin , pilot"})
    user = MemoryUser.objects.get(pk=alice.user_pk)
    assert {name: getattr(user, name) for name in MELANIE} == MELANIE
    event = AuditEvent.objects.get(action="user.describe")
    assert event.detail == {"fields": ["name", "email", "labels", "notes"]}  # not what they hold
    page = admin_client.get(f"{USERS}{alice.user_pk}/").content.decode()
    for text in ("Melanie Stone", "mailto:mel@acme.example", "Berlin", "Called twice."):
        assert text in page
    admin_client.post(address, MELANIE)
    assert AuditEvent.objects.filter(action="user.describe").count() == 1  # nothing changed


def test_viewers_see_people_and_do_not_edit_them(alice: Person) -> None:
    create_roles()
    describe(alice, **MELANIE)
    viewer = member("Viewer", "vera")
    page = viewer.get(f"{USERS}{alice.user_pk}/").content.decode()
    assert "Melanie Stone" in page
    assert "Edit person" not in page
    assert viewer.get(f"{USERS}{alice.user_pk}/edit/").status_code == 403
    assert viewer.post(f"{USERS}{alice.user_pk}/edit/", MELANIE).status_code == 403
    assert viewer.get(f"{USERS}export/").status_code == 403


@pytest.mark.parametrize("text", ["lic", "stone", "ACME", "berlin", "called"])
def test_people_are_found_by_any_part(admin_client: Client, alice: Person, bob: Person, text: str) -> None:
    describe(alice, **MELANIE)
    assert listed(admin_client, q=text) == ["alice"]
    found = admin_client.get("/admin/memory/find/", {"q": text, "part": "1"}).content.decode()
    assert "Melanie Stone · alice" in found
    assert not listed(admin_client, q="nobody")


def test_a_name_and_words_find_the_memories_of_the_person(admin_client: Client, alice: Person, bob: Person) -> None:
    describe(alice, name="Melanie Stone")
    cat = remember(alice.owner, "We got another cat.")
    remember(bob.owner, "My cat sleeps.")
    for text in ("melanie cats", "Melanie Stone cat", "cat alice"):
        page = admin_client.get("/admin/memory/list/", {"q": text}).content.decode()
        assert re.findall(r'name="id" value="(\d+)"', page) == [str(cat.row)]


def test_filters_of_people(admin_client: Client, alice: Person, bob: Person, charlie: Person) -> None:
    now = timezone.now()
    MemoryUser.objects.update(created_at=now - timedelta(days=60))
    UserKey.objects.filter(user=alice.user_pk).update(last_used_at=now)
    UserKey.objects.filter(user=charlie.user_pk).update(expires_at=now + timedelta(days=3))
    remember(alice.owner)
    Resource.objects.create(user_id=bob.user_pk, session_id="s", status="failed", filename="f.pdf")
    expected = {
        "inactive": ["bob", "charlie"],
        "failures": ["bob"],
        "empty": ["bob", "charlie"],
        "expiring": ["charlie"],
    }
    assert {state: listed(admin_client, state=state) for state in expected} == expected
    assert listed(admin_client, state="empty", q="bo") == ["bob"]


def test_orders_and_pages_of_people(admin_client: Client, alice: Person, bob: Person, charlie: Person) -> None:
    describe(charlie, name="Anna")
    describe(alice, name="Zoe")
    remember(bob.owner)
    UserKey.objects.filter(user=charlie.user_pk).update(last_used_at=timezone.now())
    assert listed(admin_client) == ["alice", "bob", "charlie"]
    assert listed(admin_client, sort="name") == ["charlie", "alice", "bob"]
    assert listed(admin_client, sort="memories") == ["bob", "alice", "charlie"]
    assert listed(admin_client, sort="used") == ["charlie", "alice", "bob"]
    for number in range(60):
        MemoryUser.objects.create(user_id=f"many-{number:02}")
    for sort in ("", "memories", "used", "name", "created"):
        seen, start = [], 0
        while rows := listed(admin_client, sort=sort, start=str(start)):
            seen += rows
            start += len(rows)
        assert len(seen) == len(set(seen)) == 63


def test_the_list_is_a_csv_file_without_formulas(admin_client: Client, alice: Person, bob: Person) -> None:
    describe(alice, name="=HYPERLINK(1)", email="mel@acme.example")
    remember(alice.owner)
    answer = admin_client.get(f"{USERS}export/", {"q": "acme"})
    lines = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [(one["user_id"], one["name"], one["email"], one["memories"]) for one in lines] == [
        ("alice", "'=HYPERLINK(1)", "mel@acme.example", "1")
    ]
    event = AuditEvent.objects.filter(action="user.list").latest("pk")
    assert list(event.subjects.values_list("user_id", flat=True)) == ["alice"]


def test_an_erasure_removes_what_is_known_of_the_person(admin_client: Client, alice: Person) -> None:
    describe(alice, **MELANIE)
    erase.erase(alice.user_pk, actor=OPERATOR)
    assert not MemoryUser.objects.filter(name="Melanie Stone").exists()
    assert "Melanie" not in str(list(AuditEvent.objects.values_list("detail", "subject_id")))
    assert listed(admin_client, q="stone") == []


def test_sessions_have_a_title_without_what_was_deleted(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "Deleted words.", session_id="chat:c7", state="trashed", state_since=timezone.now())
    remember(alice.owner, "We plan the trip to Lisbon.", session_id="chat:c7")
    session_id = "resource:alice:r_1"
    Resource.objects.create(
        resource_id="r_1", user_id=alice.user_pk, session_id=session_id, filename="lease.pdf", status="extracted"
    )
    remember(alice.owner, "Page one.", session_id=session_id)
    page = admin_client.get(f"{USERS}{alice.user_pk}/?view=sessions").content.decode()
    assert "We plan the trip to Lisbon." in page
    assert "lease.pdf" in page
    assert "Page one." not in page
    assert "Deleted words." not in page
