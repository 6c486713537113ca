"""What is hidden, and why: in the lab, in the trash and on its own page."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from console.hidden import whys
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from store import browse
from store.models import Memory
from store.types import StoredMemory
from tests.conftest import Person
from tests.console.people import remember

ACTOR = Actor.operator("op")
LAB = "/admin/memory/search/?user=alice&q=tea"


def delete(memory: StoredMemory, reason: str = "") -> None:
    decisions.delete(memory.owner.user_pk, MemoryRef(memory.memory_id), reason=reason, actor=ACTOR)


def set_aside(memory: StoredMemory, **payload: object) -> StoredMemory:
    """As extraction leaves a memory that it hides."""
    Memory.objects.filter(pk=memory.row).update(origin="extracted", hidden_at=timezone.now(), payload=payload)
    return browse.get(memory.row)


@pytest.mark.django_db
def test_each_hidden_memory_says_why(alice: Person) -> None:
    deleted, source, newer, live = (remember(alice.owner, f"Tea {number}.") for number in range(4))
    with_session = remember(alice.owner, session_id="chat:gone")
    delete(deleted, "cold")
    delete(source)
    decisions.delete_session(alice.owner, "chat:gone", actor=ACTOR)
    replaced = set_aside(remember(alice.owner), hidden_as="superseded", superseded_by=newer.memory_id)
    ids = [source.memory_id, live.memory_id]
    gone_with = set_aside(remember(alice.owner), hidden_as="with_source", sources=ids)
    corrected = set_aside(remember(alice.owner), hidden_as="reworded", sources=[live.memory_id])
    rows = browse.get_many([one.row for one in (deleted, with_session, replaced, gone_with, corrected, live)])
    found = whys(rows)
    assert {row: why.kind for row, why in found.items()} == {
        deleted.row: "deleted",
        with_session.row: "session",
        replaced.row: "superseded",
        gone_with.row: "with_source",
        corrected.row: "reworded",
    }
    assert found[deleted.row].tombstone is not None
    assert found[deleted.row].tombstone.reason == "cold"
    assert [one.row for one in found[replaced.row].others] == [newer.row]
    assert [one.row for one in found[gone_with.row].others] == [source.row]
    assert [one.row for one in found[corrected.row].others] == [live.row]


@pytest.mark.django_db
def test_the_lab_shows_hidden_hits_with_their_rank_and_cause(admin_client: Client, alice: Person) -> None:
    gone, _stays = remember(alice.owner, "Tea, tea and tea."), remember(alice.owner, "Tea at four, as ever.")
    assert "Nothing that is hidden" in admin_client.get(LAB).content.decode()
    delete(gone, "it was coffee")
    page = admin_client.get(LAB).content.decode()
    hidden = page[page.index('id="h-missing"') :]
    assert "Would have rank </span>1</span>" in hidden
    assert f"/admin/memory/m/{gone.row}/" in hidden
    assert "<mark>Tea</mark>, <mark>tea</mark> and <mark>tea</mark>." in hidden
    assert "it was coffee" in hidden
    assert f"/admin/memory/m/{gone.row}/" not in page[: page.index('id="h-missing"')]


@pytest.mark.django_db
def test_the_labs_bars_compare_hits_with_hidden_ones(admin_client: Client, alice: Person) -> None:
    best, _other = remember(alice.owner, "Tea, tea and tea."), remember(alice.owner, "Tea at four, as ever.")
    delete(best)
    page = admin_client.get(LAB).content.decode()
    shown, hidden = page.split('id="h-missing"')
    bars = [re.findall('class="mg-f-(?:info|brand)" width="([0-9.]+)%"', part) for part in (shown, hidden)]
    assert bars[1] == ["100.0", "100.0"]
    assert len(bars[0]) == 2
    assert all(0 < float(width) < 100 for width in bars[0])


@pytest.mark.django_db
def test_the_lab_shows_what_an_edit_replaced(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "Tea at four.")
    decisions.override(alice.user_pk, MemoryRef(memory.memory_id), OverrideValues(text="Tea at five."), actor=ACTOR)
    assert "<del>Tea at four.</del>" in admin_client.get(LAB).content.decode()


# --- the trash -------------------------------------------------------------------------------------------------------

TRASH = "/admin/memory/trash/"


@pytest.mark.django_db
def test_what_nobody_deleted_stands_apart_in_the_trash(admin_client: Client, alice: Person) -> None:
    gone, newer = remember(alice.owner, "Deleted by hand."), remember(alice.owner, "The new fact.")
    delete(gone)
    old = set_aside(remember(alice.owner, "The old fact."), hidden_as="superseded", superseded_by=newer.memory_id)
    page = admin_client.get(TRASH).content.decode()
    assert "Deleted by hand." in page
    assert "The old fact." not in page
    aside = admin_client.get(f"{TRASH}?kind=aside").content.decode()
    assert "Deleted by hand." not in aside
    assert "The old fact." in aside
    assert f'href="/admin/memory/m/{newer.row}/">Open the newer one' in aside
    assert f'href="/admin/memory/add/?like={old.row}"' in aside
    assert 'name="do"' not in aside


@pytest.mark.django_db
def test_all_that_match_in_the_trash_leaves_alone_what_nobody_deleted(admin_client: Client, alice: Person) -> None:
    delete(remember(alice.owner, "Deleted by hand."))
    set_aside(remember(alice.owner, "The old fact."), hidden_as="superseded", superseded_by="m-0")
    asked = admin_client.get(TRASH)
    answer = admin_client.post("/admin/memory/bulk/", {
        "do": "purge", "matching": "1", "target": asked.context["target"], "in_trash": "1",
    })  # fmt: skip
    assert answer.context["shown"].total == 1


@pytest.mark.django_db
def test_a_superseded_memory_is_offered_what_works(admin_client: Client, alice: Person) -> None:
    newer = remember(alice.owner, "The new fact.")
    old = set_aside(remember(alice.owner, "The old fact."), hidden_as="superseded", superseded_by=newer.memory_id)
    page = admin_client.get(f"/admin/memory/m/{old.row}/").content.decode()
    assert "/restore/" not in page
    assert f'href="/admin/memory/m/{newer.row}/" lang="en" dir="auto">The new fact.' in page
    form = admin_client.get(f"/admin/memory/add/?like={old.row}").content.decode()
    assert ">The old fact.</textarea>" in form
    given = {"user": "alice", "category": "user_memory_fact", "text": "The old fact."}
    assert admin_client.post("/admin/memory/add/", given).status_code == 302
    assert Memory.objects.filter(text="The old fact.", hidden_at=None, origin="panel").count() == 1


@pytest.mark.django_db
def test_what_went_with_its_source_leads_to_it(admin_client: Client, alice: Person) -> None:
    source = remember(alice.owner, "I moved to Ulm.")
    delete(source)
    made = set_aside(remember(alice.owner, "Lives in Ulm."), hidden_as="with_source", sources=[source.memory_id])
    page = admin_client.get(f"/admin/memory/m/{made.row}/").content.decode()
    assert "/restore/" not in page
    assert "I moved to Ulm." in page[page.index("what it was made of is in the trash") :]


@pytest.mark.django_db
def test_a_memory_shows_what_it_was_made_of_and_what_it_replaced(admin_client: Client, alice: Person) -> None:
    source, before = remember(alice.owner, "I moved to Ulm."), remember(alice.owner, "Lives in Bonn.")
    made = remember(
        alice.owner, "Lives in Ulm.", payload={"sources": [source.memory_id], "supersedes": [before.memory_id]}
    )
    page = admin_client.get(f"/admin/memory/m/{made.row}/").content.decode()
    assert "I moved to Ulm." in page[page.index("A language model made it of") :]
    assert "Lives in Bonn." in page[page.index("It took the place of") :]


@pytest.mark.django_db
def test_who_may_not_read_memories_copies_none(alice: Person) -> None:
    row = remember(alice.owner, "A secret.").row
    writer = User.objects.create_user("writer", is_staff=True)
    writer.user_permissions.set(Permission.objects.filter(codename="add_memory"))
    client = Client()
    client.force_login(writer)
    assert "A secret." not in client.get(f"/admin/memory/add/?like={row}").content.decode()


@pytest.mark.django_db
def test_around_a_deleted_memory_stand_its_neighbours_in_their_own_words(admin_client: Client, alice: Person) -> None:
    remember(alice.owner, "<relevant-memories>Tea at three.</relevant-memories> Is it still so?")
    gone = remember(alice.owner, "Tea at two.")
    path = f"/admin/memory/m/{gone.row}/"
    assert "With what stands right before and after it" in admin_client.get(path).content.decode()
    delete(gone)
    page = admin_client.get(path).content.decode()
    assert "What stands right before and after it" in page
    assert ">Is it still so?</a>" in page
    assert "Tea at three." not in page


@pytest.mark.django_db
def test_a_deleted_memory_names_its_user_where_there_is_no_column_for_it(admin_client: Client, alice: Person) -> None:
    delete(remember(alice.owner))
    row = admin_client.get(TRASH).content.decode().partition("mg-c-main")[2].partition("</td>")[0]
    assert f'href="{TRASH}?user=alice">alice</a>' in row
