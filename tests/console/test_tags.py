"""Tags and metadata in the panel: in the form for a new memory, on a memory's page and as a filter of the list."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.audit import Actor
from accounts.models import AuditEvent
from memories.services.manual import NewFact, Source, store_fact
from store import browse
from store.browse import Selection
from store.models import Memory
from tests.conftest import Person

pytestmark = pytest.mark.django_db

ACTOR = Actor.command("tests")


def keep(person: Person, text: str, **labels: Any) -> int:
    """Store a fact; return its row."""
    return store_fact(person.owner, NewFact(text, **labels), Source("tool", ACTOR)).memory.row


def submit(client: Client, **values: str) -> Any:
    given = {"user": "alice", "category": "user_memory_fact", "text": "Alice drinks tea", **values}
    return client.post(reverse("console:add"), given)


def test_a_new_memory_gets_tags_and_metadata(admin_client: Client, alice: Person) -> None:
    answer = submit(admin_client, tags=" drinks, home，tea ,", metadata='{"cups": 2}')
    memory = Memory.objects.get()
    assert answer.url == reverse("console:memory", args=[memory.pk])
    assert memory.payload["tags"] == ["drinks", "home", "tea"]
    assert memory.payload["metadata"] == {"cups": 2}
    page = admin_client.get(answer.url).content.decode()
    assert "tag=home" in page
    assert "&quot;cups&quot;: 2" in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tags", "a" * 101),
        ("tags", ",".join(map(str, range(33)))),
        ("metadata", "[1]"),
        ("metadata", "no JSON"),
        ("metadata", '{"a": {"b": {"c": {"d": 1}}}}'),
        ("metadata", '{"a": "\\u0000"}'),
    ],
)
def test_invalid_labels_are_named_and_kept_in_the_form(
    admin_client: Client, alice: Person, name: str, value: str
) -> None:
    answer = submit(admin_client, **{name: value})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == [name]
    assert answer.context["form"][name].value() == value
    assert not Memory.objects.exists()


def test_the_list_is_filtered_by_a_tag_of_all_users(admin_client: Client, alice: Person, bob: Person) -> None:
    rows = [keep(alice, "Alice drinks tea", tags=["tea"]), keep(bob, "Bob drinks tea", tags=["tea", "Tea"])]
    keep(alice, "Tea is in metadata", metadata={"tags": "tea"})
    keep(alice, "No tag")
    page = admin_client.get(reverse("console:memories"), {"tag": "tea"})
    assert {item.memory.row for item in page.context["rows"]} == set(rows)
    both = admin_client.get(reverse("console:memories"), {"tag": "tea", "user": "alice", "tab": "all"})
    assert [item.memory.row for item in both.context["rows"]] == rows[:1]
    assert AuditEvent.objects.filter(action="memory.list").exists()


def test_a_selection_by_tag_is_counted_described_and_recorded_without_it(alice: Person) -> None:
    keep(alice, "Alice drinks tea", tags=["tea"])
    keep(alice, "Alice drinks water")
    selection = Selection(user_pk=alice.user_pk, tag="tea")
    assert browse.count(selection) == 1
    assert Selection.from_json(selection.as_json()) == selection
    assert selection.as_record()["tag"] == 1
