"""Hidden memories and their reasons: in the search lab, in the trash and on their own pages."""

from __future__ import annotations

import re

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent
from console.hidden import reasons_of
from memories.models import Tombstone
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from store import browse, derived_memories
from store.models import Memory, owner_columns
from store.states import refresh_memories
from store.types import StoredMemory
from tests.conftest import Person
from tests.console.people import remember

ACTOR = Actor.operator("op")
LAB = "/admin/memory/search/?user=alice&q=tea"

KIND = Tombstone.Kind


def delete(memory: StoredMemory, reason: str = "") -> None:
    decisions.delete(memory.owner.user_pk, MemoryRef(memory.memory_id), reason=reason, actor=ACTOR)


def hide_memory(memory: StoredMemory, kind: Tombstone.Kind, other: StoredMemory) -> StoredMemory:
    """Hide a memory as extraction does."""
    Memory.objects.filter(pk=memory.row).update(original_text=F("text"))
    about = {"row_id": memory.row, "memory_id": memory.memory_id, "other_id": other.memory_id}
    Tombstone.ledger.create(**owner_columns(memory.owner), **about, kind=kind, actor_kind="system", actor="model")
    refresh_memories(memory.owner, [memory.memory_id])
    return browse.get(memory.row)


@pytest.mark.django_db
def test_each_hidden_memory_has_its_reason(alice: Person) -> None:
    deleted, source, newer, live = (remember(alice.owner, f"Tea {number}.") for number in range(4))
    in_deleted_session = remember(alice.owner, session_id="chat:gone")
    delete(deleted, "cold")
    delete(source)
    decisions.delete_session(alice.owner, "chat:gone", actor=ACTOR)
    superseded = hide_memory(remember(alice.owner), KIND.SUPERSEDED, newer)
    hidden_with_source = hide_memory(remember(alice.owner), KIND.SOURCE_DELETED, source)
    edited_source = hide_memory(remember(alice.owner), KIND.SOURCE_CORRECTED, live)
    with_derived = hide_memory(remember(alice.owner), KIND.DERIVED_DELETED, deleted)
    hidden = (deleted, in_deleted_session, superseded, hidden_with_source, edited_source, with_derived)
    found = reasons_of(browse.get_many([one.row for one in (*hidden, live)]))
    assert {row: why.kind for row, why in found.items()} == {
        deleted.row: "deleted",
        in_deleted_session.row: "session",
        superseded.row: "superseded",
        hidden_with_source.row: "source_deleted",
        edited_source.row: "source_corrected",
        with_derived.row: "derived_deleted",
    }
    assert all(str(why.label) for why in found.values())
    assert found[deleted.row].tombstone is not None
    assert found[deleted.row].tombstone.reason == "cold"
    assert [one.row for one in found[superseded.row].others] == [newer.row]
    assert [one.row for one in found[hidden_with_source.row].others] == [source.row]
    assert [one.row for one in found[edited_source.row].others] == [live.row]
    assert [one.row for one in found[with_derived.row].others] == [deleted.row]


@pytest.mark.django_db
def test_an_edit_of_the_source_is_no_reason_for_a_memory_with_a_users_words(alice: Person) -> None:
    source, newer = remember(alice.owner), remember(alice.owner)
    hidden = hide_memory(remember(alice.owner), KIND.SOURCE_CORRECTED, source)
    hide_memory(hidden, KIND.SUPERSEDED, newer)
    Memory.objects.filter(pk=hidden.row).update(text="in a user's words")
    refresh_memories(alice.owner, [hidden.memory_id])
    [found] = reasons_of([browse.get(hidden.row)]).values()
    assert (found.kind, [one.row for one in found.others]) == ("superseded", [newer.row])


@pytest.mark.django_db
def test_the_lab_shows_hidden_hits_with_their_rank_and_cause(admin_client: Client, alice: Person) -> None:
    deleted, _stays = remember(alice.owner, "Tea, tea and tea."), remember(alice.owner, "Tea at four, as ever.")
    assert "No hidden memory would" in admin_client.get(LAB).content.decode()
    delete(deleted, "it was coffee")
    page = admin_client.get(LAB).content.decode()
    hidden = page[page.index('id="h-missing"') :]
    assert "Rank if visible </span>1</span>" in hidden
    assert f"/admin/memory/m/{deleted.row}/" in hidden
    assert "<mark>Tea</mark>, <mark>tea</mark> and <mark>tea</mark>." in hidden
    assert "it was coffee" in hidden
    assert f"/admin/memory/m/{deleted.row}/" not in page[: page.index('id="h-missing"')]


@pytest.mark.django_db
def test_the_labs_bars_have_the_same_scale_for_results_and_hidden_results(admin_client: Client, alice: Person) -> None:
    _other, best = remember(alice.owner, "Tea at four, as ever."), remember(alice.owner, "Tea, tea and tea.")
    delete(best)
    page = admin_client.get(LAB).content.decode()
    shown, hidden = page.split('id="h-missing"')
    bars = [re.findall('class="mg-f-(?:info|brand)" width="([0-9.]+)%"', part) for part in (shown, hidden)]
    longest, shorter = sorted(bars, key=lambda widths: -float(widths[0]))
    assert longest == ["100.0"]
    [width] = shorter
    assert 0 < float(width) < 100


@pytest.mark.django_db
def test_the_lab_shows_the_original_text_of_an_edited_memory(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "Tea at four.")
    decisions.override(alice.user_pk, MemoryRef(memory.memory_id), OverrideValues(text="Tea at five."), actor=ACTOR)
    assert "<del>Tea at four.</del>" in admin_client.get(LAB).content.decode()


# --- the trash -------------------------------------------------------------------------------------------------------

TRASH = "/admin/memory/trash/"


@pytest.mark.django_db
def test_memories_hidden_by_the_gateway_have_their_own_tab(admin_client: Client, alice: Person) -> None:
    deleted, newer = remember(alice.owner, "Deleted by hand."), remember(alice.owner, "The new fact.")
    delete(deleted)
    old = hide_memory(remember(alice.owner, "The old fact."), KIND.SUPERSEDED, newer)
    page = admin_client.get(TRASH).content.decode()
    assert "Deleted by hand." in page
    assert "The old fact." not in page
    auto_hidden = admin_client.get(f"{TRASH}?kind=auto-hidden").content.decode()
    assert "Deleted by hand." not in auto_hidden
    assert "The old fact." in auto_hidden
    assert f'href="/admin/memory/m/{newer.row}/">Open newer memory' in auto_hidden
    assert f'action="/admin/memory/m/{old.row}/restore/"' in auto_hidden
    assert 'name="do"' not in auto_hidden


@pytest.mark.django_db
def test_selecting_all_of_the_trash_excludes_auto_hidden_memories(admin_client: Client, alice: Person) -> None:
    delete(remember(alice.owner, "Deleted by hand."))
    hide_memory(remember(alice.owner, "The old fact."), KIND.SUPERSEDED, remember(alice.owner))
    trash = admin_client.get(TRASH)
    answer = admin_client.post("/admin/memory/bulk/", {
        "do": "purge", "matching": "1", "target": trash.context["target"], "in_trash": "1",
    }, follow=True)  # fmt: skip
    assert answer.context["preview"].total == 1


@pytest.mark.django_db
def test_a_superseded_memory_can_be_restored(admin_client: Client, alice: Person) -> None:
    newer = remember(alice.owner, "The new fact.")
    old = remember(alice.owner, "The old fact.")
    derived_memories.supersede([Memory.objects.get(pk=old.row)], Memory.objects.get(pk=newer.row), timezone.now())
    page = admin_client.get(f"/admin/memory/m/{old.row}/").content.decode()
    assert f'href="/admin/memory/m/{newer.row}/" lang="en" dir="auto">The new fact.' in page
    address = f"/admin/memory/m/{old.row}/restore/"
    assert address in page
    assert admin_client.post(address).status_code == 302
    assert Memory.objects.filter(text="The old fact.", state="live").count() == 1
    [event] = AuditEvent.objects.filter(action="memory.restore")
    assert (event.subject_id, event.detail) == (old.memory_id, {"superseded_by": newer.memory_id})


@pytest.mark.django_db
def test_a_memory_hidden_with_its_source_links_to_the_source(admin_client: Client, alice: Person) -> None:
    source = remember(alice.owner, "I moved to Ulm.")
    delete(source)
    derived = hide_memory(remember(alice.owner, "Lives in Ulm."), KIND.SOURCE_DELETED, source)
    page = admin_client.get(f"/admin/memory/m/{derived.row}/").content.decode()
    assert "/restore/" not in page
    assert "I moved to Ulm." in page[page.index("its source is in the trash") :]


@pytest.mark.django_db
def test_a_message_deleted_with_a_derived_memory_can_be_restored_alone(admin_client: Client, alice: Person) -> None:
    derived = remember(alice.owner, "Alice lives in Ulm.")
    delete(derived)
    said = hide_memory(remember(alice.owner, "I moved to Ulm."), KIND.DERIVED_DELETED, derived)
    page = admin_client.get(f"/admin/memory/m/{said.row}/").content.decode()
    assert "Alice lives in Ulm." in page[page.index("a memory derived from it is in the trash") :]
    assert admin_client.post(f"/admin/memory/m/{said.row}/restore/").status_code == 302
    assert (browse.get(said.row).state, browse.get(derived.row).state) == ("live", "trashed")


@pytest.mark.django_db
def test_a_memory_links_to_its_sources_and_to_superseded_memories(admin_client: Client, alice: Person) -> None:
    source, before = remember(alice.owner, "I moved to Ulm."), remember(alice.owner, "Lives in Bonn.")
    derived = remember(alice.owner, "Lives in Ulm.", sources=[source.memory_id], supersedes=[before.memory_id])
    page = admin_client.get(f"/admin/memory/m/{derived.row}/").content.decode()
    assert "I moved to Ulm." in page[page.index("Derived from") :]
    assert "Lives in Bonn." in page[page.index("Supersedes") :]


@pytest.mark.django_db
def test_a_covered_message_links_to_the_memories_that_cover_it(admin_client: Client, alice: Person) -> None:
    said = remember(alice.owner, "I moved to Ulm.", is_covered=True, batch_id="f", payload={"role": "user"})
    other = remember(alice.owner, "I like tea.", batch_id="f", payload={"role": "user"})
    copy = {"origin": "upstream", "batch_id": "f"}
    derived = remember(alice.owner, "Alice lives in Ulm.", sources=[said.memory_id], origin="upstream", batch_id="kept")
    again = remember(alice.owner, "Alice now lives in Ulm.", sources=[said.memory_id], **copy)
    Memory.objects.filter(pk=again.row).update(is_covered=True)  # its session is sent again
    remember(alice.owner, "Alice likes tea.", sources=[other.memory_id], **copy)
    deleted = remember(alice.owner, "Alice resides in Ulm.", sources=[said.memory_id], **copy)
    Memory.objects.filter(pk=deleted.row).update(state="trashed", state_since=timezone.now())
    page = admin_client.get(f"/admin/memory/m/{said.row}/").content.decode()
    covered = page[page.index("Covered by") : page.index('aria-labelledby="h-facts"')]
    assert f"/m/{derived.row}/" in covered
    assert covered.count("Alice") == 1
    assert "Message ·" in " ".join(page.split())
    page = admin_client.get(f"/admin/memory/m/{derived.row}/").content.decode()
    assert "Derived by the remote" in page
    assert "I moved to Ulm." in page[page.index("Derived from") :]
    assert "Covered by" not in admin_client.get(f"/admin/memory/m/{other.row}/").content.decode()


@pytest.mark.django_db
def test_a_deleted_memory_is_shown_with_its_neighbors_without_recalled_memories(
    admin_client: Client, alice: Person
) -> None:
    remember(alice.owner, "<relevant-memories>Tea at three.</relevant-memories> Is it still so?")
    deleted = remember(alice.owner, "Tea at two.")
    path = f"/admin/memory/m/{deleted.row}/"
    assert "Shown with the text before and after it" in admin_client.get(path).content.decode()
    delete(deleted)
    page = admin_client.get(path).content.decode()
    assert "Text before and after it" in page
    assert ">Is it still so?</a>" in page
    assert "Tea at three." not in page


@pytest.mark.django_db
def test_a_deleted_memory_shows_its_user_on_narrow_screens(admin_client: Client, alice: Person) -> None:
    delete(remember(alice.owner))
    row = admin_client.get(TRASH).content.decode().partition("mg-c-main")[2].partition("</td>")[0]
    assert f'href="{TRASH}?user=alice">alice</a>' in row


@pytest.mark.parametrize(
    ("is_session_deleted", "sentence"),
    [(True, "Agents can find it once its session is restored too."), (False, "Agents can find it again.")],
)
def test_a_restored_memory_says_when_agents_find_it(
    admin_client: Client, alice: Person, is_session_deleted: bool, sentence: str
) -> None:
    memory = remember(alice.owner, session_id="chat:trip")
    delete(memory)
    if is_session_deleted:
        decisions.delete_session(alice.owner, "chat:trip", actor=ACTOR)
    page = admin_client.post(f"/admin/memory/m/{memory.row}/restore/", follow=True).content.decode()
    assert f"Restored. {sentence}" in page
