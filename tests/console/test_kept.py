"""Pages show what replaces a memory, and take the decision that nothing does."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from operations import jobs
from operations.models import Job
from store import browse
from store.browse import Selection
from store.models import Memory
from tests.conftest import Person
from tests.console.people import remember
from tests.memories.calls import say

BERLIN, LISBON = "I live in Berlin.", "I moved from Berlin to Lisbon last month."


def page_of(client: Client, text: str) -> str:
    return client.get(reverse("console:memory", args=[Memory.objects.get(text=text).pk])).content.decode()


def test_an_operator_decides_that_a_memory_is_not_replaced(alice: Person, admin_client: Client) -> None:
    say(alice, "chat:c1", BERLIN, LISBON)
    older, newer = page_of(admin_client, BERLIN), page_of(admin_client, LISBON)
    assert "Replaced by" in older
    assert "Not replaced" in older
    assert "Replaces" in newer
    assert "Not replaced" not in newer
    address = reverse("console:memory-keep", args=[Memory.objects.get(text=BERLIN).pk])
    assert admin_client.post(address, {"kept": "1"}).status_code == 302
    kept = page_of(admin_client, BERLIN)
    assert "Replaced by" not in kept
    assert "May be replaced" in kept
    admin_client.post(address, {"kept": "0"})
    assert "Replaced by" in page_of(admin_client, BERLIN)


def test_the_list_of_a_user_marks_what_a_later_statement_replaces(
    alice: Person, bob: Person, admin_client: Client
) -> None:
    say(alice, "chat:c1", BERLIN, "Lovely day!", LISBON)
    say(bob, "chat:c1", BERLIN)
    address = "/admin/memory/list/?user=alice&mark=replaced"

    def listed(address: str = address) -> list[tuple[str, str]]:
        rows = admin_client.get(address).context["rows"]
        return [(item.memory.text, item.newer.text if item.newer else "") for item in rows]

    assert listed() == [(BERLIN, LISBON)]
    assert listed("/admin/memory/list/?user=alice") == [(LISBON, ""), ("Lovely day!", ""), (BERLIN, LISBON)]
    page = admin_client.get(address).content.decode()
    keep = reverse("console:memory-keep", args=[Memory.objects.get(user=alice.user_pk, text=BERLIN).pk])
    assert f'formaction="{keep}"' in page
    kept = admin_client.post(keep, {"kept": "1", "next": address})
    assert kept.headers["Location"] == address
    assert admin_client.get(address).context["total"] == 0
    assert "Choose a user." in admin_client.get("/admin/memory/list/?mark=replaced").content.decode()


def test_a_job_changes_only_the_memories_that_are_marked_as_replaced(alice: Person, admin_client: Client) -> None:
    say(alice, "chat:c1", BERLIN, LISBON)
    address = "/admin/memory/list/?user=alice&mark=replaced"
    target = admin_client.get(address).context["target"]
    form = {"do": "delete", "matching": "1", "target": target}
    preview = admin_client.post(reverse("console:bulk"), form, follow=True)
    assert "Move 1 memory to trash?" in preview.content.decode()
    admin_client.post(reverse("console:bulk"), {**form, "confirmed": "1"})
    jobs.run_now(Job.objects.get())
    assert list(Memory.objects.filter(state="live").values_list("text", flat=True)) == [LISBON]


def test_a_target_of_no_replaced_memory_changes_nothing(alice: Person, admin_client: Client) -> None:
    say(alice, "chat:c1", LISBON)
    selection = Selection(user_pk=alice.user_pk, mark="replaced")
    assert browse.count(Selection.from_json(selection.as_json())) == 0
    assert admin_client.get("/admin/memory/list/?user=alice&mark=replaced").context["total"] == 0


def test_the_page_of_a_user_shows_what_a_current_fact_replaces(alice: Person, admin_client: Client) -> None:
    remember(alice.owner, LISBON)
    older = remember(alice.owner, BERLIN)
    address = reverse("console:user", args=[alice.user_pk])

    def facts() -> list[tuple[str, list[str]]]:
        return [(one.value, [old.text for old in one.before]) for one in admin_client.get(address).context["current"]]

    assert facts() == [("Lisbon", [BERLIN])]
    admin_client.post(reverse("console:memory-keep", args=[older.row]), {"kept": "1"})
    assert sorted(facts()) == [("Berlin", []), ("Lisbon", [])]


def test_a_statement_that_only_ends_a_value_leaves_no_current_fact(alice: Person, admin_client: Client) -> None:
    remember(alice.owner, "I left Google last week.")
    remember(alice.owner, "I work at Google.")
    assert admin_client.get(reverse("console:user", args=[alice.user_pk])).context["current"] == []
