"""The page of a user: profile values, latest facts, the timeline, and transcripts of sessions."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.audit import Actor
from accounts.models import AuditEvent, MemoryUser
from memories.models import LoggedSearch
from memories.services import decisions
from memories.services.decisions import OverrideValues
from memories.services.lookup import MemoryRef
from profiles import services as profiles
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember
from tests.memories.calls import say
from tests.profiles.documents import FULL

pytestmark = pytest.mark.django_db
ACTOR = Actor.operator("op")


def user_page(client: Client, person: Person, view: str = "overview") -> Any:
    return client.get(reverse("console:user", args=[person.user_pk]), {"view": view})


def transcript(client: Client, person: Person, session_id: str, **query: str) -> Any:
    return client.get(reverse("console:transcript", args=[person.user_pk]), {"session": session_id, **query})


def test_the_page_of_a_user_begins_with_profile_values_and_latest_facts(admin_client: Client, alice: Person) -> None:
    profiles.write(alice.user_pk, "user", FULL["user"], actor=ACTOR)
    remember(alice.owner, "Green tea is best")
    page = user_page(admin_client, alice)
    values = {one.where: one.after for one in page.context["profiles"][0][1]}
    assert values["Occupation"] == "architect"
    assert [item.memory.text for item in page.context["facts"]] == ["Green tea is best"]
    assert "/admin/memory/search/?user=alice" in page.content.decode()


def test_a_disabled_profile_shows_no_values(admin_client: Client, alice: Person) -> None:
    profiles.write(alice.user_pk, "user", FULL["user"], actor=ACTOR)
    profiles.set_disabled(alice.user_pk, "user", True, actor=ACTOR)
    assert user_page(admin_client, alice).context["profiles"][0][1] == []


def test_a_transcript_has_messages_in_order_with_speakers_and_derived_memories(
    admin_client: Client, alice: Person
) -> None:
    for text in ("I prefer green tea", "Where is my parcel?", "The parcel is late"):
        say(alice, "chat:c1", text)
    first = Memory.objects.filter(user=alice.user_pk).order_by("created_at_ms", "pk")[0]
    derived = remember(alice.owner, "Prefers green tea", session_id="chat:c1")
    Memory.objects.filter(pk=derived.row).update(origin="extracted", sources=[first.memory_id])
    page = transcript(admin_client, alice, "chat:c1")
    lines = page.context["lines"]
    assert [line["item"].memory.text for line in lines] == [
        "I prefer green tea", "Where is my parcel?", "The parcel is late",
    ]  # fmt: skip
    assert {line["speaker"] for line in lines} == {"alice"}
    assert [[one.text for one in line["derived"]] for line in lines] == [["Prefers green tea"], [], []]
    event = AuditEvent.objects.get(action="session.view")
    assert (event.kind, event.user_id, event.subject_id) == ("read", "alice", "chat:c1")


def test_a_transcript_of_another_user_or_scope_is_not_found(admin_client: Client, alice: Person, bob: Person) -> None:
    remember(alice.owner, session_id="chat:c1")
    assert transcript(admin_client, alice, "chat:c1").status_code == 200
    assert transcript(admin_client, bob, "chat:c1").status_code == 404
    assert transcript(admin_client, alice, "chat:c1", app="other").status_code == 404


def test_pages_of_a_transcript_show_every_message_once(admin_client: Client, alice: Person) -> None:
    made = [remember(alice.owner, f"Message {number}", session_id="chat:long").row for number in range(130)]
    seen, page = [], transcript(admin_client, alice, "chat:long")
    while True:
        seen += [line["item"].memory.row for line in page.context["lines"]]
        if not page.context["following"]:
            break
        page = admin_client.get(page.context["following"])
    assert (sorted(seen), len(seen)) == (made, len(made))


def test_the_timeline_has_facts_edits_with_the_original_replacements_and_deletions(
    admin_client: Client, alice: Person
) -> None:
    edited, deleted, replaced = (remember(alice.owner, text) for text in ("Tea", "Coffee", "Lives in Lyon"))
    ref = MemoryRef(edited.memory_id)
    decisions.override(alice.user_pk, ref, OverrideValues(text="Green tea"), actor=ACTOR)
    decisions.delete(alice.user_pk, MemoryRef(deleted.memory_id), actor=ACTOR)
    Memory.objects.filter(pk=replaced.row).update(state="superseded", state_since=timezone.now())
    shown = user_page(admin_client, alice, "timeline").context["timeline"]
    found = {(event.action, event.text, event.before) for event in shown}
    assert found == {
        ("written", "Green tea", ""),
        ("edited", "Green tea", "Tea"),
        ("deleted", "Coffee", ""),
        ("superseded", "Lives in Lyon", ""),
    }
    assert [event.at for event in shown] == sorted((event.at for event in shown), reverse=True)


def test_the_timeline_has_filters(admin_client: Client, alice: Person) -> None:
    old, new = (remember(alice.owner, text) for text in ("Tea", "Coffee"))
    Memory.objects.filter(pk=old.row).update(created_at_ms=1_700_000_000_000)
    decisions.delete(alice.user_pk, MemoryRef(new.memory_id), actor=ACTOR)
    address = reverse("console:user", args=[alice.user_pk])

    def shown(**filters: str) -> list[tuple[str, str]]:
        page = admin_client.get(address, {"view": "timeline", **filters})
        return [(event.action, event.text) for event in page.context["timeline"]]

    assert shown() == [("deleted", "Coffee"), ("written", "Tea")]
    assert shown(what="deleted") == [("deleted", "Coffee")]
    assert shown(to="2024-01-01") == [("written", "Tea")]
    assert shown(what="deleted", to="2024-01-01") == []


def test_current_facts_say_what_is_true_now_by_subject(admin_client: Client, alice: Person) -> None:
    for number, text in enumerate(("I live in Lyon.", "I live in Oslo.", "My sister lives in Kiel.", "Lovely day!")):
        row = remember(alice.owner, text)
        Memory.objects.filter(pk=row.row).update(created_at_ms=1_700_000_000_000 + number)
    facts = user_page(admin_client, alice).context["current"]
    assert [(one.subject, one.relation, one.value) for one in facts] == [
        ("", "home", "Oslo"), ("sister", "home", "Kiel")
    ]  # fmt: skip


def test_a_page_previews_the_prompt_of_agents(admin_client: Client, alice: Person, bob: Person) -> None:
    remember(alice.owner, "Prefers green tea")
    remember(bob.owner, "Prefers coffee")
    told = user_page(admin_client, alice, "told").context["told"]
    assert "Prefers green tea" in told
    assert "coffee" not in told
    assert LoggedSearch.objects.count() == 0


def test_mentions_in_memories_of_others_are_counted_for_an_erasure(
    admin_client: Client, alice: Person, bob: Person
) -> None:
    MemoryUser.objects.filter(pk=alice.user_pk).update(name="Melanie Kurz")
    for one, text in ((bob, "Melanie Kurz called."), (bob, "Kurz, Melanie"), (alice, "I am Melanie Kurz.")):
        remember(one.owner, text)
    page = user_page(admin_client, alice)
    assert "1 memory of others mentions this person." in page.content.decode()
    listed = admin_client.get("/admin/memory/list/", {"tab": "all", "q": page.context["mentions_query"]})
    assert listed.context["total"] == 2
    assert AuditEvent.objects.filter(action="memory.list", subjects__user_id="bob").exists()


def test_any_revision_can_be_restored_and_the_source_stays_the_original(admin_client: Client, alice: Person) -> None:
    memory = remember(alice.owner, "Tea")
    for text in ("Green tea", "Black tea"):
        decisions.override(alice.user_pk, MemoryRef(memory.memory_id), OverrideValues(text=text), actor=ACTOR)
    address = reverse("console:memory", args=[memory.row])
    page = admin_client.get(address)
    assert page.context["source_text"] == "Tea"
    offered = page.content.decode()
    assert all(f'name="text" value="{text}"' in offered for text in ("Tea", "Green tea"))
    assert 'name="text" value="Black tea"' not in offered
    form = {"text": "Green tea", "category": memory.category, "importance": "", "etag": page.context["etag"]}
    assert admin_client.post(reverse("console:memory-edit", args=[memory.row]), form).status_code == 302
    assert admin_client.get(address).context["memory"].text == "Green tea"
    stale = admin_client.post(reverse("console:memory-edit", args=[memory.row]), form)
    assert stale.status_code == 412


def test_a_readable_copy_is_one_page_with_files_and_data(admin_client: Client, alice: Person, bob: Person) -> None:
    remember(alice.owner, "Prefers green tea")
    remember(bob.owner, "Prefers coffee")
    answer: Any = admin_client.post(reverse("console:user-download", args=[alice.user_pk]))
    with zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))) as archive:
        page = archive.read("index.html").decode()
        assert "memories.jsonl" in archive.namelist()
    assert "Prefers green tea" in page
    assert "coffee" not in page
    assert 'filename="alice.zip"' in answer["Content-Disposition"]
    assert AuditEvent.objects.filter(action="user.export", user_id="alice").count() == 1


def test_sessions_have_speakers_and_a_span(admin_client: Client, alice: Person) -> None:
    for text in ("I prefer green tea", "The parcel is late"):
        say(alice, "chat:c1", text)
    rows = Memory.objects.filter(user=alice.user_pk).order_by("created_at_ms")
    row = user_page(admin_client, alice, "sessions").context["sessions"][0]["talk"]
    assert row.speakers == ("alice",)
    assert (row.first_ms, row.last_ms) == tuple(rows.values_list("created_at_ms", flat=True))


def test_the_span_of_a_session_begins_with_its_earliest_memory(admin_client: Client, alice: Person) -> None:
    for text in ("Later", "Earlier"):  # `remember` goes back in time
        remember(alice.owner, text)
    talk = user_page(admin_client, alice, "sessions").context["sessions"][0]["talk"]
    assert (talk.title, talk.memories) == ("Later", 2)
    assert talk.last_ms - talk.first_ms == 60_000
